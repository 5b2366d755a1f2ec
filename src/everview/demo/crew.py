"""The processes of the mission, as whoever started them sees them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from everview.errors import EverviewError

_PATIENCE = 20
"""How many seconds a process has to end when it is told to."""


class Device:
    """A device, or the hub: a process with a store of its own."""

    def __init__(self, name: str, module: str, store: Path, program: Path, *hosts: str) -> None:
        self.name, self.store, self.hosts = name, store, hosts
        labelled = () if module == "cloud" else (name,)
        self._command = [
            sys.executable,
            "-m",
            f"everview.demo.{module}",
            str(store),
            str(program),
            *labelled,
            *hosts,
        ]
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self.address = ""

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def start(self) -> None:
        """Start the process, on the store as it is."""
        log = self.store.with_suffix(".log")
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def meet(self) -> None:
        """Wait until it says where it is reached."""
        self.address = str(self._read()["address"])

    def ask(self, do: str, **order: Any) -> Any:
        """Have it do something; return what it answers, or raise what it says went wrong."""
        with self._turn:
            process = self._running()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps({"do": do, **order}, default=str) + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass  # what it said last is read below
            answer = self._read()
        if "error" in answer:
            raise EverviewError(f"{self.name}: {answer['error']}")
        return answer["answer"]

    def rows(self, *names: str) -> dict[str, list[tuple[Any, ...]]]:
        """The rows of relations and views, as the device has them."""
        found = self.ask("rows", names=names)
        return {name: [tuple(row) for row in rows] for name, rows in found.items()}

    def kill(self) -> None:
        """SIGKILL: no warning, whatever it is doing."""
        process, self._process = self._running(), None
        process.kill()
        process.wait()
        _close(process)

    def stop(self) -> None:
        """Tell it that the mission is over."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _close(process)

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None:
            raise EverviewError(f"{self.name} is not running")
        return self._process

    def _read(self) -> dict[str, Any]:
        process = self._running()
        assert process.stdout is not None
        line = process.stdout.readline()
        if line:
            return dict(json.loads(line))
        raise EverviewError(f"{self.name} has ended: {self._last_words()}")

    def _last_words(self) -> str:
        """The last line of its log that names an error, or just the last."""
        log = self.store.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        named = [line for line in lines if "Error: " in line or "Exception: " in line]
        return (named or lines or ["it said nothing"])[-1]


def _close(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()

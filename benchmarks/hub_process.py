"""`everview hub` as a process, and what the system says of a process's memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

from benchmarks.hub_data import QUICKLY


def memory(pid: int | str, what: str) -> int:
    """Bytes that a process has: VmRSS are those of now, VmHWM the most there have been."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(what + ":"):
            return int(line.split()[1]) << 10
    return 0


def forget_peak(pid: int | str) -> int:
    """Begin to count the most memory anew; the bytes of now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return memory(pid, "VmRSS")


class HubProcess:
    """`everview hub`, and what it logs of its refreshes."""

    def __init__(self, folder: Path, cores: Collection[int], *, quick: bool) -> None:
        words = ["--store", folder / "hub", "--program", folder / "program.sql", "--insecure", "--port", "0"]
        words += ["--master", f"local[{len(cores)}]", "--log-format", "json", "--trigger", "200 milliseconds"]
        if quick:  # there is so little to do that to compile it takes longest
            words += [word for name, value in QUICKLY.items() for word in ("--conf", f"{name}={value}")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "everview", "hub", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(self._process.pid, cores)  # before it has started anything
        self._news = threading.Condition()
        self._refreshes: list[dict[str, Any]] = []
        self._said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line.startswith("serving "):
            self._process.wait()
            raise RuntimeError(f"everview hub does not start: {' '.join(self._said)}")
        self.address = line.split()[-1]

    def _read(self) -> None:
        assert self._process.stderr is not None  # noqa: S101
        for line in self._process.stderr:
            self._said.append(line)
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if found.get("event") == "refresh":
                with self._news:
                    self._refreshes.append(found)
                    self._news.notify_all()

    def count(self) -> int:
        """How many refreshes there have been."""
        return len(self._refreshes)

    def taken(self, since: int, rows: int) -> float:
        """Wait for a refresh after that many, of that many rows; the seconds that it took."""

        def found() -> list[dict[str, Any]]:
            return [one for one in self._refreshes[since:] if one["appeared"] >= rows]

        with self._news:
            if not self._news.wait_for(found, 300):
                raise RuntimeError("what was fed is in no refresh after five minutes")
            return float(found()[0]["seconds"])

    def memory(self, what: str) -> int:
        """Bytes, as the system counts them: VmRSS are those of now, VmHWM the most there have been."""
        return memory(self._process.pid, what)

    def forget_peak(self) -> int:
        """Begin to count the most memory anew; the bytes of now."""
        return forget_peak(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)
        self._reader.join(10)

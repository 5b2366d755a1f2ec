"""A terminal with a shell in it, and somebody who types: a pseudo-terminal, so that commands behave as they
do for people. Standard error is a pipe beside it, on which no progress bar appears."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][AB0]|\x1b[=>]")
DONE = re.compile(r"⟦(\d+)⟧")
COLUMNS = 110


class Terminal:
    """Bash, as a user has it, in a folder."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._out, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        quiet = termios.tcgetattr(inside)
        quiet[3] &= ~termios.ECHO
        termios.tcsetattr(inside, termios.TCSANOW, quiet)
        self._err, error = os.pipe()
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "--noediting", "-i"],
            stdin=inside,
            stdout=inside,
            stderr=error,
            cwd=folder,
            start_new_session=True,
            env={**env, "PS1": "", "PS2": "", "PROMPT_COMMAND": "printf '⟦%s⟧' $?", "TERM": "xterm"},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - it is the shell's own
        )
        os.close(inside)
        os.close(error)
        for end in (self._out, self._err):
            os.set_blocking(end, False)
        self._said = ""
        self._complained = ""
        self.wait(30)
        self.forget()

    @property
    def said(self) -> str:
        """What has been shown since the last command, without colours."""
        return ESCAPES.sub("", DONE.sub("", self._said)).replace("\r\n", "\n").replace("\r", "\n")

    @property
    def complained(self) -> str:
        return ESCAPES.sub("", self._complained)

    def lines(self) -> list[str]:
        """What is on the screen: what was shown, and what was complained of."""
        return [line.rstrip() for line in (self.said + self.complained).splitlines()]

    def forget(self) -> None:
        self._said = self._complained = ""

    def type(self, line: str) -> None:
        self.forget()
        os.write(self._out, (line + "\n").encode())

    def interrupt(self) -> None:
        os.write(self._out, b"\x03")

    def wait(self, seconds: float) -> int:
        """Until the prompt is back; return the exit status."""
        until = time.monotonic() + seconds
        while not (found := DONE.findall(self._said)):
            if time.monotonic() > until:
                raise TimeoutError(f"no prompt after {seconds} s: {self.lines()}")
            self.look()
        self.look(0)
        return int(found[-1])

    def look(self, seconds: float = 0.05) -> None:
        """Read what there is."""
        ready, _, _ = select.select([self._out, self._err], [], [], seconds)
        for end in ready:
            try:
                data = os.read(end, 1 << 16).decode(errors="replace")
            except OSError:  # the shell has ended
                data = ""
            if end == self._out:
                self._said += data
            else:
                self._complained += data

    def close(self) -> None:
        """End the shell and whatever it has started: they are of one session."""
        self.process.send_signal(signal.SIGHUP)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        for end in (self._out, self._err):
            os.close(end)

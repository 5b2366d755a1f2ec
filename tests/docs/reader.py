"""Somebody who does what a page says, and compares what is shown with what the page shows."""

import os
import re
import socket
import sys
import time
from pathlib import Path

from tests.docs.page import INTERRUPT, Block, File, Typed, as_pattern
from tests.docs.terminal import Terminal

PATIENCE = 120.0


class Reader:
    """Reads a story in a folder, with a terminal for each name that the page has.

    The ports of the page may be taken on this machine, so other ones are typed in their place, and shown.
    What is in the folder `programs` is found before what is installed.
    """

    def __init__(self, folder: Path, ports: tuple[str, ...] = (), programs: Path | None = None) -> None:
        self._folder = folder
        self._terminals: dict[str, Terminal] = {}
        self._names: dict[str, str] = {}  # group → the word that the page has
        self._meant: dict[str, str] = {}  # that word → what really stood there
        self._ports = dict(zip(ports, free_ports(len(ports)), strict=True))
        known = {key: value for key, value in os.environ.items() if key != "EVERVIEW_TOKEN"}
        first = [str(programs)] if programs is not None else []
        path = os.pathsep.join([*first, str(Path(sys.executable).parent), known["PATH"]])
        self._env = {**known, "PATH": path, "HOME": str(folder)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for terminal in self._terminals.values():
            terminal.close()

    def follow(self, story: list[File | Block]) -> None:
        for part in story:
            if isinstance(part, File):
                path = self._folder / part.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self._really(part.text), encoding="utf-8")
            elif part.again:
                self._until_seen(part)
            else:
                for typed in part.typed:
                    self._type(part.terminal, typed)

    def _until_seen(self, block: Block) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                for typed in block.typed:
                    self._type(block.terminal, typed)
            except AssertionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)
            else:
                return

    def _type(self, name: str, typed: Typed) -> None:
        if name not in self._terminals:
            self._terminals[name] = Terminal(self._folder, self._env)
        terminal = self._terminals[name]
        if typed.line == INTERRUPT:
            terminal.interrupt()
            status = terminal.wait(PATIENCE)
            assert status in (0, 130), terminal.lines()
            return
        terminal.type(self._really(typed.line))
        if typed.stays:
            self._watch(terminal, typed)
            return
        status = terminal.wait(PATIENCE)
        said, complained = terminal.said, terminal.complained
        where = f"{name}: $ {typed.line}"
        orders = [[*_lines(a), *_lines(b)] for a, b in ((said, complained), (complained, said))]
        assert any(self._same(typed.shown, lines) for lines in orders), _told(where, typed.shown, orders[0])
        failed = any(line.startswith("error:") for line in typed.shown)
        assert status == (1 if failed else 0), where

    def _watch(self, terminal: Terminal, typed: Typed) -> None:
        """Until all that the page shows has appeared, in its order."""
        until = time.monotonic() + PATIENCE
        while not self._among(typed.shown, terminal.lines()):
            assert time.monotonic() < until, _told(typed.line, typed.shown, terminal.lines())
            assert terminal.process.poll() is None
            terminal.look()

    def _same(self, shown: list[str], lines: list[str]) -> bool:
        if len(shown) != len(lines):
            return False
        return all(self._match(wanted, line) for wanted, line in zip(shown, lines, strict=True))

    def _among(self, shown: list[str], lines: list[str]) -> bool:
        rest = iter(lines)
        return all(any(self._match(wanted, line) for line in rest) for wanted in shown)

    def _match(self, wanted: str, line: str) -> bool:
        found = as_pattern(self._really(wanted), self._names).fullmatch(line)
        if found is None:
            return False
        for group, value in found.groupdict().items():
            self._meant[self._names[group]] = value
        return True

    def _really(self, text: str) -> str:
        """What the page means: words that stand for others, and ports."""
        for word, value in self._meant.items():
            text = text.replace(word, value)
        for port, other in self._ports.items():
            text = re.sub(rf"\b{port}\b", other, text)
        return text


def free_ports(number: int) -> list[str]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    found = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return found


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _told(where: str, shown: list[str], lines: list[str]) -> str:
    return "\n".join([where, "the page shows", *shown, "the terminal shows", *lines])

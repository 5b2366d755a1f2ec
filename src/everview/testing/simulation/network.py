"""The virtual network: messages on their way, one-way partitions, and a folder that everyone can reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from everview.replication.exchange import Exchange
from everview.testing.simulation.device import Seen

OVER = -1
"""What a dialog awaits when its process has died."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A message of an exchange: to the side that was dialled, or back. `seen` is what its sender had seen."""

    dialog: int
    sender: str
    to: str
    data: bytes
    seen: Seen
    back: bool
    number: int
    """Of the packet, or of the one that it answers."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A file in the folder."""

    sender: str
    pages: list[bytes]
    seen: Seen


@dataclass(slots=True)
class Dialog:
    """An exchange as its dialling side knows it; `awaited` is the packet to which it waits for an answer."""

    site: str
    peer: str
    exchange: Exchange
    awaited: int = 0


def around(near: Sequence[str], *, parts: bool) -> list[tuple[str, str]]:
    """The links of a site's neighbours with each other, once it is gone: what got past it still does.

    A line will do, unless sites host different `parts`: one may not pass on what the next needs.
    """
    return list(combinations(near, 2) if parts else pairwise(near))


@dataclass(slots=True)
class Network:
    """What is on its way, who can reach whom, and what lies in the folder."""

    links: dict[str, set[str]] = field(default_factory=dict)
    down: set[tuple[str, str]] = field(default_factory=set)
    """From → to: nothing gets through."""
    packets: list[Packet] = field(default_factory=list)
    folder: list[Batch] = field(default_factory=list)
    dialogs: dict[int, Dialog] = field(default_factory=dict)
    sent: int = 0

    def link(self, one: str, other: str) -> None:
        """Let two sites reach each other."""
        if one != other:
            self.links.setdefault(one, set()).add(other)
            self.links.setdefault(other, set()).add(one)

    def unlink(self, name: str, *, parts: bool) -> None:
        """A site is gone; its neighbours reach each other instead."""
        near = sorted(self.links.pop(name, ()))
        for other in near:
            self.links[other].discard(name)
        for one, other in around(near, parts=parts):
            self.link(one, other)

    def tree(self, root: str) -> list[tuple[str, str]]:
        """Links enough to reach everyone from one site, the nearest first."""
        found, reached = [], [root]
        for one in reached:
            for other in sorted(self.links[one]):
                if other not in reached:
                    reached.append(other)
                    found.append((one, other))
        return found

    def is_open(self, sender: str, to: str) -> bool:
        """Whether a message gets through."""
        return (sender, to) not in self.down

    def open_dialog(self, site: str, peer: str, exchange: Exchange) -> int:
        """Begin an exchange; return its number."""
        number = len(self.dialogs)
        self.dialogs[number] = Dialog(site, peer, exchange)
        return number

    def forget(self, site: str) -> None:
        """A process died: its exchanges are over."""
        for dialog in self.dialogs.values():
            if dialog.site == site:
                dialog.awaited = OVER

    def call(self, dialog: int, data: bytes, seen: Seen) -> Packet:
        """Make the next packet of an exchange; the dialling side waits for the answer to it."""
        found = self.dialogs[dialog]
        self.sent += 1
        if found.awaited != OVER:
            found.awaited = self.sent
        return Packet(dialog, found.site, found.peer, data, seen, False, self.sent)

    def answer(self, packet: Packet, data: bytes, seen: Seen) -> Packet:
        """Make the packet that answers one."""
        return Packet(packet.dialog, packet.to, packet.sender, data, seen, True, packet.number)

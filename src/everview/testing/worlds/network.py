"""The virtual network: messages on their way, exchanges that have begun, and one-way partitions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from everview.errors import EverviewError
from everview.replication.protocol.exchange import Exchange
from everview.replication.rights.rights import ALL
from everview.replication.wire.codec import decode
from everview.replication.wire.sites import Named
from everview.testing.worlds.invariants import Wrong

if TYPE_CHECKING:
    from everview.testing.worlds.sites import Site
    from everview.testing.worlds.world import World

OVER = -1
"""What an exchange awaits when its process has died."""

MOST_MESSAGES = 3_000
"""No exchange of so few rows takes more."""


@dataclass(frozen=True, slots=True)
class Packet:
    """A message of an exchange: to the side that was dialled, or back."""

    dialog: int
    sender: str
    to: str
    data: bytes
    back: bool
    number: int
    """Of the packet, or of the one that it answers."""


@dataclass(slots=True)
class Dialog:
    """An exchange as its dialling side knows it; `awaited` is the packet to which it waits for an answer."""

    site: str
    peer: str
    exchange: Exchange
    awaited: int = 0


@dataclass(slots=True)
class Network:
    """What is on its way, and who can reach whom."""

    down: set[tuple[str, str]] = field(default_factory=set)
    """From, to: nothing gets through."""
    packets: list[Packet] = field(default_factory=list)
    dialogs: list[Dialog] = field(default_factory=list)
    sent: int = 0

    def forget(self, site: str) -> None:
        """A process died: its exchanges are over."""
        for dialog in self.dialogs:
            if dialog.site == site:
                dialog.awaited = OVER

    def call(self, number: int, data: bytes) -> Packet:
        """Make the next packet of an exchange; the dialling side waits for the answer to it."""
        dialog = self.dialogs[number]
        self.sent += 1
        if dialog.awaited != OVER:
            dialog.awaited = self.sent
        return Packet(number, dialog.site, dialog.peer, data, False, self.sent)


def dial(world: World, site: Site, peer: Site, crash: int = 0) -> Packet | None:
    """Begin an exchange; return its first packet."""
    network, first = world.network, b""
    network.dialogs.append(Dialog(site.name, peer.name, site.replica.exchange(peer.name)))
    number = len(network.dialogs) - 1
    with world.acting(site, crash):
        first = network.dialogs[number].exchange.open()
    return network.call(number, first) if first else None


def sync(
    world: World, site: Site, peer: Site, *, messages: int = 0, victim: str = "", crash: int = 0
) -> bool:
    """An exchange, until something keeps it from going on; return whether it was whole."""
    if site is peer or not world.may_meet(site, peer):
        return False
    packet = dial(world, site, peer, crash if victim == site.name else 0)
    if packet is None:
        return False
    dialog = world.network.dialogs[packet.dialog]
    for done in range(MOST_MESSAGES):
        if packet is None:
            return dialog.awaited == 0
        if (packet.sender, packet.to) in world.network.down or (messages and done >= messages):
            world.counts["exchanges cut off"] += 1
            return False
        packet = deliver(world, packet, crash if victim == packet.to else 0)
    raise Wrong(f"{site.name} and {peer.name} never finish an exchange")


def deliver(world: World, packet: Packet, crash: int = 0) -> Packet | None:
    """Hand a packet to whom it is for; return the one that follows."""
    to, dialog = world.sites[packet.to], world.network.dialogs[packet.dialog]
    following: bytes | None = None
    world.counts["messages"] += 1
    world.note(f" {packet.sender}→{packet.to} {len(packet.data)} {zlib.crc32(packet.data):x}")
    with world.acting(to, crash):
        if packet.back:
            following = _come_back(world, to, dialog, packet)
        else:
            following = to.replica.answer(packet.data, to.rights_of(packet.sender))
    if not packet.back:
        world.note_undone(to)
    if following is None:
        return None
    if packet.back:
        return world.network.call(packet.dialog, following)
    return Packet(packet.dialog, packet.to, packet.sender, following, True, packet.number)


def _come_back(world: World, to: Site, dialog: Dialog, packet: Packet) -> bytes | None:
    """An answer: of the exchange that waits for it; others are passed over."""
    message, columns = decode(packet.data)
    if dialog.awaited != packet.number:
        world.counts["answers to nobody"] += 1
        if message.page is not None and message.sites[0].hex() != to.incarnation:
            to.replica.questions.take(message, columns, packet.data, Named(message.sites, message.names), ALL)
        return None
    if message.refusal is not None:
        world.counts["refusals"] += 1
        if world.is_honest(to.name) and world.is_honest(packet.sender) and not world.case.wild:
            raise Wrong(f"{packet.sender} refuses {to.name}: {message.refusal.text}")
    dialog.awaited = 0
    try:
        return dialog.exchange.receive(packet.data)
    except EverviewError as error:
        dialog.awaited = OVER
        world.counts["exchanges given up"] += 1
        world.note(f"  given up: {error}")
        return None

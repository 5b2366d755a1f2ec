"""Exchanges in a world: packets are handed over, and whoever takes a cut has seen what its sender had."""

from __future__ import annotations

import zlib

from everview.errors import SyncError
from everview.replication.exchange import Exchange
from everview.replication.messages import OTHER_PROGRAM, Cursor
from everview.replication.rights import ALL
from everview.replication.wire import decode
from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.device import Device, Seen
from everview.testing.simulation.network import Dialog, Packet
from everview.testing.simulation.world import World

MOST_MESSAGES = 2_000
"""No exchange of so few rows takes more."""


def dial(world: World, site: Device, peer: Device, crash: int = 0) -> Packet | None:
    """Begin an exchange; return its first packet."""
    number = world.network.open_dialog(site.name, peer.name, Exchange(site.replica, peer.name))
    first: list[Packet] = []
    with world.acting(site, crash):
        data = world.network.dialogs[number].exchange.open()
        first.append(world.network.call(number, data, dict(site.seen)))
    return first[0] if first else None


def sync(world: World, site: Device, peer: Device, victim: str = "", crash: int = 0) -> None:
    """A whole exchange, unless one direction is cut off, or one of the two dies in it."""
    if site is peer or not (site.knows(peer) and peer.knows(site)):
        return
    packet = dial(world, site, peer, crash if victim == site.name else 0)
    for _ in range(MOST_MESSAGES):
        if packet is None:
            return
        if not world.network.is_open(packet.sender, packet.to):
            world.counts["messages cut off"] += 1
            return
        packet = deliver(world, packet, crash if victim == packet.to else 0)
    raise Wrong(f"{site.name} and {peer.name} never finish an exchange")


def deliver(world: World, packet: Packet, crash: int = 0) -> Packet | None:
    """Hand a packet to whom it is for; return the one that follows."""
    to, dialog = world.devices[packet.to], world.network.dialogs[packet.dialog]
    following: bytes | None = None
    world.counts["messages"] += 1
    world.note(f" {packet.sender}→{packet.to} {len(packet.data)} {zlib.crc32(packet.data):x}")
    with world.acting(to, crash, after=lambda: absorb(to, packet.data, packet.seen)):
        if packet.back:
            following = _come_back(world, to, dialog, packet)
        else:
            following = to.replica.answer(packet.data, to.rights.get(packet.sender, ALL))
    if following is None:
        return None
    if packet.back:
        return world.network.call(packet.dialog, following, dict(to.seen))
    return world.network.answer(packet, following, dict(to.seen))


def _come_back(world: World, to: Device, dialog: Dialog, packet: Packet) -> bytes | None:
    """An answer: of the exchange that waits for it, or one that comes late or twice."""
    try:
        message = decode(packet.data)
        if message.refusal is not None and message.refusal.code not in ("refused", OTHER_PROGRAM):
            raise Wrong(f"{packet.sender} refuses {to.name}: {message.refusal.text}")
        if dialog.awaited != packet.number:
            to.replica.hear(message, packet.data, dialog.peer)
            return None
        dialog.awaited = 0
        following = dialog.exchange.receive(packet.data)
        if following is None:
            to.checked = ()  # it has collected what it could
    except SyncError:
        world.counts["exchanges given up"] += 1
        return None
    return following


def absorb(device: Device, data: bytes, seen: Seen) -> None:
    """If the cut that a message ends is in, then so is all that its sender had seen of those streams."""
    message = decode(data)
    page = message.page
    if page is None or not page.done:
        return
    cursors = device.state.cursors.get(message.sites[0], {})
    end = Cursor(page.head, page.tags.get(page.head, 0))
    for name in page.froms:
        stream = device.store.engine.streams.get(name)
        if stream is None or cursors.get(name) != end:
            continue
        for whole, relation in zip(stream.wholes, stream.inputs, strict=True):
            theirs = seen.get(whole, seen.get(relation, frozenset()))
            device.seen[whole] = device.seen.get(whole, frozenset()) | theirs

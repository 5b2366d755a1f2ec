"""A world: devices, time and network, and what each step does to them.

Nothing here is random: a case says what happens, and what cannot happen when its turn comes does not.
"""

from __future__ import annotations

import functools
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from everview.errors import SyncError
from everview.language.relations import Semantics
from everview.replication.exchange import Exchange
from everview.replication.messages import Cursor
from everview.replication.rights import ALL, Rights
from everview.replication.wire import decode
from everview.testing.simulation import steps as do
from everview.testing.simulation.checks import Wrong, check_device, retold
from everview.testing.simulation.clocks import Clocks
from everview.testing.simulation.crashes import Crashed
from everview.testing.simulation.device import Device, Seen
from everview.testing.simulation.lattices import lengths, versions
from everview.testing.simulation.network import Batch, Dialog, Network, Packet
from everview.testing.simulation.oracle import Event, History
from everview.testing.simulation.programs import parsed

Row = tuple[Any, ...]
Done = tuple[str, str, Row, int]
"""Action, relation, row, and how many rows that changed."""

MOST_DEVICES = 8


class World:
    """Everything that a case's steps act on; `counts` says what happened how often."""

    def __init__(self, case: do.Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.program = parsed(case.program)
        self.clocks = Clocks(case.seed)
        self.history = History(self.program)
        self.network = Network()
        self.devices: dict[str, Device] = {}
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        for place in case.places:
            self._add(place.name, place.skew)
        for one, other in case.links:
            self.network.link(one, other)

    @property
    def anchor(self) -> Device:
        """The site that nobody gives up.

        Two sites that give each other up are two halves, of which each may have forgotten deletions that the other has not
        seen: when they meet again one half's deletions are undone. No rule can help that, so it is not done.
        """
        return next(iter(self.devices.values()))

    def _add(self, name: str, skew: int, image: bytes = b"") -> Device:
        self.clocks.skews[name] = skew
        device = Device(name, self.folder, self.program, self.clocks, self.case.page_rows, image)
        self.devices[name] = device
        self.network.links.setdefault(name, set())
        return device

    def close(self) -> None:
        """End all processes."""
        for device in self.devices.values():
            device.stop()

    def note(self, text: str) -> None:
        """Add to the trace: the same case must leave the same one."""
        self.trace.append(text)

    # Steps.

    @functools.singledispatchmethod
    def run(self, step: do.Step) -> None:
        """Let a step happen."""
        raise TypeError(f"there is no step {step!r}")

    @run.register
    def _(self, step: do.Write) -> None:
        device = self.devices.get(step.site)
        if device is not None:
            crash = 0 if device.rewound_from else step.crash
            self.write(device, [(a, r, tuple(row)) for a, r, row in step.operations], crash)

    @run.register
    def _(self, step: do.Load) -> None:
        device = self.devices.get(step.site)
        if device is not None:
            rows = [(n, n % 100) for n in range(step.start, step.start + step.count)]
            self.load(device, step.action, step.relation, rows)

    @run.register
    def _(self, step: do.Sync) -> None:
        site, peer = self.devices.get(step.site), self.devices.get(step.peer)
        if site is not None and peer is not None:
            self.sync(site, peer, step.victim, step.crash)

    @run.register
    def _(self, step: do.Dial) -> None:
        site, peer = self.devices.get(step.site), self.devices.get(step.peer)
        if site is None or peer is None or site is peer or site.rewound_from or peer.rewound_from:
            return
        number = self.network.open_dialog(site.name, peer.name, Exchange(site.replica, peer.name))
        with self.acting(site):
            data = self.network.dialogs[number].exchange.open()
            self.network.packets.append(self.network.call(number, data, dict(site.seen)))

    @run.register
    def _(self, step: do.Deliver) -> None:
        packets = self.network.packets
        if not packets:
            return
        at = step.pick % len(packets)
        packet = packets[at] if step.fate == "doubled" else packets.pop(at)
        if step.fate != "arrives":
            self.counts[f"messages {step.fate}"] += 1
        if at and step.fate != "lost":
            self.counts["messages out of order"] += 1
        to = self.devices.get(packet.to)
        if step.fate == "lost" or to is None or to.rewound_from:
            return
        if not self.network.is_open(packet.sender, packet.to):
            self.counts["messages cut off"] += 1
            return
        following = self.deliver(packet, step.crash)
        if following is not None:
            packets.append(following)

    @run.register
    def _(self, step: do.Publish) -> None:
        device = self.devices.get(step.site)
        if device is None or device.rewound_from:
            return
        since = 0
        if step.kind == "any":
            since = step.since % (device.head + 1)
        elif step.kind == "cursor":
            readers = [d for d in self.devices.values() if d is not device and not d.rewound_from]
            if readers:
                reader = readers[step.since % len(readers)]
                since = device.replica.cursor_of(reader.replica.request()) or 0
        with self.acting(device):
            pages = list(device.replica.batch(since))
            self.network.folder.append(Batch(device.name, pages, dict(device.seen)))
            self.counts["batches"] += 1

    @run.register
    def _(self, step: do.Find) -> None:
        device, folder = self.devices.get(step.site), self.network.folder
        if device is None or device.rewound_from or not folder:
            return
        at = step.pick % len(folder)
        batch = folder[at] if step.fate == "doubled" else folder.pop(at)
        if step.fate == "lost":
            self.counts["batches lost"] += 1
            return
        if batch.sender == device.name:
            return
        with self.acting(device, step.crash, batch.pages[-1], batch.seen):
            applied = device.replica.take(batch.pages)
            self.counts[f"batches {applied.outcome.value}"] += 1

    @run.register
    def _(self, step: do.Collect) -> None:
        device = self.devices.get(step.site)
        if device is not None:
            with self.acting(device):
                self.counts["rows collected"] += device.replica.collect()
                device.checked = ()

    @run.register
    def _(self, step: do.Wait) -> None:
        self.clocks.pass_time(step.seconds)
        for device in self.devices.values():
            with self.acting(device):
                device.replica.tick()

    @run.register
    def _(self, step: do.Crash) -> None:
        device = self.devices.get(step.site)
        if device is not None and not device.rewound_from:
            with self.acting(device):
                raise Crashed

    @run.register
    def _(self, step: do.Backup) -> None:
        device = self.devices.get(step.site)
        if device is not None and device.rewound_from is None:
            device.keep()

    @run.register
    def _(self, step: do.Restore) -> None:
        device = self.devices.get(step.site)
        if device is None or device.kept is None or device.rewound_from:
            return
        if step.how == "unnoticed" and not self._would_notice(device):
            return
        self.network.forget(device.name)
        with self.acting(device, returns=True):
            device.put_back(step.how)
        self.counts[f"restored, {step.how}"] += 1

    def _would_notice(self, device: Device) -> bool:
        """Whether a store that goes back is found out: by someone who has read what it then no longer has."""
        kept = device.kept
        if kept is None or kept.incarnation != device.incarnation or kept.head >= device.head:
            return False
        device.rewound_from = (kept.incarnation, kept.head)
        found = any(other.knows(device) for other in self.devices.values() if other is not device)
        device.rewound_from = None
        return found

    @run.register
    def _(self, step: do.Copy) -> None:
        device = self.devices.get(step.site)
        if device is None or device.rewound_from or step.name in self.devices:
            return
        if len(self.devices) >= MOST_DEVICES:
            return
        twin = self._add(step.name, self.clocks.skews[device.name], device.image())
        twin.seen, twin.come = dict(device.seen), device.come
        for near in [device.name, *self.network.links[device.name]]:
            self.network.link(twin.name, near)
        self.counts["copies"] += 1
        with self.acting(twin, returns=True):
            pass

    @run.register
    def _(self, step: do.Arrive) -> None:
        if step.name not in self.devices and len(self.devices) < MOST_DEVICES and self.devices:
            near = step.near if step.near in self.devices else self.anchor.name
            self._add(step.name, step.skew)
            self.network.link(step.name, near)
            self.counts["newcomers"] += 1

    @run.register
    def _(self, step: do.Leave) -> None:
        device = self.devices.get(step.site)
        if device is not None and len(self.devices) > 2:
            self.remove(device)
            self.counts["left"] += 1

    def remove(self, device: Device) -> None:
        """A site and its file are gone."""
        device.remove()
        del self.devices[device.name]
        self.network.unlink(device.name)
        self.network.forget(device.name)

    @run.register
    def _(self, step: do.Expire) -> None:
        device, victim = self.devices.get(step.site), self.devices.get(step.victim)
        if device is not None and victim is not None and victim not in (device, self.anchor):
            with self.acting(device):
                self.counts["expiries"] += device.replica.expire(victim.incarnation)

    @run.register
    def _(self, step: do.Absence) -> None:
        if step.site not in self.devices or step.site == self.anchor.name:
            return
        self.counts["absences"] += 1
        others = [d for d in self.devices.values() if d.name != step.site and d is not self.anchor]
        for _ in range(4):
            self.run(do.Wait(step.days * 21_600))
            for other in [*others, *others]:
                self.sync(other, self.anchor)
            for name in sorted(self.devices):
                if name != step.site:
                    self.run(do.Collect(name))

    @run.register
    def _(self, step: do.Partition) -> None:
        self.network.down ^= {(step.site, step.peer)}
        self.counts["partitions"] += (step.site, step.peer) in self.network.down

    @run.register
    def _(self, step: do.Permit) -> None:
        device = self.devices.get(step.site)
        if device is not None:
            device.rights[step.peer] = Rights(None, frozenset(step.reads), frozenset(step.writes))
            self.counts["rights changed"] += 1

    # What steps are made of.

    @contextmanager
    def acting(
        self,
        device: Device,
        crash: int = 0,
        data: bytes | None = None,
        seen: Seen | None = None,
        *,
        returns: bool = False,
    ) -> Iterator[None]:
        """Let a device do something, and check it afterwards; it may die in between, and is started again.

        `data` is a message that it takes, and `seen` what the sender had seen: if the cut is in, so is that.
        """
        before = (device.incarnation, device.state.joined)
        device.arm(0 if device.rewound_from else crash)
        try:
            yield
        except Crashed:
            self.counts["crashes"] += 1
            self.network.forget(device.name)
            device.stop()
            device.open()
        finally:
            device.disarm()
        if data is not None and seen is not None:
            absorb(device, data, seen)
        joined = device.state.joined
        changed = before != (device.incarnation, joined)
        if device.rewound_from is not None and device.rewound_from[0] != device.incarnation:
            device.rewound_from = None
            self.counts["rewinds found out"] += 1
        head = device.head
        looks = (device.store, device.incarnation, head, joined, dict(device.seen), self.clocks.now_us)
        if looks != device.checked:  # an exchange says much that changes nothing
            self.check(device, returned=changed or returns)
            device.checked = (*looks[:4], dict(device.seen), self.clocks.now_us)
        self.note(f"  {device.name} {device.incarnation[:4]} at {head}")

    def check(self, device: Device, *, returned: bool = False) -> None:
        """Everything that must hold of a device now."""
        self.counts["told again"] += retold(device, self.history, returned=returned)
        if not self.case.large:
            check_device(device, self.history, transfers=self.case.transfers)

    def write(self, device: Device, operations: list[tuple[str, str, Row]], crash: int = 0) -> None:
        """A transaction; what it did is recorded if it was committed, though the process may have died."""
        done: list[Done] = []
        head = device.head

        def record() -> None:
            if device.head > head:
                self.record(device, done)

        with self.acting(device, crash) if not crash else self._dying(device, crash, record):
            with device.writing.transaction():
                for action, name, row in operations:
                    relation = self.program.relations[name]
                    change = device.writing.insert if action == "insert" else device.writing.delete
                    done.append((action, name, row, change(relation, [row])))
            if not crash:
                record()

    @contextmanager
    def _dying(self, device: Device, crash: int, record: Any) -> Iterator[None]:
        """As `acting`; what was committed before the end is recorded after it."""
        device.arm(crash)
        try:
            yield
        except Crashed:
            self.counts["crashes"] += 1
            self.network.forget(device.name)
            device.stop()
            device.open()
        finally:
            device.disarm()
        record()
        with self.acting(device):
            pass

    def record(self, device: Device, done: list[Done]) -> None:
        """Tell the oracle of a transaction that was committed."""
        effective = [d for d in done if d[3] or (d[0] == "insert" and not self._is(d[1], Semantics.SET))]
        last = {(name, self.history.key(name, row)): i for i, (_, name, row, _) in enumerate(effective)}
        connection, engine = device.store.writer.connection, device.store.engine
        left = Counter((name, row) for _, name, row, _ in effective)
        for i, (action, name, row, count) in enumerate(effective):
            seen = device.seen.get(name, frozenset())
            event = {"action": action, "row": row, "seen": seen, "weight": max(count, 1)}
            if self._is(name, Semantics.SET):
                left[name, row] -= 1
                length = lengths(connection, engine, name).get(row, 0) - left[name, row]
                self._check_length(device, name, row, action, length)
                event["length"] = length
            elif self._is(name, Semantics.KEYED):
                key = self.history.key(name, row)
                if last[name, key] != i:
                    continue
                event["incarnation"] = device.incarnation
                event["stamp"] = max(
                    (
                        s
                        for k, s, inc in versions(connection, engine, name)
                        if (k, inc) == (key, device.incarnation)
                    ),
                    default=0,
                )
            number = len(self.history.events)
            self.history.record(Event(number, name, **event))
            device.seen[name] = seen | {number}
            self.counts["writes"] += 1

    def load(self, device: Device, action: str, name: str, rows: list[Row]) -> None:
        """A transaction of many rows that nobody else writes at the same time."""
        relation = self.program.relations[name]
        with self.acting(device), device.writing.transaction():
            change = device.writing.insert if action == "insert" else device.writing.delete
            change(relation, rows)
            seen, start = device.seen.get(name, frozenset()), len(self.history.events)
            known = self.history.longest(name, seen)
            stamp = device.writing.commit.stamp
            for row in rows:
                length = known.get(row, 0)
                if (length % 2 == 1) is (action == "insert") and self._is(name, Semantics.SET):
                    continue
                number = len(self.history.events)
                self.history.record(
                    Event(number, name, action, row, seen, 1, length + 1, stamp, device.incarnation)
                )
            device.seen[name] = seen | frozenset(range(start, len(self.history.events)))
            self.counts["rows loaded"] += len(rows)

    def _is(self, relation: str, semantics: Semantics) -> bool:
        return self.program.relations[relation].semantics is semantics

    def _check_length(self, device: Device, name: str, row: Row, action: str, length: int) -> None:
        """A write is above all that its site had seen, and by no more than it must where nothing was forgotten."""
        before = self.history.longest(name, device.seen.get(name, ())).get(row, 0)
        floor = device.store.floors.get(name, 0)
        if length <= before or (length % 2 == 1) is not (action == "insert"):
            raise Wrong(f"{device.name} writes {name}{row} at length {length}, having seen {before}")
        if not floor and length != before + 1:
            raise Wrong(f"{device.name} writes {name}{row} at length {length}, not {before + 1}")

    # Exchanges.

    def deliver(self, packet: Packet, crash: int = 0) -> Packet | None:
        """Hand a packet to whom it is for; return the one that follows."""
        to, dialog = self.devices[packet.to], self.network.dialogs[packet.dialog]
        answer: bytes | None = None
        self.note(f" {packet.sender}→{packet.to} {len(packet.data)} {zlib.crc32(packet.data):x}")
        with self.acting(to, crash, packet.data, packet.seen):
            if not packet.back:
                answer = to.replica.answer(packet.data, to.rights.get(packet.sender, ALL))
            else:
                answer = self._come_back(to, dialog, packet)
        if answer is None:
            return None
        if packet.back:
            return self.network.call(packet.dialog, answer, dict(to.seen))
        return self.network.answer(packet, answer, dict(to.seen))

    def _come_back(self, to: Device, dialog: Dialog, packet: Packet) -> bytes | None:
        """An answer: of the exchange that waits for it, or one that comes late or twice."""
        try:
            message = decode(packet.data)
            if message.refusal is not None and message.refusal.code != "refused":
                raise Wrong(f"{packet.sender} refuses {to.name}: {message.refusal.text}")
            if dialog.awaited == packet.number:
                dialog.awaited = 0
                following = dialog.exchange.receive(packet.data)
                if following is None:
                    to.checked = ()  # it has collected what it could
                return following
            to.replica.hear(message, packet.data, dialog.peer)
        except SyncError:
            self.counts["exchanges given up"] += 1
        return None

    def sync(self, site: Device, peer: Device, victim: str = "", crash: int = 0) -> None:
        """A whole exchange, unless one direction is cut off, or one of the two dies in it."""
        if site is peer or not (site.knows(peer) and peer.knows(site)):
            return
        number = self.network.open_dialog(site.name, peer.name, Exchange(site.replica, peer.name))
        packet: Packet | None = None
        with self.acting(site, crash if victim == site.name else 0):
            data = self.network.dialogs[number].exchange.open()
            packet = self.network.call(number, data, dict(site.seen))
        for _ in range(2_000):
            if packet is None:
                return
            if not self.network.is_open(packet.sender, packet.to):
                self.counts["messages cut off"] += 1
                return
            self.counts["messages"] += 1
            packet = self.deliver(packet, crash if victim == packet.to else 0)
        raise Wrong(f"{site.name} and {peer.name} never finish an exchange")


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

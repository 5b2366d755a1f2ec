"""A world: devices, time and network, and what everyone does in it is checked.

Nothing here is random: a case says what happens, and what cannot happen when its turn comes does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from everview.testing.simulation.checks import check_device, check_told_again, retold, set_right
from everview.testing.simulation.clocks import Clocks
from everview.testing.simulation.crashes import Crashed
from everview.testing.simulation.device import Device
from everview.testing.simulation.forgetting import note_forgotten
from everview.testing.simulation.network import Network
from everview.testing.simulation.oracle import History
from everview.testing.simulation.programs import large_views, parsed
from everview.testing.simulation.published import note_published, standings
from everview.testing.simulation.steps import Case


class World:
    """Everything that a case's steps act on; `counts` says what happened how often."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.program = parsed(case.later or case.program)
        """What it is in the end: what sites run now is in their stores."""
        self.clocks = Clocks(case.seed)
        self.history = History(self.program, large_views if case.large else None)
        self.network = Network()
        self.devices: dict[str, Device] = {}
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self._first = {place.name for place in case.places}
        for place in case.places:
            self.add(place.name, place.skew, hosts=place.hosts)
        for one, other in case.links:
            self.network.link(one, other)

    @property
    def hosts_parts(self) -> bool:
        """Whether sites host different parts, and get them from the first, which has everything."""
        return any(place.hosts for place in self.case.places)

    @property
    def anchor(self) -> Device:
        """The site that nobody gives up.

        Two sites that give each other up are two halves, of which each may have forgotten deletions that the
        other has not seen: when they meet again, one half's deletions are undone. No rule can help that.
        """
        return next(iter(self.devices.values()))

    def add(self, name: str, skew: int, image: bytes = b"", hosts: Collection[str] | None = None) -> Device:
        """A new device, with a new store or a copy of another's."""
        self.clocks.skews[name] = skew
        rows = self.case.page_rows
        program = parsed(self.case.program) if name in self._first else self.program
        device = Device(
            name,
            self.folder,
            program,
            self.clocks,
            rows,
            image=image,
            hosts=hosts,
            evolves=bool(self.case.later),
        )
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

    @contextmanager
    def acting(
        self,
        device: Device,
        crash: int = 0,
        *,
        after: Callable[[], None] | None = None,
        returns: bool = False,
    ) -> Iterator[None]:
        """Let a device do something, and check it afterwards; it may die in between, and is started again.

        `after` is told of the end, whatever became of it: it looks what is in the store. `returns` is True
        when the device may tell again what it told before.
        """
        before, was = _membership(device), device.incarnation
        with self.surviving(device, crash, after):
            yield
        after_it = _membership(device)
        joined, changed = after_it[1], before != after_it
        head = device.head
        # Time alone changes what is valued; in a large world nothing waits for it.
        now = 0 if self.case.large else self.clocks.now_us
        looks = (device.store, device.incarnation, head, joined, dict(device.seen), now, standings(device))
        if looks != device.checked:  # an exchange says much that changes nothing
            self.check(device, was=was if changed or returns else "")
            device.checked = (*looks[:4], dict(device.seen), *looks[5:])
        self.note(f"  {device.name} {device.incarnation[:4]} at {head}")

    @contextmanager
    def surviving(self, device: Device, crash: int, after: Callable[[], None] | None) -> Iterator[None]:
        """Let a device do something, and start it again if it dies of it."""
        device.arm(0 if device.rewound_from else crash)
        try:
            yield
        except Crashed:
            self.counts["crashes"] += 1
            self.network.forget(device.name)
            device.die()
            device.open()
        finally:
            device.disarm()
        if after is not None:
            after()
        if device.rewound_from is not None and device.rewound_from[0] != device.incarnation:
            device.rewound_from = None
            self.counts["rewinds found out"] += 1

    def check(self, device: Device, *, was: str = "") -> None:
        """Everything that must hold of a device now.

        `was` is the incarnation that it had before, where it may tell again what it told before.
        """
        note_forgotten(self.history, device, self.devices.values())
        note_published(device, self.history)
        events = len(self.history.events)
        ahead = set_right(device, self.history, was) if was else ()
        self.counts["told again"] += retold(device, self.history, returned=bool(was))
        check_told_again(device, self.history, ahead, events)
        if not self.case.large:
            check_device(device, self.history, transfers=self.case.transfers)

    def remove(self, device: Device) -> None:
        """A site and its file are gone."""
        device.remove()
        del self.devices[device.name]
        self.network.unlink(device.name, parts=self.hosts_parts)
        self.network.forget(device.name)


def _membership(device: Device) -> tuple[object, ...]:
    """What changes when a device joins anew, and may tell again what it told before."""
    state = device.state
    waits = {stream: (one.sponsor, one.group) for stream, one in state.provisional.items()}
    return device.incarnation, state.joined, waits, state.lifted, state.former

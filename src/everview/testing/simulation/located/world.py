"""A located world: each site is a place, and after whatever it does its facts are looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from everview.located import LocatedProgram
from everview.located.facts import Fact
from everview.testing.simulation.device import Device
from everview.testing.simulation.located.checks import check_place
from everview.testing.simulation.located.device import LocatedDevice
from everview.testing.simulation.located.steps import LocatedCase
from everview.testing.simulation.steps import Case, Place
from everview.testing.simulation.world import World


class LocatedWorld(World):
    """Everything that the steps of a located case act on."""

    def __init__(self, case: LocatedCase, folder: Path) -> None:
        names = [place.name for place in case.places]
        self.located = LocatedProgram.parse(case.program, names, mode=case.mode)
        self.near = case.near
        self.ever: frozenset[Fact] = frozenset()
        """All base facts that anybody ever wrote."""
        self.wrote = 0
        """How often somebody did."""
        self.asked: dict[str, int] = {}
        """Place → how often somebody had written when it first asked whether all is quiet."""
        places = [
            Place(place.name, place.skew, sorted(self.located.hosts(place.name, _near(case, place.name))))
            for place in case.places
        ]
        text = self.located.program.text
        super().__init__(Case(case.seed, text, places, case.links, [], case.page_rows), folder)

    @property
    def nodes(self) -> list[LocatedDevice]:
        """All places."""
        return [device for device in self.devices.values() if isinstance(device, LocatedDevice)]

    def node(self, name: str) -> LocatedDevice | None:
        """The place of a name, if a case without some of its sites still has it."""
        found = self.devices.get(name)
        return found if isinstance(found, LocatedDevice) else None

    def add(self, name: str, skew: int, image: bytes = b"", hosts: Collection[str] | None = None) -> Device:
        """A new place with a new store."""
        assert not image, "a place is in one store"
        self.clocks.skews[name] = skew
        rows = self.case.page_rows
        device = LocatedDevice(name, self.folder, self.located, self.clocks, rows, hosts=hosts)
        self.devices[name] = device
        self.network.links.setdefault(name, set())
        return device

    @contextmanager
    def acting(
        self,
        device: Device,
        crash: int = 0,
        *,
        after: Callable[[], None] | None = None,
        returns: bool = False,  # noqa: ARG002 - what a place tells again is its base facts
    ) -> Iterator[None]:
        """Let a place do something, and check it afterwards; it may die in between, and is started again."""
        with self.surviving(device, crash, after):
            yield
        self.check(device)
        self.note(f"  {device.name} {device.incarnation[:4]} at {device.head}")

    def check(self, device: Device, *, was: str = "") -> None:  # noqa: ARG002 - as above
        """Everything that must hold of a place now, unless nothing has happened to its store."""
        assert isinstance(device, LocatedDevice)
        looks = (device.store, device.head, device.base, device.deaf)
        if looks != device.checked:
            check_place(device, self.ever)
            device.checked = looks


def _near(case: LocatedCase, name: str) -> list[str] | None:
    if not case.near:
        return None
    return sorted({end for link in case.links if name in link for end in link} - {name})

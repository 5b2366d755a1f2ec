"""The story: who can reach whom, and what each does, step by step.

A device decides by what its own views show it, connected or not. Whether it can reach another is a matter of
the ground: a link that is down is not dialled.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from everview.demo.crew import Device
from everview.demo.terrain import DAWN, DRONES, HUB, NAMES, POST, STEP, TEAMS, VIEWS, paths, sectors, units
from everview.errors import EverviewError

Link = tuple[str, str]
"""Who dials, and whom."""

_FINDS = ("footprint", "torch", "jacket", "smoke", "voice")
_HOT = (7, 11, 6)
"""Where the missing hikers are, and have been."""
_PATIENCE = 180
"""How many seconds it may take until all agree."""
_LAST = 11
"""Where they are found."""

TOGETHER: frozenset[Link] = frozenset(
    {
        (POST, HUB),
        *((team, POST) for team in TEAMS),
        ("drone-1", "team-1"),
        ("drone-2", "team-2"),
        ("drone-3", "team-3"),
        ("drone-4", POST),
    }
)
APART: frozenset[Link] = frozenset([(POST, HUB), ("team-1", POST), ("drone-1", "team-1")])
MEETING: frozenset[Link] = APART | {("team-2", "team-3"), ("drone-3", "team-2"), ("drone-2", "team-3")}


@dataclass(frozen=True, slots=True)
class Phase:
    """Some steps under the same sky."""

    title: str
    links: frozenset[Link]
    steps: int


def phases(steps: int) -> list[Phase]:
    """The mission in so many steps."""
    share = max(2, steps // 4)
    return [
        Phase("everyone is connected", TOGETHER, share),
        Phase("teams 2 and 3, and three drones, have lost the network", APART, share),
        Phase("teams 2 and 3 meet in the hills, without the cloud", MEETING, share),
        Phase("everyone is back", TOGETHER, max(2, steps - 3 * share)),
    ]


@dataclass(slots=True)
class Mission:
    """The mission as it goes; `tell` is called with what is worth knowing."""

    crew: dict[str, Device]
    tell: Callable[[str], None]
    seed: int
    now: int = 0
    """Steps since dawn."""
    phase: Phase | None = None
    written: list[tuple[Any, ...]] = field(default_factory=list)
    """Every sighting that a drone has acknowledged."""
    shown: dict[str, dict[str, list[tuple[Any, ...]]]] = field(default_factory=dict)
    """Device → what it showed last."""
    _blocked: list[tuple[int, int]] = field(default_factory=list)
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(12))

    def muster(self) -> None:
        """The command post writes down what is known at dawn."""
        self.crew[POST].ask("write", rows={"sectors": sectors(), "paths": paths(), "units": units()})
        self._sync(TOGETHER)

    def play(self, steps: int, *, crash: str) -> Iterator[Phase]:
        """Go through the phases, step by step; the drone `crash` is killed on the way, and started again."""
        for number, phase in enumerate(phases(steps)):
            self.phase = phase
            self.tell(f"[bold]{phase.title}[/]")
            for step in range(phase.steps):
                falls = number == 1 and step == phase.steps // 2
                self._step(phase.links, searching=number < 3, falls=crash if falls else None)
                if number == 2 and step == 0:
                    self.crew[crash].start()
                    self.crew[crash].meet()
                    self.tell(f"{crash} is up again, with all that it had acknowledged")
                if number == 2 and step == phase.steps - 1:
                    self._compare_notes()
                if number == 3 and step == 0:
                    self._search_again()
                yield phase

    def _step(self, links: Iterable[Link], *, searching: bool, falls: str | None) -> None:
        self.now += 1
        list(self._pool.map(self._fly, [d for d in DRONES if self.crew[d].is_running]))
        if falls is not None:
            self.crew[falls].kill()
            self.tell(f"{falls} has fallen from the sky: SIGKILL")
        self._report_from_the_ground()
        if searching:
            list(self._pool.map(self._search, TEAMS))
        self._sync(links)
        self._look()

    # What each does.

    def _fly(self, drone: str) -> None:
        """A drone reports what it sees; mostly where there is something."""
        rng = self._chance(drone)
        at = DAWN + self.now * STEP
        found = [
            (
                drone,
                at.isoformat(),
                rng.choice(_HOT) if rng.random() < 0.7 else rng.randint(2, len(NAMES)),
                what,
            )
            for what in rng.sample(_FINDS, rng.choice((0, 1, 1, 2)))
        ]
        if found:
            self.crew[drone].ask("write", rows={"sightings": found})
            self.written += found

    def _report_from_the_ground(self) -> None:
        """Landslides close paths, and paths are cleared: whoever is there writes it down."""
        rng = self._chance("ground")
        by = rng.choice((POST, *TEAMS))
        if self.now % 5 == 2:
            where = rng.choice([(a, b) for a, b, _ in paths() if a > 1])
            self.crew[by].ask("write", rows={"paths": [(*where, False)]})
            self._blocked.append(where)
            self.tell(f"{by}: the path {_path(where)} is blocked")
        elif self.now % 5 == 0 and self._blocked:
            where = self._blocked.pop(0)
            self.crew[by].ask("write", rows={"paths": [(*where, True)]})
            self.tell(f"{by}: the path {_path(where)} is clear again")

    def _search(self, team: str) -> None:
        """A team follows the first of its orders, as its own laptop shows them."""
        laptop = self.crew[team]
        orders = [row for row in laptop.rows("orders")["orders"] if row[0] == team]
        if not orders or (self.now + TEAMS.index(team)) % 4:
            return
        _, sector, name, sightings = max(orders, key=lambda row: (row[3], row[1]))
        laptop.ask("write", rows={"units": [(team, sector, True)], "sectors": [(sector, name, True)]})
        self.tell(f"{team} has searched {name}, where {sightings} things were seen in ten minutes")

    def _search_again(self) -> None:
        """A sector that was searched, by whomever, is to be searched once more; paths to it are cleared."""
        cleared = [(a, b, True) for a, b, _ in paths() if _LAST in (a, b)]
        rows = {"sectors": [(_LAST, NAMES[_LAST - 1], False)], "paths": cleared}
        self.crew[POST].ask("write", rows=rows)
        self.tell(f"{POST}: somebody has called for help; search {NAMES[_LAST - 1]} once more")

    def _compare_notes(self) -> None:
        """Two teams that have met see the same, and not what those see who were not there."""
        self._sync([(TEAMS[1], TEAMS[2])])
        self._look()
        met = [self.shown[team] for team in TEAMS[1:]]
        same = all(met[0][view] == met[1][view] for view in ("sightings", "reachable", "priority", "orders"))
        here, there = (len(shown["sightings"]) for shown in (met[0], self.shown[POST]))
        self.tell(
            f"{' and '.join(TEAMS[1:])} {'see the same' if same else 'do not agree'}: {here} sightings, and "
            f"the views over them; the {POST} knows of {there}"
        )

    def _chance(self, who: str) -> random.Random:
        """What happens to someone in this step: the same in every mission of this seed."""
        return random.Random(f"{self.seed} {who} {self.now}")

    # How they meet.

    def _sync(self, links: Iterable[Link]) -> int:
        """Everyone dials whom it can reach, all at the same time; return how many rows went anywhere."""
        return sum(self._pool.map(self._dial, sorted(links)))

    def _dial(self, link: Link) -> int:
        dialler, listener = (self.crew[name] for name in link)
        if not (dialler.is_running and listener.is_running):
            return 0
        try:
            return int(dialler.ask("sync", peer=listener.address))
        except EverviewError as error:
            self.tell(f"[dim]{dialler.name} could not reach {listener.name} ({error})[/]")
            return 0

    def _look(self) -> None:
        devices = [device for device in self.crew.values() if device.is_running]
        self.shown.update(zip([d.name for d in devices], self._pool.map(_shown, devices), strict=True))

    def land(self) -> Iterator[None]:
        """The drones land and close their windows; then all sync until nobody has anything new."""
        until = (DAWN + (self.now + 30) * STEP).isoformat()
        for drone in DRONES:
            self.crew[drone].ask("close", until=until)
        self.tell("the drones have landed: all windows are closed")
        quiet, since = 0, time.monotonic()
        while quiet < 2:
            moved, waiting = self._sync(TOGETHER), int(self.crew[HUB].ask("waiting"))
            self._look()
            quiet = 0 if moved or waiting else quiet + 1
            yield
            if time.monotonic() > since + _PATIENCE:
                raise EverviewError("the sites do not come to rest; the logs beside their stores may say why")
            time.sleep(0.2 if waiting else 0)  # a refresh takes what it takes

    def end(self) -> None:
        """Everybody goes home."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _shown(device: Device) -> dict[str, list[tuple[Any, ...]]]:
    """What a device has; the drones host no more than they need."""
    names = device.hosts or ("sightings", "units", *VIEWS)
    return device.rows(*names)


def _path(where: tuple[int, int]) -> str:
    a, b = where
    return f"{NAMES[a - 1]}–{NAMES[b - 1]}"

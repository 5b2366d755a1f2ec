"""A world: sites, time and network; whatever a site does in it is checked.

Nothing here is random: a case says what happens, and what cannot happen when its turn comes does not.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from everview.engines.sqlite.environment import Environment
from everview.language.relations import Semantics
from everview.testing.worlds.history import Dot, Event, History, Live, Row, live_of
from everview.testing.worlds.invariants import Wrong, check_site, expected_views
from everview.testing.worlds.network import Network
from everview.testing.worlds.programs import parsed
from everview.testing.worlds.sites import Crashed, Site, stream_of
from everview.testing.worlds.steps import Case

START_US = 1_800_000_000_000_000
"""When worlds begin: some day in 2027."""


class World:
    """Everything that a case's steps act on; `counts` says what happened how often."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case, self.folder = case, folder
        self.program = parsed(case.program)
        self.history = History()
        self.network = Network()
        self.sites: dict[str, Site] = {}
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self.shared = folder / "shared"
        self.shared.mkdir()
        self.gone: set[str] = set()
        """Incarnations whose stores left, or were put back."""
        self.lost: list[tuple[Path, bytes]] = []
        """Files that were in it."""
        self.now_us = START_US
        self.skews: dict[str, int] = {}
        self._born: Counter[str] = Counter()
        self._tags = random.Random(f"{case.seed}/tags")
        self._views: dict[tuple[tuple[str, tuple[Row, ...]], ...], dict[str, Counter[Row]]] = {}
        self.published: dict[str, list[Counter[Row]]] = {
            name: [Counter()] for name, view in self.program.views.items() if view.authority is not None
        }
        """View → what its authority has shown."""
        for place in case.places:
            self.add(place.name, place.skew, hosts=place.hosts)

    # Who is there.

    def add(self, name: str, skew: int, *, image: bytes = b"", hosts: Collection[str] | None = None) -> Site:
        """A new site, with a new store or a copy of another's."""
        self.skews[name] = skew
        path = self.folder / f"{name}.db"
        if image:
            path.write_bytes(image)
        site = Site(
            name, path, self.program, self._environment(name), hosts=hosts, page_cells=self.case.page_cells
        )
        self.sites[name] = site
        return site

    def _environment(self, name: str) -> Environment:
        """What a site takes for the world. No tag comes twice, though a store may go back in time."""

        def incarnation() -> str:
            self._born[name] += 1
            text = f"{self.case.seed}/{name}/{self._born[name]}"
            return hashlib.sha256(text.encode()).hexdigest()[:16]

        def now_us() -> int:
            return self.now_us + self.skews.get(name, 0) * 1_000_000

        return Environment(now_us, lambda: self._tags.getrandbits(53), incarnation)

    def remove(self, site: Site) -> None:
        """A site and its file are gone."""
        self.gone.add(site.incarnation)
        site.remove()
        del self.sites[site.name]
        self.network.forget(site.name)

    def close(self) -> None:
        """End all processes."""
        for site in self.sites.values():
            site.stop()

    def is_honest(self, name: str) -> bool:
        """Whether a site is not the liar."""
        return name != self.case.liar

    def is_sound(self, relation: str) -> bool:
        """Whether a relation is what honest sites have written: no liar may write it, nobody wrote twice."""
        return not self.case.wild and not {relation, stream_of(relation)[0]} & set(self.case.grants)

    def may_meet(self, site: Site, peer: Site) -> bool:
        """Whether it would be found out if one of them had gone back in time, and neither is the liar."""
        if not (self.is_honest(site.name) and self.is_honest(peer.name)):
            return False
        if (site.fork or peer.fork) and site.name in peer.rights:
            return self.case.wild  # what it may not write it says nothing of that counts
        return self.case.wild or (site.knows(peer) and peer.knows(site))

    # What happens.

    def note(self, text: str) -> None:
        """Add to the trace: the same case must leave the same one."""
        self.trace.append(text)

    def pass_time(self, seconds: int) -> None:
        """Let time pass; every time a little more than said, so that no two steps are at one time."""
        self.now_us += seconds * 1_000_000 + 7

    @contextmanager
    def acting(self, site: Site, crash: int = 0) -> Iterator[None]:
        """Let a site do something, and check it afterwards; it may die in between, and is started again."""
        site.arm(0 if site.fork else crash)
        try:
            yield
        except Crashed:
            self.counts["crashes"] += 1
            self.network.forget(site.name)
            site.die()
            site.open()
        finally:
            site.disarm()
        if site.fork is not None and site.incarnation != site.fork.incarnation:
            self._found_out(site)
        for name, shown in self.published.items():
            if self.program.views[name].authority == site.name and name in site.store.engine.nodes:
                rows = site.rows(name)
                shown.extend([rows] if rows not in shown else [])
        self.note(f"  {site.name} {site.incarnation[:4]} at {site.head}")

    def note_undone(self, site: Site) -> None:
        """A site may have undone what a peer may not do, by a write that it alone knows of."""
        for name in site.shares if self.is_honest(site.name) and site.fork is None else ():
            upto = site.own()[name]
            if upto > self.history.last(name, site.incarnation) and self.is_sound(name):
                before, live = self.history.live(name, site.vector(name)), site.live(name)
                added = {dot: row for dot, row in live.items() if dot not in before}
                if any(incarnation != site.incarnation for incarnation, _ in added):
                    raise Wrong(f"{site.name} has rows of {name} that nobody wrote: {added}")
                gone = frozenset(before.keys() - live.keys())
                self.history.record(Event(name, site.incarnation, upto, added, gone))
                self.counts["writes undone"] += 1

    def forgotten(self, site: Site, name: str, before: Live, live: Live) -> Counter[Row]:
        """What a site that wrote has forgotten of a set: tombstones that were there for the retention."""
        relation = self.program.relations[stream_of(name)[0]]
        if relation.semantics is not Semantics.SET:
            return Counter()
        here = {row[:-1] for row in live.values()}
        gone = {dot: row for dot, row in before.items() if row[:-1] not in here}
        for key in {row[:-1] for row in gone.values()}:
            rows = {dot: row[-1] for dot, row in gone.items() if row[:-1] == key}
            longest = [dot for dot, length in rows.items() if length == max(rows.values())]
            if max(rows.values()) % 2 or not any(self._is_old(site, name, dot) for dot in longest):
                raise Wrong(f"{site.name} has forgotten {key} of {name} too early")
        self.counts["tombstones forgotten"] += len(gone)
        return Counter(gone.values())

    def _is_old(self, site: Site, name: str, dot: Dot) -> bool:
        """Whether a site has had a tombstone for as long as it keeps one, its own or another's."""
        relation = self.program.relations[stream_of(name)[0]]
        kept = relation.retention * (1 if dot[0] == site.incarnation else 2)
        return site.clock_us - site.came.get((name, dot), 0) >= kept - 1_000

    def check(self, site: Site) -> None:
        """Everything that must hold of a site now."""
        looks = site.store, site.head, site.incarnation
        for name in site.sets if site.looks != looks else ():
            for dot, row in site.live(name).items():
                if not row[-1] % 2:
                    site.came.setdefault((name, dot), site.clock_us)
        if not self.case.large and self.is_honest(site.name) and site.looks != looks:
            check_site(self, site)
            site.looks = looks

    def _found_out(self, site: Site) -> None:
        """What it wrote since it went back is its new self's: nobody had seen it."""
        fork, new = site.fork, site.incarnation
        assert fork is not None
        site.fork = None
        self.counts["rewinds found out"] += 1
        for name in site.shares:
            events = [event for event in fork.events if event.relation == name]
            upto = site.vector(name).get(new, 0)
            if not events:
                continue
            if not upto and self.is_sound(name):
                raise Wrong(f"{site.name} does not tell again what it wrote to {name} since it went back")
            base = fork.own.get(name, 0)
            added = {(new, number - base): row for (_, number), row in live_of(events).items()}
            own = {dot for event in events for dot in event.added}
            removed = {dot for event in events for dot in event.removed} - own
            self.history.record(Event(name, new, upto, added, frozenset(removed)))
            site.seen.get(name, {}).pop(fork.incarnation, None)

    def views_of(self, tables: Mapping[str, list[Row]]) -> dict[str, Counter[Row]]:
        """What the reference makes of these rows; what was made before is not made again."""
        key = tuple((name, tuple(sorted(rows, key=repr))) for name, rows in sorted(tables.items()))
        if key not in self._views:
            self._views[key] = expected_views(self.program, tables)
        return self._views[key]

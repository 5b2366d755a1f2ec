"""Exchange: how each view that a site hosts is kept there, given what else it hosts.

1. All that it reads is here, as relations or hosted views: a local circuit.
2. It is monotone, without DISTINCT: its derivations travel.
3. Otherwise it is cut: monotone cores travel, the rest is a local circuit over them.
4. It aggregates rows that only their owners write: what each owner's rows come to travels.
5. Another site is its authority: the rows that this one publishes travel, whatever else is here.

A relation that a cut needs whole is received too, but not shown: it is *hidden*. So is a published view that
another view reads. A view is not computed from what is hidden for another: it is kept as if it were the only
one hosted, so that it is fed by whoever hosts it, too, and not only by who has that relation. To whoever cuts
a plan a published view is like a bag, also at its authority: cores have the same names at all sites.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from everview.language.correlation import scans_of
from everview.language.plan import Plan, Scan
from everview.language.program import Program
from everview.planner.cut import Core, Cut, plan_of
from everview.planner.facts import Catalog, Facts, Keys
from everview.planner.partials import Partials
from everview.planner.published import published_stream
from everview.planner.written import written_of

__all__ = ["Exchange", "Kept", "Way"]


class Way(enum.Enum):
    """How a view is kept."""

    LOCAL = "a local circuit"
    RECEIVED = "derivations"
    CUT = "a cut plan"
    AGGREGATED = "partial aggregates"
    PUBLISHED = "what its authority publishes"


@dataclass(frozen=True, slots=True)
class Kept:
    """A hosted view: how it is kept, its plan here, what of it is received, and why, for people."""

    way: Way
    plan: Plan
    cores: tuple[Core, ...]
    hidden: tuple[str, ...]
    why: str
    partials: tuple[Partials, ...] = ()


class Exchange:
    """The decisions for one program, what a site hosts of it, and what the site is called."""

    def __init__(self, program: Program, hosts: Iterable[str], name: str = "") -> None:
        self.program = program
        self.hosts = frozenset(hosts)
        self._written = written_of(program)
        self._published = self._written.published
        self._own = frozenset(view for view in self._published if program.views[view].authority == name)
        self._foreign = self._published - self._own
        kept = self._needed()
        away = {view: self._cut(view) for view in kept if self._is_away(view)}
        self.hidden = tuple(
            relation
            for relation in program.relations
            if relation not in self.hosts and any(relation in found.relations for found in away.values())
        )
        self.held = frozenset(self.hidden) | {name for name in program.relations if name in self.hosts}
        """The relations that are here, shown or not."""
        self.views: dict[str, Kept] = {
            view: self._kept(view, is_away=view in away) for view in program.views if view in kept
        }
        """The views that are kept here, also those that are not shown."""

    @property
    def catalog(self) -> Catalog:
        """The keys of all relations and views of the program."""
        return self._written.catalog

    @property
    def published(self) -> dict[str, bool]:
        """The views that come from their authority, or go out from here → whether it is this site."""
        return {view: view in self._own for view in self.views if view in self._published}

    def _needed(self) -> set[str]:
        """The hosted views, and the published ones that these read as they are kept."""
        found: set[str] = set()
        new = {view for view in self.program.views if view in self.hosts}
        while new:
            found |= new
            read = {scan for view in new for scan in self._read(view)}
            new = (read & self._published) - found
        return found

    def _read(self, view: str) -> Iterable[str]:
        if view in self._foreign:
            return ()
        return self._cut(view).relations if self._is_away(view) else scans_of(self._near(view))

    def _cut(self, view: str, held: frozenset[str] = frozenset()) -> Cut:
        return self._written.cut(view, held)

    @property
    def cores(self) -> dict[str, Core]:
        """The cores that are received, by name."""
        return {core.name: core for kept in self.views.values() for core in kept.cores}

    @property
    def partials(self) -> dict[str, Partials]:
        """The partial aggregates that are received, by name."""
        return {found.name: found for kept in self.views.values() for found in kept.partials}

    def core_keys(self, catalog: Catalog) -> dict[str, Keys]:
        """Return the keys of the received cores' rows, given those of relations."""
        return {kept: Facts(catalog).keys(plan_of(core)) for kept, core in self.cores.items()}

    @cached_property
    def all_cores(self) -> dict[str, Core]:
        """Every core of the program: the same at all sites."""
        return {core.name: core for name in self.program.views for core in self._cut(name).cores}

    def offered(self) -> Iterator[Core]:
        """Yield every core that can be derived from the relations held here; none of a partitioned one."""
        relations = self.program.relations
        return (
            core
            for core in self.all_cores.values()
            if self.held.issuperset(core.inputs) and not any(relations[n].partitioned for n in core.inputs)
        )

    @cached_property
    def views_of(self) -> dict[str, tuple[str, ...]]:
        """The views that each core is a part of."""
        return {
            found: tuple(n for n in self.program.views if any(c.name == found for c in self._cut(n).cores))
            for found in self.all_cores
        }

    @cached_property
    def all_partials(self) -> dict[str, Partials]:
        """Every partial aggregate of the program: the same at all sites."""
        if all(relation.owner is None for relation in self.program.relations.values()):
            return {}
        cuts = (self._cut(name) for name in self.program.views)
        return {found.name: found for one in cuts for found in one.partials}

    def fed(self) -> Iterator[Partials]:
        """Yield every partial aggregate that can be computed from the relations held here."""
        return (found for found in self.all_partials.values() if self.held.issuperset(found.inputs))

    def _is_away(self, name: str) -> bool:
        if name in self._foreign:
            return False
        return not (self.hosts | self._published).issuperset(scans_of(self._near(name)))

    def _near(self, name: str) -> Plan:
        """A view's plan over what is hosted, as far as that goes: views that are not hosted written out."""
        plan = self._written.plans[name]
        if self.hosts.issuperset(scans_of(plan)):
            return plan
        return self._written.over(name, self.hosts | self._published)

    def _kept(self, name: str, *, is_away: bool) -> Kept:
        if name in self._foreign:
            return self._received(name)
        return self._away(name) if is_away else self._local(name)

    def _received(self, name: str) -> Kept:
        view = self.program.views[name]
        why = f"published by {view.authority}; needs no base rows"
        return Kept(Way.PUBLISHED, Scan(published_stream(name), view.schema), (), (), why)

    def _local(self, name: str) -> Kept:
        reads = ", ".join(self.program.views[name].reads) or "nothing"
        if self.hosts.issuperset(self.program.views[name].reads):
            why = f"this site hosts all that it reads: {reads}"
        else:
            below = sorted(set(scans_of(self._near(name))))
            has = "hosts" if self.hosts.issuperset(below) else "has"
            why = f"this site {has} all that it is made from: {', '.join(below)}"
        return Kept(Way.LOCAL, self._near(name), (), (), why)

    def _away(self, name: str) -> Kept:
        found = self._cut(name, self.held & self.hosts)
        hidden = tuple(source for source in found.relations if source not in self.hosts)
        missing = ", ".join(sorted(set(scans_of(self._written.over_relations(name))) - self.hosts))
        lacks = f"this site does not host {missing}"
        if found.partials and not found.cores and not hidden:
            why = f"{lacks}, and what it aggregates only the owners of rows write"
            return Kept(Way.AGGREGATED, found.plan, (), (), why, found.partials)
        if found.cores and isinstance(found.plan, Scan):
            why = f"{lacks}, and the view is monotone"
            return Kept(Way.RECEIVED, found.plan, found.cores, (), why)
        why = f"{lacks}, and the view is not monotone as a whole"
        if not found.cores and not found.partials:
            why = f"{lacks}, and the view needs the whole of {', '.join(hidden)}"
        if found.whole:
            why += f"; what owners' rows come to does not travel instead, because {found.whole[0]}"
        return Kept(Way.CUT, found.plan, found.cores, hidden, why, found.partials)

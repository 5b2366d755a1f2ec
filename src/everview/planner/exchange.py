"""Exchange: how each view that a site hosts is kept there, given what else it hosts.

1. All that it reads is here, as relations or hosted views: a local circuit.
2. It is monotone, without DISTINCT: its derivations travel.
3. Otherwise it is cut: monotone cores travel, the rest is a local circuit over them.

A relation that a cut needs whole is received too, but not shown: it is *hidden*.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from everview.language.correlation import scans_of
from everview.language.plan import Plan, Project, Scan
from everview.language.program import Program
from everview.planner.conditions import all_columns
from everview.planner.cut import Core, Cut, cut, plan_of
from everview.planner.facts import Catalog, Facts, Keys, catalog_of
from everview.planner.rewrite import rewrite
from everview.planner.walking import over

__all__ = ["Exchange", "Kept", "Way"]


class Way(enum.Enum):
    """How a view is kept."""

    LOCAL = "a local circuit"
    RECEIVED = "derivations"
    CUT = "a cut plan"


@dataclass(frozen=True, slots=True)
class Kept:
    """A hosted view: how it is kept, its plan here, what of it is received, and why, for people."""

    way: Way
    plan: Plan
    cores: tuple[Core, ...]
    hidden: tuple[str, ...]
    why: str


class Exchange:
    """The decisions for one program and what a site hosts of it."""

    def __init__(self, program: Program, hosts: Iterable[str]) -> None:
        self.program = program
        self.hosts = frozenset(hosts)
        self._facts = Facts(catalog_of(program))
        self._plans = {name: rewrite(v.plan, facts=self._facts) for name, v in program.views.items()}
        self._whole: dict[str, Plan] = {}
        away = {name: self._cut(name) for name in program.views if name in self.hosts and self._is_away(name)}
        self.hidden = tuple(
            name
            for name in program.relations
            if name not in self.hosts and any(name in found.relations for found in away.values())
        )
        self.held = frozenset(self.hidden) | {name for name in program.relations if name in self.hosts}
        """The relations that are here, shown or not."""
        self.views: dict[str, Kept] = {
            name: self._away(name) if name in away else self._local(name)
            for name in program.views
            if name in self.hosts
        }

    @property
    def cores(self) -> dict[str, Core]:
        """The cores that are received, by name."""
        return {core.name: core for kept in self.views.values() for core in kept.cores}

    def core_keys(self, catalog: Catalog) -> dict[str, Keys]:
        """Return the keys of the received cores' rows, given those of relations."""
        return {kept: Facts(catalog).keys(plan_of(core)) for kept, core in self.cores.items()}

    @cached_property
    def all_cores(self) -> dict[str, Core]:
        """Every core of the program: the same at all sites."""
        return {core.name: core for name in self.program.views for core in self._cut(name).cores}

    def offered(self) -> Iterator[Core]:
        """Yield every core that can be derived from the relations held here."""
        return (core for core in self.all_cores.values() if self.held.issuperset(core.inputs))

    def _is_away(self, name: str) -> bool:
        return not self.hosts.issuperset(scans_of(self._near(name)))

    def _near(self, name: str) -> Plan:
        """A view's plan over what is hosted, as far as that goes: views that are not hosted written out."""
        plan = self._plans[name]
        if self.hosts.issuperset(scans_of(plan)):
            return plan
        return rewrite(self._written_out(plan, self.hosts), facts=self._facts)

    def _over_relations(self, name: str) -> Plan:
        if name not in self._whole:
            plan = self._written_out(self._plans[name], frozenset())
            self._whole[name] = rewrite(plan, facts=self._facts)
        return self._whole[name]

    def _written_out(self, plan: Plan, stop: frozenset[str]) -> Plan:
        """The plan with views replaced by what they say, but for those at which to stop."""

        def one(node: Plan) -> Plan:
            if not isinstance(node, Scan):
                return over(node, one)
            if node.name in stop or node.name not in self._plans:
                return node
            inner = one(self._plans[node.name])
            names = tuple(field.name for field in node.schema)
            if names == tuple(field.name for field in inner.schema):
                return inner
            return Project(inner, all_columns(inner.schema), names)

        return one(plan)

    def _cut(self, name: str, held: frozenset[str] = frozenset()) -> Cut:
        return cut(name, self._over_relations(name), self.program.relations, held)

    def _local(self, name: str) -> Kept:
        reads = ", ".join(self.program.views[name].reads) or "nothing"
        if self.hosts.issuperset(self.program.views[name].reads):
            why = f"this site hosts all that it reads: {reads}"
        else:
            below = ", ".join(sorted(set(scans_of(self._near(name)))))
            why = f"this site hosts all that it is made from: {below}"
        return Kept(Way.LOCAL, self._near(name), (), (), why)

    def _away(self, name: str) -> Kept:
        found = self._cut(name, self.held)
        hidden = tuple(relation for relation in found.relations if relation not in self.hosts)
        missing = ", ".join(sorted({s for s in scans_of(self._over_relations(name)) if s not in self.hosts}))
        if not found.cores:
            why = f"this site does not host {missing}, and the view needs the whole of {', '.join(hidden)}"
            return Kept(Way.CUT, found.plan, (), hidden, why)
        if isinstance(found.plan, Scan):
            why = f"this site does not host {missing}, and the view is monotone"
            return Kept(Way.RECEIVED, found.plan, found.cores, (), why)
        why = f"this site does not host {missing}, and the view is not monotone as a whole"
        return Kept(Way.CUT, found.plan, found.cores, hidden, why)

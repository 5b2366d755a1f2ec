"""What follows from a program alone, and is the same at all sites: its views' plans, and how they are cut.

It is worked out once for a program, however many sites of it a process opens and opens again.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING

from everview.language.plan import Plan, Project, Scan
from everview.language.relations import Relation
from everview.planner.conditions import all_columns
from everview.planner.cut import Cut, cut
from everview.planner.facts import Catalog, Facts, catalog_of
from everview.planner.rewrite import rewrite
from everview.planner.walking import over

if TYPE_CHECKING:
    from everview.language.program import Program  # it brings the parser, which no task needs

__all__ = ["Written", "written_of"]


class Written:
    """A program's views, rewritten one by one, written out over relations, and cut."""

    def __init__(self, program: Program) -> None:
        self.catalog: Catalog = catalog_of(program)
        self._facts = Facts(self.catalog)
        self.plans: Mapping[str, Plan] = {
            view: rewrite(v.plan, facts=self._facts) for view, v in program.views.items()
        }
        """Each over what it names."""
        self.published = frozenset(view for view, v in program.views.items() if v.authority is not None)
        """The views that an authority publishes: to whoever writes a plan out, they are like relations."""
        self._relations: Mapping[str, Relation] = program.relations
        self._over: dict[tuple[str, frozenset[str]], Plan] = {}
        self._cuts: dict[tuple[str, frozenset[str]], Cut] = {}

    def over(self, name: str, stop: frozenset[str]) -> Plan:
        """A view's plan with the views in it replaced by what they say, but for those at which to stop."""
        if (name, stop) not in self._over:
            self._over[name, stop] = rewrite(self._written_out(self.plans[name], stop), facts=self._facts)
        return self._over[name, stop]

    def over_relations(self, name: str) -> Plan:
        """The plan of a view over relations and what is published."""
        return self.over(name, self.published)

    def cut(self, name: str, held: frozenset[str] = frozenset()) -> Cut:
        """How a view is cut where these relations are held."""
        known = name, held
        if known not in self._cuts:
            plan = self.over_relations(name)
            self._cuts[known] = cut(name, plan, self._relations, held, self.published)
        return self._cuts[known]

    def _written_out(self, plan: Plan, stop: frozenset[str]) -> Plan:
        def one(node: Plan) -> Plan:
            if not isinstance(node, Scan):
                return over(node, one)
            if node.name in stop or node.name not in self.plans:
                return node
            inner = one(self.plans[node.name])
            names = tuple(field.name for field in node.schema)
            if names == tuple(field.name for field in inner.schema):
                return inner
            return Project(inner, all_columns(inner.schema), names)

        return one(plan)


# By identity, for equal programs may order and spell their declarations in different ways.
_WRITTEN: dict[int, Written] = {}


def written_of(program: Program) -> Written:
    """What follows from a program, kept as long as the program is."""
    found = _WRITTEN.get(id(program))
    if found is None:
        found = _WRITTEN[id(program)] = Written(program)
        weakref.finalize(program, _WRITTEN.pop, id(program)).atexit = False
    return found

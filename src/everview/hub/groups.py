"""Views that share operators or kept rows: they are all carried on by delta, or all computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.planner.circuit import Circuit, Kept

if TYPE_CHECKING:
    from everview.language.program import Program  # it brings the parser, which no task needs

__all__ = ["Group", "groups_of"]


@dataclass(frozen=True, slots=True)
class Group:
    """Views that share operators or kept rows, with all of those, and the relations that they read."""

    views: frozenset[str]
    operators: frozenset[str]
    kept: frozenset[str]
    relations: frozenset[str]

    def with_all_of(self, other: Group) -> Group:
        """Both as one."""
        return Group(
            self.views | other.views,
            self.operators | other.operators,
            self.kept | other.kept,
            self.relations | other.relations,
        )


def groups_of(program: Program, circuit: Circuit) -> tuple[Group, ...]:
    """All views of a program, each in one group."""
    found: list[Group] = []
    for view, shown in circuit.views.items():
        group = _closure(program, circuit, view, shown)
        apart: list[Group] = []
        for other in found:
            if other.operators & group.operators or other.kept & group.kept:
                group = group.with_all_of(other)
            else:
                apart.append(other)
        found = [*apart, group]
    return tuple(found)


def _closure(program: Program, circuit: Circuit, view: str, shown: Kept) -> Group:
    operators: set[str] = set()
    kept = {shown.name}
    relations: set[str] = set()
    waiting = [view]
    while waiting:
        name = waiting.pop()
        if name in program.relations:
            relations.add(name)
        elif name not in operators:
            operators.add(name)
            operator = circuit.operators[name]
            kept |= {one.name for one in (*operator.kept, *operator.searched)}
            if name in circuit.views:
                kept.add(circuit.views[name].name)
            waiting += circuit.operators[name].reads
    views = frozenset(operators & circuit.views.keys())
    return Group(views, frozenset(operators), frozenset(kept), frozenset(relations))

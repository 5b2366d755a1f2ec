"""Operators and tables in words from the program, by the views that they are for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.hub.relations import LatticeTable
from everview.planner.circuit import Circuit

if TYPE_CHECKING:
    from everview.hub.stages import Stage, Stages

__all__ = ["Words", "words_of"]

_MOST = 8
"""How many things are named before it says that there are more."""


@dataclass(frozen=True, slots=True)
class Words:
    """What operators and tables are called."""

    operators: dict[str, str]
    tables: dict[str, str]

    def of_tables(self, names: Iterable[str]) -> str:
        """Tables, each once."""
        return _listed(self.tables[name] for name in names)

    def of_stage(self, stage: Stage) -> str:
        """What one stage of a large refresh does."""
        done = [f"merges {_listed(table.relation.name for table in stage.merged)}"] if stage.merged else []
        done += [_listed(self.operators[operator.name] for operator in stage.operators)]
        done += [f"writes {self.of_tables(kept.name for kept in stage.written)}"] if stage.written else []
        return f"stage {stage.number} " + ", ".join(filter(None, done))

    def of_stages(self, stages: Stages) -> str:
        """What all of them do, one after the other."""
        return "; ".join(map(self.of_stage, stages))


def words_of(relations: Iterable[LatticeTable], circuit: Circuit) -> Words:
    """An operator is of the views that read it, directly or through operators that are none.

    So an aggregate that the view per_place shows is `aggregate of per_place`, and so are the rows that it
    keeps. A view is its own name, and so is a relation.
    """
    views: dict[str, dict[str, None]] = {}
    for operator in reversed(circuit.operators.values()):
        for source in sorted(operator.reads):
            mine = {operator.name: None} if operator.name in circuit.views else views.get(operator.name, {})
            views.setdefault(source, {}).update(mine)
    operators = {
        name: name
        if name in circuit.views
        else f"{operator.title.partition(',')[0].lower()} of {_listed(views.get(name, ()))}"
        for name, operator in circuit.operators.items()
    }
    tables = {table.name: table.relation.name for table in relations}
    tables |= {kept.name: name for name, kept in circuit.views.items()}
    for operator in circuit.operators.values():
        for kept in (*operator.kept, *operator.searched):
            tables.setdefault(kept.name, operators[operator.name])
    return Words(operators, {name: tables.get(name, name) for name in (*tables, *circuit.kept)})


def _listed(names: Iterable[str]) -> str:
    each = list(dict.fromkeys(names))
    more = f" and {len(each) - _MOST} more" if len(each) > _MOST else ""
    return ", ".join(each[:_MOST]) + more

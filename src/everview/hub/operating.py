"""One operator over the tables in memory: its changes, what was found for it, its steps, its own change."""

from __future__ import annotations

import pyarrow as pa

from everview.engines.spark.types import arrow_schema, column_names
from everview.hub.asking import Wanted
from everview.hub.deepening import too_few
from everview.hub.finding import Finder
from everview.hub.memory import Memory
from everview.hub.recursing import recur
from everview.language.plan import Plan, Scan
from everview.planner.circuit import Kept, Operator
from everview.planner.circuit.parts import changed_scan, found_scan, table_of
from everview.planner.circuit.weighted import consolidated, present, sum_up, united

__all__ = ["found_table", "is_too_little", "operate", "put_change", "put_found"]


def put_change(memory: Memory, kept: Kept) -> None:
    """How kept rows change, each once."""
    if isinstance(kept.change, Scan):
        # The delta of an operator, where each row is once already.
        memory.put(changed_scan(kept).name, kept.schema, memory.table(kept.change.name))
        return
    memory.run(changed_scan(kept).name, present(sum_up(kept.change, kept.width), kept.width))


def put_found(memory: Memory, table: Scan, found: pa.Table | None) -> None:
    """What was found of kept rows."""
    names = column_names(len(table.schema))
    rows = found.select(names) if found is not None else arrow_schema(table.schema).empty_table()
    memory.put(table.name, table.schema, rows)


def is_too_little(memory: Memory, wanted: Wanted) -> bool:
    """Whether more ranked rows are needed than were found."""
    if not wanted.spared:
        return False
    memory.run("@asked", too_few(wanted.lookups[0]))
    return memory.count("@asked") > 0


def operate(
    memory: Memory,
    operator: Operator,
    *,
    touched: bool,
    first: bool,
    finder: Finder | None = None,
    within: tuple[int, int] | None = None,
    most: int | None = None,
) -> pa.Table | None:
    """The change of an operator by those that it reads, and what is there at `first`; None for nothing.

    A recursion finds what it needs by a `finder`; `within` is the range of hashes that a task has. One that
    changes more than `most` rows is a TooManyError: of all operators it alone makes many of few.
    """
    if operator.recursion is not None:
        return recur(memory, operator, finder, within, most) if touched and finder is not None else None
    plans: list[Plan | None] = []
    if operator.change is not None and touched:
        for name, plan in operator.steps:
            memory.run(name, plan)
        plans.append(operator.change)
    if first:
        plans.append(operator.first)
    change = united(plans)
    if change is None:
        return None
    if isinstance(change, Scan) and table_of(change.name) == (change.name, False):
        return memory.table(change.name)
    memory.run("@changed", consolidated(change))
    return memory.table("@changed")


def found_table(wanted: Wanted) -> Scan:
    """The table of what was found."""
    return found_scan(wanted.lookups[0].kept)

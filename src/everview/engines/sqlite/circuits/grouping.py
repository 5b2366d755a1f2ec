"""GROUP BY: the touched groups, by what adds up, or again from their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from everview.engines.sqlite.circuits.accumulators import Accumulator, accumulator
from everview.engines.sqlite.circuits.circuit import Changed, Statement, from_contents, live
from everview.engines.sqlite.circuits.names import columns, internal
from everview.engines.sqlite.circuits.nodes import Node
from everview.engines.sqlite.circuits.select import Condition, Select, Source, equality, from_table
from everview.engines.sqlite.circuits.statetable import StateTable, same_row
from everview.engines.sqlite.scalars.expressions import compile_expression, sortable
from everview.engines.sqlite.scalars.storage import column_type
from everview.language.aggregates import AggregateCall
from everview.language.expressions import Expression
from everview.language.plan import Aggregate

if TYPE_CHECKING:
    from everview.engines.sqlite.circuits.compiler import Compiler


@dataclass(frozen=True, slots=True)
class _Kept:
    """An aggregate and where the group's table keeps it: in columns that add up, or in one result."""

    call: AggregateCall
    sums: Accumulator | None
    names: tuple[str, ...]

    def value(self, alias: str) -> str:
        """Return the aggregate's value in a row of the group's table."""
        kept = [f"{alias}.{name}" for name in self.names]
        return self.sums.value(kept) if self.sums else kept[0]


def compile_aggregate(compiler: Compiler, plan: Aggregate) -> Node:
    """Compile GROUP BY."""
    return _Groups(compiler, plan).node()


class _Groups:
    """One row a group: its key, how many rows it has (`n`), and its aggregates.

    A commit sums its change by group first. Then the old rows go out, the group's row is brought up to
    date, and the new rows come in; groups that have no rows left are removed. Without keys there is one
    group, which is there from the beginning and stays.
    """

    def __init__(self, compiler: Compiler, plan: Aggregate) -> None:
        self._circuit = compiler.circuit
        self._plan = plan
        number = compiler.number()
        self._kept = _arrange(plan.aggregates)
        again = any(kept.sums is None for kept in self._kept)
        self._keys: Sequence[Expression] = plan.keys
        if again:
            self._source, self._keys = compiler.keyed(plan.input, plan.keys)
        else:
            self._source = compiler.node(plan.input)
        self._table = StateTable(
            internal(f"g{number}"), plan.schema[: len(plan.keys)], tuple(self._extras()), zero="n"
        )
        self._circuit.declare(self._table)
        sums = [name for kept in self._kept if kept.sums for name in kept.names]
        self._touched = self._circuit.scratch(f"t_g{number}", plan.schema[: len(plan.keys)], ("n", *sums))
        self._change = self._circuit.scratch(f"d_g{number}", plan.schema)
        self._branches = self._source.delta()
        if again:
            self._upsert(self._touched)  # asks for the indexes
        self._circuit.step(
            _title(len(plan.keys)),
            f"the touched groups, {'some aggregates again from their rows' if again else 'by change'}",
            self._branches,
            self._statements,
            makes=self._change,
            table=self._table.name,
            anew=from_contents(self._source, self._read, self._anew),
        )
        if not plan.keys:
            self._circuit.start(self._first(), "")
            self._circuit.start(f"INSERT INTO {self._change} {self._visible(1)}", self._change)

    def node(self) -> Node:
        """Return the node of the group's rows."""
        names = columns(len(self._plan.schema))

        def delta() -> list[Select]:
            self._circuit.demand(self._change)
            return [
                from_table(self._circuit.names, self._change, names, weight="w", stored=False, delta=True)
            ]

        def contents() -> list[Select]:
            rows = from_table(self._circuit.names, self._table.name, self._table.columns)
            (source,) = rows.sources
            return [rows.project([*rows.columns, *(kept.value(source.alias) for kept in self._kept)])]

        return Node(self._plan.schema, delta, contents, is_set=True)

    def _extras(self) -> list[str]:
        extras = ["n INTEGER NOT NULL"]
        for kept in self._kept:
            if kept.sums:
                types = [column.type for column in kept.sums.columns]
                extras += [f"{name} {type_}" for name, type_ in zip(kept.names, types, strict=True)]
            else:
                extras.append(f"{kept.names[0]} {column_type(kept.call.type)}")
        return extras

    def _first(self) -> str:
        """Make the one group of no rows: its sums are 0, and what is computed again is so over nothing."""
        nothing = ["0"]
        for kept in self._kept:
            if kept.sums:
                nothing += [column.nothing for column in kept.sums.columns]
            else:
                nothing.append("0" if kept.call.function == "count" else "NULL")
        names = ", ".join(self._table.extra_names)
        return f"INSERT INTO {self._table.name} (one, {names}) VALUES (1, {', '.join(nothing)})"

    def _visible(self, weight: int, *, every: bool = False) -> str:
        """The rows of the touched groups, or of every one, as they stand in the table."""
        shown = [f"g.{column}" for column in self._table.columns]
        shown += [kept.value("g") for kept in self._kept]
        rows = f"SELECT {', '.join([*shown, str(weight)])} FROM "
        if every or not self._plan.keys:
            return f"{rows}{self._table.name} AS g"
        touched = [f"t.{column}" for column in self._table.columns]
        stored = [f"g.{column}" for column in self._table.columns]
        same = same_row(self._table.schema, stored, touched)
        return f"{rows}{self._touched} AS t CROSS JOIN {self._table.name} AS g ON {same}"

    def _statements(self, changed: Changed) -> list[Statement]:
        """Only who reads the change needs the touched groups by themselves, to find what they were."""
        sweep = [Statement(self._table.sweep(), sweeps=True)] if self._plan.keys else []
        summed = self._summed(live(self._branches, changed))
        if self._change not in self._circuit.demanded:
            return [Statement(self._upsert(f"({summed})")), *sweep]
        return [
            Statement(f"INSERT INTO {self._touched} {summed}", self._touched),
            Statement(f"INSERT INTO {self._change} {self._visible(-1)}", self._change),
            Statement(self._upsert(self._touched)),
            *sweep,
            Statement(f"INSERT INTO {self._change} {self._visible(1)}", self._change),
            *([] if self._plan.keys else [Statement(self._unchanged())]),
        ]

    def _read(self) -> list[str]:
        """What is read besides the rows to be grouped when all groups are made again."""
        return [self._table.name] if self._change in self._circuit.demanded else []

    def _anew(self, rows: list[Select]) -> list[Statement]:
        """Make all groups again; of their rows only those that differ from before are a change."""
        fill = [
            Statement(f"DELETE FROM {self._table.name}"),
            *([] if self._plan.keys else [Statement(self._first())]),
            Statement(self._upsert(f"({self._summed(rows)})")),
        ]
        if self._change not in self._circuit.demanded:
            return fill
        return [
            Statement(f"INSERT INTO {self._change} {self._visible(-1, every=True)}", self._change),
            *fill,
            Statement(f"INSERT INTO {self._change} {self._visible(1, every=True)}", self._change),
            Statement(self._netted() if self._plan.keys else self._unchanged()),
        ]

    def _netted(self) -> str:
        """Forget the change of the groups that are what they were."""
        change, names = self._change, ", ".join(columns(len(self._plan.schema)))
        pairs = " UNION ALL ".join(
            f"SELECT {end}(rowid) FROM {change} GROUP BY {names} HAVING sum(w) = 0" for end in ("min", "max")
        )
        return f"DELETE FROM {change} WHERE rowid IN ({pairs})"

    def _unchanged(self) -> str:
        """Forget the change where the one group is what it was: who joins with it would read everything."""
        change, names = self._change, ", ".join(columns(len(self._plan.schema))) or "1"
        different = f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM {change})"
        return f"DELETE FROM {change} WHERE ({different}) = 1 AND (SELECT count(*) FROM {change}) = 2"

    def _summed(self, branches: list[Select]) -> str:
        """The rows of branches by group: its key, their number, and what adds up."""
        parts = []
        names = [*columns(len(self._keys)), "w", *(f"v{i}" for i in range(len(self._kept)))]
        for branch in branches:
            keys = [compile_expression(key, branch.columns) for key in self._keys]
            values = [_value(kept, branch) for kept in self._kept]
            cells = zip([*keys, branch.weight, *values], names, strict=True)
            parts.append(branch.sql(columns=[f"{sql} AS {name}" for sql, name in cells]))
        sums = ["coalesce(sum(w), 0) AS n"]
        for index, kept in enumerate(self._kept):
            if kept.sums:
                weight = f"w * (v{index} IS NOT NULL)" if kept.call.argument is None else "w"
                totals = [column.total.format(v=f"v{index}", w=weight) for column in kept.sums.columns]
                sums += [f"{total} AS {name}" for total, name in zip(totals, kept.names, strict=True)]
        listed = ", ".join(columns(len(self._keys)))
        group = f" GROUP BY {listed}" if listed else ""
        shown = ", ".join(filter(None, [listed, *sums]))
        return f"SELECT {shown} FROM ({' UNION ALL '.join(parts)}){group}"

    def _upsert(self, touched: str) -> str:
        """Add what adds up in the touched groups; the rest is computed from the rows that they have now."""
        group = [f"x.{column}" for column in self._table.columns]
        width = len(group)
        shown, updates = [*group, "x.n"], ["n = n + excluded.n"]
        for kept in self._kept:
            if kept.sums:
                shown += [f"x.{name}" for name in kept.names]
                updates += [
                    column.merged(name) for name, column in zip(kept.names, kept.sums.columns, strict=True)
                ]
                if kept.sums.fails:
                    added = [f"({name} + excluded.{name})" for name in kept.names]
                    shown[width] += _counted(kept.sums.fails([f"x.{name}" for name in kept.names]))
                    updates[0] += _counted(kept.sums.fails(added))
            else:
                (name,) = kept.names
                shown.append(f"({self._over_group(kept.call, group)})")
                updates.append(f"{name} = excluded.{name}")
        return self._table.upsert(f"SELECT {', '.join(shown)} FROM {touched} AS x", updates)

    def _over_group(self, call: AggregateCall, group: Sequence[str]) -> str:
        """An aggregate over the rows of one group."""
        assert self._source.contents is not None
        assert call.argument is not None
        rows = []
        for select in self._source.contents():
            value = compile_expression(call.argument, select.columns)
            same = [
                equality(compile_expression(key, select.columns), mine, null_safe=field.nullable)
                for key, mine, field in zip(self._keys, group, self._table.schema, strict=True)
            ]
            narrow = select.filter(*same, Condition(f"{value} IS NOT NULL"))
            if call.filter is not None:
                narrow = narrow.filter(Condition(compile_expression(call.filter, select.columns)))
            rows.append((narrow, value))
        return self._extreme(call, rows) if call.function in ("min", "max") else self._distinct(call, rows)

    def _extreme(self, call: AggregateCall, rows: list[tuple[Select, str]]) -> str:
        if len(rows) == 1:
            ((select, value),) = rows
            direction = "DESC" if call.function == "max" else "ASC"
            return self._sql(select, [value], f"ORDER BY {sortable(value)} {direction} LIMIT 1", last=value)
        parts = [self._sql(select, [f"{value} AS v"]) for select, value in rows]
        return f"SELECT {call.function}(v) FROM ({' UNION ALL '.join(parts)})"

    def _distinct(self, call: AggregateCall, rows: list[tuple[Select, str]]) -> str:
        """An aggregate over the different values: each once, summed like any others."""
        once = AggregateCall(call.function, call.argument)
        sums = accumulator(once)
        assert sums is not None
        parts = [self._sql(select, [f"{value} AS v"]) for select, value in rows]
        totals = [f"{column.total.format(v='v', w='1')} AS a{i}" for i, column in enumerate(sums.columns)]
        values = f"SELECT {', '.join(totals)} FROM (SELECT DISTINCT v FROM ({' UNION ALL '.join(parts)}))"
        found = [f"a{i}" for i in range(len(sums.columns))]
        failed = f"CASE WHEN {sums.fails(found)} THEN {_FAILURE} ELSE " if sums.fails else ""
        return f"SELECT {failed}{sums.value(found)}{' END' if failed else ''} FROM ({values})"

    def _sql(self, select: Select, shown: list[str], tail: str = "", *, last: str = "") -> str:
        """Render; `last` is a value that the index on the group should go on with, in order."""
        alias, _, column = last.partition(".")

        def request(source: Source, by: tuple[str, ...]) -> None:
            more = (column,) if source.alias == alias and column.isidentifier() and column not in by else ()
            self._circuit.request_index(source, by + more)

        return select.sql(columns=shown, on_index=request, tail=tail)


def _title(keys: int) -> str:
    if not keys:
        return "aggregate over all rows"
    return f"group by {keys} {'key' if keys == 1 else 'keys'}"


def _arrange(calls: Sequence[AggregateCall]) -> list[_Kept]:
    kept = []
    for index, call in enumerate(calls):
        sums = accumulator(call)
        width = len(sums.columns) if sums else 1
        kept.append(_Kept(call, sums, tuple(f"a{index}_{i}" for i in range(width))))
    return kept


_FAILURE = "ev_fail('sum does not fit BIGINT')"


def _counted(fails: str) -> str:
    """A term that adds nothing, and counts the failure if there is one."""
    return f" + (CASE WHEN {fails} THEN {_FAILURE} IS NOT NULL ELSE 0 END)"


def _value(kept: _Kept, branch: Select) -> str:
    """What a row gives to an aggregate: NULL where it is filtered away, 1 for count(*)."""
    call = kept.call
    value = "1" if call.argument is None else compile_expression(call.argument, branch.columns)
    if call.filter is None:
        return value
    return f"CASE WHEN {compile_expression(call.filter, branch.columns)} THEN {value} END"

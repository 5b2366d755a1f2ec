"""Expressions on SQLite and by the reference, row by row, so that they can be compared."""

import sqlite3

from everview.engines.reference.scalars import Run
from everview.engines.sqlite.scalars.expressions import bind_parameters, compile_expression
from everview.engines.sqlite.scalars.functions import register
from everview.engines.sqlite.scalars.storage import column_type, load_rows, store_rows
from everview.errors import DataError


class Bench:
    """A table of typed rows in SQLite, with our functions registered."""

    def __init__(self, types, rows):
        self.types = types
        self.rows = rows
        self.messages = []
        self.connection = sqlite3.connect(":memory:")
        self.failures = register(self.connection, self.messages.append)
        self.columns = [f"t.c{i}" for i in range(len(types))]
        declared = ", ".join(f"c{i} {column_type(kind)}" for i, kind in enumerate(types))
        self.connection.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY{', ' if types else ''}{declared})")
        stored = store_rows(types, rows)
        marks = ", ".join(["?"] * (len(types) + 1))
        self.connection.executemany(
            f"INSERT INTO t VALUES ({marks})", [(i, *row) for i, row in enumerate(stored)]
        )

    def lenient(self, expression, parameters=None):
        """The values over all rows, and how many calls failed."""
        self.messages.clear()
        sql = compile_expression(expression, self.columns)
        bound = bind_parameters(parameters or {})
        found = self.connection.execute(f"SELECT {sql} FROM t ORDER BY id", bound).fetchall()
        return [value for (value,) in load_rows([expression.type], found)], len(self.messages)

    def strict(self, expression, row_ids):
        """Value by value, DataError in place of a value that fails."""
        sql = compile_expression(expression, self.columns, strict=True)
        results = []
        for row_id in row_ids:
            try:
                with self.failures.surfaced():
                    found = self.connection.execute(f"SELECT {sql} FROM t WHERE id = ?", (row_id,)).fetchall()
                results.append(load_rows([expression.type], found)[0][0])
            except DataError as error:
                results.append(error)
        return results


def reference(expression, rows, parameters=None, *, strict=False):
    """What the reference says: values (DataError where it raises) and the number of failures."""
    run = Run(None, parameters or {}, strict)
    values = []
    for row in rows:
        try:
            values.append(run.value(expression, row, ()))
        except DataError as error:
            values.append(error)
    return values, run.failures


def same(left, right):
    """Equal in value and in type; a Decimal in its scale, a float in its bits."""
    if isinstance(left, DataError) or isinstance(right, DataError):
        return isinstance(left, DataError) and isinstance(right, DataError)
    return type(left) is type(right) and repr(left) == repr(right)


def assert_agree(bench, expression, *, strict_rows=12, counts=True):
    """SQLite and the reference give the same values and as many failures, lenient and strict."""
    expected, failures = reference(expression, bench.rows)
    found, counted = bench.lenient(expression)
    wrong = [
        (row, want, got)
        for row, want, got in zip(bench.rows, expected, found, strict=True)
        if not same(want, got)
    ]
    assert not wrong, f"{len(wrong)} differ (row, reference, SQLite): {wrong[:5]} in {expression}"
    assert not counts or counted == failures, (
        f"{counted} failures counted, {failures} by the reference, in {expression}"
    )
    step = max(1, len(bench.rows) // strict_rows)
    chosen = range(0, len(bench.rows), step)
    wanted, _ = reference(expression, [bench.rows[i] for i in chosen], strict=True)
    for i, want, got in zip(chosen, wanted, bench.strict(expression, chosen), strict=True):
        assert same(want, got), (
            f"strict: {bench.rows[i]}: reference {want!r}, SQLite {got!r}, in {expression}"
        )

"""How rows get into a store: column by column."""

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from everview.engines.sqlite.rows.staging import pour, stage, stage_columns


def staged(fill):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (a, b, c)")
    fill(connection)
    return connection.execute("SELECT a, b, c FROM t ORDER BY rowid").fetchall()


@given(st.integers(0, 600))
def test_columns_and_rows_are_staged_alike(count):
    rows = [(number, str(number)) for number in range(count)]
    columns = list(zip(*rows, strict=True)) or [(), ()]
    wanted = [(*row, -1) for row in rows]
    assert staged(lambda connection: stage(connection, "t", rows, -1)) == wanted
    assert staged(lambda connection: stage_columns(connection, "t", columns, -1)) == wanted
    assert staged(lambda c: stage_columns(c, "t", [*columns, range(count)])) == [(*r, r[0]) for r in rows]


def test_what_is_the_same_in_all_rows_comes_first():
    def fill(connection):
        assert pour(connection, lambda rows: f"INSERT INTO t {rows}", [[1, 2], "xy"], b"same") == 2

    assert staged(fill) == [(b"same", 1, "x"), (b"same", 2, "y")]

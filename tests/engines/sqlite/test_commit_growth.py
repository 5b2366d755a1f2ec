"""A large commit costs about what its change costs: SQLite's own count of instructions says so."""

import pytest
from benchmarks.large_shapes import SHAPES

import everview as ev
from everview.engines.sqlite.circuits.circuit import Strategy
from everview.testing.fuzz import BY_SIZE

SMALL, LARGE = 400, 1600
MOST = 2.3
"""How much more a commit of twice the rows may cost."""


def instructions(site, write):
    """How many hundreds of instructions SQLite's machine runs for a write."""
    ran = 0

    def count():
        nonlocal ran
        ran += 1

    connection = site._store.writer.connection
    connection.set_progress_handler(count, 100)
    write()
    connection.set_progress_handler(None, 0)
    return ran


def commits(shape, size, strategy=BY_SIZE):
    """What the first commit, the second, and the deletion of the first take."""
    first, second = shape.rows(size, 0), shape.rows(size, 1)
    with ev.Site.open(":memory:", ev.Program.parse(shape.program)) as site:
        site._store.engine.circuit.strategy = strategy

        def write(verb, rows):
            with site.transaction():
                for table, some in rows.items():
                    verb(table, some)

        return [
            instructions(site, lambda: write(site.insert, first)),
            instructions(site, lambda: write(site.insert, second)),
            instructions(site, lambda: write(site.delete, first)),
        ]


@pytest.mark.parametrize("name", SHAPES)
def test_twice_the_rows_cost_about_twice_as_much(name):
    few, many = commits(SHAPES[name], SMALL), commits(SHAPES[name], LARGE)
    growth = [(after / before) ** 0.5 for before, after in zip(few, many, strict=True)]
    assert max(growth) < MOST, growth


@pytest.mark.parametrize("name", ["path", "pairs"])
def test_a_relation_joined_with_itself_is_computed_anew_for_less(name):
    by_size = commits(SHAPES[name], LARGE)
    by_change = commits(SHAPES[name], LARGE, Strategy(anew=0))
    assert by_size[0] < 0.7 * by_change[0]
    assert by_size[2] < 0.7 * by_change[2]


def test_a_few_rows_of_many_are_not_computed_anew():
    shape = SHAPES["pairs"]
    rows = shape.rows(2 * LARGE, 0)["r"]
    with ev.Site.open(":memory:", ev.Program.parse(shape.program)) as site:
        site.insert("r", rows[:-50])
        assert instructions(site, lambda: site.insert("r", rows[-50:])) < 500


def test_a_row_meets_a_range_by_reading_that_range():
    program = ev.Program.parse(
        "CREATE TABLE a (x BIGINT); CREATE TABLE b (z BIGINT, y BIGINT);"
        "CREATE MATERIALIZED VIEW q AS SELECT a.x AS x, b.z AS z FROM a JOIN b ON b.y > a.x;"
    )
    with ev.Site.open(":memory:", program) as site:
        site.insert("b", [(row, row) for row in range(LARGE)])
        assert instructions(site, lambda: site.insert("a", [(LARGE - 3,)])) < 10
        assert site.rows("q") == [(LARGE - 3, LARGE - 2), (LARGE - 3, LARGE - 1)]

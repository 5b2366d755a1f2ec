"""The choice between delta and computing anew: by sizes, per group of views, and shown."""

import pytest
from tests.hub.quick import quickly

from everview.hub import Hub
from everview.hub.costs import Arriving, Costs, Sampler
from everview.hub.files import open_files
from everview.hub.record import Record
from everview.hub.runs import Part, Run
from everview.hub.tables import catalog
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE r (g BIGINT, x BIGINT);
CREATE TABLE s (g BIGINT, y BIGINT);
CREATE MATERIALIZED VIEW sums AS SELECT g, sum(x) AS t FROM r GROUP BY g;
CREATE MATERIALIZED VIEW met AS SELECT x, y FROM r JOIN s ON r.g = s.g;
CREATE MATERIALIZED VIEW counted AS SELECT y, count(*) AS n FROM met GROUP BY y;
CREATE MATERIALIZED VIEW numbered AS SELECT x, row_number() OVER (PARTITION BY g ORDER BY x) AS n FROM r;
""")


class Supposed(Sampler):
    """As many rows a key as the test says."""

    def __init__(self, mean):
        self.mean = mean

    def rows_a_key(self, table, record):
        return self.mean


def costs(rows, mean=2.0, program=PROGRAM):
    kept = catalog(program)
    run = Run(rows, (Part("", 0, 0, rows, 0, 0),))
    record = Record(refresh=1, program="", tables=dict.fromkeys(kept.names, (run,)))
    return Costs(kept, record, Supposed(mean))


def group_of(made, view):
    return next(group for group in made.catalog.groups if view in group.views)


def test_views_that_share_operators_or_kept_rows_go_together():
    """A window by the key of a join keeps the same rows as the join does."""
    groups = catalog(PROGRAM).groups
    assert {group.views for group in groups} == {
        frozenset({"sums"}),
        frozenset({"met", "counted", "numbered"}),
    }
    assert {view: group.relations for group in groups for view in group.views} == {
        "sums": {"r"},
        "met": {"r", "s"},
        "counted": {"r", "s"},
        "numbered": {"r", "s"},
    }


def changed(rows):
    return dict.fromkeys("rs", Arriving(rows // 2, rows // 2))


@pytest.mark.parametrize("view", ["sums", "met"])
def test_a_small_change_goes_by_delta_and_a_large_one_anew(view):
    made = costs(1_000_000)
    group = group_of(made, view)
    assert not made.choice(group, changed(1_000)).recomputed
    choice = made.choice(group, changed(1_000_000))
    assert choice.recomputed
    assert choice.recompute_seconds < choice.delta_seconds
    least = made.least_recomputed(group)
    assert 100_000 < least < 1_000_000
    assert not made.choice(group, changed(least - 2)).recomputed


def test_the_first_rows_go_by_delta():
    """There is nothing to look up, so there is nothing to save."""
    made = costs(0)
    come = dict.fromkeys("rs", Arriving(10**6))
    assert not any(made.choice(group, come).recomputed for group in made.catalog.groups)


def test_few_large_partitions_are_computed_anew_early():
    def least(mean):
        made = costs(1_000_000, mean)
        return made.least_recomputed(group_of(made, "numbered"))

    assert 100 * least(mean=100_000) < least(mean=2)


def test_a_view_without_relations_costs_nothing():
    program = Program.parse("CREATE MATERIALIZED VIEW one AS SELECT 1 AS x;")
    made = costs(1, program=program)
    (group,) = made.catalog.groups
    assert (group.views, group.relations) == ({"one"}, frozenset())
    assert made.least_recomputed(group) is None


def test_how_many_rows_a_key_has_is_sampled(spark, tmp_path):
    program = Program.parse(
        "CREATE TABLE r (g BIGINT, x BIGINT); CREATE TABLE s (g BIGINT, y BIGINT);"
        "CREATE MATERIALIZED VIEW met AS SELECT x, y FROM r JOIN s ON r.g = s.g;"
    )
    with quickly(Hub.open(tmp_path, program, spark=spark)) as hub:
        hub.insert("r", [(n % 10, n) for n in range(1_000)])
        hub.insert("s", [(n, n) for n in range(10)])
        report = hub.refresh()
        assert set(report.choices) == {"met"}
        assert not report.choices["met"].recomputed
        sampler = Sampler(open_files(tmp_path))
        operator = next(o for o in hub._store.catalog.circuit.operators.values() if o.lookups)
        means = {sampler.rows_a_key(kept.name, hub._store.record) for kept in operator.kept}
        assert means == {100.0, 1.0}
        text = hub.explain("met")
        assert "s of one core by delta" in text
        assert "computed anew" in text

"""What commits do to operators, against the reference: random programs, every operator, every commit."""

import time
from collections import Counter
from contextlib import suppress

import pytest

from everview import Program, Site
from everview.engines.reference.evaluate import evaluate
from everview.engines.sqlite import inspecting
from everview.errors import DataError
from everview.language.plan import RecursiveScan, walk_plan
from everview.testing.fuzz import generate_case

PROGRAM = """
    CREATE TABLE r (a BIGINT, b BIGINT);
    CREATE TABLE s (b BIGINT);
    CREATE MATERIALIZED VIEW v AS SELECT r.a FROM r JOIN s ON r.b = s.b WHERE r.a > 0;
"""


def bags(site, kept):
    """What each operator has, by the reference; parts that views have in common come first."""
    engine = site.inspection._store.engine
    tables = {name: site.rows(name) for name in site.inspection.hosted()}
    for name, plan in engine.shared.items():
        if name not in tables:
            tables[name] = evaluate(plan, tables).rows
    return {
        plan: Counter(map(repr, evaluate(plan, tables).rows))
        for view in kept.values()
        for plan in view.operators
        if site.inspection.is_counted(plan) and not any(isinstance(p, RecursiveScan) for p in walk_plan(plan))
    }


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_the_reference(seed):
    case = generate_case(1000 + seed, statements=5)
    with Site.open(":memory:", case.program) as site:
        looks = lambda: {view: site.inspection.kept(view) for view in case.program.views}
        before = bags(site, looks())
        for write in [write for statement in case.history for write in statement]:
            commit = site.status()["commits"]
            getattr(site, write.action)(write.relation, write.rows)
            kept = looks()
            if any(len(site.rows(view)) > 100 for view in case.program.views):
                return
            after = bags(site, kept)
            for view in kept.values():
                if view.tallied is None or view.tallied.commit <= commit:
                    assert all(after[plan] == before[plan] for plan in view.operators if plan in after)
                    continue
                for plan in view.operators:
                    if plan in after:
                        told = view.tallied.counts.get(plan)
                        more = sum((after[plan] - before[plan]).values())
                        less = sum((before[plan] - after[plan]).values())
                        found = (told.appeared, told.disappeared) if told is not None else (0, 0)
                        assert found == (more, less), plan
            before = after


@pytest.fixture
def site():
    with Site.open(":memory:", Program.parse(PROGRAM)) as found:
        yield found


def counts(site):
    kept = site.inspection.kept("v")
    if kept.tallied is None:
        return None
    told = {type(plan).__name__: tally for plan, tally in kept.tallied.counts.items()}
    return {name: (tally.appeared, tally.disappeared) for name, tally in told.items()}


def test_nothing_is_counted_before_somebody_looks(site):
    site.insert("s", [(1,)])
    assert counts(site) is None
    site.insert("r", [(1, 1), (0, 1)])
    assert counts(site) == {"Project": (1, 0), "Join": (1, 0), "Filter": (1, 0), "Scan": (2, 0)}


def test_a_statement_that_fails_or_is_undone_does_not_count(site):
    site.insert("s", [(1,)])
    counts(site)
    with site.transaction():
        site.insert("r", [(1, 1)])
        with pytest.raises(DataError):
            site.insert("r", [("x", 1)])
        site.insert("r", [(2, 1)])
    assert counts(site)["Scan"] == (2, 0)
    with suppress(ZeroDivisionError), site.transaction():
        site.insert("r", [(3, 1)])
        raise ZeroDivisionError
    assert counts(site)["Scan"] == (2, 0)
    site.inspection.without("r", (1, 1), ["v"])
    assert counts(site)["Scan"] == (2, 0)
    site.delete("r", [(1, 1)])
    assert counts(site)["Scan"] == (0, 1)


def test_half_of_a_statement_does_not_count():
    """An UPDATE that has deleted, and then may not insert."""
    program = """
        CREATE TABLE own (site TEXT, x BIGINT) WITH (owner = 'site');
        CREATE MATERIALIZED VIEW v AS SELECT x FROM own;
    """
    with Site.open(":memory:", Program.parse(program), name="a") as site:
        site.insert("own", [("a", 1)])
        counts(site)
        with site.transaction():
            with pytest.raises(DataError, match="only that site writes such rows"):
                site.execute("UPDATE own SET site = 'b'")
            site.insert("own", [("a", 2)])
        assert counts(site)["Scan"] == (1, 0)


def test_what_arrives_from_others_counts_too(site):
    with Site.open(":memory:", site.program, name="b") as other:
        other.insert("s", [(1,)])
        other.insert("r", [(1, 1), (2, 1)])
        counts(site)
        site.sync(other)
        assert counts(site)["Project"] == (2, 0)


def test_nobody_looks_any_more(site, monkeypatch):
    monkeypatch.setattr(inspecting, "LOOKS_SECONDS", 0.05)
    counts(site)
    tallies = site.inspection._writing.tallies
    assert tallies.following
    time.sleep(0.1)
    site.insert("r", [(1, 1)])
    assert not tallies.following
    assert counts(site) is None


def test_failed_expressions_are_counted_once(site):
    with Site.open(
        ":memory:",
        Program.parse("CREATE TABLE r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT 1 / a AS x FROM r;"),
    ) as divided:
        divided.inspection.kept("v")
        divided.insert("r", [(0,), (1,)])
        assert divided.status()["failed_expressions"] == 1
        divided.inspection.without("r", (0,), ["v"])
        divided.insert("r", [(2,)])
        assert divided.status()["failed_expressions"] == 1

"""What a deletion would do, against deleting: random programs, random histories, every kind of relation."""

import random
from collections import Counter

import pytest

from everview import Program, Site
from everview.engines.sqlite.trials import deletion, stand_in
from everview.testing.fuzz import generate_case

RESCUE = """
    CREATE TABLE sighting (drone TEXT, sector BIGINT);
    CREATE TABLE sector (sector BIGINT PRIMARY KEY, team TEXT);
    CREATE TABLE path (a BIGINT, b BIGINT) WITH (semantics = 'add_wins');
    CREATE TABLE note (word TEXT) WITH (semantics = 'bag');
    CREATE TABLE own (site TEXT, x BIGINT) WITH (owner = 'site');
    CREATE MATERIALIZED VIEW alert AS
        SELECT DISTINCT s.sector, t.team FROM sighting s JOIN sector t ON s.sector = t.sector;
    CREATE MATERIALIZED VIEW quiet AS
        SELECT sector FROM sector WHERE sector NOT IN (SELECT sector FROM sighting);
    CREATE MATERIALIZED VIEW busy AS SELECT sector, count(*) AS n FROM sighting GROUP BY sector;
    CREATE MATERIALIZED VIEW words AS SELECT word, count(*) AS n FROM note GROUP BY word;
    CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r AS (
        SELECT a, b FROM path UNION SELECT r.a, path.b FROM r JOIN path ON r.b = path.a) SELECT a, b FROM r;
    CREATE MATERIALIZED VIEW mine AS SELECT sum(x) AS total FROM own;
"""


def bags(site, names):
    return {name: Counter(map(repr, site.rows(name))) for name in names}


def told(turns, names):
    """What was told as a change of bags: nothing is left out, and the counts are those of the rows."""
    found = {name: Counter() for name in names}
    for name, turn in turns.items():
        for row, weight in turn.rows:
            found[name][repr(row)] += weight
        assert turn.appeared == sum(weight for _, weight in turn.rows if weight > 0)
        assert turn.vanished == -sum(weight for _, weight in turn.rows if weight < 0)
    return found


def changed(before, after):
    found = {}
    for name in before:
        found[name] = Counter(after[name])
        found[name].subtract(before[name])
        found[name] = Counter({row: weight for row, weight in found[name].items() if weight})
    return found


def check(site, relation, row, predict):
    names = site.inspection.hosted()
    before, commits = bags(site, names), site.status()["commits"]
    turns = told(predict(relation, row, names), names)
    assert bags(site, names) == before  # nothing happened
    assert site.status()["commits"] == commits
    assert site.delete(relation, [row]) == 1
    assert turns == changed(before, bags(site, names))


@pytest.mark.parametrize("seed", range(8))
def test_a_trial_tells_what_deleting_does(seed):
    case, rng = generate_case(seed, statements=5), random.Random(seed)
    with Site.open(":memory:", case.program) as site:
        for statement in case.history:
            for write in statement:
                getattr(site, write.action)(write.relation, write.rows)
            relation = rng.choice(list(case.program.relations))
            rows = site.rows(relation)
            if rows and all(len(site.rows(view)) < 100 for view in case.program.views):
                check(site, relation, rng.choice(rows), site.inspection.without)


def rescue(name):
    site = Site.open(":memory:", Program.parse(RESCUE), name=name)
    rng = random.Random(7)
    site.insert("sighting", {(f"d{rng.randrange(3)}", rng.randrange(5)) for _ in range(12)})
    site.insert("sector", [(n, rng.choice(["alpha", None])) for n in range(6)])
    site.insert("path", {(rng.randrange(6), rng.randrange(6)) for _ in range(14)})
    site.insert("note", [(rng.choice("xy"),) for _ in range(6)])
    site.insert("own", [(name, n) for n in range(3)])
    return site


@pytest.mark.parametrize("relation", ["sighting", "sector", "path", "note", "own"])
def test_every_kind_of_relation(relation):
    with rescue("a") as site:
        rows = site.rows(relation)
        assert rows
        for row in list(dict.fromkeys(rows))[:6]:
            check(site, relation, row, site.inspection.without)


def test_a_copy_in_memory_tells_the_same():
    """As a hub does it; also rows of other owners, which this site could not delete itself."""
    with rescue("a") as site:
        names = site.inspection.hosted()
        for relation in ("sighting", "path", "note", "own"):
            copy = stand_in(
                site.program, "b", {name: site.rows(name) for name in names if name in site.program.relations}
            )
            row = site.rows(relation)[0]
            check(site, relation, row, lambda r, w, n, c=copy: deletion(c, site.program.relations[r], w, n))
            copy.store.close()


def test_a_row_of_another_owner_is_only_tried():
    with rescue("a") as site, Site.open(":memory:", site.program, name="b") as other:
        other.sync(site)
        (turn,) = [turn for name, turn in other.inspection.without("own", ("a", 2), ["mine"]).items()]
        assert turn.rows == (((3,), -1), ((1,), 1))
        assert other.rows("mine") == [(3,)]


def test_which_views_say_all_that_a_row_stands_on():
    with (
        rescue("a") as site,
        Site.open(":memory:", site.program, hosts={"alert", "quiet", "reach"}) as screen,
    ):
        told = {view: site.inspection.is_monotone(view) for view in site.program.views}
        assert told == {
            "alert": True,
            "quiet": False,
            "busy": False,
            "words": False,
            "reach": False,
            "mine": False,
        }
        assert [screen.inspection.is_monotone(view) for view in ("alert", "quiet", "reach")] == [
            True,
            False,
            False,
        ]


def test_only_the_first_rows_are_told_and_all_are_counted():
    with Site.open(
        ":memory:",
        Program.parse(
            "CREATE TABLE r (a BIGINT); CREATE TABLE s (b BIGINT);"
            "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM r, s;"
        ),
    ) as site:
        site.insert("r", [(1,)])
        site.insert("s", [(n,) for n in range(300)])
        turn = site.inspection.without("r", (1,), ["v"])["v"]
        assert (turn.vanished, turn.appeared, len(turn.rows)) == (300, 0, 100)


def test_a_trial_leaves_later_commits_alone(tmp_path):
    """On a file too, and with somebody who watches."""
    with Site.open(tmp_path / "s.db", Program.parse(RESCUE), name="a") as site:
        seen = []
        site.watch("busy", seen.append)
        site.insert("sighting", [("d", 1)])
        site.inspection.without("sighting", ("d", 1), ["busy"])
        site.insert("sighting", [("e", 1)])
        assert [sorted(changes) for changes in seen] == [[((1, 1), 1)], [((1, 1), -1), ((1, 2), 1)]]
        assert site.status()["commits"] == 2

"""Rows that two sites delete, that are made again, groups that empty and come back: each across sites.

For each kind of relation, among sites that hold it, and over a hop that hosts nothing but the view.
"""

import itertools

import pytest
from tests.replication.sites import World, talk

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE s (a BIGINT NOT NULL, b TEXT NOT NULL);
    CREATE TABLE k (a BIGINT PRIMARY KEY, b TEXT NOT NULL);
    CREATE TABLE g (a BIGINT NOT NULL, b TEXT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT NOT NULL, b TEXT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW s_groups AS SELECT b, count(*) AS n, sum(a) AS t FROM s GROUP BY b;
    CREATE MATERIALIZED VIEW k_groups AS SELECT b, count(*) AS n, sum(a) AS t FROM k GROUP BY b;
    CREATE MATERIALIZED VIEW g_groups AS SELECT b, count(*) AS n, sum(a) AS t FROM g GROUP BY b;
    CREATE MATERIALIZED VIEW w_groups AS SELECT b, count(*) AS n, sum(a) AS t FROM w GROUP BY b;
    CREATE MATERIALIZED VIEW s_some AS SELECT b, a + 1 AS c FROM s WHERE a < 9;
    CREATE MATERIALIZED VIEW k_some AS SELECT b, a + 1 AS c FROM k WHERE a < 9;
    CREATE MATERIALIZED VIEW g_some AS SELECT b, a + 1 AS c FROM g WHERE a < 9;
    CREATE MATERIALIZED VIEW w_some AS SELECT b, a + 1 AS c FROM w WHERE a < 9;
""")
KINDS = ["s", "k", "g", "w"]
ONE, TWO = (1, "x"), (2, "x")


class Story:
    """Two sites that write, a hop that hosts only the views, and a last site that knows only the hop."""

    def __init__(self, kind):
        self.kind, self.world = kind, World()
        views = {f"{kind}_groups", f"{kind}_some"}
        self.a, self.b = (self.world.site(name, program=PROGRAM) for name in "ab")
        self.hop, self.last = (
            self.world.site(name, program=PROGRAM, hosts=views) for name in ("hop", "last")
        )
        self.spread()

    def spread(self, *, over="b"):
        """Everything goes from a to b, by one of them to the hop, and from there to the last."""
        self.world.seconds += 1
        self.a.sync(self.b)
        self.hop.sync(getattr(self, over))
        self.last.sync(self.hop)

    def insert(self, site, *rows):
        self.world.seconds += 1
        return site.insert(self.kind, rows)

    def delete(self, site, *rows):
        self.world.seconds += 1
        return site.delete(self.kind, rows)

    def shows(self, *rows):
        """Every site shows what follows from these rows."""
        expected = sorted(rows)
        assert self.a.rows(self.kind) == self.b.rows(self.kind) == expected
        groups = {b: [a for a, other in rows if other == b] for _, b in rows}
        for site in (self.a, self.b, self.hop, self.last):
            found = site.rows(f"{self.kind}_groups")
            assert found == sorted((b, len(m), sum(m)) for b, m in groups.items()), site.name
            assert site.rows(f"{self.kind}_some") == sorted((b, a + 1) for a, b in rows), site.name
        return True


@pytest.fixture(params=KINDS)
def story(request):
    return Story(request.param)


def test_two_sites_delete_the_same_row(story):
    story.insert(story.a, ONE, TWO)
    story.spread()
    assert story.shows(ONE, TWO)
    assert story.delete(story.a, ONE) == story.delete(story.b, ONE) == 1
    story.spread(over="a")
    assert story.shows(TWO)


def test_a_row_deleted_at_two_sites_and_made_again(story):
    """Of a bag the second deletion is still owed: a copy more is needed."""
    story.insert(story.a, ONE)
    story.spread()
    story.delete(story.a, ONE)
    story.delete(story.b, ONE)
    story.spread()
    assert story.shows()
    story.insert(story.b, ONE)
    story.spread(over="a")
    if story.kind == "g":
        assert story.shows()
        story.insert(story.a, ONE)
        story.spread()
    assert story.shows(ONE)


def test_a_row_made_again_where_the_other_only_heard_of_the_end(story):
    for number in range(4):
        story.insert((story.a, story.b)[number % 2], ONE)
        story.spread(over="ab"[number % 2])
        assert story.shows(ONE)
        story.delete((story.b, story.a)[number % 2], ONE)
        story.spread(over="ba"[number % 2])
        assert story.shows()


def test_a_row_made_again_before_the_deletion_is_heard_of(story):
    """a deletes and makes it again; b knows neither, or has deleted it too."""
    story.insert(story.a, ONE)
    story.spread()
    story.delete(story.a, ONE)
    story.insert(story.a, ONE)
    story.spread()
    assert story.shows(ONE)
    story.delete(story.b, ONE)
    story.delete(story.a, ONE)
    story.insert(story.a, ONE)
    story.spread()
    assert story.shows(*([] if story.kind == "g" else [ONE]))  # a bag has one copy less than it had


def test_a_group_that_empties_and_comes_back(story):
    heard = []
    story.last.watch(f"{story.kind}_groups", heard.append)
    story.insert(story.a, ONE)
    story.insert(story.b, TWO)
    story.spread()
    assert story.shows(ONE, TWO)
    for _ in range(2):
        story.delete(story.b, ONE)
        story.delete(story.a, TWO)
        story.spread(over="a")
        assert story.shows()
        story.insert(story.b, ONE)
        story.insert(story.a, TWO)
        story.spread(over="b")
        assert story.shows(ONE, TWO)
    totals = {}
    for row, weight in itertools.chain(*heard):
        totals[row] = totals.get(row, 0) + weight
    assert {row: weight for row, weight in totals.items() if weight} == {("x", 2, 3): 1}


def test_a_group_that_empties_from_both_ends(story):
    """Each deletes half of it: neither sees it empty, and both do when they have talked."""
    story.insert(story.a, ONE, TWO)
    story.spread()
    story.delete(story.a, ONE)
    story.delete(story.b, TWO)
    for site, left in ((story.a, 2), (story.b, 1)):
        assert site.rows(f"{story.kind}_groups") == [("x", 1, left)]
    story.spread()
    assert story.shows()


def test_what_is_forgotten_and_comes_back(story):
    """The deletion is so old that everybody has forgotten the row when it is made again."""
    story.insert(story.a, ONE, TWO)
    story.spread()
    story.delete(story.b, ONE)
    for _ in range(6):
        story.world.seconds += 4000
        talk(story.a, story.b, story.hop, story.last, rounds=2)
    assert story.kind not in story.a.status()["replication"]["held"]
    assert story.shows(TWO)
    story.insert(story.a, ONE)
    story.spread()
    assert story.shows(ONE, TWO)
    story.delete(story.b, ONE)
    story.spread(over="a")
    assert story.shows(TWO)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_concurrent_writes_of_one_key_end_with_the_last(order):
    """Updates move the row from group to group; over the hop, too, in every order of news."""
    story = Story("k")
    c = story.world.site("c", program=PROGRAM)
    sites = (story.a, story.b, c)
    talk(*sites)
    for site, group in zip(sites, "xyz", strict=True):
        story.insert(site, (1, group))
    for number in order:
        story.hop.sync(sites[number])
        story.last.sync(story.hop)
        rows = story.last.rows("k_groups")
        assert len(rows) == 1  # one key, one row, whoever spoke last
        assert rows[0][0] == "xyz"[max(order[: order.index(number) + 1])]
    talk(*sites)
    assert story.a.rows("k") == [(1, "z")]
    story.delete(story.b, (1,))
    story.spread()
    assert story.last.rows("k_groups") == []

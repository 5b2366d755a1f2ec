"""Hosting a view for which relations are received whole, and unseen: who else is fed by them, and when."""

import itertools

import pytest
from tests.replication.sites import World, assert_same, opening, quiet, talk

import everview as ev
from everview.planner.exchange import Exchange

WHOLE = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE w (a BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW some AS
        SELECT a FROM r UNION ALL SELECT id FROM k WHERE v <> 'no' UNION ALL SELECT a + 1 AS a FROM w;
    CREATE MATERIALIZED VIEW whole AS
        SELECT a, b FROM r UNION SELECT id, v FROM k UNION SELECT a, 'w' AS b FROM w;
""")


@pytest.fixture
def world():
    return World()


def fill_whole(site):
    site.insert("r", [(1, "x"), (2, "y"), (3, "z")])
    site.insert("k", [(5, "one"), (6, "no")])
    site.insert("w", [(8,), (9,)])
    site.delete("r", [(3, "z")])
    site.delete("w", [(9,)])


@pytest.fixture
def open_whole(world, tmp_path):
    with opening(world, tmp_path, WHOLE) as open_one:
        yield open_one


@pytest.fixture
def earlier(monkeypatch):
    """Earlier versions computed a view from what was received whole for another."""

    def away(self, name):
        shown, self.hosts = self.hosts, self.hosts | self.held
        try:
            return real(self, name)
        finally:
            self.hosts = shown

    real = Exchange._away

    def switch(*, on):
        monkeypatch.setattr(Exchange, "_away", away if on else real)

    return switch


def test_a_view_is_fed_by_who_hosts_it_also_where_another_needs_its_inputs_whole(open_whole):
    a, one, both, last = (
        open_whole("a"),
        open_whole("one", {"some"}),
        open_whole("both", {"some", "whole"}),
        open_whole("last", {"some"}),
    )
    fill_whole(a)
    for change in (lambda: None, lambda: a.delete("r", [(1, "x")]), lambda: a.insert("k", [(5, "no")])):
        change()
        one.sync(a)
        both.sync(one)
        last.sync(both)
        assert one.rows("some") == both.rows("some") == last.rows("some") == a.rows("some")
        assert both.why("some", (2,)).monomials == a.why("some", (2,)).monomials
    assert both.rows("whole") == []
    assert "r is received whole, and not shown." in both.explain("whole")
    both.sync(a)
    assert both.rows("whole") == a.rows("whole")
    talk(a, one, both, last)
    assert_same(a, one, both, last)
    for pair in itertools.permutations((a, one, both, last), 2):
        assert quiet(*pair)


def test_naming_a_view_that_needs_the_inputs_whole_takes_nothing_away(open_whole):
    a, b, other = open_whole("a"), open_whole("b", {"some"}), open_whole("other", {"some"})
    fill_whole(a)
    b.sync(a)
    other.sync(a)
    before = b.rows("some")
    assert before == a.rows("some") != []
    b = open_whole("b", {"whole"})
    assert b.rows("some") == before
    a.delete("r", [(1, "x")])
    other.sync(a)
    b.sync(other)
    assert b.rows("some") == other.rows("some") == a.rows("some") != before
    b.sync(a)
    assert_same(a, b, other)


def test_a_view_over_what_is_here_unseen_is_there_at_once(open_whole):
    a, b, c = open_whole("a"), open_whole("b", {"whole"}), open_whole("c", {"some"})
    fill_whole(a)
    b.sync(a)
    b = open_whole("b", {"some"})
    assert b.rows("some") == a.rows("some") != []
    assert b.why("some", (2,)).monomials == a.why("some", (2,)).monomials
    assert {t.origin for t in b.why("some", (2,)).tuples()} == {"a"}
    c.sync(b)  # it can be passed on
    assert c.rows("some") == a.rows("some")
    a.delete("r", [(1, "x")])
    a.insert("k", [(7, "two")])
    b.sync(a)
    c.sync(b)
    assert_same(a, b, c)
    talk(a, b, c)
    for pair in itertools.permutations((a, b, c), 2):
        assert quiet(*pair)


def test_a_store_in_which_an_earlier_version_computed_the_view_goes_over(open_whole, earlier, world):
    earlier(on=True)
    a, b, c = open_whole("a"), open_whole("b", {"some", "whole"}), open_whole("c", {"some"})
    assert "local circuit" in b.explain("some")
    fill_whole(a)
    b.sync(a)
    c.sync(b)
    a.delete("r", [(1, "x")])
    c.sync(a)  # c has more than b
    before = b.rows("some")
    assert (1,) in before
    earlier(on=False)
    b = open_whole("b")
    assert b.explain("some").startswith("some comes from other sites as derivations")
    assert b.rows("some") == before
    c.sync(b)
    assert b.rows("some") == c.rows("some") == a.rows("some")
    a.insert("k", [(7, "two")])
    a.delete("k", [(5,)])
    talk(a, b, c)
    assert_same(a, b, c)
    b = open_whole("b")
    assert_same(a, b, c)
    world.seconds += 4000
    for site in (a, b, c) * 3:
        site.replica.collect()
        talk(a, b, c)
    assert_same(a, b, c)
    assert a.status()["replication"]["held"] == {}


def test_a_view_that_an_earlier_version_had_emptied_is_filled_again(open_whole, earlier):
    a, b, other = open_whole("a"), open_whole("b", {"some"}), open_whole("other", {"some"})
    fill_whole(a)
    b.sync(a)
    other.sync(a)
    earlier(on=True)
    b = open_whole("b", {"whole"})
    assert b.rows("some") == []  # what it was computed from had yet to come
    earlier(on=False)
    b = open_whole("b")
    b.sync(other)
    assert b.rows("some") == a.rows("some")
    a.delete("r", [(1, "x")])
    talk(a, b, other)
    assert_same(a, b, other)


# Who has a relation unseen, and has not been given it yet, has nothing to say of it.


@pytest.mark.parametrize("hosts", [{"whole"}, {"some", "whole"}, {"whole", "r"}])
def test_it_does_not_matter_who_dials(world, hosts):
    for dials in (True, False):
        a, x = world.site("a", program=WHOLE), world.site("x", program=WHOLE, hosts=hosts)
        fill_whole(a)
        a.sync(x) if dials else x.sync(a)
        assert_same(a, x)
        assert quiet(a, x)


@pytest.mark.parametrize("seed", range(4))
def test_who_was_given_nothing_yet_feeds_no_view_with_it(seed):
    world = World(seed)
    hosts = {"a": None, "d": {"some"}, "x": {"whole"}, "y": {"whole"}}
    a, d, x, y = (world.site(name, program=WHOLE, hosts=h) for name, h in hosts.items())
    fill_whole(a)
    x.sync(y)
    d.sync(x)
    d.sync(a)
    assert d.rows("some") == a.rows("some")
    d.sync(x)
    d.sync(a)
    assert d.rows("some") == a.rows("some")
    y.sync(a)
    x.sync(y)  # now they have it, and pass it on
    assert x.rows("whole") == a.rows("whole")
    talk(a, d, x, y)
    assert_same(a, d, x, y)


def test_a_relation_that_is_unseen_passes_between_those_who_are_left_with_it(open_whole):
    a, x, y = open_whole("a"), open_whole("x", {"whole"}), open_whole("y", {"whole"})
    fill_whole(a)
    x.sync(a)
    x.replica.renew()
    for one in x.status()["replication"]["members"]:
        x.replica.expire(one["incarnation"])
    y.sync(x)
    assert y.rows("whole") == x.rows("whole") == a.rows("whole")


OWNED = ev.Program.parse("""
    CREATE TABLE seen (site TEXT NOT NULL, kind TEXT, size BIGINT) WITH (owner = 'site');
    CREATE MATERIALIZED VIEW kinds AS SELECT kind, count(*) AS n, max(size) AS size FROM seen GROUP BY kind;
    CREATE MATERIALIZED VIEW ranked AS
        SELECT site, kind, size, rank() OVER (PARTITION BY site, kind ORDER BY size) AS place FROM seen;
""")


@pytest.mark.parametrize("old", [True, False])
def test_what_owners_rows_come_to_is_there_at_once_too(world, tmp_path, earlier, old):
    def opened(hosts=None):
        return world.site("b", tmp_path / "b.db", program=OWNED, hosts=hosts)

    a, c = world.site("a", program=OWNED), world.site("c", program=OWNED, hosts={"kinds"})
    assert "merged from partial aggregates" in c.explain("kinds")
    a.insert("seen", [("a", "tent", 2), ("a", "tent", 3), ("a", "fire", 1)])
    earlier(on=old)
    with opened({"ranked", "kinds"} if old else {"ranked"}) as b:
        b.sync(a)
    earlier(on=False)
    with opened({"kinds"}) as b:
        assert b.explain("kinds").startswith("kinds is merged from partial aggregates of other sites")
        assert b.rows("kinds") == a.rows("kinds") == [("fire", 1, 1), ("tent", 2, 3)]
        c.sync(b)
        assert_same(a, b, c)
        a.delete("seen", [("a", "tent", 3)])
        c.sync(a)
        b.sync(c)
        assert b.rows("kinds") == a.rows("kinds") == [("fire", 1, 1), ("tent", 1, 2)]
        talk(a, b, c)
        assert_same(a, b, c)
    with opened() as b:
        assert_same(a, b, c)


@pytest.mark.parametrize("dials", ["full", "part"])
def test_what_nobody_has_founded_goes_over_in_one_sync_where_all_else_is_known(dials):
    """By a third they have each other's rows of w already, so that nothing of that is news."""
    program = ev.Program.parse("""
        CREATE TABLE g (a BIGINT) WITH (semantics = 'bag');
        CREATE TABLE w (a BIGINT);
        CREATE MATERIALIZED VIEW v AS SELECT a FROM g WHERE NOT EXISTS (SELECT 1 FROM w WHERE w.a = g.a);
        CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM w;
    """)
    world = World()
    hosts = {"full": None, "part": {"v", "n", "w"}, "third": {"n"}}
    full, part, third = (world.site(name, program=program, hosts=some) for name, some in hosts.items())
    full.insert("g", [(1,)])
    third.sync(part)
    full.sync(third)
    full.sync(part) if dials == "full" else part.sync(full)
    assert part.rows("v") == full.rows("v") == [(1,)]
    assert quiet(full, part)

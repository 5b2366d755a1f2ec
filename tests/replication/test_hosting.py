"""Hosting part of a program: late, without the inputs, over received views, in both directions."""

import pytest
from tests.replication.sites import World, assert_same, opening, quiet, talk

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE w (a BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE TABLE g (a BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.v FROM r JOIN k ON r.b = k.id WHERE r.a < 5;
    CREATE MATERIALIZED VIEW either AS SELECT a FROM r UNION ALL SELECT a + 1 AS a FROM w;
    CREATE MATERIALIZED VIEW counted AS SELECT v, count(*) AS n FROM joined GROUP BY v;
    CREATE MATERIALIZED VIEW total AS SELECT sum(a) AS s FROM g;
""")
RELATIONS = {"r", "k", "w", "g"}
VIEWS = ("joined", "either", "counted", "total")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def open_site(world, tmp_path):
    with opening(world, tmp_path, PROGRAM) as open_one:
        yield open_one


def fill(site):
    site.insert("r", [(1, 1), (2, 1), (3, 2), (9, 1)])
    site.insert("k", [(1, "one"), (2, "two")])
    site.insert("w", [(5,), (6,)])
    site.insert("g", [(7,), (7,)])
    site.delete("r", [(2, 1)])
    site.delete("w", [(6,)])


# Late.


@pytest.mark.parametrize("view", ["joined", "either", "counted"])
def test_a_view_whose_inputs_come_to_be_hosted_later(open_site, view):
    a, b, c = open_site("a"), open_site("b", {view}), open_site("c", {view})
    fill(a)
    b.sync(a)
    c.sync(b)
    before = b.rows(view)
    assert before == a.rows(view) == c.rows(view)
    b = open_site("b", RELATIONS)
    assert "local circuit" in b.explain(view)
    b.sync(a)
    assert b.rows(view) == before
    b.insert("r", [(4, 1)])
    b.delete("k", [(2,)])
    c.sync(b)  # now b derives what it passed on before
    assert b.rows(view) == c.rows(view) != before
    talk(a, b, c)
    assert_same(a, b, c)
    assert quiet(b, c)


# Views over received views.


def test_a_group_by_without_its_inputs_is_cut(world):
    a = world.site("a", program=PROGRAM)
    b = world.site("b", program=PROGRAM, hosts={"counted"})
    fill(a)
    b.sync(a)
    assert b.rows("counted") == a.rows("counted") == [("one", 1), ("two", 1)]
    with pytest.raises(ev.DataError, match="joined is not hosted here"):
        b.rows("joined")


# Both directions.


# Any order.


# Telling why and how.


def test_why_at_a_site_without_the_base(world):
    a = world.site("a", program=PROGRAM)
    b = world.site("b", program=PROGRAM, hosts={"joined", "counted", "either"})
    fill(a)
    a.insert("w", [(0,)])
    b.sync(a)
    why = b.why("joined", (1, "one"))
    assert str(why) == "t1·t2"
    assert {t.relation for t in why.tuples()} == {"r", "k"}
    ids = [{t.relation: t.id for t in site.why("joined", (1, "one")).tuples()} for site in (a, b)]
    assert ids[0]["r"] == ids[1]["r"]  # a row of k goes by its dot where its values are not known
    assert str(b.why("either", (1,))) == "t1 + t2"
    assert b.why("either", (1,)).monomials == a.why("either", (1,)).monomials
    assert b.why("counted", ("one", 1)).monomials == why.monomials
    a.delete("k", [(1,)])
    b.sync(a)
    assert str(b.why("joined", (1, "one"))) == "0"


def test_why_names_the_site_that_wrote(world):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    c, d = (world.site(name, program=PROGRAM, hosts={"joined"}) for name in "cd")
    a.insert("r", [(1, 1)])
    b.insert("k", [(1, "one")])
    a.sync(b)
    c.sync(a)
    d.sync(c)
    for site in (a, c, d):
        tuples = site.why("joined", (1, "one")).tuples()
        assert {t.relation: t.origin for t in tuples} == {"r": "a", "k": "b"}


def test_explain_says_how_and_why(world):
    texts = {
        name: world.site(name, program=PROGRAM, hosts={name}).explain(name)
        for name in ("joined", "counted", "total")
    }
    texts["local"] = world.site("all", program=PROGRAM).explain("joined")
    first = {name: text.splitlines()[0] for name, text in texts.items()}
    assert first == {
        "local": "joined is kept by a local circuit, because this site hosts all that it reads: k, r.",
        "joined": "joined comes from other sites as derivations, because this site does not host k, r, "
        "and the view is monotone.",
        "counted": "counted is cut: parts of it come from other sites, the rest is a local circuit, "
        "because this site does not host k, r, and the view is not monotone as a whole.",
        "total": "total is cut: parts of it come from other sites, the rest is a local circuit, "
        "because this site does not host g, and the view needs the whole of g.",
    }
    assert "derivations from r ⋈ k: 0 in" in texts["joined"]
    assert "rows of r (a < 5), their dots, and ids: 0 in" in texts["joined"]
    assert "rows of k (all), their dots, and ids of keys: 0 in" in texts["joined"]
    assert "g is received whole, and not shown." in texts["total"]


def test_what_cannot_be_hosted_is_a_clear_error(world):
    with pytest.raises(ev.DataError, match="nothing"):
        world.site("a", program=PROGRAM, hosts=set())
    with pytest.raises(ev.EverviewError, match="nowhere"):
        world.site("a", program=PROGRAM, hosts={"nowhere"})
    with pytest.raises(ev.DataError, match="set of names"):
        world.site("a", program=PROGRAM, hosts="r")


@pytest.mark.parametrize("hosts", [{"k", "j"}, {"s", "j"}])
@pytest.mark.parametrize("dials", ["full", "part"])
def test_a_newcomer_that_receives_a_view_over_its_own_rows_has_it_after_one_sync(hosts, dials):
    program = ev.Program.parse(
        "CREATE TABLE s (id BIGINT, t TEXT); CREATE TABLE k (id BIGINT PRIMARY KEY, t TEXT);"
        "CREATE MATERIALIZED VIEW j AS SELECT s.id, k.t FROM s JOIN k ON s.id = k.id;"
    )
    with (
        ev.Site.open(":memory:", program, name="full") as full,
        ev.Site.open(":memory:", program, name="part", hosts=hosts) as part,
    ):
        full.insert("s", [(1, "x"), (2, "y")])
        full.insert("k", [(1, "x"), (2, "y")])
        (written,) = hosts - {"j"}
        part.insert(written, [(2, "from part")])
        here, there = (full, part) if dials == "full" else (part, full)
        here.sync(there)
        assert part.rows("j") == full.rows("j") != []
        again = here.sync(there)
        assert (again.sent_rows, again.received_rows) == (0, 0)

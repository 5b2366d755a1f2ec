"""Sites that host a part of a program: what they show, what they refuse, and what comes from others."""

import sqlite3

import pytest

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE s (b BIGINT NOT NULL, d TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
    CREATE TABLE w (x BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE TABLE g (x BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, s.d FROM r JOIN s ON r.b = s.b;
    CREATE MATERIALIZED VIEW united AS
        SELECT n FROM k WHERE n > 1 UNION ALL SELECT x FROM w UNION ALL SELECT a FROM r;
    CREATE MATERIALIZED VIEW counted AS SELECT d, count(*) AS n FROM joined GROUP BY d;
    CREATE MATERIALIZED VIEW left_over AS SELECT x FROM g EXCEPT ALL SELECT a FROM r WHERE b > 0;
""")
VIEWS = ("joined", "united", "counted", "left_over")


@pytest.fixture
def feeder():
    with ev.Site.open(":memory:", PROGRAM, name="feeder") as site:
        site.insert("r", [(1, 1), (2, 1), (3, 2)])
        site.insert("s", [(1, "x"), (2, None)])
        site.insert("k", [(1, 5), (2, 0)])
        site.insert("w", [(7,)])
        site.insert("g", [(7,), (7,), (3,)])
        yield site


def same(one, other, names=VIEWS):
    assert {name: one.rows(name) for name in names} == {name: other.rows(name) for name in names}


def change(site):
    site.delete("r", [(1, 1)])
    site.insert("k", [(2, 9), (1, 1)])
    site.delete("w", [(7,)])
    site.delete("g", [(7,)])
    site.insert("s", [(1, "y")])


def test_views_are_fed_without_their_inputs(feeder):
    with ev.Site.open(":memory:", PROGRAM, name="reader", hosts=VIEWS) as reader:
        assert reader.sync(feeder).received_rows > 0
        same(reader, feeder)
        change(feeder)
        reader.sync(feeder)
        same(reader, feeder)
        again = reader.sync(feeder)
        assert (again.sent_rows, again.received_rows) == (0, 0)


def test_a_view_reaches_a_site_through_one_that_only_receives_it(feeder):
    with (
        ev.Site.open(":memory:", PROGRAM, hosts={"joined", "counted"}) as relay,
        ev.Site.open(":memory:", PROGRAM, hosts={"joined"}) as last,
    ):
        for _ in range(2):
            relay.sync(feeder)
            last.sync(relay)
            same(last, feeder, ["joined"])
            change(feeder)


def test_each_view_alone(feeder):
    for view in VIEWS:
        with ev.Site.open(":memory:", PROGRAM, hosts={view}) as reader:
            reader.sync(feeder)
            same(reader, feeder, [view])
            status = reader.status()
            assert (list(status["relations"]), list(status["views"])) == ([], [view])


def test_what_is_not_hosted_is_refused():
    with ev.Site.open(":memory:", PROGRAM, hosts={"joined", "s"}) as site:
        refused = (
            lambda: site.insert("r", [(1, 1)]),
            lambda: site.delete("r", [(1, 1)]),
            lambda: site.execute("INSERT INTO r VALUES (1, 1)"),
            lambda: site.execute("INSERT INTO s SELECT a, NULL FROM r"),
            lambda: site.rows("r"),
            lambda: site.query("SELECT * FROM r"),
            lambda: site.query("SELECT * FROM joined WHERE EXISTS (SELECT 1 FROM r)"),
            lambda: site.why("r", (1, 1)),
            lambda: site.explain("counted"),
            lambda: site.watch("r", print),
        )
        for call in refused:
            with pytest.raises(ev.DataError, match="is not hosted here, only s, joined"):
                call()
        assert site.insert("s", [(1, "x")]) == 1


@pytest.mark.parametrize("hosts", [{"nothing"}, set(), "joined"])
def test_hosts_are_names_of_the_program(hosts):
    with pytest.raises(ev.DataError):
        ev.Site.open(":memory:", PROGRAM, hosts=hosts)


def test_reopening_keeps_what_was_hosted_and_naming_more_adds(tmp_path, feeder):
    path = tmp_path / "site.db"
    with ev.Site.open(path, PROGRAM, hosts={"counted"}) as site:
        site.sync(feeder)
        same(site, feeder, ["counted"])
    with ev.Site.open(path) as site:
        same(site, feeder, ["counted"])
        with pytest.raises(ev.DataError):
            site.rows("joined")
    with ev.Site.open(path, hosts={"united", "r"}) as site:
        same(site, feeder, ["counted"])
        site.sync(feeder)
        same(site, feeder, ["counted", "united", "r"])
        site.insert("r", [(9, 2)])
    with ev.Site.open(path, hosts={"s"}) as site:
        assert "local circuit" in site.explain("counted")
        site.sync(feeder)
        assert (9, 2) in feeder.rows("r")
        site.sync(feeder)  # what the feeder derives of it comes back
        same(site, feeder, ["counted", "united", "r", "s"])
    with ev.Site.open(path, PROGRAM, hosts=PROGRAM.names()) as site:
        site.sync(feeder)
        same(site, feeder, list(PROGRAM.names()))


def test_a_store_that_hosts_all_goes_on_hosting_all(tmp_path):
    path = tmp_path / "site.db"
    with ev.Site.open(path, PROGRAM) as site:
        site.insert("r", [(1, 1)])
    with ev.Site.open(path, hosts={"joined"}) as site:
        assert site.rows("r") == [(1, 1)]


def test_other_clients_read_what_is_received(tmp_path, feeder):
    path = tmp_path / "site.db"
    with ev.Site.open(path, PROGRAM, hosts={"united", "joined"}) as site:
        site.sync(feeder)
        raw = sqlite3.connect(path)
        assert sorted(raw.execute("SELECT n FROM united")) == site.rows("united")
        assert sorted(raw.execute("SELECT a, coalesce(d, '') FROM joined")) == sorted(
            (a, d or "") for a, d in site.rows("joined")
        )
        views = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
        views = [name for name in views if not name.startswith("everview_")]
        assert sorted(views) == ["joined", "united"]
        raw.close()


def test_watches_hear_of_what_arrives(feeder):
    with ev.Site.open(":memory:", PROGRAM, hosts={"joined", "counted"}) as reader:
        told = []
        reader.watch("joined", told.append)
        reader.watch("counted", told.append)
        reader.sync(feeder)
        assert sorted(told[0]) == [((1, "x"), 1), ((2, "x"), 1), ((3, None), 1)]
        told.clear()
        feeder.delete("r", [(1, 1)])
        reader.sync(feeder)
        told.sort(key=len)
        assert told[0] == [((1, "x"), -1)]
        assert sorted(told[1]) == [(("x", 1), 1), (("x", 2), -1)]


def test_queries_over_received_views(feeder):
    with ev.Site.open(":memory:", PROGRAM, hosts={"joined"}) as reader:
        reader.sync(feeder)
        found = reader.query("SELECT d, count(*) AS n FROM joined GROUP BY d ORDER BY n")
        assert found == [{"d": None, "n": 1}, {"d": "x", "n": 2}]


def test_why_names_the_same_ids_as_where_the_relations_are(feeder):
    with ev.Site.open(":memory:", PROGRAM, hosts=VIEWS) as reader:
        reader.sync(feeder)
        for view in VIEWS:
            for row in feeder.rows(view):
                why = reader.why(view, row)
                assert why != reader.why(view, [None] * len(row))
                if row != (5,):  # a row of k: where the relation is, its id says which row its key held
                    assert why == feeder.why(view, row)
        (one, other) = reader.why("joined", (1, "x")).tuples()
        assert (one.relation, one.values, one.origin) == ("r", {"a": 1}, "feeder")
        assert (other.relation, other.values, other.origin) == ("s", {"d": "x"}, "feeder")
        assert str(reader.why("joined", (1, "x"))) == "t1·t2"
        assert str(reader.why("joined", (8, "x"))) == "0"


def test_why_at_a_site_that_holds_the_relations_says_who_wrote_them(feeder):
    with ev.Site.open(":memory:", PROGRAM, name="other") as other:
        other.insert("r", [(8, 1)])
        other.sync(feeder)
        origins = {w.relation: w.origin for w in other.why("joined", (8, "x")).tuples()}
        assert origins == {"r": "other", "s": "feeder"}
        assert [w.origin for w in other.why("united", (7,)).tuples()] == ["feeder"]


def test_explain_says_what_travels_and_why(feeder):
    with ev.Site.open(":memory:", PROGRAM, hosts=VIEWS) as reader:
        reader.sync(feeder)
        joined, left_over = reader.explain("joined"), reader.explain("left_over")
    assert joined.startswith(
        "joined comes from other sites as derivations, because this site does not host r, s, "
        "and the view is monotone."
    )
    assert "derivations from r ⋈ s: 3 in" in joined
    assert "rows of r (all), their dots" in joined
    assert "g is received whole, and not shown." in left_over
    assert "rows of r (0 < b), their dots" in left_over
    assert "except all" in left_over

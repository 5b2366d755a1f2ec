"""Lag: commits of a site that another is not known to have, of those that concern what it holds."""

import json

import httpx
import pytest
from tests.replication.partials.program import PROGRAM as OWNED
from tests.replication.sites import World, talk
from tests.server.test_metrics import parsed

import everview as ev
from everview.cli.peers import print_replication
from everview.replication import backlog
from everview.server import Listener, SiteService

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT, b TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE g (a BIGINT) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT) WITH (semantics = 'add_wins');
    CREATE TABLE other (a BIGINT);
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.v FROM r JOIN k ON r.a = k.id;
    CREATE MATERIALIZED VIEW small AS SELECT a FROM w WHERE a < 5;
    CREATE MATERIALIZED VIEW counted AS SELECT b, count(*) AS n FROM r GROUP BY b;
    CREATE MATERIALIZED VIEW apart AS SELECT a FROM r WHERE b = 'x' EXCEPT SELECT id FROM k WHERE v = 'y';
    CREATE MATERIALIZED VIEW without AS SELECT g.a FROM g WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.a = g.a);
""")

WRITES = {
    "joined": ("k", [(2, "y")]),
    "small": ("w", [(2,)]),
    "counted": ("r", [(2, "y")]),
    "without": ("g", [(2,)]),
    "apart": ("k", [(2, "y")]),
    "r": ("r", [(2, "y")]),
    "k": ("k", [(2, "y")]),
    "g": ("g", [(2,)]),
    "w": ("w", [(2,)]),
}


@pytest.fixture
def world():
    return World()


def member(site, other):
    """What a site says of another, by status, for programs and by its metrics alike."""
    (found,) = (one for one in site.status()["replication"]["members"] if one["name"] == other.name)
    (quick,) = (one for one in site.replica.members()["members"] if one["name"] == other.name)
    assert quick["lag"] == found["lag"]
    return json.loads(json.dumps(found))


def lag(site, other):
    return member(site, other)["lag"]


def rows_waiting(site, other):
    waiting = member(site, other)["waiting"]
    assert not waiting["more"]
    return waiting["rows"]


def filled(world):
    a = world.site("a", program=PROGRAM)
    a.insert("r", [(1, "x"), (3, "x")])
    a.insert("k", [(1, "x")])
    a.insert("g", [(1,), (1,)])
    a.insert("w", [(1,)])
    return a


@pytest.mark.parametrize("hosts", WRITES)
def test_who_has_all_that_it_holds_is_not_behind(world, hosts):
    a, b = filled(world), world.site("b", program=PROGRAM, hosts={hosts})
    b.sync(a)
    b.sync(a)
    a.sync(b)
    assert (lag(a, b), rows_waiting(a, b)) == (0, 0)
    assert lag(b, a) == 0
    relation, rows = WRITES[hosts]
    a.insert(relation, rows)
    assert (lag(a, b), rows_waiting(a, b)) == (1, 1)
    a.delete(relation, rows)
    a.insert(relation, [(row[0] + 1, *row[1:]) for row in rows])
    assert lag(a, b) >= 2
    b.sync(a)
    b.sync(a)
    assert (lag(a, b), rows_waiting(a, b)) == (0, 0)
    assert lag(b, a) == 0


@pytest.mark.parametrize("hosts", ["joined", "small", "r"])
def test_a_commit_that_concerns_nothing_it_holds_does_not_count(world, hosts):
    a, b = filled(world), world.site("b", program=PROGRAM, hosts={hosts})
    b.sync(a)
    b.sync(a)
    for number in range(5):
        a.insert("other", [(number,)])
    assert (lag(a, b), rows_waiting(a, b)) == (0, 0)
    with a.transaction():
        a.insert("r", [(7, "x")])
        a.insert("k", [(7, "x")])
        a.insert("w", [(7,)])
    assert lag(a, b) == 1
    assert rows_waiting(a, b) == (2 if hosts == "joined" else 1)


def test_what_a_member_gave_itself_does_not_wait_for_it(world):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    talk(a, b)
    b.insert("r", [(number, "x") for number in range(20)])
    b.sync(a)
    assert (lag(a, b), rows_waiting(a, b)) == (0, 0)
    assert lag(b, a) == 1  # it has it, but b has not heard so yet
    b.sync(a)
    assert lag(b, a) == 0


def test_what_a_member_gave_itself_does_not_wait_for_it_however_much(world, monkeypatch):
    monkeypatch.setattr("everview.site.COUNTED", 10)
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    talk(a, b)
    b.insert("r", [(number, "x") for number in range(50)])
    b.insert("g", [(number,) for number in range(50)])
    b.sync(a)
    (found,) = a.status()["replication"]["members"]
    assert (found["lag"], found["waiting"]) == (0, {"rows": 0, "more": False})


def test_what_came_from_elsewhere_waits_until_it_is_heard_that_it_is_there(world):
    a, b, c = (world.site(name, program=PROGRAM) for name in "abc")
    talk(a, b, c)
    b.insert("r", [(1, "x"), (2, "x")])
    b.insert("k", [(1, "x")])
    b.sync(a)
    assert (lag(a, b), lag(a, c)) == (0, 1)  # one commit here brought them
    assert rows_waiting(a, c) == 3
    c.sync(b)
    b.sync(a)
    assert lag(a, c) == 0  # though c was not here: b says that c has them


def test_a_view_that_is_passed_on(world):
    a = filled(world)
    b, c = (world.site(name, program=PROGRAM, hosts={"joined"}) for name in "bc")
    for _ in range(2):
        b.sync(a)
        c.sync(b)
    b.sync(a)
    assert [lag(b, c), lag(b, a), lag(c, a), lag(c, b), lag(a, b), lag(a, c)] == [0] * 6
    a.insert("r", [(2, "x")])
    a.insert("k", [(2, "x")])
    b.sync(a)
    assert (lag(b, a), lag(b, c)) == (0, 2)
    assert rows_waiting(b, c) == 2
    c.sync(b)
    c.sync(b)
    assert (lag(b, c), rows_waiting(b, c)) == (0, 0)


def test_partial_aggregates_make_nobody_a_member_so_they_do_not_count(world):
    a = world.site("a", program=OWNED)
    reader = world.site("reader", program=OWNED, hosts={"tally"})
    both = world.site("both", program=OWNED, hosts={"tally", "notes"})
    a.insert("votes", [("a", "pen", 3, 0.5)])
    for _ in range(2):
        reader.sync(a)
    assert reader.rows("tally") == a.rows("tally")
    for site in (a, reader):
        state = site.status()["replication"]
        assert [one["lag"] for one in (*state["members"], *state["readers"])] == []
    for _ in range(2):
        both.sync(a)
    assert (lag(a, both), lag(both, a)) == (0, 0)
    a.insert("votes", [("a", "ink", 3, 0.5)])
    assert (lag(a, both), rows_waiting(a, both)) == (0, 0)
    a.insert("notes", [("x",)])
    assert (lag(a, both), rows_waiting(a, both)) == (1, 1)


PUBLISHING = ev.Program.parse("""
    CREATE TABLE r (a BIGINT);
    CREATE MATERIALIZED VIEW twice WITH (authority = 'a') AS SELECT a * 2 AS a FROM r;
    CREATE MATERIALIZED VIEW plain AS SELECT a FROM r WHERE a > 0;
""")


def test_a_published_view_beside_one_that_is_not(world):
    a = world.site("a", program=PUBLISHING)
    b = world.site("b", program=PUBLISHING, hosts={"twice", "plain"})
    a.insert("r", [(1,)])
    for _ in range(2):
        b.sync(a)

    def both():
        (reader,) = a.status()["replication"]["readers"]
        return lag(a, b), reader["lag"]

    assert both() == (0, 0)
    a.insert("r", [(2,)])
    assert both() == (1, 1)
    for _ in range(2):
        b.sync(a)
    assert both() == (0, 0)
    assert lag(b, a) == 0


def test_metrics_of_a_device_that_holds_only_a_view(tmp_path):
    with (
        ev.Site.open(tmp_path / "base.db", PROGRAM, name="base") as base,
        ev.Site.open(":memory:", PROGRAM, name="screen", hosts={"joined"}) as screen,
        Listener(base.replica, service=SiteService(base.replica)) as listener,
    ):
        label = f'everview_device_lag_commits{{device="screen",incarnation="{screen.replica.incarnation}"}}'

        def metric():
            return parsed(httpx.get(listener.address + "/v1/metrics").text)[label]

        base.insert("r", [(1, "x")])
        base.insert("k", [(1, "x")])
        for _ in range(2):
            screen.sync(listener.address)
        assert metric() == 0
        base.insert("r", [(2, "x")])
        base.insert("other", [(2,)])
        assert metric() == 1
        for _ in range(2):
            screen.sync(listener.address)
        assert metric() == 0


def test_far_behind_it_is_bounded_what_is_looked_at(world, monkeypatch):
    a, b = filled(world), world.site("b", program=PROGRAM, hosts={"r"})
    for _ in range(2):
        b.sync(a)
    for number in range(30):
        a.insert("r", [(100 + number, "x")])
    assert member(a, b)["waiting"] == {"rows": 30, "more": False}
    assert lag(a, b) == 30
    monkeypatch.setattr("everview.site.COUNTED", 10)
    monkeypatch.setitem(type(a.replica).status.__kwdefaults__, "counted", 10)
    found = a.status()["replication"]["members"][0]
    assert found["waiting"] == {"rows": 10, "more": True}
    assert found["lag"] == 30  # what was not looked at counts by its numbers


def test_a_commit_counts_once_though_not_all_relations_were_read_as_far(world, monkeypatch):
    monkeypatch.setattr("everview.site.COUNTED", 10)
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM, hosts={"r", "k"})
    a.insert("r", [(0, "x")])
    for _ in range(2):
        b.sync(a)
    for number in range(4):
        a.insert("r", [(100 * number + row, "x") for row in range(1, 21)])
    for number in range(12):
        a.insert("k", [(number, "x")])
    (found,) = a.status()["replication"]["members"]
    assert (found["lag"], found["waiting"]) == (16, {"rows": 20, "more": True})


def test_it_is_looked_for_by_an_index(world):
    a, b = filled(world), world.site("b", program=PROGRAM)
    b.sync(a)
    for name, stored in a._store.engine.relations.items():
        asked = []
        connection = a._store.writer.connection
        connection.set_trace_callback(asked.append)
        stored.brought(connection, 0, backlog.LOOKED_AT)
        connection.set_trace_callback(None)
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {asked[-1]}"))
        assert f"{stored.travelling}_version (version>?)" in plan, name


def test_people_see_the_view_once_and_what_waits(world, capsys):
    a, b = filled(world), world.site("b", program=PROGRAM, hosts={"apart"})
    for _ in range(2):
        b.sync(a)
    a.insert("r", [(8, "x"), (9, "x")])
    a.delete("r", [(3, "x")])
    found = member(a, b)
    assert [stream.partition("#")[0] for stream in found["holds"]] == ["apart", "apart"]
    assert found["names"] == ["apart"]
    print_replication(a.status()["replication"])
    said = capsys.readouterr().out
    assert "#" not in said
    assert "2 commits behind, 3 rows wait" in said
    (line,) = (line for line in said.splitlines() if line.startswith("member "))
    assert line.endswith("holds apart")
    b.sync(a)
    print_replication(b.status()["replication"])
    said = capsys.readouterr().out
    assert "#" not in said
    assert "held      apart  1 dead row " in said

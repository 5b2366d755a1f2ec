"""Sites whose clocks were ahead, and are set right."""

import logging

import pytest
from tests.replication.sites import World, talk

import everview as ev

DAY = 24 * 3600
KEYED = ev.Program.parse("""
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE MATERIALIZED VIEW c AS SELECT v, count(*) AS n FROM k GROUP BY v;
""")


@pytest.fixture
def world():
    world = World()
    world.seconds = 1_800_000_000
    return world


def site(world, name, path=":memory:", skew=0):
    return world.site(name, path, program=KEYED, skew=skew)


def set_right(world, ahead, path):
    """The process is started again, under a clock that is right."""
    name = ahead.name
    ahead.close()
    return site(world, name, path)


def test_what_was_written_ahead_of_time_is_seen_when_the_clock_is_right(world, tmp_path, caplog):
    a, b = site(world, "a"), site(world, "b", tmp_path / "b.db", 365 * DAY)
    b.insert("k", [(1, "ahead"), (2, "ahead")])
    b.delete("k", [(2,)])
    b = set_right(world, b, tmp_path / "b.db")
    b.insert("k", [(1, "right"), (3, "right")])
    with caplog.at_level(logging.WARNING, "everview"):
        b.sync(a)
    assert "this clock was ahead by 365 days" in caplog.text
    assert a.rows("k") == b.rows("k") == [(1, "right"), (3, "right")]
    assert a.rows("c") == b.rows("c") == [("right", 2)]
    assert a.status()["replication"]["from_the_future"] == 3  # told or not, it may have replaced what was
    a.insert("k", [(1, "later")])
    talk(a, b)
    assert a.rows("k") == b.rows("k") == [(1, "later"), (3, "right")]
    world.seconds += 366 * DAY
    talk(a, b)
    assert a.rows("k") == b.rows("k") == [(1, "right"), (3, "right")]


def test_what_was_deleted_ahead_of_time_and_told_nobody_stays_deleted(world, tmp_path):
    a, b = site(world, "a"), site(world, "b", tmp_path / "b.db", 2 * DAY)
    b.insert("k", [(1, "ahead"), (2, "ahead")])
    talk(a, b)
    b.delete("k", [(1,)])
    b = set_right(world, b, tmp_path / "b.db")
    talk(a, b)
    assert a.rows("k") == b.rows("k") == [(2, "ahead")]
    world.seconds += 3 * DAY
    talk(a, b)
    assert a.rows("k") == b.rows("k") == [(2, "ahead")]


def test_what_others_have_heard_of_waits_for_its_time_everywhere(world, tmp_path):
    a, b, c = site(world, "a"), site(world, "b", tmp_path / "b.db", 2 * DAY), site(world, "c")
    b.insert("k", [(1, "ahead")])
    talk(a, b)
    assert a.rows("k") == []
    b = set_right(world, b, tmp_path / "b.db")
    talk(a, b, c)
    a.insert("k", [(1, "a's")])
    talk(a, b, c)
    assert [s.rows("k") for s in (a, b, c)] == [[(1, "a's")]] * 3
    world.seconds += 3 * DAY
    for _ in range(2):
        talk(a, b, c)
    assert [s.rows("k") for s in (a, b, c)] == [[(1, "ahead")]] * 3
    b.insert("k", [(1, "b's")])
    talk(a, b, c)
    assert [s.rows("k") for s in (a, b, c)] == [[(1, "b's")]] * 3


def test_a_clock_that_is_behind_changes_nothing(world, tmp_path):
    """Its battery died: nobody says that it is as early as that."""
    a, b = site(world, "a"), site(world, "b", tmp_path / "b.db")
    b.insert("k", [(1, "x")])
    talk(a, b)
    before = b.status()["incarnation"]
    b.close()
    b = site(world, "b", tmp_path / "b.db", skew=-30 * DAY)
    b.insert("k", [(2, "y")])
    talk(a, b)
    assert b.status()["incarnation"] == before
    assert a.rows("k") == b.rows("k") == [(1, "x"), (2, "y")]


def test_one_whose_battery_died_too_is_not_believed_against_more(world, tmp_path):
    a, c, b = site(world, "a"), site(world, "c"), site(world, "b", tmp_path / "b.db")
    b.insert("k", [(1, "x")])
    for _ in range(2):
        talk(a, b, c)
    before = b.status()["incarnation"]
    b.close()
    b, n = (
        site(world, name, path, -30 * DAY) for name, path in (("b", tmp_path / "b.db"), ("n", ":memory:"))
    )
    n.sync(b)
    assert b.status()["incarnation"] == before
    assert b.rows("k") == [(1, "x")]


def test_a_clock_from_before_all_this_is_wrong(world, tmp_path):
    b, n = (site(world, name, tmp_path / f"{name}.db") for name in "bn")
    b.insert("k", [(1, "x")])
    before = b.status()["incarnation"]
    for each in (b, n):
        each.close()
    b, n = (site(world, name, tmp_path / f"{name}.db", -world.seconds + 3600) for name in "bn")
    n.sync(b)
    assert b.status()["incarnation"] == before


def test_minutes_are_waited_for(world, tmp_path):
    a, b = site(world, "a"), site(world, "b", tmp_path / "b.db", 300)
    b.insert("k", [(1, "x")])
    before = b.status()["incarnation"]
    b = set_right(world, b, tmp_path / "b.db")
    talk(a, b)
    assert b.status()["incarnation"] == before
    assert a.rows("k") == []
    world.seconds += 301
    talk(a, b)
    assert a.rows("k") == b.rows("k") == [(1, "x")]

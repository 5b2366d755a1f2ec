"""Clocks that are behind those of others: nobody writes below a delete that these may have forgotten."""

import pytest
from tests.replication.sites import World, assert_equal, talk

from everview.engines.sqlite.stamps import SHIFT
from everview.replication.arriving import Outcome

DAY = 24 * 3600


@pytest.fixture
def world():
    return World()


def is_moved(site, world):
    """Whether a site stamps its writes later than its own time."""
    return site._store.clock.stamp() >> SHIFT > world.seconds * 1_000_000 + 60_000_000


def deleted_between(c, t):
    """Two sites of one group have deleted a key; each knows that the other has, and c that t knows it."""
    talk(c, t)
    c.insert("k", [(1, "x")])
    c.delete("k", [(1,)])
    talk(c, t)
    c.sync(t)
    assert t._replica.collect() == 0  # it does not know yet what c knows
    c.sync(t)


def check_later(world, *sites, expected):
    """Whatever comes due, and is forgotten, all show the same."""
    for _ in range(3):
        world.seconds += 3 * DAY
        for site in sites:
            site._replica.tick()
        talk(*sites, rounds=6)
        assert assert_equal(*sites)["k"] == expected
        for site in sites:
            site._replica.collect()


def test_a_newcomer_writes_above_a_delete_that_its_group_has_forgotten(world, caplog):
    """Where the delete is still held the row would be dead, and alive where it is not."""
    c, t, n = (world.site(name, skew=skew) for name, skew in (("c", 2 * DAY), ("t", 2 * DAY), ("n", 0)))
    deleted_between(c, t)
    assert c._replica.collect() == 1
    n.sync(c)
    assert "deletes in k that c tells of" in caplog.text
    n.insert("k", [(1, "y")])
    talk(n, c, t)
    assert assert_equal(c, t, n)["k"] == [(1, "y")]
    check_later(world, c, t, n, expected=[(1, "y")])


def test_a_guest_writes_above_a_delete_that_others_forget_before_they_hear_of_it(world):
    c, t, n = (world.site(name, skew=skew) for name, skew in (("c", 2 * DAY), ("t", 2 * DAY), ("n", 0)))
    deleted_between(c, t)
    n.sync(t)
    assert c._replica.collect() == 1
    n.insert("k", [(1, "y")])
    n.sync(c)
    talk(n, c, t)
    assert assert_equal(c, t, n)["k"] == [(1, "y")]
    check_later(world, c, t, n, expected=[(1, "y")])


def test_a_delete_is_held_until_all_know_that_all_have_passed_it(world):
    """c knows that t and u have passed it, and t does not know that of u: so t's guest is not moved, and
    writes below the delete. Where c had forgotten it the row would be alive, and dead at t.
    """
    c, t, u = (world.site(name, skew=2 * DAY) for name in "ctu")
    n = world.site("n")
    talk(c, t, u)
    c.insert("k", [(1, "x")])
    c.delete("k", [(1,)])
    for _ in range(2):
        c.sync(t)
        t._replica.collect()
    n.sync(t)
    for _ in range(3):
        c.sync(u)
        u._replica.collect()
    assert c._replica.collect() == 0
    n.insert("k", [(1, "y")])
    n.sync(c)
    talk(n, c, t, u)
    assert assert_equal(c, t, u)["k"] == []
    check_later(world, c, t, u, n, expected=[])
    for _ in range(2):  # and nothing is held for ever
        talk(c, t, u, n)
        for site in (c, t, u, n):
            site._replica.collect()
    assert all("k" not in site.status()["replication"]["held"] for site in (c, t, u, n))


def test_a_promise_of_what_all_have_passed_outlives_a_crash(world, tmp_path):
    """t tells c what it knows all to have passed, dies, and has forgotten what it knew of c: n is moved."""
    c, t, n = world.site("c", skew=2 * DAY), world.site("t", tmp_path / "t.db", skew=2 * DAY), world.site("n")
    deleted_between(c, t)
    told = c._replica._knowledge.state.known[t._replica.incarnation]["k"].passed
    assert told
    t.close()
    t = world.site("t", tmp_path / "t.db", skew=2 * DAY)
    knowledge = t._replica._knowledge
    assert knowledge.membership.own("k").passed >= told
    knowledge.state.known[c._replica.incarnation]["k"].reading = 1  # readings are not always written
    n.sync(t)
    assert is_moved(n, world)
    assert c._replica.collect() == 1
    n.insert("k", [(1, "y")])
    n.sync(c)
    talk(n, c, t)
    assert assert_equal(c, t, n)["k"] == [(1, "y")]


def test_a_member_writes_above_a_delete_that_another_group_has_forgotten(world):
    """The groups meet, whichever leaves its own; the later write has seen the delete, and wins over it also
    when one comes who still holds it.
    """
    c, t = world.site("c", skew=2 * DAY), world.site("t", skew=2 * DAY)
    a, b = world.sites(2)
    deleted_between(c, t)
    assert c._replica.collect() == 1
    talk(a, b)
    a.sync(c)
    a.insert("k", [(1, "y")])
    talk(a, b, c)
    talk(a, b, c, t)
    assert assert_equal(a, b, c, t)["k"] == [(1, "y")]
    check_later(world, a, b, c, t, expected=[(1, "y")])


def test_where_some_clock_is_right_one_that_runs_ahead_moves_no_other(world):
    """Nobody can forget what the one with the right clock has not passed, so a guest's clock can stay."""
    hub, fast, n = world.site("hub"), world.site("fast", skew=2 * DAY), world.site("n")
    deleted_between(fast, hub)
    n.sync(fast)
    assert fast._replica.collect() == 0
    assert not is_moved(n, world)
    n.insert("k", [(2, "n")])
    n.sync(hub)
    assert hub.rows("k") == [(2, "n")]
    check_later(world, hub, fast, n, expected=[(2, "n")])


def test_sites_whose_clocks_were_moved_see_each_others_writes_at_once(world, tmp_path):
    """Time stands still for them until it has come so far, also for one that is started again."""
    fast, a, b = world.site("fast", skew=2 * DAY), world.site("a", tmp_path / "a.db"), world.site("b")
    fast._replica.batch(0).__next__()
    fast.insert("k", [(1, "x")])
    fast.delete("k", [(1,)])
    assert fast._replica.collect() == 1
    talk(fast, a, b)
    for start in ("at once", "started again"):
        for number in range(100):  # each has a stamp of its own, and the other's clock does not go on
            b.insert("k", [(1, f"b{number}")])
        a.sync(b)
        assert a.rows("k") == [(1, "b99")]
        for number in range(100):
            a.insert("k", [(1, f"a{number} {start}")])
        a.close()
        a = world.site("a", tmp_path / "a.db")
        a.sync(b)
        assert b.rows("k") == [(1, f"a99 {start}")]
    assert is_moved(a, world)
    assert is_moved(b, world)
    check_later(world, fast, a, b, expected=[(1, "a99 started again")])


def test_rows_from_the_future_move_no_clock(world):
    """They wait until their time has come; what has not been deleted cannot have been forgotten."""
    fast, n = world.site("fast", skew=2 * DAY), world.site("n")
    fast.insert("k", [(1, "x")])
    n.sync(fast)
    assert not is_moved(n, world)
    assert n.rows("k") == []
    n.insert("k", [(1, "y")])
    check_later(world, fast, n, expected=[(1, "x")])


def test_a_clock_that_is_wrong_beyond_reason_moves_no_other(world):
    """A site alone with its clock forgets a deletion from ten years ahead; its floor waits like its rows."""
    fast, a = world.site("fast", skew=3650 * DAY), world.site("a")
    fast.insert("k", [(1, "x")])
    fast.delete("k", [(1,)])
    fast._replica.batch(0).__next__()
    assert fast._replica.collect() == 1
    a.insert("k", [(2, "a")])
    talk(a, fast)
    assert not is_moved(a, world)
    a.insert("k", [(1, "y")])
    talk(a, fast)
    assert assert_equal(a, fast)["k"] == [(1, "y"), (2, "a")]


# Versions from the future, at a site that returns.


def given_up(c, n):
    """What c has written waits at n, for c's clock is ahead; then c gives n up."""
    c.insert("k", [(1, "x")])
    talk(c, n)
    assert n.rows("k") == []
    assert c.replica.expire(n.replica.incarnation)


@pytest.mark.parametrize("days", [2, 3650])
def test_what_waits_for_its_time_and_was_deleted_meanwhile_does_not_come_back(world, days):
    """Whether the clock of who returns is moved past it, or not, for the other's is wrong beyond reason."""
    c, n = world.site("c", skew=days * DAY), world.site("n")
    given_up(c, n)
    c.delete("k", [(1,)])
    assert c._replica.collect() == 1
    n.sync(c)
    assert n.rows("k") == []
    world.seconds += (days + 1) * DAY
    n._replica.tick()
    assert n.rows("k") == []
    talk(c, n)
    assert assert_equal(c, n)["k"] == []


def test_nor_does_it_by_an_old_batch(world):
    """t's batch of before the delete is found after it was forgotten, at n whose clock is moved by nobody."""
    c, t = (world.site(name, skew=3650 * DAY) for name in "ct")
    n = world.site("n")
    talk(c, t, n)
    given_up(c, n)
    c.sync(t)
    batch = list(t.replica.batch(0))
    c.delete("k", [(1,)])
    for _ in range(3):
        talk(c, t)
        for site in (c, t):
            site.replica.collect()
    assert "k" not in c.status()["replication"]["held"]
    n.sync(c)
    assert n.replica.take(batch).outcome is Outcome.APPLIED
    world.seconds += 3651 * DAY
    n._replica.tick()
    assert n.rows("k") == []
    talk(c, t, n)
    assert assert_equal(c, t, n)["k"] == []


def test_what_waits_for_its_time_and_lives_is_not_taken_for_forgotten(world):
    """n's clock is moved past it by another delete of the snapshot, while its own version still waits."""
    c, t = (world.site(name, skew=2 * DAY) for name in "ct")
    n = world.site("n")
    talk(c, t, n)
    given_up(c, n)
    c.insert("k", [(2, "y")])
    c.delete("k", [(2,)])
    for _ in range(3):
        c.sync(t)
    n.sync(c)
    assert is_moved(n, world)
    n._replica.tick()
    assert n.rows("k") == [(1, "x")]
    talk(c, t, n)
    check_later(world, c, t, n, expected=[(1, "x")])


def test_what_waits_and_nobody_has_seen_is_written_again_above_what_was_forgotten(world):
    """f's row is known to n alone, and waits there; c forgets a later delete of its key, and u still has it.
    Under its old stamp the row would live at c, and be dead at u.
    """
    c, u, f = (world.site(name, skew=2 * DAY) for name in "cuf")
    n = world.site("n")
    talk(c, u, n, f)
    f.insert("k", [(1, "f")])
    n.sync(f)
    world.seconds += 5
    c.insert("k", [(1, "x")])
    c.delete("k", [(1,)])
    for other in (n, f):
        assert c.replica.expire(other.replica.incarnation)
    talk(c, u)
    c.sync(u)
    assert u._replica.collect() == 0
    c.sync(u)
    assert c._replica.collect() == 1
    n.sync(c)
    n.sync(u)
    u.sync(c)
    assert assert_equal(c, u, n)["k"] == [(1, "f")]
    talk(c, u, n, f)
    check_later(world, c, u, n, f, expected=[(1, "f")])

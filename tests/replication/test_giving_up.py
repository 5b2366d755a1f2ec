"""Giving a member up: after the time that a site declares, or by hand; and how the member comes back."""

import pytest
from tests.replication.sites import PROGRAM, World, assert_equal, talk

import everview as ev
from everview.hub.gate import Gate
from everview.hub.retention import Retention
from everview.replication.rights import Rights
from everview.replication.transports.memory import MemoryTransport

DAY = 24 * 3600


@pytest.fixture
def world():
    return World()


def declared(site):
    return site.status()["replication"]["expiry_days"]


def expired(site, other):
    (found,) = (one for one in site.status()["replication"]["members"] if one["name"] == other.name)
    return found["expired"]


# The limit.


def test_the_limit_is_stored_and_kept(tmp_path):
    path = tmp_path / "a.db"
    with ev.Site.open(path, PROGRAM, name="a") as site:
        assert declared(site) == 90
        incarnation = site.status()["incarnation"]
    with ev.Site.open(path, expiry_days=7) as site:
        assert declared(site) == 7
        site.insert("r", [(1, "x")])
    with ev.Site.open(path) as site:
        assert (declared(site), site.status()["incarnation"]) == (7, incarnation)
        site.backup(tmp_path / "backup.db")
    with ev.Site.restore(tmp_path / "backup.db", tmp_path / "b.db") as site:
        assert declared(site) == 7
    with ev.Site.open(path, expiry_days=90) as site:
        assert declared(site) == 90
    with ev.Site.open(path) as site:
        assert (declared(site), site.rows("r"), site.status()["incarnation"]) == (90, [(1, "x")], incarnation)


def test_a_new_store_may_declare_it_and_a_migration_keeps_it(tmp_path):
    path, more = tmp_path / "a.db", "CREATE TABLE r (a BIGINT); CREATE TABLE q (a BIGINT);"
    ev.Site.open(path, ev.Program.parse("CREATE TABLE r (a BIGINT);"), expiry_days=3).close()
    ev.Site.migrate(path, ev.Program.parse(more))
    with ev.Site.open(path) as site:
        assert declared(site) == 3


@pytest.mark.parametrize("days", [0, -1, 1.5, "90", True, 1_000_001, float("nan")])
def test_what_is_no_whole_number_of_days_is_refused_before_anything_is_done(tmp_path, days):
    path = tmp_path / "a.db"
    with pytest.raises(ev.DataError, match="a whole number of days, from 1 to 1,000,000"):
        ev.Site.open(path, PROGRAM, expiry_days=days)
    assert not path.exists()
    with pytest.raises(ev.DataError, match="expiry_days"):
        Retention(expiry_days=days)


def test_another_process_that_has_the_store_open_goes_by_it(tmp_path):
    with (
        ev.Site.open(tmp_path / "a.db", PROGRAM, name="a") as one,
        ev.Site.open(tmp_path / "a.db", expiry_days=5) as two,
    ):
        assert (declared(one), declared(two)) == (5, 5)
        one.insert("r", [(1, "x")])
        assert declared(two) == 5


def test_each_goes_by_its_own_limit(world):
    a, b, c = world.sites(3)
    a.replica.declare_expiry(10)
    a.insert("r", [(1, "x")])
    talk(a, b, c)
    world.seconds += 11 * DAY
    a.sync(b)
    b.sync(a)
    b.replica.collect()
    assert not expired(b, c)
    a.replica.collect()
    assert expired(a, c)
    a.sync(b)
    assert expired(b, c)  # who is given up is given up by all who hear of it


def test_nobody_is_given_up_before_the_limit(world):
    a, b, c = world.sites(3)
    for site in (a, b):
        site.replica.declare_expiry(200)
    talk(a, b, c)
    world.seconds += 199 * DAY
    a.sync(b)
    b.sync(a)
    a.replica.collect()
    assert not expired(a, c)
    world.seconds += 2 * DAY
    a.sync(b)
    b.sync(a)
    a.replica.collect()
    assert expired(a, c)


@pytest.mark.parametrize("days", [7, 100])
def test_who_is_spoken_with_is_not_given_up_though_nothing_may_be_read_from_it(world, days):
    server, other = world.sites(2)
    screen = world.site("screen", hosts={"joined"})
    server.insert("r", [(1, "x")])
    server.insert("k", [(1, "y")])
    talk(server, other, screen)
    nothing = MemoryTransport(server.replica, server.name, Rights(None, frozenset(), frozenset({"joined"})))
    server.insert("r", [(2, "x")])
    for _ in range(20):
        world.seconds += days * DAY
        server.sync(other)
        nothing.sync(screen.replica)
        screen.replica.collect()
    assert not expired(screen, server)
    world.seconds += 89 * DAY
    screen.sync(other)
    screen.replica.collect()
    assert not expired(screen, server)
    if days == 7:
        nothing.sync(screen.replica)
        screen.sync(server)
        assert screen.rows("joined") == [(1, "y")]
    world.seconds += 91 * DAY
    for _ in range(3):
        other.sync(screen)
    screen.replica.collect()
    assert expired(screen, server)  # of which nobody has heard since


def test_who_must_return_waits_for_as_long_as_it_declares(world):
    a, b, other = world.sites(3)
    a.replica.declare_expiry(10)
    talk(a, b)
    a.insert("r", [(1, "x")])
    a.replica.renew()
    world.seconds += 9 * DAY
    other.sync(a)
    assert a.status()["replication"]["groups"] == {}
    world.seconds += 2 * DAY
    other.sync(a)
    assert a.status()["replication"]["groups"] != {}
    assert other.rows("r") == [(1, "x")]


def test_a_gate_has_the_limit_that_its_hub_is_opened_with(tmp_path):
    program = ev.Program.parse("CREATE TABLE r (a BIGINT);")
    for epoch, days in ((1, 5), (2, 90)):
        gate = Gate(str(tmp_path / "gate.db"), program, "hub", epoch, expiry_days=days)
        try:
            assert gate.replica.status()["expiry_days"] == days
        finally:
            gate.close()


# By hand.


@pytest.mark.parametrize("by", ["name", "incarnation", "digits"])
def test_a_member_that_was_given_up_comes_back_with_what_nobody_had_seen(world, by):
    a, b, c = world.sites(3)
    a.insert("r", [(1, "x"), (2, "x")])
    a.insert("k", [(1, "x")])
    talk(a, b, c)
    c.insert("r", [(3, "unseen")])
    c.insert("g", [(3,), (3,)])
    c.insert("w", [(3,)])
    c.insert("k", [(3, "unseen")])
    a.delete("r", [(1, "x")])
    talk(a, b)
    assert a.replica.collect() == 0
    old = c.replica.incarnation
    called = {"name": "s2", "incarnation": old, "digits": old[:8]}[by]
    assert a.expire(called) == old
    assert expired(a, c)
    talk(a, b)
    assert expired(b, c)
    assert a.replica.collect() > 0  # nobody waits for it any longer
    for _ in range(2):
        c.sync(b)
    talk(a, b, c)
    assert c.replica.incarnation != old
    found = assert_equal(a, b, c)
    assert found["r"] == [(2, "x"), (3, "unseen")]
    assert (found["g"], found["w"], found["k"]) == ([(3,), (3,)], [(3,)], [(1, "x"), (3, "unseen")])


def test_a_view_that_waits_for_a_group_that_is_gone_is_free_by_hand(world):
    base, view = world.site("base"), world.site("view", hosts={"joined"})
    base.insert("r", [(1, "x")])
    base.insert("k", [(1, "y")])
    view.sync(base)
    view.sync(base)
    assert view.rows("joined") == [(1, "y")]
    view.expire("base")
    again = world.site("again")
    again.insert("r", [(2, "x")])
    again.insert("k", [(2, "z")])
    for _ in range(2):
        view.sync(again)
    assert view.rows("joined") == [(2, "z")]


def test_who_is_meant_must_be_one_other_member(world):
    a, b, c = world.sites(3)
    twin = world.site("s1")
    with pytest.raises(ev.DataError, match="no member is called nobody; this site knows of no other member"):
        a.expire("nobody")
    talk(a, b, c, twin)
    before = a.status()["replication"]["members"]
    with pytest.raises(ev.DataError, match="no member is called nobody; members: s1 ") as error:
        a.expire("nobody")
    assert c.replica.incarnation in str(error.value)
    with pytest.raises(ev.DataError, match="several sites are called s1: ") as error:
        a.expire("s1")
    assert {b.replica.incarnation, twin.replica.incarnation} <= set(
        str(error.value).replace("(", " ").replace(")", " ").split()
    )
    with pytest.raises(ev.DataError, match=r"several sites are called s1: .*this site"):
        b.expire("s1")
    for own in ("s0", a.replica.incarnation):
        with pytest.raises(ev.DataError, match="this site itself"):
            a.expire(own)
    with pytest.raises(ev.DataError, match="no member is called ;"):
        a.expire("")
    assert a.status()["replication"]["members"] == before
    a.expire("s2")
    with pytest.raises(ev.DataError, match="s2 has been given up already"):
        a.expire("s2")
    assert a.expire(twin.replica.incarnation) == twin.replica.incarnation
    assert a.expire("s1") == b.replica.incarnation  # of the two one is left
    with a.transaction(), pytest.raises(ev.StoreError, match="a transaction is open"):
        a.expire("s1")


def test_who_only_reads_published_views_is_no_member(world):
    program = ev.Program.parse("""
        CREATE TABLE r (a BIGINT);
        CREATE MATERIALIZED VIEW v WITH (authority = 'a') AS SELECT a FROM r;
    """)
    a, board = world.site("a", program=program), world.site("board", program=program, hosts={"v"})
    a.insert("r", [(1,)])
    board.sync(a)
    with pytest.raises(ev.DataError, match="only reads published views"):
        a.expire("board")

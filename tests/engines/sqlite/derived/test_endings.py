"""Stores that are lost for good, and what sites without inputs have seen of them alone."""

import pytest
from tests.replication.sites import World

import everview as ev
from everview.replication.rights.rights import Rights

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, c TEXT);
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.c FROM r JOIN k ON r.b = k.id;
    CREATE MATERIALIZED VIEW single AS SELECT a FROM r;
""")
VIEWS = {"joined", "single"}


@pytest.fixture
def world():
    return World()


@pytest.fixture
def lost(world):
    """A whole site that wrote what only a view's host has, and is gone; the site, that host and another."""
    gone, base = (world.site(name, program=PROGRAM) for name in ("gone", "base"))
    host = world.site("host", program=PROGRAM, hosts=VIEWS)
    gone.insert("r", [(1, 1)])
    gone.insert("k", [(1, "x")])
    base.sync(gone)
    gone.insert("r", [(2, 1)])
    host.sync(gone)
    assert host.rows("joined") == [(1, "x"), (2, "x")]
    return gone, base, host


def shows(host, *rows):
    assert host.rows("joined") == list(rows)
    assert host.rows("single") == [(a,) for a, _ in rows]


def test_a_view_that_nobody_can_complete_is_read_again(lost):
    gone, base, host = lost
    host.sync(base)
    shows(host, (1, "x"), (2, "x"))
    assert base.give_up("gone") == gone._store.incarnation
    host.sync(base)
    shows(host, (1, "x"))
    report = host.sync(base)
    assert (report.sent_rows, report.received_rows) == (0, 0)


def test_it_is_enough_to_say_it_at_a_site_without_inputs(world, lost):
    _, base, host = lost
    other = world.site("other", program=PROGRAM, hosts=VIEWS)
    other.sync(host)
    shows(other, (1, "x"), (2, "x"))
    host.give_up("gone")
    shows(host)
    host.sync(base)
    shows(host, (1, "x"))
    other.sync(base)  # which has heard of it
    shows(other, (1, "x"))


def read_only(host, base):
    """A sync of a host that may write nothing at the base."""
    exchange = host.replica.exchange("base")
    message = exchange.open()
    while message is not None:
        message = exchange.receive(base.replica.answer(message, Rights(None, None, frozenset())))


def told(site):
    """The relations of which a site tells endings."""
    return {one.stream for one in site.replica.endings.told(site._store.writer.connection, 0)}


def test_a_holder_vouches_for_what_it_has_though_it_does_not_hear_of_it(lost):
    _, base, host = lost
    host.give_up("gone")
    read_only(host, base)
    shows(host, (1, "x"))


def test_who_may_only_read_gives_nobody_up(lost):
    _, base, host = lost
    host.give_up("gone")
    read_only(host, base)
    assert told(base) == set()
    base.sync(host)
    assert told(base) == {"r", "k"}


def test_another_host_is_not_believed_beyond_what_holders_have(world, lost):
    _, base, host = lost
    base.give_up("gone")
    other = world.site("other", program=PROGRAM, hosts=VIEWS)
    other.sync(base)
    read_only(other, host)  # which so does not hear of it
    shows(other, (1, "x"))
    shows(host, (1, "x"), (2, "x"))
    other.sync(host)
    shows(host, (1, "x"))


def test_a_view_that_is_within_what_holders_have_stays(lost):
    gone, base, host = lost
    base.sync(gone)
    before = host.replica.head
    base.give_up("gone")
    host.sync(base)
    shows(host, (1, "x"), (2, "x"))
    assert host.replica.head == before + 1  # it has heard of it, and that is all


def test_a_store_that_was_given_up_and_comes_back_loses_nothing(lost):
    gone, base, host = lost
    base.give_up("gone")
    host.sync(base)
    gone.sync(base)
    gone.insert("r", [(3, 1)])
    gone.sync(base)
    host.sync(base)
    shows(host, (1, "x"), (2, "x"), (3, "x"))
    gone.insert("r", [(4, 1)])
    host.sync(gone)
    shows(host, (1, "x"), (2, "x"), (3, "x"), (4, "x"))


def test_a_store_that_is_put_back_gives_up_who_it_was(world, tmp_path):
    path = tmp_path / "gone.db"
    gone = world.site("gone", path, program=PROGRAM)
    host = world.site("host", program=PROGRAM, hosts=VIEWS)
    gone.insert("k", [(1, "x")])
    gone.insert("r", [(1, 1)])
    host.sync(gone)
    gone.backup(tmp_path / "backup.db")
    gone.insert("r", [(2, 1)])
    host.sync(gone)
    gone.close()
    ev.Site.restore(tmp_path / "backup.db", path, replace=True).close()
    gone = world.site("gone", path, program=PROGRAM)
    shows(host, (1, "x"), (2, "x"))
    gone.insert("r", [(3, 1)])
    host.sync(gone)
    shows(host, (1, "x"), (3, "x"))
    gone.close()


def test_who_is_given_up_has_to_be_known(lost):
    gone, base, _ = lost
    with pytest.raises(ev.DataError, match="'nobody' is none of the other stores that are known here: gone"):
        base.give_up("nobody")
    with pytest.raises(ev.DataError, match="none of the other stores"):
        base.give_up("base")
    assert base.give_up(gone._store.incarnation) == gone._store.incarnation
    assert base.give_up("gone") == gone._store.incarnation
    assert base.give_up("0123456789abcdef") == "0123456789abcdef"  # it may be known elsewhere


def test_of_several_of_a_name_one_is_named(world):
    base, *phones = (world.site(name, program=PROGRAM) for name in ("base", "phone", "phone"))
    for number, phone in enumerate(phones):
        phone.insert("r", [(number, 1)])
        base.sync(phone)
    with pytest.raises(ev.DataError, match="2 stores are called 'phone'; name one of"):
        base.give_up("phone")
    base.give_up(phones[0]._store.incarnation)
    assert base.give_up("phone") == phones[1]._store.incarnation

"""Rights: what a token lets a site read and write."""

import pytest
from tests.replication.sites import World

import everview as ev
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.server import Listener, Tokens
from everview.server.tokens import hash_of, make_token

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE g (a BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.v FROM r JOIN k ON r.a = k.id;
""")
RELATIONS = ("r", "k", "g", "w")


@pytest.fixture
def world():
    return World()


@pytest.fixture
def server(world):
    return world.site("server", program=PROGRAM)


@pytest.fixture
def device(world):
    return world.site("device", program=PROGRAM)


def sync(device, server, rights):
    return MemoryTransport(server.replica, server.name, rights).sync(device.replica)


def write(site, number):
    site.insert("r", [(number,)])
    site.insert("k", [(number, site.name)])
    site.insert("g", [(number,), (number,)])
    site.insert("w", [(number,)])


def test_a_site_without_the_right_to_a_view_or_its_input_hears_nothing_of_it(world, server):
    device = world.site("device", program=PROGRAM, hosts={"joined", "g"})
    write(server, 1)
    sync(device, server, Rights(reads=frozenset({"g"})))
    assert (device.rows("g"), device.rows("joined")) == ([(1,), (1,)], [])


def test_what_is_sent_without_the_right_is_left_out_and_comes_when_it_may(device, server):
    """A device that pushes all it has, whatever it was asked for: the right is gone since the question."""
    sync(device, server, Rights())
    write(device, 1)
    exchange = device.replica.exchange("server")
    pushed = exchange.receive(server.replica.answer(exchange.open()))
    while pushed is not None:
        some = Rights(writes=frozenset({"r", "g"}))
        pushed = exchange.receive(server.replica.answer(pushed, some))
    assert [server.rows(name) for name in ("k", "w")] == [[], []]
    for _ in range(2):
        sync(device, server, some)
    assert [server.rows(name) for name in RELATIONS] == [[(1,)], [], [(1,), (1,)], []]
    sync(device, server, Rights())  # and nothing is lost when it may
    assert [server.rows(name) for name in RELATIONS] == [device.rows(name) for name in RELATIONS]


def test_no_right_at_all_changes_nothing(device, server):
    write(device, 1)
    write(server, 2)
    nothing = Rights(reads=frozenset(), writes=frozenset())
    for _ in range(2):
        report = sync(device, server, nothing)
        assert (report.sent_rows, report.received_rows) == (0, 0)
    assert server.rows("r") == [(2,)]
    sync(device, server, Rights())
    assert server.rows("r") == device.rows("r") == [(1,), (2,)]


def test_a_token_is_for_the_site_it_names(device, server):
    with pytest.raises(ev.SyncError, match="belongs to 'another'"):
        sync(device, server, Rights(site="another"))
    assert sync(device, server, Rights(site="device")).sent_rows == 0


def test_rights_that_come_later_over_http(device, server, tmp_path):
    token, _ = make_token()
    file = tmp_path / "tokens.toml"

    def grant(read, write):
        file.write_text(
            f'[[token]]\nsite = "device"\nsha256 = "{hash_of(token)}"\nread = {read}\nwrite = {write}\n'
        )

    write(device, 1)
    write(server, 2)
    grant('["r", "g"]', '["r"]')
    with Listener(server.replica, Tokens(file)) as listener:
        with pytest.raises(ev.SyncError):
            device.sync(listener.address, token="not the token at all")
        assert server.rows("r") == [(2,)]
        device.sync(listener.address, token=token)
        assert [len(server.rows(name)) for name in RELATIONS] == [2, 1, 2, 1]
        assert [len(device.rows(name)) for name in RELATIONS] == [2, 1, 4, 1]
        grant('"*"', '"*" # all of it')
        device.sync(listener.address, token=token)
        report = device.sync(listener.address, token=token)
    assert [server.rows(name) for name in RELATIONS] == [device.rows(name) for name in RELATIONS]
    assert [len(server.rows(name)) for name in RELATIONS] == [2, 2, 4, 2]
    assert (report.sent_rows, report.received_rows) == (0, 0)

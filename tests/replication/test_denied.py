"""Whoever syncs is told what it was not allowed: by its report, without a word in the messages themselves."""

import httpx
import pytest

import everview as ev
from everview.replication.rights.denial import Withheld
from everview.replication.rights.rights import Rights
from everview.replication.transports.denials import LONGEST_HEADER, as_header, of_header
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.report import Denied
from everview.server import Listener, Tokens
from everview.server.tokens import make_token

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT, b TEXT);
    CREATE TABLE k (a BIGINT PRIMARY KEY, b TEXT);
    CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
    CREATE TABLE adds (a BIGINT) WITH (semantics = 'add_wins');
    CREATE TABLE counts (who TEXT, n BIGINT) WITH (owner = 'who');
    CREATE MATERIALIZED VIEW w AS SELECT a FROM r;
    CREATE MATERIALIZED VIEW busy AS SELECT a, b, count(*) AS n FROM r GROUP BY a, b;
    CREATE MATERIALIZED VIEW totals AS SELECT who, sum(n) AS n FROM counts GROUP BY who;
    CREATE MATERIALIZED VIEW news WITH (authority = 'device') AS SELECT a FROM r;
    CREATE MATERIALIZED VIEW headlines AS SELECT a, count(*) AS n FROM news GROUP BY a;
""")
RELATIONS = ("r", "k", "bag", "adds")
ROWS = {"r": (1, "x"), "k": (1, "x"), "bag": (1,), "adds": (1,), "counts": ("device", 1)}


def some(*names):
    return frozenset(names)


def opened(name, *hosts):
    return ev.Site.open(":memory:", PROGRAM, name=name, hosts=set(hosts) or None)


def over_memory(server, device, reads, writes):
    return MemoryTransport(server.replica, "server", Rights("device", reads, writes)).sync(device.replica)


def over_http(server, device, reads, writes, folder):
    token, digest = make_token()
    listed = lambda names: '"*"' if names is None else str(sorted(names))
    path = folder / "tokens.toml"
    path.write_text(
        f'[[token]]\nsite = "device"\nsha256 = "{digest}"\nread = {listed(reads)}\nwrite = {listed(writes)}\n'
    )
    with Listener(server.replica, Tokens(path)) as listener:
        return device.sync(listener.address, token=token)


@pytest.fixture(params=["memory", "http"])
def sync(request, tmp_path):
    """Sync a device with a server, within rights; return what the device was not allowed."""

    def call(server, device, reads=None, writes=None):
        if request.param == "memory":
            return over_memory(server, device, reads, writes).denied
        return over_http(server, device, reads, writes, tmp_path).denied

    return call


def read(name, *views):
    return Denied("read", name, views)


def write(name):
    return Denied("write", name)


def test_who_is_denied_nothing_is_told_nothing(sync):
    with opened("server") as server, opened("device") as device:
        device.insert("r", [ROWS["r"]])
        assert sync(server, device) == ()
        assert sync(server, device, some(*PROGRAM.names()), some(*PROGRAM.names())) == ()


def test_what_a_view_needs_is_told_with_the_view(sync):
    with opened("server") as server, opened("device", "busy", "w") as device:
        server.insert("r", [ROWS["r"]])
        for _ in range(2):
            assert sync(server, device, some("busy", "w"), some()) == (read("r", "busy"),)
        assert sync(server, device, some("busy", "w", "r"), some()) == ()
        assert device.rows("busy") == [(1, "x", 1)]


def test_published_views_below_a_view_are_told_too(sync):
    with opened("server") as server, opened("device-2", "headlines") as device:
        rights = Rights("device-2", some("headlines"), some())
        report = MemoryTransport(server.replica, "server", rights).sync(device.replica)
        assert report.denied == (read("news", "headlines"),)


def test_what_is_hosted_and_not_read(sync):
    with opened("server") as server, opened("device", *RELATIONS, "w") as device:
        assert sync(server, device, some("r", "bag"), some("r")) == (read("k"), read("adds"))
        assert sync(server, device, some("w"), some()) == tuple(map(read, RELATIONS))


@pytest.mark.parametrize("name", RELATIONS)
def test_what_was_written_and_may_not_be_sent(sync, name):
    """Not what may not be written, and was not: most devices write little of what they read.

    It is told at every sync, whether some of it has come there before or not.
    """
    others = some(*RELATIONS) - {name}
    with opened("server") as server, opened("device", *RELATIONS) as device:
        server.insert(name, [tuple(9 if cell == 1 else cell for cell in ROWS[name])])
        device.insert(min(others), [ROWS[min(others)]])
        for _ in range(2):
            assert sync(server, device, None, others) == ()
        device.insert(name, [ROWS[name]])
        for _ in range(2):
            assert sync(server, device, None, others) == (write(name),)
        assert server.rows(name) != device.rows(name)
        assert sync(server, device) == ()
        assert server.rows(name) == device.rows(name)
        device.delete(name, [ROWS[name]])
        assert sync(server, device, None, others) == (write(name),)


def test_rows_of_others_are_their_writers_matter(sync):
    with opened("server") as server, opened("device", "r") as device, opened("writer") as writer:
        writer.insert("r", [ROWS["r"]])
        device.sync(writer)
        assert sync(server, device, None, some()) == ()


def test_views_that_may_not_be_fed(sync):
    for view, relation, reads in (("w", "r", ()), ("news", "r", (read("news"),))):
        with opened("server", view) as server, opened("device", relation, view) as device:
            assert sync(server, device, some(), some("k")) == reads
            device.insert(relation, [ROWS[relation]])
            for _ in range(2):
                assert sync(server, device, some(view), some("k")) == (write(view),)
            assert server.rows(view) == []
            assert sync(server, device, some(view), some(view)) == ()
            assert len(server.rows(view)) == 1


def test_what_the_peer_does_not_have_is_not_denied(sync):
    with opened("server", "r") as server, opened("device", "r", "k") as device:
        device.insert("k", [ROWS["k"]])
        assert sync(server, device, some("r"), some("r")) == ()


def test_folders_and_sites_deny_nothing(tmp_path):
    with opened("server") as server, opened("device") as device:
        assert device.sync(server).denied == ()
        assert device.sync(tmp_path / "stick").denied == ()


def test_denials_in_words_and_in_sums():
    both = ev.SyncReport(1, denied=(read("r", "busy"),)) + ev.SyncReport(
        2, denied=(write("s"), read("r", "busy"))
    )
    assert both == ev.SyncReport(3, denied=(read("r", "busy"), write("s")))
    assert both.told_denied() == "reading r (needed for busy); writing s"
    many = ev.SyncReport(denied=(read("k"), read("r", "busy", "w"), write("s"), write("t")))
    assert many.told_denied() == "reading k, r (needed for busy, w); writing s, t"
    assert ev.SyncReport().told_denied() == ""


def test_who_may_neither_read_nor_feed_a_view_of_owners_is_told_both(sync):
    with opened("server", "totals") as server, opened("device", "counts", "totals") as device:
        device.insert("counts", [ROWS["counts"]])
        for _ in range(2):
            assert sync(server, device, some(), some("k")) == (read("totals"), write("totals"))
        assert server.rows("totals") == []
        assert sync(server, device, some("totals"), some("totals")) == ()
        assert server.rows("totals") == [("device", 1)]


def test_only_who_asks_is_told_and_only_of_what_its_program_has(tmp_path):
    """The header has no name that the sender does not have from its own program."""
    token, digest = make_token()
    path = tmp_path / "tokens.toml"
    path.write_text(f'[[token]]\nsite = "device"\nsha256 = "{digest}"\nread = ["w"]\nwrite = []\n')
    other = ev.Program.parse("CREATE TABLE r (a BIGINT, b TEXT); CREATE TABLE mine (a BIGINT)")
    with opened("server") as server, ev.Site.open(":memory:", other, name="device") as device:
        refused = server.replica.answer(device.replica.exchange("server").open())
        device_says = device.replica.exchange("server")
        device_says.open()
        device_says = device_says.receive(refused)  # which says what its program declares
        with Listener(server.replica, Tokens(path)) as listener:
            ask = lambda **more: httpx.post(
                f"{listener.address}/v1/exchange",
                content=device_says,
                headers={"Authorization": f"Bearer {token}", **more},
            )
            assert "everview-denied" not in ask().headers
            told = ask(**{"Everview-Denied": "tell"}).headers["everview-denied"]
    assert of_header(told) == Withheld(("r",), ("r",))


def test_a_header_is_short_and_may_be_anything():
    many = Withheld(tuple(f"relation_{n}" for n in range(1000)), ("naïve", 'a"b'))
    text = as_header(many)
    assert len(text) <= LONGEST_HEADER
    assert text.isascii()
    assert of_header(text).reads == many.reads[: len(of_header(text).reads)]
    assert len(of_header(text).reads) > 50
    assert of_header(as_header(Withheld((), many.writes))) == Withheld((), many.writes)
    for strange in ("", "x", "[]", '{"read": 1}', '{"read": [1], "write": [[]]}', "[" * 100_000):
        assert of_header(strange) == Withheld((), ())


def test_names_that_a_server_makes_up_are_not_repeated():
    with opened("device", "r") as device:
        assert device.replica.denied(Withheld(("evil\n", "r"), ("evil", "w"))) == (read("r"),)

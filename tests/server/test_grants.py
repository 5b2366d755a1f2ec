"""A tokens file that cannot work is refused, and one that may bring less than it says is warned of."""

import logging

import pytest

from everview import DataError, Program, Site
from everview.replication.rights.grants import lacking
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.server import Tokens
from everview.server.tokens import make_token

PROGRAM = Program.parse("""
    CREATE TABLE sightings (who TEXT, sector BIGINT, what TEXT);
    CREATE TABLE counts (who TEXT, n BIGINT) WITH (owner = 'who');
    CREATE TABLE litter (what TEXT) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW seen AS SELECT sector, what FROM sightings;
    CREATE MATERIALIZED VIEW busy AS
        SELECT sector, what, who, count(*) AS n FROM sightings GROUP BY sector, what, who;
    CREATE MATERIALIZED VIEW often AS SELECT sector, n FROM busy WHERE n > 1;
    CREATE MATERIALIZED VIEW kinds AS SELECT what FROM litter;
    CREATE MATERIALIZED VIEW totals AS SELECT who, sum(n) AS n FROM counts GROUP BY who;
    CREATE MATERIALIZED VIEW news WITH (authority = 'base') AS SELECT what FROM sightings;
    CREATE MATERIALIZED VIEW headlines AS SELECT what, count(*) AS n FROM news GROUP BY what;
""")
ROWS = {
    "sightings": [("ann", 7, "tent"), ("ann", 7, "tree")],
    "counts": [("base", 3)],
    "litter": [("can",), ("can",)],
}


def some(*names):
    return frozenset(names)


def only(reads=frozenset(), writes=frozenset(), site="device"):
    return Rights(site, reads, writes)


@pytest.fixture
def tokens(tmp_path):
    """A file with one entry, written anew by a call; returns the token's header."""
    path = tmp_path / "tokens.toml"
    token, digest = make_token()

    def write(read, write):
        path.write_text(
            f'[[token]]\nsite = "device"\nsha256 = "{digest}"\nread = {read}\nwrite = {write}\n', "utf-8"
        )
        return path

    write.header = f"Bearer {token}"
    return write


def pushed(rights, hosts, relation, name):
    """What of a device's rows arrives at a server that hosts one name, by any number of syncs.

    For a relation the server has met another before: where it has not, the device would be the first member.
    """
    server = Site.open(":memory:", PROGRAM, name="server", hosts={name})
    device = Site.open(":memory:", PROGRAM, name="base", hosts=hosts)
    with server, device, Site.open(":memory:", PROGRAM, name="other") as other:
        if name in PROGRAM.relations:
            other.sync(server)
        device.insert(relation, ROWS[relation])
        for _ in range(3):
            MemoryTransport(server.replica, "server", rights).sync(device.replica)
        return server.rows(name)


def pulled(rights, view, *others):
    """What a device that hosts a view, and perhaps others, gets of it, by any number of syncs."""
    server = Site.open(":memory:", PROGRAM, name="base")
    device = Site.open(":memory:", PROGRAM, name="device", hosts={view, *others})
    with server, device:
        for relation, rows in ROWS.items():
            server.insert(relation, rows)
        for _ in range(3):
            MemoryTransport(server.replica, "server", rights).sync(device.replica)
        return device.rows(view)


@pytest.mark.parametrize("name", ["sightings", "counts", "litter", "seen", "totals", "news"])
def test_what_may_be_written_without_being_read(name):
    """Who may write says what it has, and hears nothing of what others have."""
    relation = {"seen": "sightings", "news": "sightings", "totals": "counts"}.get(name, name)
    hosts = {relation, name}
    assert pushed(only(writes=some(name), site="base"), hosts, relation, name)
    assert pushed(only(some(name), some(name), site="base"), hosts, relation, name)


@pytest.mark.parametrize(
    ("view", "needs"),
    [
        ("seen", ()),
        ("busy", ("sightings",)),
        ("often", ("sightings",)),
        ("kinds", ("litter",)),
        ("totals", ()),
        ("news", ()),
        ("headlines", ("news",)),
    ],
)
def test_what_a_view_needs_besides(view, needs):
    """What is said to be lacking is exactly what keeps the view empty."""
    assert lacking(PROGRAM, only(some(view))) == ({view: needs} if needs else {})
    assert bool(pulled(only(some(view)), view)) is (not needs)
    assert lacking(PROGRAM, only(some(view, *needs))) == {}
    assert pulled(only(some(view, *needs)), view) or view == "often"


def test_a_view_lacks_nothing_for_the_sake_of_another():
    both = only(some("seen", "busy"))
    assert lacking(PROGRAM, both) == {"busy": ("sightings",)}
    assert pulled(both, "busy", "seen") == []
    assert pulled(both, "seen", "busy")


def test_who_reads_everything_or_computes_it_lacks_nothing():
    assert lacking(PROGRAM, Rights("device")) == {}
    assert lacking(PROGRAM, only(some("busy", "often"))) == {"busy": ("sightings",)}
    assert lacking(PROGRAM, only(some("headlines", "sightings"), site="base")) == {}


@pytest.mark.parametrize("names", [("seen", "totals", "news"), ("sightings", "litter")])
def test_relations_and_views_may_be_written_without_being_read(tokens, names):
    access = Tokens(tokens("[]", str(list(names)).replace("'", '"')), program=PROGRAM)
    assert access.rights(tokens.header) == only(writes=some(*names))


def test_a_file_that_is_refused_later_changes_nothing(tokens, caplog):
    access = Tokens(tokens('["seen"]', "[]"), program=PROGRAM)
    tokens('["seen"]', '["nosuch"]')
    with caplog.at_level(logging.WARNING, "everview.server"):
        assert access.rights(tokens.header) == only(some("seen"))
        assert access.rights(tokens.header) == only(some("seen"))
    (record,) = caplog.records
    assert "nosuch" in record.message
    assert record.message.endswith("the tokens from before are in force")
    tokens('["seen", "sightings"]', '["sightings"]')
    assert access.rights(tokens.header) == only(some("seen", "sightings"), some("sightings"))


def test_a_view_that_needs_more_is_warned_of_and_allowed(tokens, caplog):
    with caplog.at_level(logging.WARNING, "everview.server"):
        path = tokens('["busy", "kinds"]', "[]")
        access = Tokens(path, program=PROGRAM)
        assert access.rights(tokens.header) == only(some("busy", "kinds"))
    (record,) = caplog.records
    assert record.message == (
        f"{path}, token 1: device may read busy, but not sightings, which busy needs; "
        "kinds, but not litter, which kinds needs. A view stays empty without what it needs, unless that "
        'comes from elsewhere; to give it here, say read = ["busy", "kinds", "litter", "sightings"]'
    )
    caplog.clear()
    with caplog.at_level(logging.WARNING, "everview.server"):
        tokens('["busy", "sightings", "seen"]', "[]")
        access.rights(tokens.header)
        assert not caplog.records
        tokens('["busy"]', "[]")
        access.rights(tokens.header)
    assert [record.message.count("sightings") for record in caplog.records] == [2]


def half(tmp_path, more):
    path, (token, digest) = tmp_path / "tokens.toml", make_token()
    path.write_text(f'[[token]]\nsite = "device"\nsha256 = "{digest}"\n{more}\n', "utf-8")
    return Tokens(path, program=PROGRAM).rights(f"Bearer {token}")


def test_a_token_may_insert_or_delete_alone(tmp_path):
    rights = half(tmp_path, 'read = "*"\ninsert = ["litter", "counts"]\ndelete = ["sightings", "counts"]')
    assert [rights.may_insert(one) for one in ("litter", "counts", "sightings")] == [True, True, False]
    assert [rights.may_delete(one) for one in ("litter", "counts", "sightings")] == [False, True, True]
    assert all(map(rights.may_write, ("litter", "counts", "sightings")))
    assert not rights.may_write("news")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ('insert = "*"', "insert is a list of relations"),
        ('insert = ["seen"]', "insert names 'seen', which is a view"),
        ('delete = ["nothing"]', "delete names 'nothing', which is not in the program"),
        ("delete = 3", 'delete is "[*]" or a list of names'),
    ],
)
def test_only_of_relations_rows_are_inserted_or_deleted(tmp_path, more, problem):
    with pytest.raises(DataError, match=problem):
        half(tmp_path, more)

"""Messages that are well-formed and absurd: refused, or what they claim is dropped, and everybody goes on."""

import pytest

import everview as ev
from everview.errors import WireError
from everview.language.limits import COPIES, HIGHEST_FLOOR, LONGEST, WIDEST_NAME
from everview.replication.messages import PROTOCOL, Cursor, Gossip, Member, Message, Page, Request, Section
from everview.replication.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.replication.wire import decode, encode

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL);
    CREATE TABLE pub (a BIGINT);
    CREATE TABLE g (a BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM g;
""")
READER = Rights("mallory", frozenset({"pub"}), frozenset())


@pytest.fixture
def sites():
    """A server and one that is in sync with it; a third that is new; and mallory, who has a token."""
    opened = [ev.Site.open(":memory:", PROGRAM, name=name) for name in ("server", "b", "c", "mallory")]
    server, b, _, mallory = opened
    sync(b, server)
    sync(mallory, server)
    yield opened
    for site in opened:
        site.close()


def sync(site, server):
    return MemoryTransport(server.replica, server.name, Rights(site.name)).sync(site.replica)


def gossip(members=(), floors=None, groups=None):
    return Gossip(list(members), [], floors or {}, {}, groups or {}, {}, {}, {}, [])


def say(server, rights, sites, names=("mallory", "x"), **parts):
    message = Message(PROTOCOL, PROGRAM.hash, list(sites), list(names[: len(sites)]), **parts)
    return decode(server.replica.respond(encode(message), rights))


def bring(server, mallory, *sections, floors=None):
    """A page of mallory's own, of which every word is made up."""
    asked = decode(
        server.replica.respond(mallory.replica.exchange("server").open(), Rights("mallory"))
    ).request
    head = max(cursor.head for cursor in asked.streams.values())
    tags = {cursor.head: cursor.tag for cursor in asked.streams.values() if cursor.head}
    froms = {name: cursor.head for name, cursor in asked.streams.items()}
    groups = {name: [group] for name, group in server.status()["replication"]["groups"].items()}
    page = Page(asked.cut, b"", b"", True, head + 1, froms, tags | {head + 1: 5}, list(sections))
    return say(
        server,
        Rights("mallory"),
        [mallory.replica.incarnation],
        page=page,
        gossip=gossip(floors=floors, groups=groups),
    )


def all_go_on(server, b, c):
    server.insert("r", [(7,)])
    b.insert("g", [(8,)])
    for site in (b, c, b, c):
        sync(site, server)
    for name in ("r", "g", "n"):
        assert server.rows(name) == b.rows(name) == c.rows(name)
    assert (7,) in c.rows("r")
    assert (8,) in c.rows("g")


@pytest.mark.parametrize(
    "told",
    [
        {"sites": ["m", "ghost"], "gossip": gossip([Member(1, "pub", "g", 2**63 - 1, -1)])},
        {"sites": ["m", "ghost" * WIDEST_NAME], "gossip": gossip([Member(1, "pub", "g", 1, -1)])},
        {"sites": ["m", "ghost"], "names": ["mallory", "x" * (WIDEST_NAME + 1)], "gossip": gossip()},
        {"sites": ["m"], "gossip": gossip([Member(0, "pub" * WIDEST_NAME, "g", 1, -1)])},
        {"sites": ["m"], "gossip": gossip([Member(0, "pub", "g" * (WIDEST_NAME + 1), 1, -1)])},
        {"sites": ["m"], "gossip": gossip(groups={"pub": []})},
        {"sites": [""], "gossip": gossip()},
    ],
    ids=["length", "incarnation", "name", "stream", "group", "no group", "nobody"],
)
def test_what_no_site_says_is_malformed(sites, told):
    server, b, c, _ = sites
    with pytest.raises(WireError):
        say(server, READER, **told)
    all_go_on(server, b, c)


def test_a_member_of_the_greatest_length_can_be_given_up(sites):
    server, b, c, _ = sites
    say(server, READER, ["m", "ghost"], gossip=gossip([Member(1, "pub", "g", LONGEST - 1, -1)]))
    server.expire("ghost")
    all_go_on(server, b, c)


def test_more_members_than_can_be_told_on_are_refused(sites):
    server, b, c, _ = sites
    for some in range(3):
        ghosts = [f"ghost {some} {number} {'x' * 500}" for number in range(2500)]
        listed = gossip([Member(place, "pub", "g", 1, -1) for place in range(1, 2501)])
        answer = say(server, READER, ["m", *ghosts], ["mallory", *[""] * 2500], gossip=listed)
        assert (answer.refusal is None) == (some < 2)
    assert "more members than a site can tell others of" in answer.refusal.text
    all_go_on(server, b, c)


def test_a_token_does_not_speak_for_the_store_of_another(sites):
    server, b, c, _ = sites
    own = b.replica.incarnation
    asked = Request(server.replica.incarnation, {"r": Cursor(2**40, 1)}, [], 1, b"")
    refusal = say(server, Rights("mallory"), [own], gossip=gossip(), request=asked).refusal
    assert "this store is known as 'b', and the token belongs to 'mallory'" in refusal.text
    all_go_on(server, b, c)


def test_nobody_gives_another_site_a_name(sites):
    server, b, c, _ = sites
    own = b.replica.incarnation
    say(server, Rights("mallory"), ["m", own], ["mallory", "mallory"], gossip=gossip())
    assert [
        one["name"] for one in server.status()["replication"]["members"] if one["incarnation"] == own
    ] == ["b"]
    all_go_on(server, b, c)


def test_pages_of_who_may_write_nothing_are_not_kept(sites):
    server, b, c, _ = sites
    asked = Request(server.replica.incarnation, {}, [], 1, b"")
    cut = say(server, READER, ["m"], gossip=gossip(), request=asked).request.cut
    page = Page(cut, b"", b"x", False, 0, {}, {}, [Section("nonsense", 0, 1, [[b"x" * 1_000_000]])])
    say(server, READER, ["m"], gossip=gossip(), page=page)
    assert server.status()["replication"]["staged_pages"] == 0
    all_go_on(server, b, c)


def test_a_tuple_of_the_greatest_length_is_deleted_for_good_everywhere(sites):
    server, b, c, mallory = sites
    lengths = [LONGEST - 1, LONGEST, LONGEST + 1]
    bring(server, mallory, Section("r", 0, 3, [[1, 2, 3], lengths, [0] * 3, [1] * 3]))
    assert server.status()["replication"]["dropped_rows"] == 1
    all_go_on(server, b, c)
    b.delete("r", [(1,)])
    sync(b, server)
    for site in (server, b):
        for row in (1, 2):
            with pytest.raises(ev.DataError, match="deleted for good"):
                site.insert("r", [(row,)])
        with pytest.raises(ev.DataError, match="deleted for good"):
            site.insert("r", [(4,), (2,), (7,)])
        site.insert("r", [(3,), (7,)])
    server.replica.collect()
    all_go_on(server, b, c)
    assert server.rows("r") == [(3,), (7,)]


def test_a_tuple_of_too_many_lives_is_never_forgotten(sites):
    """Else the floor would be where it was, and nobody could write anything above it."""
    server, b, c, mallory = sites
    server.insert("r", [(1,), (2,)])
    table = server._store.engine.relations["r"].table
    server._store.writer.connection.execute(
        f"UPDATE {table.name} SET cl = ? WHERE {table.columns[0]} = 2", (HIGHEST_FLOOR + 1,)
    )
    server.delete("r", [(1,), (2,)])
    for site in (mallory, b, c) * 3:
        sync(site, server)
    assert server.replica.collect() == 1
    assert server.status()["replication"]["held"]["r"]["dead_rows"] == 1
    all_go_on(server, b, c)


def test_above_a_floor_that_was_made_up_there_is_room(sites):
    server, b, c, mallory = sites
    for floor in (LONGEST, HIGHEST_FLOOR):
        bring(server, mallory, Section("r", 0, 1, [[1], [1], [0], [1]]), floors={"r": floor})
        server.insert("r", [(5,)])
        all_go_on(server, b, c)
        b.delete("r", [(5,)])
        all_go_on(server, b, c)
        assert b.rows("r") == [(1,), (7,)]


def test_weights_beyond_reason_are_dropped_and_sums_fit(sites):
    server, b, c, mallory = sites
    weights = [LONGEST, -LONGEST, COPIES + 1, COPIES, -COPIES, 1]
    bring(server, mallory, Section("g", 0, 6, [[1, 2, 3, 4, 4, 5], weights, [0] * 6, [1, 1, 1, 1, 2, 1]]))
    assert server.status()["replication"]["dropped_rows"] == 3
    all_go_on(server, b, c)
    assert server.rows("g") == [(5,), (8,)]

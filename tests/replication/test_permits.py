"""Sites that may only insert rows of a relation, or only delete them: what they may not do is undone."""

import json
import random
from collections import Counter

import pytest
from tests.replication.sites import World, contents, talk

import everview as ev
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT, b TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);
    CREATE TABLE m (id BIGINT PRIMARY KEY, v TEXT) WITH (merge = 'column');
    CREATE TABLE g (a BIGINT, b TEXT) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT, b TEXT) WITH (semantics = 'add_wins');
    CREATE TABLE p (a BIGINT, b TEXT) PARTITION BY (b);
    CREATE TABLE q (a BIGINT, b TEXT, PRIMARY KEY (a, b)) PARTITION BY (b);
    CREATE MATERIALIZED VIEW counted AS SELECT b, count(*) AS n FROM r GROUP BY b;
    CREATE MATERIALIZED VIEW joined AS SELECT r.a, k.v FROM r JOIN k ON r.a = k.id;
""")
RELATIONS = frozenset("rkmgwpq")
NAMES = (*sorted(RELATIONS), "counted", "joined")
INSERTS = Rights(None, None, frozenset(), inserts=RELATIONS)
DELETES = Rights(None, None, frozenset(), deletes=RELATIONS)


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
    """Two meetings: what is refused in the first comes back with the second."""
    for _ in range(2):
        MemoryTransport(server.replica, server.name, rights).sync(device.replica)


def refused(site):
    found = site.status()["replication"]["refused"]
    return [(one["stream"], json.loads(one["row"]), one["why"]) for one in found]


def agree(*sites):
    talk(*sites)
    assert all(contents(site, NAMES) == contents(sites[0], NAMES) for site in sites)
    assert not any(site.status()["replication"]["alarms"] for site in sites)


@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_who_may_only_insert_deletes_nothing(world, server, device, name):
    server.insert(name, [(1, "x"), (2, "x")])
    sync(device, server, INSERTS)
    seen = []
    watch = server.watch(name, seen.extend)
    device.delete(name, [(1, "x")])
    device.insert(name, [(3, "y")])
    sync(device, server, INSERTS)
    watch.cancel()
    assert seen == [((3, "y"), 1)]  # the removal was never seen
    assert server.rows(name) == device.rows(name) == [(1, "x"), (2, "x"), (3, "y")]
    columns = PROGRAM.relations[name].columns
    expected = (name, dict(zip(columns, (1, "x"), strict=True)), f"device may only insert rows of {name}")
    assert refused(device) == refused(server) == [expected]
    agree(server, device, world.site("other", program=PROGRAM))


@pytest.mark.parametrize("name", sorted(RELATIONS))
def test_who_may_only_delete_inserts_nothing(world, server, device, name):
    server.insert(name, [(1, "x"), (2, "x")])
    sync(device, server, DELETES)
    seen = []
    watch = server.watch(name, seen.extend)
    device.delete(name, [(1, "x")])
    device.insert(name, [(3, "y")])
    sync(device, server, DELETES)
    watch.cancel()
    assert seen == [((1, "x"), -1)]
    assert server.rows(name) == device.rows(name) == [(2, "x")]
    columns = PROGRAM.relations[name].columns
    expected = (name, dict(zip(columns, (3, "y"), strict=True)), f"device may only delete rows of {name}")
    assert refused(device) == refused(server) == [expected]
    agree(server, device, world.site("other", program=PROGRAM))


@pytest.mark.parametrize("rights", [INSERTS, DELETES], ids=["inserts", "deletes"])
@pytest.mark.parametrize("name", ["k", "m"])
def test_an_update_takes_both(world, server, device, name, rights):
    server.insert(name, [(1, "old")])
    sync(device, server, rights)
    device.insert(name, [(1, "new")])
    assert device.rows(name) == [(1, "new")]
    sync(device, server, rights)
    assert server.rows(name) == device.rows(name) == [(1, "old")]
    assert ("new" in str(refused(device))) is True
    agree(server, device, world.site("other", program=PROGRAM))


def test_a_row_for_a_key_that_another_wrote_meanwhile_is_an_update(server, device):
    server.insert("k", [(1, "first")])
    device.insert("k", [(1, "later, and had not seen it")])
    sync(device, server, INSERTS)
    assert server.rows("k") == device.rows("k") == [(1, "first")]


def test_a_tuple_that_was_deleted_is_inserted_again(server, device):
    server.insert("r", [(1, "x")])
    server.delete("r", [(1, "x")])
    sync(device, server, INSERTS)
    device.insert("r", [(1, "x")])
    sync(device, server, INSERTS)
    assert server.rows("r") == device.rows("r") == [(1, "x")]
    assert refused(device) == []


def test_who_may_not_read_is_not_told_what_rows_say(server, device):
    server.insert("g", [(1, "secret")])
    MemoryTransport(server.replica, server.name).sync(device.replica)
    device.delete("g", [(1, "secret")])
    rights = Rights(None, frozenset(), frozenset(), inserts=RELATIONS)
    for _ in range(2):
        MemoryTransport(server.replica, server.name, rights).sync(device.replica)
    assert server.rows("g") == [(1, "secret")]
    assert device.rows("g") == []
    assert refused(device) == []
    assert len(refused(server)) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("rights", [INSERTS, DELETES], ids=["inserts", "deletes"])
def test_random_histories(world, server, device, rights, seed):
    rng, other = random.Random(seed), world.site("other", program=PROGRAM)
    for _ in range(40):
        site, chance = rng.choice([server, device, device, other]), rng.random()
        if chance < 0.6:
            name = rng.choice(sorted(RELATIONS))
            verb = rng.choice([site.insert, site.insert, site.delete])
            verb(name, [(rng.randrange(3), rng.choice("xy"))])
        elif site is other:
            other.sync(server)
        else:
            before = {name: Counter(server.rows(name)) for name in RELATIONS}
            MemoryTransport(server.replica, server.name, rights).sync(device.replica)
            for name in RELATIONS:
                after = Counter(server.rows(name))
                if rights is INSERTS:
                    assert not before[name] - after, name
                elif name not in "km":  # of two values of a key the one that was shown may go
                    assert not after - before[name], name
    sync(device, server, rights)
    agree(server, other)
    sync(device, server, rights)
    assert contents(device, NAMES) == contents(server, NAMES)
    agree(server, other, device)

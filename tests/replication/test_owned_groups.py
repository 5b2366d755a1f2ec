"""Rows that have owners, where groups meet that were founded apart: nobody tells another's as its own."""

import pytest
from tests.replication.sites import World, talk

import everview as ev
from everview.replication.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.testing.simulation.lattices import lengths

OWNED = ev.Program.parse("""
    CREATE TABLE s (site TEXT NOT NULL, a BIGINT NOT NULL) WITH (owner = 'site');
    CREATE TABLE k (site TEXT, a BIGINT, PRIMARY KEY (site, a)) WITH (owner = 'site');
    CREATE TABLE t (a BIGINT PRIMARY KEY, site TEXT) WITH (owner = 'site');
    CREATE TABLE g (site TEXT NOT NULL, a BIGINT) WITH (owner = 'site', semantics = 'bag');
    CREATE TABLE w (site TEXT NOT NULL, a BIGINT) WITH (owner = 'site', semantics = 'add_wins');
""")
KINDS = ["s", "k", "t", "g", "w"]


class Story:
    """c and d in the group of the smaller name; alice, p and q in the other, where alice has a row."""

    def __init__(self, kind):
        self.kind, self.world = kind, World()
        self.c, self.d, self.alice, self.p, self.q = self.sites = [
            self.world.site(name, program=OWNED) for name in ("c", "d", "alice", "p", "q")
        ]
        self.insert(self.c, 9)
        talk(self.c, self.d)
        self.insert(self.alice, 1)
        talk(self.alice, self.p, self.q)

    def row(self, site, number):
        return (number, site.name) if self.kind == "t" else (site.name, number)

    def insert(self, site, number):
        self.world.seconds += 1
        site.insert(self.kind, [self.row(site, number)])

    def delete(self, site, number):
        self.world.seconds += 1
        site.delete(self.kind, [self.row(site, number)[: 1 if self.kind == "t" else 2]])

    def shows(self, *sites, alice):
        """Whether all of these show the same, with alice's row or without it, and none had to drop any."""
        wanted = sorted([self.row(self.c, 9), *([self.row(self.alice, 1)] if alice else [])])
        assert {site.name: site.rows(self.kind) for site in sites} == {site.name: wanted for site in sites}
        dropped = [site.status()["replication"]["dropped_rows"] for site in sites]
        assert dropped == [0] * len(sites)


@pytest.mark.parametrize("kind", KINDS)
def test_the_death_of_anothers_row_comes_over(kind):
    """q comes over with alice's row, then p with its death; alice, who could tell it, never does."""
    story = Story(kind)
    c, d, alice, p, q = story.sites
    talk(q, c, d)
    story.shows(c, d, q, alice=True)
    story.delete(alice, 1)
    p.sync(alice)
    talk(p, c, d, q)
    story.shows(c, d, p, q, alice=False)


@pytest.mark.parametrize("kind", ["s", "k", "t"])
def test_anothers_row_below_the_floor_comes_over(kind):
    """c and d have forgotten a deletion that is later than alice's row, which p brings along."""
    story = Story(kind)
    c, d, _, p, _ = story.sites
    story.insert(c, 5)
    story.delete(c, 5)
    for _ in range(3):
        talk(c, d, rounds=4)
        story.world.seconds += 120
        for site in (c, d):
            site.replica.collect()
    assert c.replica._knowledge.state.floors[kind]
    talk(p, c, d)
    story.shows(c, d, p, alice=True)
    talk(*story.sites)
    story.shows(*story.sites, alice=True)


def forget(story, *sites):
    """These sites forget all that is dead, as often as it takes them to know that all have it."""
    for _ in range(3):
        talk(*sites, rounds=4)
        story.world.seconds += 120
        for site in sites:
            site.replica.collect()
    for site in sites:
        assert not site._store.engine.relations[story.kind].garbage(site._store.writer.connection)


@pytest.mark.parametrize("kind", ["s", "k", "t", "w"])
def test_what_was_forgotten_of_another_dies_where_it_is_found_alive(kind):
    """q comes over with alice's row, and is given up where it was; there p and alice forget the row's death.
    p comes over and finds it alive: all take from p that it is dead, by a commit of alice.
    """
    story = Story(kind)
    c, d, alice, p, q = story.sites
    namesake = story.world.site("alice", program=OWNED)  # of whom everyone has the same
    talk(namesake, *story.sites[2:])
    talk(q, c, d)
    for site in (alice, p):
        for gone in (q, namesake):
            site.replica.expire(gone.replica.incarnation)
    story.delete(alice, 1)
    forget(story, alice, p)
    talk(p, c, d)
    story.shows(c, d, p, alice=False)
    story.insert(alice, 1)
    talk(*story.sites)
    story.shows(*story.sites, alice=True)


def test_a_key_that_names_no_owner_dies_by_whoever_has_forgotten_it():
    """The same, where p has given alice up, too, and deleted her row, as one that had not seen it."""
    story = Story("t")
    c, d, alice, p, q = story.sites
    talk(q, c, d)
    for gone in (alice, q):
        p.replica.expire(gone.replica.incarnation)
    story.world.seconds += 1
    p._writing.check_replaced = lambda *_: None
    p.delete("t", [(1,)])
    forget(story, p)
    talk(p, c, d)
    story.shows(c, d, p, alice=False)


def test_a_floor_that_was_only_heard_of_lifts_nobody():
    """p has forgotten much, and comes over to c, which does not take rows from it: c has seen none of it."""
    world = World()
    program = ev.Program.parse("CREATE TABLE r (a BIGINT NOT NULL)")
    c, p = (world.site(name, program=program) for name in "cp")
    for site in (c, p):
        next(site.replica.batch(0))  # each founds a group of its own
    for _ in range(3):
        p.insert("r", [(1,)])
        p.delete("r", [(1,)])
    assert p.replica.collect() == 1
    c.insert("r", [(2,)])
    for _ in range(3):
        MemoryTransport(c.replica, "c", Rights(writes=frozenset())).sync(p.replica)
    assert p.rows("r") == [(2,)]
    state = c.replica._knowledge.state
    assert (state.apart, state.floors) == ({"r": 6}, {})
    c.delete("r", [(2,)])
    assert lengths(c._store.writer.connection, c._store.engine, "r") == {(2,): 2}

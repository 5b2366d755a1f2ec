"""Two and three sites, every kind of relation, every order of meeting."""

import pytest
from tests.replication.sites import World, assert_equal, contents, talk

import everview as ev
from everview.engines.sqlite.stamps import SHIFT


@pytest.fixture
def world():
    return World()


def test_done_again_at_once_nothing_moves_and_nothing_is_committed(world):
    a, b = world.sites(2)
    a.insert("r", [(1, "x")])
    b.insert("k", [(1, "one")])
    assert (a.sync(b).sent_rows, a.sync(b).sent_rows) == (1, 0)
    heads = [site.status()["commits"] for site in (a, b)]
    report = a.sync(b)
    assert (report.sent_rows, report.received_rows) == (0, 0)
    assert [site.status()["commits"] for site in (a, b)] == heads


def test_the_last_writer_of_a_key_wins_everywhere(world):
    a, b, c = world.sites(3)
    a.insert("k", [(1, "first")])
    world.seconds += 1
    b.insert("k", [(1, "second")])
    world.seconds += 1
    c.insert("k", [(1, "third")])
    talk(c, b, a)
    assert assert_equal(a, b, c)["k"] == [(1, "third")]


def test_equal_stamps_of_two_sites_end_alike(world):
    a, b, c = world.sites(3)
    a.insert("k", [(1, "a")])
    b.insert("k", [(1, "b")])
    talk(a, b, c)
    assert_equal(a, b, c)


def test_a_clock_that_runs_ahead_wins_only_what_had_not_seen_it(world):
    a, fast, b = world.site("a"), world.site("fast", skew=3600), world.site("b")
    fast.insert("k", [(1, "from the future")])
    a.insert("k", [(1, "now")])
    a.sync(fast)
    b.sync(a)
    assert a.rows("k") == b.rows("k") == [(1, "from the future")]
    assert a._store.clock.last >> SHIFT < (world.seconds + 60) * 1_000_000  # and its clock was not moved
    a.insert("k", [(1, "later")])
    talk(a, fast, b)
    assert assert_equal(a, fast, b)["k"] == [(1, "later")]


def test_bags_count_each_insertion_once_whatever_path_it_takes(world):
    a, b, c = world.sites(3)
    a.insert("g", [(1,), (1,)])
    for one, other in [(a, b), (a, c), (b, c), (c, b), (b, a), (c, a)]:
        one.sync(other)
    assert assert_equal(a, b, c)["g"] == [(1,), (1,)]
    b.delete("g", [(1,)])
    c.delete("g", [(1,)])  # the same copy, the oldest
    talk(a, b, c)
    assert assert_equal(a, b, c)["g"] == [(1,)]
    b.insert("g", [(1,)])
    a.delete("g", [(1,)])
    talk(a, b, c)
    assert assert_equal(a, b, c)["g"] == [(1,)]


def test_an_insertion_that_a_deletion_has_not_seen_survives(world):
    a, b = world.sites(2)
    a.insert("w", [(1,)])
    a.sync(b)
    a.delete("w", [(1,)])
    b.insert("w", [(1,)])
    a.sync(b)
    assert assert_equal(a, b)["w"] == [(1,)]
    b.delete("w", [(1,)])
    a.sync(b)
    assert assert_equal(a, b)["w"] == []


def test_a_transaction_arrives_whole(world):
    a, b = world.sites(2)
    seen = []
    b.watch("many", seen.append)
    with a.transaction():
        a.insert("g", [(1,)])
        a.insert("w", [(2,)])
        a.insert("g", [(3,)])
    b.sync(a)
    assert [sorted(change) for change in seen] == [[((1,), 1), ((2,), 1), ((3,), 1)]]


def test_watches_hear_of_net_changes_only(world):
    a, b = world.sites(2)
    a.insert("k", [(1, "same")])
    b.sync(a)
    heard = []
    b.watch("k", heard.append)
    world.seconds += 1
    a.insert("k", [(1, "same")])
    b.sync(a)
    assert heard == []


def test_sync_inside_a_transaction_is_refused(world):
    a, b = world.sites(2)
    with a.transaction(), pytest.raises(ev.StoreError):
        a.sync(b)


def test_another_program_is_refused(world):
    other = ev.Program.parse("CREATE TABLE r (a BIGINT NOT NULL, b BIGINT)")
    a, b = world.site("a"), world.site("b", program=other)
    with pytest.raises(ev.SyncError, match="another program"):
        a.sync(b)
    assert contents(a)["r"] == []


def test_a_site_does_not_sync_with_itself(world):
    a = world.site("a")
    with pytest.raises(ev.SyncError, match="same site"):
        a.sync(a)


def test_lengths_and_stamps_that_no_honest_site_has_do_no_harm(world):
    """Else what is written over them would have numbers that no store holds."""
    for relation, row, column in (("k", (1, "x"), "stamp"), ("r", (1, "x"), "cl")):
        a, b = world.sites(2)
        a.insert(relation, [row])
        with a._store.writing() as connection:
            table = a._store.engine.relations[relation].table.name
            connection.execute(f"UPDATE {table} SET {column} = ?", ((1 << 63) - 1,))
        with pytest.raises(ev.SyncError, match="beyond reason"):
            b.sync(a)
        assert b.rows(relation) == []
        b.insert(relation, [row])
        assert b.rows(relation) == [row]


@pytest.mark.parametrize("relation", ["r", "k", "g", "w"])
def test_a_delete_of_what_is_not_there_is_no_commit(relation):
    """It would be news to all whom it reaches, and they would tell it on."""
    site = World().site("a")
    row = {"r": (1, "x"), "k": (1, "x")}.get(relation, (1,))
    site.delete(relation, [row])
    assert site.replica.head == 0
    site.insert(relation, [row])
    site.delete(relation, [row])
    site.delete(relation, [row])
    assert site.replica.head == 2

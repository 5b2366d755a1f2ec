"""Two and three sites, every kind of relation, every order of meeting."""

import itertools

import pytest
from tests.replication.sites import PROGRAM, World, assert_equal, contents, talk

import everview as ev
from everview.engines.sqlite.stamps import SHIFT
from everview.replication.protocol.replica import Replica


@pytest.fixture
def world():
    return World()


def test_everything_written_anywhere_is_everywhere(world):
    a, b, c = world.sites(3)
    a.insert("r", [(1, "x"), (2, None)])
    b.insert("r", [(1, "x"), (3, "x")])
    a.insert("g", [(1,)])
    b.insert("g", [(1,), (1,)])
    c.insert("w", [(5,)])
    c.insert("k", [(1, "one")])
    talk(a, b, c)
    found = assert_equal(a, b, c)
    assert found["r"] == [(1, "x"), (2, None), (3, "x")]
    assert found["g"] == [(1,), (1,), (1,)]
    assert found["counted"] == [("x", 2), (None, 1)]
    assert found["joined"] == [(1, "one")]
    assert found["many"] == [(1,), (1,), (1,), (5,)]


def test_done_again_at_once_nothing_moves_and_nothing_is_committed(world):
    a, b = world.sites(2)
    a.insert("r", [(1, "x")])
    b.insert("k", [(1, "one")])
    assert (a.sync(b).sent_rows, a.sync(b).sent_rows) == (1, 0)
    heads = [site.status()["commits"] for site in (a, b)]
    report = a.sync(b)
    assert (report.sent_rows, report.received_rows) == (0, 0)
    assert [site.status()["commits"] for site in (a, b)] == heads


def test_what_a_reader_has_from_elsewhere_is_not_sent_to_it(world):
    a, b, c = world.sites(3)
    a.insert("r", [(n, "x") for n in range(50)])
    b.sync(a)
    c.sync(b)
    assert c.sync(a).received_rows == 0
    assert a.sync(b).received_rows == 0


def test_one_exchange_does_both_directions(world):
    a, b = world.sites(2)
    a.insert("r", [(1, "a")])
    b.insert("r", [(2, "b")])
    report = a.sync(b)
    assert (report.sent_rows, report.received_rows) == (1, 1)
    assert_equal(a, b)


def test_a_relayed_row_reaches_a_site_that_never_met_its_writer(world):
    a, b, c = world.sites(3)
    a.insert("k", [(1, "one")])
    a.insert("g", [(1,), (1,)])
    a.sync(b)
    b.sync(c)
    assert_equal(a, b, c)


@pytest.mark.parametrize("order", list(itertools.permutations([(0, 1), (0, 2), (1, 2)] * 1)))
def test_section_2_of_streams_in_every_delivery_order(world, order):
    """s0 inserts; s1 concurrently inserts and deletes the same tuple: the longer chain wins everywhere."""
    sites = world.sites(3)
    sites[0].insert("r", [(1, "x")])
    sites[1].insert("r", [(1, "x")])
    sites[1].delete("r", [(1, "x")])
    for one, other in order:
        sites[one].sync(sites[other])
    talk(*sites)
    assert assert_equal(*sites)["r"] == []


def test_two_sites_delete_the_same_row_and_one_makes_it_again(world):
    a, b = world.sites(2)
    a.insert("r", [(1, "x")])
    a.sync(b)
    a.delete("r", [(1, "x")])
    b.delete("r", [(1, "x")])
    a.sync(b)
    assert assert_equal(a, b)["counted"] == []
    b.insert("r", [(1, "x")])
    a.sync(b)
    assert assert_equal(a, b)["counted"] == [("x", 1)]


def test_a_group_that_empties_and_comes_back(world):
    a, b, c = world.sites(3)
    for step in range(6):
        writer = (a, b, c)[step % 3]
        if step % 2:
            writer.delete("r", [(1, "x"), (2, "x")])
        else:
            writer.insert("r", [(1, "x"), (2, "x")])
        talk(a, b, c)
        assert assert_equal(a, b, c)["counted"] == ([] if step % 2 else [("x", 2)])


def test_the_last_writer_of_a_key_wins_everywhere(world):
    a, b, c = world.sites(3)
    a.insert("k", [(1, "first")])
    world.seconds += 1
    b.insert("k", [(1, "second")])
    world.seconds += 1
    c.insert("k", [(1, "third")])
    talk(c, b, a)
    assert assert_equal(a, b, c)["k"] == [(1, "third")]


def test_a_write_after_a_sync_is_later_even_where_the_clock_is_behind(world):
    a, b = world.site("a"), world.site("b", skew=-30)
    a.insert("k", [(1, "a")])
    a.sync(b)
    b.insert("k", [(1, "b")])
    b.delete("k", [(1,)])
    b.sync(a)
    assert assert_equal(a, b)["k"] == []
    b.insert("k", [(1, "again")])
    a.sync(b)
    assert assert_equal(a, b)["k"] == [(1, "again")]


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


def test_more_rows_than_a_page_has(world, monkeypatch):
    monkeypatch.setitem(Replica.__init__.__kwdefaults__, "page_cells", 300)
    a, b = world.sites(2)
    a.insert("r", [(n, str(n % 7)) for n in range(1000)])
    a.insert("k", [(n, "v") for n in range(300)])
    a.insert("g", [(n % 10,) for n in range(300)])
    b.sync(a)
    assert_equal(a, b)
    assert b.status()["replication"]["staged_pages"] == 0


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


def test_the_program_text_is_the_same_for_all():
    assert PROGRAM.hash


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

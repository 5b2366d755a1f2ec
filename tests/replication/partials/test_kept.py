"""What is kept for those who are fed: from when somebody asks, through collection, restores and copies."""

import shutil

import pytest
from tests.replication.partials.program import PROGRAM, VIEWS, entries, shown
from tests.replication.sites import talk

# Who feeds.


def test_nothing_is_stored_for_others_before_they_ask(a, b, reader):
    a.insert("votes", [("a", "pen", 1, None)])
    a.sync(b)
    assert a._store.engine.feeding == ()
    reader.sync(a)
    assert len(a._store.engine.feeding) == len(VIEWS)
    assert a.status()["replication"]["aggregates"]["tally"] == {"receives": False, "owners": ["a"]}
    assert reader.status()["replication"]["aggregates"]["tally"]["receives"]
    assert b._store.engine.feeding == ()
    assert "This site tells others, who have asked, what each owner's rows come to" in a.explain("tally")
    assert "tells others" not in b.explain("tally")


def test_what_is_told_is_kept_when_the_store_is_opened_again(world, tmp_path, reader):
    path = tmp_path / "a.db"
    a = world.site("a", path, program=PROGRAM)
    a.insert("votes", [("a", f"item {n}", n, None) for n in range(50)])
    reader.sync(a)
    a.close()
    a = world.site("a", path, program=PROGRAM)
    a.insert("votes", [("a", "item 7", 1, None)])
    assert reader.sync(a).received_rows < 20
    assert shown(reader) == shown(a)


def test_a_process_that_does_not_know_that_somebody_asked(world, tmp_path, reader):
    """It commits without bringing the entries along; whoever tells of them next notices."""
    path = tmp_path / "a.db"
    a = world.site("a", path, program=PROGRAM)
    other = world.site("a", path, program=PROGRAM)
    a.insert("votes", [("a", "pen", 1, None), ("a", "ink", 1, None)])
    reader.sync(a)
    other.insert("votes", [("a", "pen", 2, None)])
    other.delete("votes", [("a", "ink", 1, None)])
    a.insert("votes", [("a", "cap", 2, None)])
    reader.sync(a)
    assert shown(reader) == shown(a)


def test_hosting_more_goes_over_to_rows_and_back_to_feeding(world, tmp_path, a, reader):
    path = tmp_path / "site.db"
    site = world.site("site", path, program=PROGRAM, hosts={"tally"})
    a.insert("votes", [("a", "pen", 1, None)])
    site.sync(a)
    site.close()
    site = world.site("site", path, program=PROGRAM, hosts={"votes"})
    assert "local circuit" in site.explain("tally")
    site.sync(a)
    site.insert("votes", [("site", "pen", 4, None)])
    assert site.rows("tally") == [("pen", 2, 5, 1, 4, None)]
    reader.sync(site)
    assert reader.rows("tally") == site.rows("tally")


# Garbage.


def test_who_missed_what_was_forgotten_gets_everything(world, a, reader):
    late = world.site("late", program=PROGRAM, hosts=VIEWS)
    a.insert("votes", [("a", f"item {n}", n, None) for n in range(20)])
    for site in (reader, late):
        site.sync(a)
    a.delete("votes", [("a", f"item {n}", n, None) for n in range(15)])
    reader.sync(a)
    assert len(entries(a)) == len(entries(reader)) == 20
    a.replica.collect()
    reader.replica.collect()
    assert len(entries(a)) == len(entries(reader)) == 5
    late.sync(a)
    assert shown(late) == shown(a)
    late.sync(reader)
    assert shown(late) == shown(a)


def test_few_that_have_gone_are_kept_and_many_are_not(world, a, reader):
    a.insert("votes", [("a", f"item {n}", n, None) for n in range(1_500)])
    reader.sync(a)
    for start in (1, 501, 1_001):
        a.delete("votes", [("a", f"item {n}", n, None) for n in range(start, min(start + 500, 1_500))])
        reader.sync(a)
    for _ in range(2):
        world.seconds += 3_700
        reader.sync(a)
    assert len(entries(reader)) == 1_000
    assert shown(reader) == shown(a)


def test_nobody_waits_for_who_is_fed(world, a, b, reader):
    """Rows that are dead are forgotten though it has not heard of that."""
    a.insert("meters", [("a", 1, 1)])
    talk(a, b)
    reader.sync(a)
    a.delete("meters", [("a", 1)])
    talk(a, b)
    for _ in range(2):
        world.seconds += 3_700
        talk(a, b)
    assert a.replica.collect() + b.replica.collect() >= 0
    table = a._store.engine.relations["meters"].table.name
    assert a._store.writer.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    reader.sync(b)
    assert reader.rows("used") == []


# Incarnations.


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("through", ["owner", "holder"])
def test_an_owner_that_was_put_back_does_not_count_twice(world, tmp_path, reader, written, through):
    path, kept = tmp_path / "a.db", tmp_path / "kept.db"
    holder = world.site("holder", program=PROGRAM)
    a = world.site("a", path, program=PROGRAM)
    a.insert("votes", [("a", "pen", 1, None), ("a", "ink", 2, None)])
    holder.sync(a)
    reader.sync(a)
    a.close()
    shutil.copy(path, kept)
    a = world.site("a", path, program=PROGRAM)
    a.insert("votes", [("a", "pen", 3, None)])
    a.delete("votes", [("a", "ink", 2, None)])
    holder.sync(a)
    reader.sync(a)
    assert reader.rows("tally") == [("pen", 2, 4, 1, 3, None)]
    a.close()
    shutil.copy(kept, path)
    a = world.site("a", path, program=PROGRAM)
    if written:
        a.insert("votes", [("a", "pen", 9, None)])
    reader.sync(a if through == "owner" else holder)
    talk(a, holder)
    reader.sync(a if through == "owner" else holder)
    assert shown(reader) == shown(a) == shown(holder)
    assert ("pen", 3 if written else 2) == reader.rows("tally")[0][:2]
    a.delete("votes", [("a", "pen", 3, None)])  # which its former life wrote
    reader.sync(a)
    assert shown(reader) == shown(a)


def test_two_sites_of_one_name_are_one_owner(world, reader):
    one, two = (world.site("a", program=PROGRAM) for _ in range(2))
    one.insert("votes", [("a", "pen", 1, None)])
    two.insert("votes", [("a", "pen", 2, None), ("a", "ink", 2, None)])
    for _ in range(2):
        for site in (one, two):
            reader.sync(site)
            assert shown(reader) in (shown(one), shown(two))
    talk(one, two)
    reader.sync(one)
    assert shown(reader) == shown(one) == shown(two)
    assert reader.rows("total") == [(3, None, 2)]


def test_a_reader_that_was_put_back_reads_on(world, tmp_path, a, b):
    path, kept = tmp_path / "r.db", tmp_path / "kept.db"
    reader = world.site("reader", path, program=PROGRAM, hosts=VIEWS)
    last = world.site("last", program=PROGRAM, hosts=VIEWS)
    a.insert("votes", [("a", "pen", 1, None)])
    reader.sync(a)
    reader.close()
    shutil.copy(path, kept)
    reader = world.site("reader", path, program=PROGRAM)
    a.insert("votes", [("a", "pen", 2, None)])
    a.delete("votes", [("a", "pen", 1, None)])
    reader.sync(a)
    last.sync(reader)
    reader.close()
    shutil.copy(kept, path)
    reader = world.site("reader", path, program=PROGRAM)
    a.insert("votes", [("a", "ink", 2, None)])
    reader.sync(a)
    last.sync(reader)
    assert shown(reader) == shown(last) == shown(a)


def test_an_owner_from_the_future_is_told_when_its_time_has_come(world, reader):
    """What its rows come to depends on the clock of who counts them; all count alike once it has come."""
    ahead = world.site("ahead", program=PROGRAM, skew=600)
    behind = world.site("behind", program=PROGRAM)
    ahead.insert("meters", [("ahead", 1, 5)])
    behind.insert("meters", [("behind", 1, 7)])
    behind.sync(ahead)
    assert behind.rows("used") == [(1, 7)]
    reader.sync(behind)
    assert reader.rows("used") == [(1, 7)]
    world.seconds += 900
    behind.replica.tick()  # nothing else happens by which its owner would stand elsewhere
    reader.sync(behind)
    assert reader.rows("used") == behind.rows("used") == [(1, 12)]

"""Stores that were put back from a backup, or stayed away too long."""

import shutil
import sqlite3
from itertools import pairwise, permutations

import pytest
from tests.replication.lineages import check, copy_store, put_back, write_some
from tests.replication.sites import World, assert_equal, talk

from everview.engines.sqlite.lineage import Lineage
from everview.replication.arriving import Outcome

DAY = 24 * 3600


@pytest.fixture
def world():
    return World()


def test_reopening_keeps_the_incarnation(world, tmp_path):
    a, b = world.site("a", tmp_path / "a.db"), world.site("b")
    write_some(a, 1)
    a.sync(b)
    before = a.status()["incarnation"]
    a.close()
    a = world.site("a", tmp_path / "a.db")
    assert a.status()["incarnation"] == before
    write_some(b, 2)
    a.sync(b)
    check(assert_equal(a, b), 1, 2)


@pytest.mark.parametrize("writes", [False, True])
def test_who_has_only_collected_so_far_has_told_nobody_anything(world, tmp_path, writes):
    """Beside its file there is no word yet of what it has told: that says nothing of its age."""
    a = world.site("a", tmp_path / "a.db")
    if writes:
        write_some(a, 1)
    before = a.status()["incarnation"]
    a.replica.collect()
    a.close()
    a = world.site("a", tmp_path / "a.db")
    assert a.status()["incarnation"] == before


@pytest.mark.parametrize("heard", [False, True])
def test_a_restored_backup_gets_everything_back_and_revives_nothing(world, tmp_path, heard):
    a, b, c = world.site("a", tmp_path / "a.db"), world.site("b"), world.site("c")
    write_some(a, 1)
    write_some(a, 2)
    talk(a, b, c)
    copy_store(a, tmp_path / "backup.db")
    write_some(a, 3)
    b.delete("r", [(1, "x")])
    b.delete("g", [(1,), (1,)])
    b.delete("w", [(1,)])
    b.delete("k", [(1,)])
    talk(a, b, c)
    if heard:  # all know that all have the deletions, and forget the rows
        assert b._replica.collect() > 0
        assert c._replica.collect() > 0
        talk(a, b, c)
    a.close()
    put_back(tmp_path)
    a = world.site("a", tmp_path / "a.db")
    write_some(a, 4)
    talk(a, b, c)
    check(assert_equal(a, b, c), 2, 3, 4)


def test_a_store_that_went_back_unnoticed_is_found_out_by_its_peer(world, tmp_path):
    a, b = world.site("a", tmp_path / "a.db"), world.site("b")
    write_some(a, 1)
    a.sync(b)
    copy_store(a, tmp_path / "backup.db")
    write_some(a, 2)
    a.sync(b)
    a.close()
    for rest in ("a.db-wal", "a.db-shm", "a.db-shown"):
        (tmp_path / rest).unlink(missing_ok=True)
    (tmp_path / "a.db").write_bytes((tmp_path / "backup.db").read_bytes())
    with sqlite3.connect(tmp_path / "a.db") as raw:
        raw.execute("UPDATE everview_store SET shown = 0")
    raw.close()
    a = world.site("a", tmp_path / "a.db")
    before = a.status()["incarnation"]
    write_some(a, 3)
    talk(a, b)
    assert a.status()["incarnation"] != before
    check(assert_equal(a, b), 1, 2, 3)


def test_a_store_that_was_put_back_to_before_it_met_anyone_is_recognised_though_it_has_lost_no_commit(
    world, tmp_path
):
    a, b = world.site("a", tmp_path / "a.db"), world.site("b")
    write_some(a, 1)
    copy_store(a, tmp_path / "backup.db")
    before, head = a.status()["incarnation"], a.replica.head
    a.sync(b)
    assert a.replica.head == head
    a.close()
    put_back(tmp_path)
    a = world.site("a", tmp_path / "a.db")
    assert a.status()["incarnation"] != before
    write_some(a, 2)
    talk(a, b)
    check(assert_equal(a, b), 1, 2)


def test_a_store_that_was_put_back_to_before_what_only_a_copy_has_is_recognised(world, tmp_path):
    """It would give the numbers of those commits to others, and whoever had met the copy would lack these."""
    path, copied, b = tmp_path / "a.db", tmp_path / "copy.db", world.site("b")
    a = world.site("a", path)
    write_some(a, 1)
    a.sync(b)
    a.close()
    backup = path.read_bytes()
    a = world.site("a", path)
    before = a.status()["incarnation"]
    write_some(a, 2)
    a.close()
    shutil.copy(path, copied)
    path.write_bytes(backup)
    a, copy = world.site("a", path), world.site("copy", copied)
    assert a.status()["incarnation"] != before
    write_some(a, 3)
    copy.sync(b)
    talk(a, b, copy)
    check(assert_equal(a, b, copy), 1, 2, 3)


def test_who_was_put_back_to_where_it_was_goes_on(world, tmp_path):
    path = tmp_path / "a.db"
    a = world.site("a", path)
    write_some(a, 1)
    a.sync(world.site("b"))
    write_some(a, 2)
    before = a.status()["incarnation"]
    a.close()
    path.write_bytes(path.read_bytes())
    assert world.site("a", path).status()["incarnation"] == before


def test_a_note_that_cannot_be_written_keeps_no_store_open(world, tmp_path):
    path = tmp_path / "a.db"
    a = world.site("a", path)
    a.sync(world.site("b"))
    side = Lineage(str(path), in_memory=False).side_file
    before = side.read_bytes()
    side.with_name(f"{side.name}.new").mkdir()  # where the note is written first
    write_some(a, 1)
    a.close()
    assert side.read_bytes() == before
    assert world.site("a", path).rows("r") == [(1, "x")]


def test_a_store_that_was_put_back_to_before_it_told_its_last_commit_is_recognised(world, tmp_path):
    """It has lost nothing but the tag that its peer knows: it would take itself for rewound when they meet,
    and tell again what it has told others since.
    """
    path, b, c = tmp_path / "a.db", world.site("b"), world.site("c")
    a = world.site("a", path)
    a.sync(b)
    write_some(a, 1)
    copy_store(a, tmp_path / "backup.db")
    before, head = a.status()["incarnation"], a.replica.head
    b.sync(a)
    assert a.replica.head == head
    a.close()
    put_back(tmp_path)
    a = world.site("a", path)
    assert a.status()["incarnation"] != before
    a.delete("g", [(1,)])
    talk(b, a, c)
    assert assert_equal(a, b, c)["g"] == [(1,)]


def test_a_store_that_was_put_back_with_what_lies_beside_it_is_known_when_it_is_put_back_alone(
    world, tmp_path
):
    """The first time a peer finds out. The second time the store does: who has only heard of it could not."""
    path, b, c = tmp_path / "a.db", world.site("b"), world.site("c")
    world.site("a", path).close()
    backup = path.read_bytes()
    a = world.site("a", path)
    first = a.status()["incarnation"]
    write_some(a, 1)
    a.sync(b)
    a.close()
    path.write_bytes(backup)
    Lineage(str(path), in_memory=False).side_file.unlink()
    a = world.site("a", path)
    b.sync(a)
    a.close()
    b.sync(c)
    path.write_bytes(backup)
    a = world.site("a", path)
    assert a.status()["incarnation"] != first
    write_some(a, 2)
    a.sync(c)
    talk(a, b, c)
    check(assert_equal(a, b, c), 1, 2)


def test_an_expired_member_returns_with_its_own_writes(world):
    a, b, c = world.sites(3)
    write_some(a, 1)
    write_some(a, 2)
    talk(a, b, c)
    write_some(c, 3)
    world.seconds += 91 * DAY
    a.delete("r", [(1, "x")])
    a.delete("g", [(1,), (1,)])
    a.delete("w", [(1,)])
    a.delete("k", [(1,)])
    talk(a, b)
    assert a._replica.collect() > 0
    assert b._replica.collect() > 0
    talk(a, b)
    old = c.status()["incarnation"]
    talk(a, b, c)
    assert c.status()["incarnation"] != old
    check(assert_equal(a, b, c), 2, 3)


def test_nothing_is_forgotten_before_everybody_has_it(world):
    a, b, c = world.sites(3)
    write_some(a, 1)
    talk(a, b, c)
    a.delete("r", [(1, "x")])
    a.sync(b)
    a.sync(b)  # now a knows that b has it
    assert a._replica.collect() == 0
    assert a.status()["replication"]["held"]["r"] == {"dead_rows": 1, "waiting_for": ["s2"]}
    talk(a, b, c)
    assert a._replica.collect() > 0
    assert "r" not in a.status()["replication"]["held"]


def test_a_tuple_that_was_forgotten_starts_above_the_floor(world):
    a, b, c = world.sites(3)
    write_some(a, 1)
    talk(a, b, c)
    b.delete("r", [(1, "x")])
    talk(a, b, c)
    assert b._replica.collect() > 0
    late = world.site("late")
    late.sync(b)
    late.insert("r", [(1, "x")])
    talk(a, b, c, late)
    assert assert_equal(a, b, c, late)["r"] == [(1, "x")]


def test_garbage_rests_before_it_is_forgotten(world):
    a, b = world.sites(2)
    write_some(a, 1)
    talk(a, b)
    b.delete("r", [(1, "x")])
    talk(a, b)
    assert b.status()["replication"]["held"]["r"]["dead_rows"] == 1
    for _ in range(3):
        world.seconds += 3601
        talk(a, b, rounds=2)
        a.sync(b)
        b.sync(a)
    assert "r" not in b.status()["replication"]["held"]


def test_two_groups_that_have_forgotten_rows_meet(world):
    a, b, c, d = world.sites(4)
    for one, other in ((a, b), (c, d)):
        write_some(one, 1)
        one.sync(other)
        other.delete("r", [(1, "x")])
        one.sync(other)
        other.sync(one)
        one.sync(other)
    assert a._replica.collect() > 0
    write_some(c, 2)
    c.insert("r", [(1, "x")])
    d.sync(a)
    talk(a, b, c, d, rounds=6)
    found = assert_equal(a, b, c, d)
    assert found["r"] == [(1, "x"), (2, "x")]
    assert len({site.status()["replication"]["groups"]["r"] for site in (a, b, c, d)}) == 1


def test_a_site_that_wrote_before_it_met_anyone(world):
    a, b, c = world.sites(3)
    write_some(a, 1)
    write_some(c, 2)
    a.sync(b)
    c.sync(b)
    talk(a, b, c)
    check(assert_equal(a, b, c), 1, 2)


def test_a_batch_of_another_past_is_not_read_on_from(world, tmp_path, monkeypatch):
    """A store goes back unnoticed, and writes past where it was read: the tag there tells the reader."""
    a, b = (world.site(name, tmp_path / f"{name}.db") for name in "ab")
    talk(a, b)
    a.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "before.db")
    a = world.site("a", tmp_path / "a.db")
    a.insert("r", [(1, "lost")])
    talk(a, b)
    a.close()

    monkeypatch.setattr(Lineage, "look", lambda self, connection: None)
    shutil.copy(tmp_path / "before.db", tmp_path / "a.db")
    a = world.site("a", tmp_path / "a.db")
    for number in range(2, 5):  # one of these commits has the number that b has read up to
        a.insert("r", [(number, "kept")])
    cursor = b.replica.cursor_on(a.replica.incarnation)
    assert 0 < cursor < a.replica.head
    assert b.replica.take(list(a.replica.batch(0))).outcome is Outcome.GAP
    assert b.rows("r") == [(1, "lost")]
    talk(a, b)
    assert a.rows("r") == b.rows("r") == [(1, "lost"), (2, "kept"), (3, "kept"), (4, "kept")]


@pytest.mark.parametrize("order", ["".join(order) for order in permutations("abc")])
@pytest.mark.parametrize("is_dead", [False, True], ids=["alive", "dead"])
def test_what_one_of_stores_that_were_all_put_back_has_forgotten_stays_dead(world, tmp_path, order, is_dead):
    """b has the row as it first was, alive or dead, c as it lived once more; a has forgotten it."""
    sites = {name: world.site(name, tmp_path / f"{name}.db") for name in "abc"}
    a, row = sites["a"], [(1, "x")]
    first = [a.insert, a.delete][: 1 + is_dead]
    for saved, writes in ("b", first), ("c", [a.delete, a.insert]), ("a", [a.delete]):
        for write in writes:
            write("r", row)
        for other in "bcbc":
            a.sync(sites[other])
        if saved == "a":
            assert a.replica.collect() == 1
        copy_store(sites[saved], tmp_path / f"{saved}-backup.db")
    for name, site in sites.items():
        site.close()
        for file in tmp_path.glob(f"{name}.db*"):
            file.unlink()
    sites = {name: world.site(name, tmp_path / f"{name}-backup.db") for name in "abc"}
    for dialling, dialled in [*pairwise(order), *2 * list(permutations("abc", 2))]:
        sites[dialling].sync(sites[dialled])
    assert assert_equal(*sites.values())["r"] == []

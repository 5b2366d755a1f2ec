"""Stores that are copied or put back: nothing is lost, nothing deleted comes back, nothing doubles."""

import shutil
from pathlib import Path

import pytest
from tests.engines.sqlite.windows.worlds import World, check_digests, opened_as

from everview import Program
from everview.engines.sqlite.rows.lineage import Lineage
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport

PROGRAM = Program.parse("""
    CREATE TABLE r (id BIGINT NOT NULL);
    CREATE TABLE k (id BIGINT PRIMARY KEY);
    CREATE TABLE g (id BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE w (id BIGINT NOT NULL) WITH (semantics = 'add_wins');
""")

RELATIONS = ("r", "k", "g", "w")


@pytest.fixture
def world():
    return World(1)


@pytest.fixture
def open_site(world, tmp_path):
    def opened(name, path=None):
        return opened_as(name, tmp_path / f"{path or name}.db", program=PROGRAM, world=world)

    return opened


def write(site, *ids):
    for relation in RELATIONS:
        site.insert(relation, [(one,) for one in ids])


def remove(site, *ids):
    for relation in RELATIONS:
        site.delete(relation, [(one,) for one in ids])


def held(*sites):
    """What all of them hold, and hold alike."""
    found = [{relation: [one for (one,) in site.rows(relation)] for relation in RELATIONS} for site in sites]
    assert all(one == found[0] for one in found)
    assert all(rows == found[0]["r"] for rows in found[0].values())
    return found[0]["r"]


def read_only(reader, site):
    """A sync of a site that may write nothing."""
    return MemoryTransport(site.replica, site.name, Rights(writes=frozenset())).sync(reader.replica)


def who(site):
    return site.replica.incarnation


def put_back(old, new, *, beside=False):
    for end in ("", "-shown") if beside else ("",):
        shutil.copyfile(f"{old}{end}", f"{new}{end}")


def test_a_store_that_is_opened_again_is_who_it_was(open_site):
    a, b = open_site("a"), open_site("b")
    write(a, 1)
    a.sync(b)
    write(a, 2)
    before = who(a)
    a.close()
    with open_site("a") as a:
        assert who(a) == before


def test_a_store_that_was_moved_with_what_lies_beside_it_is_who_it_was(open_site, tmp_path):
    a, b = open_site("a"), open_site("b")
    write(a, 1)
    a.sync(b)
    before = who(a)
    a.close()
    for end in ("", "-shown"):
        Path(f"{tmp_path / 'a.db'}{end}").rename(f"{tmp_path / 'moved.db'}{end}")
    with open_site("a", "moved") as a:
        assert who(a) == before


def test_a_store_put_back_twice_gets_everything_back_and_revives_nothing(open_site, tmp_path):
    a, b = open_site("a"), open_site("b")
    write(a, 1, 2)
    a.sync(b)
    a.close()
    put_back(tmp_path / "a.db", tmp_path / "kept")
    seen = set()
    for number in (3, 4):
        a = open_site("a")
        seen.add(who(a))
        write(a, number)
        a.sync(b)
        a.close()
        put_back(tmp_path / "kept", tmp_path / "a.db")
    remove(b, 1)
    a = open_site("a")
    write(a, 5)
    a.sync(b)
    assert len({*seen, who(a)}) == 3
    assert held(a, b) == [2, 3, 4, 5]
    check_digests(a, b)


@pytest.mark.parametrize("opened", [1, 2])
@pytest.mark.parametrize("writes", [1, 5])
@pytest.mark.parametrize("dials", [False, True])
def test_who_goes_back_unnoticed_is_found_out_and_keeps_all_it_wrote(
    open_site, tmp_path, opened, writes, dials
):
    """It has written fewer rows than it lost, or more; in one process, or in two."""
    a, b, c = open_site("a"), open_site("b"), open_site("c")
    write(a, 1, 2)
    a.sync(b)
    a.close()
    put_back(tmp_path / "a.db", tmp_path / "kept", beside=True)
    a = open_site("a")
    write(a, 3, 4)
    remove(a, 1)
    a.sync(b)
    b.sync(c)
    a.close()
    put_back(tmp_path / "kept", tmp_path / "a.db", beside=True)
    for number in range(opened):
        a = open_site("a")
        before = who(a)
        for one in range(writes):
            write(a, 10 * (number + 1) + one)
        write(a, 99)
        remove(a, 99)  # under numbers that others have for other rows
        if number + 1 < opened:
            a.close()
    one, other = (a, b) if dials else (b, a)
    one.sync(other)
    assert who(a) != before
    expected = sorted([2, 3, 4, *(10 * (n + 1) + one for n in range(opened) for one in range(writes))])
    assert held(a, b) == expected
    a.sync(c)
    b.sync(c)
    assert held(a, b, c) == expected
    check_digests(a, b, c)


def test_a_reader_that_has_seen_a_later_state_is_told_of_and_changes_nothing(open_site, tmp_path):
    a, reader = open_site("a"), open_site("reader")
    write(a, 1)
    read_only(reader, a)
    a.close()
    put_back(tmp_path / "a.db", tmp_path / "kept", beside=True)
    a = open_site("a")
    write(a, 2)
    read_only(reader, a)
    a.close()
    put_back(tmp_path / "kept", tmp_path / "a.db", beside=True)
    a = open_site("a")
    before, head = who(a), a.replica.head
    write(a, 3)
    for _ in range(2):
        read_only(reader, a)
    assert (who(a), a.replica.head) == (before, head + len(RELATIONS))
    assert a.status()["replication"]["readers_ahead"] == ["reader"]
    assert {one["relation"] for one in reader.status()["replication"]["alarms"]} == set(RELATIONS)


def test_who_went_back_unnoticed_and_is_put_back_again_is_noticed(open_site, tmp_path):
    """The side file knows who was found out."""
    open_site("a").close()
    put_back(tmp_path / "a.db", tmp_path / "kept")
    a, b = open_site("a"), open_site("b")
    write(a, 1)
    a.sync(b)
    a.close()
    put_back(tmp_path / "kept", tmp_path / "a.db")
    Lineage(str(tmp_path / "a.db"), in_memory=False).side_file.unlink()
    a = open_site("a")
    first = who(a)
    a.sync(b)
    assert who(a) != first
    a.close()
    put_back(tmp_path / "kept", tmp_path / "a.db")
    a = open_site("a")
    assert who(a) != first
    write(a, 2)
    a.sync(b)
    assert held(a, b) == [1, 2]


def test_what_nobody_can_find_out_is_an_alarm_and_repair_heals_it(open_site, tmp_path):
    """a wrote as much as it forgot, and meets c, which has it all from b."""
    a, b, c = open_site("a"), open_site("b"), open_site("c")
    write(a, 1)
    a.sync(b)
    a.close()
    put_back(tmp_path / "a.db", tmp_path / "kept", beside=True)
    a = open_site("a")
    write(a, 2)
    a.sync(b)
    b.sync(c)
    a.close()
    put_back(tmp_path / "kept", tmp_path / "a.db", beside=True)
    a = open_site("a")
    write(a, 3)
    write(b, 4)
    b.sync(c)
    a.sync(c)
    a.sync(c)
    alarms = a.status()["replication"]["alarms"] + c.status()["replication"]["alarms"]
    assert {one["relation"] for one in alarms} == set(RELATIONS)
    with a.replica.repairing(RELATIONS):
        a.sync(c)
    assert held(a, b, c) == [1, 2, 4]


def test_a_note_that_cannot_be_written_keeps_no_store_open(open_site, tmp_path):
    a, b = open_site("a"), open_site("b")
    a.sync(b)
    side = Lineage(str(tmp_path / "a.db"), in_memory=False).side_file
    side.with_name(f"{side.name}.new").mkdir()
    write(a, 1)
    with pytest.raises(OSError, match=r"a\.db-shown"):
        a.sync(b)
    a.close()
    with open_site("a") as a:
        assert held(a) == [1]

"""A row that no site can have written, or that its writer may not write, is dropped; the rest goes in."""

import shutil

import pytest
from tests.replication.sites import PROGRAM, World
from tests.replication.test_rights import OWNED

from everview.engines.sqlite.stamps import GREATEST
from everview.language.limits import COPIES, LONGEST
from everview.replication.admitting import admitted
from everview.replication.messages import PROTOCOL, Message, Section


def admit(program, stream, rows):
    """Return the rows that are admitted of some from `them`, and how many were dropped."""
    site = World().site("us", program=program)
    knowledge, part = site.replica._knowledge, site._store.engine.streams[stream].parts[0]
    message = Message(PROTOCOL, program.hash, ["1", "2"], ["them", "others"])
    knowledge.state.names.update(zip(message.sites, message.names, strict=True))
    with site._store.writing() as connection:
        knowledge.intern(connection, message.sites)
    section = Section(stream, 0, len(rows), [list(column) for column in zip(*rows, strict=True)])
    columns = admitted(knowledge, message, section, part)
    return list(zip(*columns, strict=True)), knowledge.state.dropped


LONG = 2**63 - 1


@pytest.mark.parametrize(
    ("stream", "good", "bad"),
    [
        ("r", [(1, "x", 1), (2, "x", 2), (3, None, LONGEST)], [(4, "x", 0), (5, "x", LONGEST + 1)]),
        ("k", [(1, "x", 1, 5), (2, None, 0, 0), (3, "y", 2, GREATEST)], [(4, "x", 3, 5), (5, "x", 1, LONG)]),
        ("g", [(1, COPIES), (2, -COPIES), (3, 0)], [(4, COPIES + 1), (5, -COPIES - 1)]),
        ("w", [(1, 1, 0, 7), (2, 2, 0, 7)], [(3, 0, 0, 7), (4, 3, 0, 7)]),
    ],
)
def test_impossible_values(stream, good, bad):
    rows = [(*row, 0, 9) for row in (*good, *bad)]
    kept, dropped = admit(PROGRAM, stream, rows)
    assert [row[0] for row in kept] == [row[0] for row in good]
    assert dropped == len(bad)
    assert admit(PROGRAM, stream, rows[: len(good)])[1] == 0


def test_rows_of_others_and_impossible_ones_together():
    rows = [
        ("them", 1, 1, 0, 9),
        ("others", 2, 1, 0, 9),
        ("them", 3, LONG, 0, 9),
        ("others", 4, 1, 1, 9),
        ("others", 5, 0, 0, 9),
    ]
    kept, dropped = admit(OWNED, "s", rows)
    assert [row[1] for row in kept] == [1, 4]
    assert dropped == 3


def test_a_row_of_nobody_is_nobodys():
    """Only a deleted key names no owner, where the owner is not part of the key."""
    program = type(PROGRAM).parse("CREATE TABLE s (site TEXT, a BIGINT) WITH (owner = 'site');")
    assert admit(program, "s", [(None, 1, 1, 0, 9), ("them", 2, 1, 0, 9)])[1] == 1


def test_who_mentions_a_site_and_does_not_know_its_name_does_not_make_others_forget_it():
    """Its rows would be taken for another's, and dropped."""
    knowledge = World().site("us").replica._knowledge
    knowledge.learn_names(["1", "2"], ["them", ""])
    knowledge.learn_names(["1", "2"], ["", "others"])
    assert (knowledge.state.names["1"], knowledge.state.names["2"]) == ("them", "others")


def test_a_copy_that_goes_by_another_name_brings_the_rows_of_its_original(tmp_path):
    world = World()
    reader, other = (world.site(name, program=OWNED) for name in ("reader", "other"))
    original = world.site("original", tmp_path / "a.db", program=OWNED)
    original.insert("s", [("original", 1)])
    other.sync(original)
    original.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "b.db")
    copy = world.site("copy", tmp_path / "b.db", program=OWNED)
    copy.insert("s", [("copy", 2)])
    copy.sync(other)
    reader.sync(copy)
    assert reader.rows("s") == [("copy", 2), ("original", 1)]


def test_blobs_that_look_like_ids_stay_blobs():
    program = type(PROGRAM).parse("CREATE TABLE b (x BLOB NOT NULL);")
    with World().site("one", program=program) as one, World(1).site("two", program=program) as two:
        one.insert("b", [(bytes([number] * 16),) for number in range(9)])
        two.sync(one)
        assert two.rows("b") == one.rows("b")

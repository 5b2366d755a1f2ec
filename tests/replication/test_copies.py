"""Stores that were copied, and both are used: before they met anybody, or later."""

import shutil

import pytest
from tests.replication.lineages import check, copy_store, write_some
from tests.replication.sites import World, assert_equal, talk

from everview.replication.wire import encode


@pytest.fixture
def world():
    return World()


@pytest.mark.parametrize("first", ["t", "m", "copy"])
@pytest.mark.parametrize("smaller", [False, True])
def test_a_copy_of_a_store_that_never_spoke_does_not_bring_back_what_is_deleted(
    world, tmp_path, first, smaller
):
    """The copy goes to m's group; the original deletes, founds alone, forgets, and then meets someone."""
    sites = {name: world.site(name) for name in "mt"}
    original = world.site("o", tmp_path / "o.db")
    write_some(original, 1)
    write_some(original, 2)
    copy_store(original, tmp_path / "copy.db")
    sites["copy"] = world.site("copy", tmp_path / "copy.db")
    ends = [lambda: original.replica.batch(0), lambda: talk(sites["m"], sites["t"])]
    for end in ends if smaller else reversed(ends):
        list(end() or ())
    sites["m"].sync(sites["copy"])
    for name, rows in (("r", [(1, "x")]), ("g", [(1,), (1,)]), ("w", [(1,)]), ("k", [(1, "o")])):
        original.delete(name, rows)
    write_some(sites["copy"], 3)
    list(original.replica.batch(0))
    assert original.replica.collect() > 0
    original.sync(sites[first])
    talk(original, *sites.values(), rounds=6)
    check(assert_equal(original, *sites.values()), 2, 3)
    for site in (original, *sites.values()):
        site.replica.collect()
    talk(original, *sites.values(), rounds=4)
    check(assert_equal(original, *sites.values()), 2, 3)


@pytest.mark.parametrize("smaller", [False, True])
@pytest.mark.parametrize("first", ["o", "c"])
def test_of_two_that_have_rows_of_each_other_the_one_that_has_forgotten_stays(
    world, tmp_path, first, smaller
):
    """A copy is copied, too: the original goes to that one's group, which knows of the first, as that does of
    the original. Rows of a bag whose deletion was forgotten would come back from there.
    """
    sites = {"o": world.site("o", tmp_path / "o.db")}
    write_some(sites["o"], 1)
    write_some(sites["o"], 2)
    for name, source in ("co", "dc") if smaller else ("do", "cd"):
        copy_store(sites[source], tmp_path / f"{name}.db")
        sites[name] = world.site(name, tmp_path / f"{name}.db")
    o, c, d = (sites[name] for name in "ocd")
    o.sync(d)
    list(c.replica.batch(0))  # it founds alone
    for name, rows in (("r", [(1, "x")]), ("g", [(1,), (1,)]), ("w", [(1,)]), ("k", [(1, "o")])):
        d.delete(name, rows)
    talk(o, d)
    assert o.replica.collect() > 0
    write_some(c, 3)
    (o if first == "o" else c).sync(c if first == "o" else o)
    talk(o, c, d, rounds=6)
    check(assert_equal(o, c, d), 2, 3)


@pytest.mark.parametrize("early", [False, True])
def test_what_a_store_said_before_it_joined_does_not_make_its_copys_rows_known(world, tmp_path, early):
    """It asks, and the answer is lost: of b before it wrote, or of its copy, which is in b's group. Then it
    goes its own way, deletes a row and forgets it, with nobody there to ask.
    """
    b, original = world.site("b"), world.site("o", tmp_path / "o.db")
    list(b.replica.batch(0))  # it founds, and its group has the smaller name
    if early:
        b.replica.answer(encode(original.replica.ask("b")))
    write_some(original, 1)
    write_some(original, 2)
    copy_store(original, tmp_path / "copy.db")
    copy = world.site("copy", tmp_path / "copy.db")
    talk(copy, b)
    if not early:
        copy.replica.answer(encode(original.replica.ask("copy")))
        talk(copy, b)
    for name, rows in (("r", [(1, "x")]), ("g", [(1,), (1,)]), ("w", [(1,)]), ("k", [(1, "o")])):
        original.delete(name, rows)
    list(original.replica.batch(0))
    assert original.replica.collect() > 0
    talk(original, b, copy, rounds=6)
    check(assert_equal(original, b, copy), 2)


@pytest.mark.parametrize("page_rows", [1, 20_000])
def test_who_joins_anew_keeps_what_it_was_not_sent_as_a_member(world, tmp_path, page_rows):
    """m has rows of o by a copy, and reads o for the first time as o joins its group: it is not sent what it
    has, and hears that it has to join anew.
    """
    m, t, original = world.site("m"), world.site("t"), world.site("o", tmp_path / "o.db")
    talk(m, t)
    write_some(original, 1)
    copy_store(original, tmp_path / "copy.db")
    copy = world.site("copy", tmp_path / "copy.db")
    m.sync(copy)
    list(original.replica.batch(0))  # it founds alone
    original.replica.answer(encode(t.replica.ask("o")))  # and leaves, but what it answers is lost
    write_some(original, 2)
    for site in (m, t, original, copy):
        site.replica._page_rows = page_rows
    original.sync(m)
    check(assert_equal(m, original), 1, 2)
    talk(m, t, original, copy, rounds=6)
    check(assert_equal(m, t, original, copy), 1, 2)


@pytest.mark.parametrize("spoke", [False, True])
def test_a_store_copied_and_both_copies_used(world, tmp_path, spoke):
    a, b = world.site("a", tmp_path / "a.db"), world.site("b")
    write_some(a, 1)
    if spoke:
        a.sync(b)
    a.close()
    shutil.copy(tmp_path / "a.db", tmp_path / "copy.db")
    a, copy = world.site("a", tmp_path / "a.db"), world.site("copy", tmp_path / "copy.db")
    assert a.status()["incarnation"] != copy.status()["incarnation"]
    write_some(a, 2)
    write_some(copy, 3)
    a.sync(b)
    copy.sync(b)
    talk(a, b, copy)
    check(assert_equal(a, b, copy), 1, 2, 3)

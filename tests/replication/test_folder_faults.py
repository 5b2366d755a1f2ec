"""A folder that loses, doubles and tears files, with real sites: nothing is lost, nothing comes twice."""

import random
import shutil
import sqlite3

import pytest
from tests.replication.sites import PROGRAM, World, assert_equal, contents

from everview.errors import WireError

RELATIONS = {"r", "k", "g", "w"}


@pytest.fixture
def world():
    return World()


@pytest.fixture
def stick(tmp_path):
    return tmp_path / "stick"


def write(site, number):
    with site.transaction():
        site.insert("r", [(number, "x")])
        site.insert("k", [(number, site.name)])
        site.insert("g", [(number,), (number,)])
        site.insert("w", [(number,)])


def erase(site, number):
    with site.transaction():
        site.delete("r", [(number, "x")])
        site.delete("k", [(number,)])
        site.delete("g", [(number,), (number,)])
        site.delete("w", [(number,)])


def numbers(site):
    """What is there, after a look that all kinds of relation agree on it."""
    r, k, g, w = (site.rows(name) for name in ("r", "k", "g", "w"))
    there = [a for a, _ in r]
    assert [a for a, _ in k] == [a for (a,) in w] == there
    assert g == [(a,) for a in there for _ in range(2)]
    return there


def visit(folder, *sites):
    return [site.sync(folder) for site in sites]


def cuts(folder, site):
    return sorted((folder / site.status()["incarnation"]).glob("*.cut"))


def doubled(path, later):
    """The name of a copy that pretends to have been written later."""
    serial, _, rest = path.name.partition("-")
    return path.with_name(f"{int(serial) + later:08d}-{rest}")


def members(world, stick, count):
    """Sites that have met in the folder."""
    sites = world.sites(count)
    write(sites[0], 0)
    for _ in range(3):
        visit(stick, *sites)
    assert_equal(*sites)
    return sites


def test_a_stick_is_carried_to_and_fro(world, stick):
    a, b = world.sites(2)
    write(a, 1)
    write(b, 2)
    visit(stick, a, b, a)
    assert numbers(a) == numbers(b) == [1, 2]
    erase(a, 2)
    write(b, 3)
    visit(stick, b, a, b)
    assert numbers(a) == numbers(b) == [1, 3]
    assert_equal(a, b)


def test_done_again_nothing_moves(world, stick):
    a, b = members(world, stick, 2)
    before = [site.status()["commits"] for site in (a, b)]
    for report in visit(stick, a, b, a, b):
        assert (report.sent_rows, report.received_rows, report.skipped_files) == (0, 0, 0)
    assert [site.status()["commits"] for site in (a, b)] == before


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_lost_file_among_others(world, stick, which):
    a, b = members(world, stick, 2)
    old = set(cuts(stick, a))
    for number in (1, 2, 3):
        (erase if number == 3 else write)(a, {3: 1}.get(number, number))
        visit(stick, a)
    new = [path for path in cuts(stick, a) if path not in old]
    new[min(which, len(new) - 1)].unlink()
    visit(stick, b)
    assert numbers(b) in ([0], [0, 1], [0, 2], [0, 1, 2])
    visit(stick, a, b)
    assert numbers(a) == numbers(b) == [0, 2]
    assert_equal(a, b)


def test_all_files_of_a_site_are_lost(world, stick):
    a, b, c = members(world, stick, 3)
    write(a, 1)
    visit(stick, a)
    shutil.rmtree(stick / a.status()["incarnation"])
    visit(stick, b, a, b, c)
    assert numbers(a) == numbers(b) == numbers(c) == [0, 1]


def test_the_whole_folder_is_lost(world, stick):
    a, b = members(world, stick, 2)
    shutil.rmtree(stick)
    write(a, 1)
    erase(b, 0)
    visit(stick, b, a, b, a)
    assert numbers(a) == numbers(b) == [1]


def test_a_doubled_file(world, stick):
    """A copy under a later number, and all of the site's files once more under another name."""
    a, b = members(world, stick, 2)
    write(a, 1)
    visit(stick, a)
    last = cuts(stick, a)[-1]
    shutil.copy(last, doubled(last, 1))
    shutil.copytree(last.parent, stick / "copied")
    visit(stick, b)
    visit(stick, b, a, b)
    assert numbers(a) == numbers(b) == [0, 1]
    assert_equal(a, b)


def test_an_old_file_that_comes_back(world, stick):
    """The deletion is known everywhere, and the rows are forgotten, when the old insertion turns up again."""
    a, b = members(world, stick, 2)
    write(a, 1)
    visit(stick, a)
    kept = {path: path.read_bytes() for path in cuts(stick, a)}
    visit(stick, b, a)
    erase(b, 1)
    for _ in range(3):
        world.seconds += 4000
        visit(stick, b, a)
    a._replica.collect()
    b._replica.collect()
    for path, data in kept.items():
        path.write_bytes(data)
    for _ in range(3):
        visit(stick, b, a)
        assert numbers(a) == numbers(b) == [0]


@pytest.mark.parametrize("how", ["cut off", "changed", "emptied"])
@pytest.mark.parametrize("joined", [False, True])
def test_a_torn_file_is_skipped_and_written_again(world, stick, how, joined):
    a, b = members(world, stick, 2) if joined else world.sites(2)
    write(a, 1)
    visit(stick, a)
    before = contents(b)
    path = cuts(stick, a)[-1]
    data = bytearray(path.read_bytes())
    if how == "changed":
        data[len(data) // 2] ^= 1
    path.write_bytes({"cut off": data[: len(data) // 2], "emptied": b""}.get(how, data))
    (report,) = visit(stick, b)
    assert report.skipped_files == 1
    assert contents(b) == before
    visit(stick, a, b, a, b)
    assert numbers(a) == numbers(b)
    assert 1 in numbers(b)
    assert visit(stick, b)[0].skipped_files == 0


def test_a_relation_hosted_late_over_a_folder(world, stick, tmp_path):
    a = world.site("a")
    b = world.site("b", tmp_path / "b.db", hosts={"r"})
    write(a, 1)
    visit(stick, a, b, a, b)
    write(a, 2)
    visit(stick, a, b)
    assert b.rows("r") == [(1, "x"), (2, "x")]
    b.close()
    b = world.site("b", tmp_path / "b.db", hosts=RELATIONS | {"joined"})
    for _ in range(2):
        visit(stick, b, a)
    visit(stick, b)
    assert numbers(b) == [1, 2]
    assert b.rows("joined") == a.rows("joined") != []
    write(b, 3)
    visit(stick, b, a)
    assert numbers(a) == [1, 2, 3]


def test_a_view_hosted_without_its_inputs_over_a_folder(world, stick):
    a, b = world.sites(2)
    viewer = world.site("viewer", hosts={"joined", "counted", "many"})
    write(a, 1)
    visit(stick, a, b, viewer)
    write(b, 2)
    erase(a, 1)
    for _ in range(3):
        visit(stick, b, a, viewer)
    for name in ("joined", "counted", "many"):
        assert viewer.rows(name) == a.rows(name) == b.rows(name) != []
    report = visit(stick, viewer)[0]
    assert (report.sent_rows, report.received_rows) == (0, 0)


def test_many_sites_over_one_folder(world, stick):
    sites = world.sites(8)
    for number, site in enumerate(sites):
        write(site, number)
        visit(stick, site)
    for _ in range(3):
        visit(stick, *sites)
    assert numbers(sites[0]) == list(range(8))
    assert_equal(*sites)
    erase(sites[7], 0)
    visit(stick, sites[7], *sites)
    assert numbers(sites[0]) == list(range(1, 8))
    assert_equal(*sites)


def test_who_comes_over_from_another_group_is_listed_though_nothing_is_new(world, stick):
    """The first file was torn, so d founds a group of its own, in which b and c wait: they come after it."""
    a, b, c, d = world.sites(4)
    for site in (a, d):
        site.insert("r", [(2, "x")])
    visit(stick, a)
    (path,) = cuts(stick, a)
    path.write_bytes(path.read_bytes()[:100])
    a.insert("r", [(0, "x")])
    visit(stick, d, c, b)
    for _ in range(5):
        visit(stick, a, b, c, d)
    assert assert_equal(a, b, c, d)["r"] == [(0, "x"), (2, "x")]


def test_a_file_that_was_refused_and_lost_is_not_taken_for_the_next(world, stick):
    """c waits to be listed when the others see its file; what it writes later is another."""
    a, b, c, d = world.sites(4)
    d.insert("r", [(2, "x")])
    visit(stick, d, a, d)
    a.insert("r", [(1, "x")])
    visit(stick, a, c, b, d, b, b)
    c.insert("r", [(0, "x")])
    visit(stick, a)
    (path,) = cuts(stick, c)
    path.unlink()
    for _ in range(5):
        visit(stick, a, b, c, d)
    assert assert_equal(a, b, c, d)["r"] == [(0, "x"), (1, "x"), (2, "x")]


def test_a_view_that_waits_follows_its_sponsor_into_another_group(world, stick):
    """The view's group is those of its inputs, and each of them is absorbed by a smaller one."""
    a, b = world.sites(2)
    viewer = world.site("viewer", hosts={"r", "joined", "many"})
    write(b, 1)
    visit(stick, viewer, b, viewer)
    write(a, 2)
    cuts(stick, b)[0].unlink()
    for _ in range(5):
        visit(stick, a, b, viewer)
    for name in ("r", "joined", "many"):
        assert viewer.rows(name) == a.rows(name) == b.rows(name)
    assert a.rows("joined") == [(1, "s1"), (2, "s0")]


@pytest.mark.parametrize("seed", range(12))
def test_at_random_with_lost_doubled_and_torn_files(seed, tmp_path):
    world, rng, stick = World(seed), random.Random(seed), tmp_path / "stick"
    hosts = [None, None, None, {"r", "joined", "many"}]
    sites = [world.site(f"s{n}", hosts=h) for n, h in enumerate(hosts)]
    trouble = 0
    for _ in range(40):
        world.seconds += rng.choice([1, 600])
        site = rng.choice(sites)
        roll = rng.random()
        if roll < 0.4 and site is not sites[3]:
            rng.choice([write, write, erase])(site, rng.randrange(4))
        elif roll < 0.5 and stick.exists():
            trouble += spoil(sorted(stick.rglob("*.cut")), rng)
        else:
            site.sync(stick)
    assert trouble
    for _ in range(6):
        visit(stick, *sites)
    first = assert_equal(*sites[:3])
    assert contents(sites[3], hosts[3]) == {name: first[name] for name in hosts[3]}
    assert {a for a, _ in first["r"]} <= set(range(4))


def spoil(paths, rng):
    if not paths:
        return 0
    path = rng.choice(paths)
    match rng.randrange(3):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(path.read_bytes()[: rng.randrange(200)])
        case 2:
            shutil.copy(path, doubled(path, rng.randrange(1, 5)))
    return 1


def test_the_program_has_every_kind_of_relation():
    assert len({relation.semantics for relation in PROGRAM.relations.values()}) == 4


def test_pages_that_make_no_cut_are_refused():
    a, b = World().sites(2)
    a.insert("r", [(1, "x")])
    cut = list(a.replica.batch(0))
    other = list(World(1).site("c").replica.batch(0))
    for pages, problem in (([], "one page or more"), ([*cut, *cut], "follow"), ([*other, *cut], "follow")):
        with pytest.raises(WireError, match=problem):
            b.replica.take(pages)
    assert b.rows("r") == []
    b.replica.take(cut)
    assert b.rows("r") == [(1, "x")]


def test_who_joins_anew_from_a_group_of_a_greater_name_is_listed_there(world, tmp_path):
    """o is copied before it has met anybody, and goes to m's group; the copy c finds the file of a, which has
    founded before m. Then a meets m, of whose group o is, and goes there, whatever the names: it has rows of
    o by the copy. c, which meets only a, comes after it.
    """
    there, here = tmp_path / "there", tmp_path / "here"
    a, m = world.site("a"), world.site("m")
    original = world.site("o", tmp_path / "o.db")
    write(original, 1)
    with sqlite3.connect(tmp_path / "c.db") as target:
        original._store.writer.connection.backup(target)
    target.close()
    copy = world.site("c", tmp_path / "c.db")
    write(a, 2)
    write(m, 3)
    for _ in range(3):
        visit(here, a, copy)
        visit(there, m, original)
    assert numbers(a) == numbers(copy) == [1, 2]
    assert numbers(m) == numbers(original) == [1, 3]
    erase(original, 1)
    for _ in range(3):
        visit(there, m, original)
    for site in (m, original):
        site.replica.collect()
    write(copy, 4)
    for _ in range(6):
        visit(there, m, original, a)
        visit(here, a, copy)
    assert numbers(a) == numbers(m) == numbers(original) == numbers(copy) == [2, 3, 4]

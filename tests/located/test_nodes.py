"""Places at sites: writes, syncs that break and repeat, crashes, backups; in the end it is as it should."""

import random
import shutil
import threading

import pytest
from tests.located.programs import BOTH, CIRCLE, COSTS, HOPS, REACH, writable
from tests.located.worlds import World

import everview as ev
from everview.errors import DataError, LimitError, ProgramError, StoreError
from everview.located import LocatedProgram, open_counting, open_node

PLACES = "abcd"


def storm(world, rng, pool, steps, what):
    for _ in range(steps):
        match rng.choice(what):
            case "write":
                world.write(rng.choice(pool), present=rng.random() < 0.6)
            case "sync":
                world.exchange(*rng.sample(world.places, 2), faulty=True)
            case "deafen":
                place = rng.choice(world.places)
                world.deafen(place)
                world.exchange(place, rng.choice([p for p in world.places if p != place]))
                world.open_node(place)
            case happening:
                getattr(world, happening)(rng.choice(world.places))


@pytest.mark.parametrize(
    "text", [REACH, HOPS, COSTS, CIRCLE, BOTH], ids=["reach", "hops", "costs", "circle", "both"]
)
@pytest.mark.parametrize("mode", ["provenance", "counting"])
def test_sites_over_faulty_exchanges_come_to_what_the_text_says(mode, text):
    rng = random.Random(f"{mode} {text}")
    world = World(text, PLACES, rng, mode=mode)
    pool = writable(text, rng, PLACES, 4 if mode == "counting" else 6)
    storm(world, rng, pool, 50, ["write", "sync", "sync", "deafen"])
    world.settle()
    world.compare()
    world.close()


@pytest.mark.parametrize("mode", ["provenance", "counting"])
def test_stores_that_crash_come_to_what_the_text_says(mode, tmp_path):
    rng = random.Random(f"crash {mode}")
    world = World(REACH, "abc", rng, mode=mode, folder=tmp_path)
    storm(
        world, rng, writable(REACH, rng, "abc", 4), 50, ["write", "write", "sync", "sync", "deafen", "crash"]
    )
    world.settle()
    world.compare()
    world.close()


@pytest.mark.parametrize("mode", ["provenance", "counting"])
def test_what_was_written_while_a_node_was_closed_counts_when_it_is_open(mode):
    world = World(REACH, "ab", random.Random(5), mode=mode)
    world.write(("link", ("a", "b")), present=True)
    world.settle()
    world.deafen("a")
    world.sites["a"].delete("link@a", [("a", "b")])
    world.sites["a"].insert("link@a", [("a", "a")])
    assert world.sites["a"].rows("reach@a") == [("a", "b")]
    world.open_node("a")
    assert world.nodes["a"].rows("reach") == [("a", "a")]
    world.settle()
    world.compare()
    world.close()


@pytest.mark.parametrize("mode", ["provenance", "counting"])
def test_opening_a_node_again_moves_nothing(mode):
    world = World(REACH, "abc", random.Random(6), mode=mode)
    for pair in ("ab", "bc", "ca" if mode == "provenance" else "ac"):
        world.write(("link", tuple(pair)), present=True)
    world.write(("link", ("a", "b")), present=False)
    world.write(("link", ("a", "b")), present=True)
    world.settle()
    for place in "abc":
        world.deafen(place)
        world.open_node(place)
        report = world.exchange(place, "a" if place != "a" else "b")
        assert report.sent_rows == report.received_rows == 0
    world.close()


@pytest.mark.parametrize("seed", range(2))
def test_stores_that_go_back_come_to_what_the_text_says(seed, tmp_path):
    rng = random.Random(f"restore {seed}")
    world = World(REACH, "abc", rng, folder=tmp_path)
    happenings = ["write", "write", "sync", "sync", "crash", "back_up", "restore"]
    storm(world, rng, writable(REACH, rng, "abc", 5), 40, happenings)
    world.settle()
    world.compare()
    world.close()


def test_counting_refuses_to_go_on_from_a_backup(tmp_path):
    world = World(REACH, "ab", random.Random(1), mode="counting", folder=tmp_path)
    world.write(("link", ("a", "b")), present=True)
    world.back_up("a")
    world.write(("link", ("a", "b")), present=False)
    world.settle()
    with pytest.raises(StoreError, match="put back from a backup"):
        world.restore("a")
    world.close()


def test_counting_stops_when_a_sync_finds_out_that_the_store_went_back(tmp_path):
    world = World(REACH, "abc", random.Random(1), mode="counting", folder=tmp_path)
    side = tmp_path / "a.everview-shown"
    world.write(("link", ("a", "b")), present=True)
    world.settle()
    world.back_up("a")
    shown = side.read_bytes()
    world.write(("link", ("a", "b")), present=False)
    world.write(("link", ("a", "c")), present=True)
    world.settle()
    world.nodes["a"].close()
    world.sites["a"].close()
    shutil.copy(world.backups["a"], tmp_path / "a.everview")
    side.write_bytes(shown)
    world.open("a")  # nothing tells it that it is old
    old = world.sites["a"].replica.incarnation
    world.settle()
    assert world.sites["a"].replica.incarnation != old
    with pytest.raises(StoreError, match="cannot go on from an old state"):
        world.write(("link", ("a", "b")), present=False)
    with pytest.raises(StoreError, match="cannot go on from an old state"):
        world.nodes["a"].rows("reach")
    world.close()


def test_counting_knows_when_all_is_quiet():
    world = World(REACH, "abc", random.Random(2), mode="counting")
    world.write(("link", ("a", "b")), present=True)
    world.write(("link", ("b", "c")), present=True)
    assert not world.nodes["c"].is_quiet()
    asked = 0
    while not world.nodes["c"].is_quiet():
        for pair in ("ab", "bc"):
            world.exchange(*pair)
        asked += 1
        assert asked < 30
    world.compare()
    world.write(("link", ("b", "c")), present=False)
    assert not world.nodes["c"].is_quiet(), "a new question, and something is under way"
    world.close()


def test_facts_live_where_they_say_and_nowhere_else():
    world = World(REACH, PLACES, random.Random(3), neighbours={"a": "b", "b": "ac", "c": "bd", "d": "c"})
    for pair in ("ab", "bc", "cd"):
        world.write(("link", tuple(pair)), present=True)
    world.settle(["ab", "bc", "cd"])
    world.compare()
    assert world.nodes["a"].rows("reach") == [("a", "b"), ("a", "c"), ("a", "d")]
    assert world.sites["a"].query("SELECT d FROM \"reach@a\" WHERE d > 'b'") == [{"d": "c"}, {"d": "d"}]
    with pytest.raises(DataError, match="not hosted here"):
        world.sites["a"].rows("reach@b")
    with pytest.raises(DataError, match="lives at 'b', and this is 'a'"):
        world.nodes["a"].insert("link", [("b", "c")])
    with pytest.raises(DataError, match="derived by rules"):
        world.nodes["a"].insert("reach", [("a", "c")])
    why = world.nodes["a"].why("reach", ("a", "c"))
    assert [len(monomial) for monomial in why.monomials] == [2]
    assert not world.nodes["a"].why("reach", ("a", "a"))
    world.close()


def test_who_is_not_a_neighbour_gets_nothing_and_status_says_so():
    world = World(REACH, "abc", random.Random(4), neighbours={"a": "b", "b": "", "c": "b"})
    world.write(("link", ("a", "b")), present=True)
    world.write(("link", ("b", "c")), present=True)
    world.settle(["ab", "bc"])
    assert world.nodes["b"].status()["unsent"] == {"a": 3, "c": 2}
    world.close()


def test_views_stand_on_located_relations():
    best = """
        CREATE MATERIALIZED VIEW "best@{place}" AS SELECT d, min(c) AS cost FROM "path@{place}" GROUP BY d;
    """
    located = LocatedProgram.parse(COSTS, "ab", views=best)
    site = ev.Site.open(":memory:", located.program, name="a", hosts=located.hosts("a"))
    node = open_node(site, located)
    told = []
    site.watch("best@a", told.append)
    node.insert("link", [("a", "b")])
    assert site.rows("best@a") == [("b", 1)]
    assert told == [[(("b", 1), 1)]]
    site.close()


def test_writes_past_the_node_count_too():
    located = LocatedProgram.parse(REACH, "ab")
    site = ev.Site.open(":memory:", located.program, name="a", hosts=located.hosts("a"))
    node = open_node(site, located)
    site.execute("INSERT INTO \"link@a\" VALUES ('a', 'b')")
    assert node.rows("reach") == [("a", "b")]
    with site.transaction():
        site.delete("link@a", [("a", "b")])
        site.insert("link@a", [("a", "c")])
    assert node.rows("reach") == [("a", "c")]
    site.close()


def test_too_many_proofs_are_an_error_and_nothing_is_cut():
    located = LocatedProgram.parse(REACH, "ab")
    sites = {n: ev.Site.open(":memory:", located.program, name=n, hosts=located.hosts(n)) for n in "ab"}
    node = open_node(sites["a"], located, limit=1)
    told = [("reach", b"\x92\xa1a\xa1z", bytes([n]) * 16, 0) for n in (1, 2)]
    with pytest.raises(LimitError, match=r"more than 1 proofs by reach\(@s, d\) :- link\(@s, d\)"):
        sites["a"].insert(located.mail("a"), told)
    with pytest.raises(LimitError):
        node.rows("reach")
    open_node(sites["a"], located).rows("reach")
    for site in sites.values():
        site.close()


def test_programs_that_cannot_be_located_are_refused():
    with pytest.raises(DataError, match="'a b' cannot be a place"):
        LocatedProgram.parse(REACH, ["a b"])
    with pytest.raises(ProgramError, match="must be a symbol"):
        LocatedProgram.parse(".decl p(@x: number)", "ab")
    counter = """
        .decl link(@s: symbol, d: symbol)
        .decl far(@s: symbol, n: number)
        far(@s, 1) :- link(@s, d).
        far(@s, n + 1) :- link(@s, z), far(@z, n).
    """
    with pytest.raises(ProgramError, match="may do so without end"):
        LocatedProgram.parse(counter, "ab")
    with pytest.raises(ProgramError, match="has no place, and others have"):
        LocatedProgram.parse(".decl p(@x: symbol)\n.decl q(x: symbol)", "ab")
    located = LocatedProgram.parse(REACH, "ab")
    site = ev.Site.open(":memory:", located.program, name="c", hosts=located.hosts("a"))
    with pytest.raises(DataError, match="'c' is no place"):
        open_node(site, located)
    with pytest.raises(DataError, match="does not host"):
        open_node(site, located, place="b")
    with pytest.raises(DataError, match="open its places with open_node"):
        open_counting(site, located, place="a")
    with pytest.raises(DataError, match="runs another program"):
        open_node(site, LocatedProgram.parse(HOPS, "ab"), place="a")
    site.close()


def test_mail_does_not_grow_with_every_change():
    world = World(REACH, "ab", random.Random(9))
    for number in range(41):
        world.write(("link", ("a", "b")), present=number % 2 == 0)
    assert world.nodes["a"].rows("reach") == [("a", "b")]
    world.settle()
    world.compare()
    assert len(world.sites["b"].rows(world.located.mail("b"))) <= 10
    world.deafen("b")
    world.open_node("b")
    world.compare()
    world.close()


def test_mail_travels_through_a_folder(tmp_path):
    world = World(REACH, "abc", random.Random(7))
    world.write(("link", ("a", "b")), present=True)
    world.write(("link", ("b", "c")), present=True)
    for _ in range(6):
        for site in world.sites.values():
            site.sync(tmp_path / "stick")
    world.compare()
    world.close()


def test_two_threads_may_write_and_sync_at_once():
    world = World(REACH, "ab", random.Random(8))
    errors = []

    def work(place, other):
        try:
            for number in range(15):
                world.write(("link", (place, f"{other}{number % 3}")), present=number % 2 == 0)
                world.write(("link", (place, other)), present=number % 4 != 3)
                world.exchange(place, other)
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in ("ab", "ba")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    world.settle()
    world.compare()
    world.close()

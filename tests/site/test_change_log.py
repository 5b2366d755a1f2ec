"""The ordered change log: what a reader finds is what a watch was told, in order, whatever happens."""

import random
import subprocess
import sys

import pytest

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE s (a BIGINT, b TEXT);
    CREATE TABLE k (id BIGINT PRIMARY KEY, x DOUBLE, d DECIMAL(30, 2), t TIMESTAMP);
    CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW n AS SELECT b, count(*) AS c FROM s GROUP BY b;
""")
NAMES = ("s", "k", "bag", "n")


@pytest.fixture
def site():
    with ev.Site.open(":memory:", PROGRAM, name="a") as opened:
        yield opened


def everything(log, number=0):
    return [(row, weight) for _, row, weight in log.read(number, 10_000)]


def rows_after(changes):
    """What a relation holds when these changes were made to it."""
    held = {}
    for row, weight in changes:
        held[row] = held.get(row, 0) + weight
        assert held[row] >= 0
    return sorted(row for row, copies in held.items() for _ in range(copies))


def test_a_log_begins_with_the_next_commit_and_has_them_in_order(site):
    site.insert("s", [(1, "before")])
    log = site.changes("s", "me")
    site.insert("s", [(3, "x"), (2, "x")])
    site.delete("s", [(3, "x")])
    site.insert("s", [(3, "x")])
    assert everything(log) == [((2, "x"), 1), ((3, "x"), 1), ((3, "x"), -1), ((3, "x"), 1)]


def test_a_snapshot_comes_first_and_is_its_readers_own(site):
    site.insert("s", [(2, "x"), (1, "x")])
    early = site.changes("s", "early")
    late = site.changes("s", "late", snapshot=True)
    site.insert("s", [(3, "x")])
    assert everything(late) == [((1, "x"), 1), ((2, "x"), 1), ((3, "x"), 1)]
    assert everything(early) == [((3, "x"), 1)]


def undone(site):
    with site.transaction():
        site.insert("s", [(9, "x")])
        site.insert("s", [("no number", "x")])


def test_a_transaction_is_logged_by_what_it_comes_to(site):
    log = site.changes("s", "me")
    with site.transaction():
        site.insert("s", [(1, "x"), (2, "x")])
        site.delete("s", [(1, "x")])
    with pytest.raises(ev.DataError):
        undone(site)
    assert everything(log) == [((2, "x"), 1)]


def test_of_one_commit_rows_that_go_come_before_rows_that_come(site):
    log = site.changes("k", "me")
    site.insert("k", [(1, 5.0, None, None), (2, 5.0, None, None)])
    site.execute("UPDATE k SET x = 4.0")
    assert [(row[:2], weight) for row, weight in everything(log)[2:]] == [
        ((1, 5.0), -1),
        ((2, 5.0), -1),
        ((1, 4.0), 1),
        ((2, 4.0), 1),
    ]


def test_a_log_stays_when_more_is_hosted(tmp_path):
    path = tmp_path / "a.db"
    with ev.Site.open(path, PROGRAM, name="a", hosts={"s"}) as site:
        log = site.changes("s", "me")
        site.insert("s", [(1, "x")])
    with ev.Site.open(path, hosts={"s", "n", "bag"}) as site:
        site.insert("s", [(2, "x")])
        log = site.changes("s", "me")
        assert everything(log) == [((1, "x"), 1), ((2, "x"), 1)]


def test_reading_again_from_a_number_gives_the_same(site):
    log = site.changes("s", "me")
    for a in range(10):
        site.insert("s", [(a, "x")])
        site.insert("bag", [(a,)])
    whole = log.read(0, 100)
    assert [row for _, row, _ in whole] == [(a, "x") for a in range(10)]
    for place in range(10):
        assert log.read(whole[place].number, 3) == whole[place : place + 3]


def test_what_all_have_released_is_forgotten_and_nothing_else(site):
    slow, fast = site.changes("s", "slow"), site.changes("s", "fast")
    for a in range(6):
        site.insert("s", [(a, "x")])
    numbers = [change.number for change in fast.read(0, 100)]
    fast.release(numbers[4])
    assert len(slow.read(0, 100)) == 6
    with pytest.raises(ev.StoreError, match="were released"):
        fast.read(numbers[3], 1)
    with pytest.raises(ev.StoreError, match="were released"):
        fast.read(0, 1)
    slow.release(numbers[2])
    logged = site._store.writer.connection.execute("SELECT count(*) FROM everview_log").fetchone()
    assert logged == (4,)
    slow.cancel()
    assert [row for _, row, _ in fast.read(numbers[4], 9)] == [(4, "x"), (5, "x")]
    assert site._store.writer.connection.execute("SELECT count(*) FROM everview_log").fetchone() == (2,)
    fast.cancel()
    site.insert("s", [(7, "x")])
    assert site._store.writer.connection.execute("SELECT count(*) FROM everview_log").fetchone() == (0,)
    with pytest.raises(ev.StoreError, match="subscribe again"):
        fast.read(0, 1)


def test_a_log_that_ends_before_the_readers_place_says_so(site):
    log = site.changes("s", "me")
    with pytest.raises(ev.StoreError, match="end at 0"):
        log.read(5, 1)


def test_a_cancelled_watch_does_not_end_the_log_nor_the_log_a_watch(site):
    told = []
    watch = site.watch("s", told.append)
    log = site.changes("s", "me")
    watch.cancel()
    site.insert("s", [(1, "x")])
    assert everything(log) == [((1, "x"), 1)]
    site.watch("s", told.append)
    log.cancel()
    site.insert("s", [(2, "x")])
    assert told == [[((2, "x"), 1)]]


def test_bad_names_are_refused(site):
    with pytest.raises(ev.DataError, match="nothing"):
        site.changes("nothing", "me")
    with pytest.raises(ev.DataError, match="a reader has a name"):
        site.changes("s", "")
    with site.transaction(), pytest.raises(ev.StoreError, match="outside the transaction"):
        site.changes("s", "me")


def test_a_log_survives_and_another_process_writes_into_it(tmp_path):
    path = tmp_path / "a.db"
    with ev.Site.open(path, PROGRAM, name="a") as site:
        other = ev.Site.open(path, name="a")
        other.insert("s", [(0, "before")])
        site.changes("s", "me")
        other.insert("s", [(1, "other")])
        script = f"import everview as ev; ev.Site.open({str(path)!r}).insert('s', [(2, 'process')])"
        subprocess.run([sys.executable, "-c", script], check=True)
        site.insert("s", [(3, "here")])
        other.close()
    with ev.Site.open(path) as site:
        site.insert("s", [(4, "again")])
        rows = [row for _, row, _ in site.changes("s", "me").read(0, 100)]
    assert rows == [(1, "other"), (2, "process"), (3, "here"), (4, "again")]


@pytest.mark.parametrize("seed", range(8))
def test_random_histories_are_logged_as_they_are_watched(seed, tmp_path):
    """With two sites that sync, several readers, releases and restarts; the log's sum is the relation."""
    chance = random.Random(seed)
    path = tmp_path / "a.db"
    site, peer = ev.Site.open(path, PROGRAM, name="a"), ev.Site.open(":memory:", PROGRAM, name="b")
    told = {name: [] for name in NAMES}

    def watch():
        for name in NAMES:
            site.watch(name, lambda changes, name=name: told[name].append(changes))

    watch()
    logs = {name: site.changes(name, "me", snapshot=True) for name in NAMES}
    place, seen = dict.fromkeys(NAMES, 0), {name: [] for name in NAMES}
    for _ in range(25):
        where = chance.choice([site, site, peer])
        verb = chance.choice([where.insert, where.insert, where.delete])
        match chance.randrange(5):
            case 0:
                site.sync(peer)
            case 1:
                verb("bag", [(chance.randrange(4),) for _ in range(3)])
            case 2:
                row = (chance.randrange(4), chance.choice([1.5, float("nan"), None]), None, None)
                verb("k", [row])
            case 3:
                verb("s", [(chance.randrange(5), chance.choice("xyz")) for _ in range(chance.randint(1, 4))])
            case 4 if chance.random() < 0.5:
                site.close()
                site = ev.Site.open(path, name="a")
                watch()
                logs = {name: site.changes(name, "me") for name in NAMES}
        for name in NAMES:
            if chance.random() < 0.4:
                for number, row, weight in logs[name].read(place[name], chance.randint(1, 5)):
                    seen[name].append((row, weight))
                    place[name] = number + 1
            if chance.random() < 0.2:
                logs[name].release(place[name])
    for name in NAMES:
        seen[name] += everything(logs[name], place[name])
        assert repr(rows_after(seen[name])) == repr(site.rows(name))
        watched = [repr(change) for commit in told[name] for change in commit]
        assert sorted(watched) == sorted(repr(change) for change in seen[name])
        assert [repr(sorted(map(repr, commit))) for commit in told[name]] == _by_commits(
            seen[name], told[name]
        )
    site.close()
    peer.close()


def _by_commits(seen, told):
    """The log, cut where the commits were."""
    found, rest = [], list(seen)
    for commit in told:
        part, rest = rest[: len(commit)], rest[len(commit) :]
        found.append(repr(sorted(map(repr, part))))
    return found

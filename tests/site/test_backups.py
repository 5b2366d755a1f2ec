"""Backups: one state, whatever is written meanwhile; a store that is put back is a new incarnation."""

import random
import shutil
import sqlite3
import threading

import pytest

import everview as ev
from everview.engines.sqlite import backups
from everview.engines.sqlite.names import FORMAT
from everview.errors import StoreError

PROGRAM = ev.Program.parse(
    "CREATE TABLE moved (transfer BIGINT, account BIGINT, amount BIGINT);"
    "CREATE MATERIALIZED VIEW balance AS SELECT account, sum(amount) AS amount FROM moved GROUP BY account;"
)


def opened(path, name="a"):
    return ev.Site.open(path, PROGRAM, name=name)


def transfer(site, number):
    site.insert("moved", [(number, 1, -number), (number, 2, number)])


def test_a_backup_is_one_state_whatever_is_written_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(backups, "_PAGES", 1)  # so that others write between its steps
    done = threading.Event()
    with opened(tmp_path / "a.db") as site, opened(tmp_path / "a.db") as other:
        for number in range(1, 200):
            transfer(site, number)

        def write():
            number = 1_000
            while not done.is_set():
                transfer(other, number)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            steps = []
            for number in range(3):
                before = site.status()["commits"]
                found = site.backup(tmp_path / f"{number}.db", lambda *pages: steps.append(pages))
                assert before <= found.commits <= site.status()["commits"]
                assert (found.name, found.incarnation) == ("a", site.status()["incarnation"])
        finally:
            done.set()
            writer.join()
        assert len(steps) > 30
        assert all(copied <= whole for copied, whole in steps)
    for number in range(3):
        assert not (tmp_path / f"{number}.db-wal").exists()
        with ev.Site.restore(tmp_path / f"{number}.db", tmp_path / f"again{number}.db") as site:
            rows = site.rows("moved")
            assert len(rows) % 2 == 0
            assert sum(amount for *_, amount in rows) == 0
            assert sum(amount for _, amount in site.rows("balance")) == 0


def test_a_backup_does_not_begin_again_for_what_is_written_meanwhile(tmp_path, monkeypatch):
    """Else it would never end where others write all the time."""
    monkeypatch.setattr(backups, "_PAGES", 1)
    with opened(tmp_path / "a.db") as site, opened(tmp_path / "a.db") as other:
        transfer(site, 1)
        copied = []

        def write(pages, _all):
            copied.append(pages)
            if len(copied) < 5:
                transfer(other, 1 + len(copied))

        found = site.backup(tmp_path / "backup", write)
        assert copied == list(range(1, len(copied) + 1))
        assert found.commits == 1
        assert site.status()["commits"] == 5


@pytest.mark.parametrize("seed", range(6))
def test_what_is_put_back_gets_what_it_lacks_and_nothing_is_lost_or_returns(seed, tmp_path):
    """The original lives on, or is replaced, or was lost; what others had heard of it stays."""
    rng = random.Random(seed)
    fate = ("lives", "replaced", "lost")[seed % 3]
    with opened(tmp_path / "b.db", "b") as b:
        with opened(tmp_path / "a.db") as a:
            for number in range(1, 10):
                transfer(a, number)
            a.sync(b)
            a.backup(tmp_path / "backup")
            before = a.replica.incarnation
            told = {(number, 1, -number) for number in rng.sample(range(1, 10), 4)}
            a.delete("moved", told)
            transfer(a, 50)
            a.sync(b)
            transfer(a, 60)  # which nobody heard of
        if fate == "lost":
            for file in tmp_path.glob("a.db*"):
                file.unlink()
        path = tmp_path / ("c.db" if fate == "lives" else "a.db")
        with ev.Site.restore(tmp_path / "backup", path, replace=fate == "replaced") as c:
            assert c.replica.incarnation != before
            transfer(c, 70)
            for _ in range(3):
                c.sync(b)
            assert c.rows("moved") == b.rows("moved")
            numbers = {number for number, *_ in c.rows("moved")}
            assert {50, 70} <= numbers
            assert not told & set(c.rows("moved"))
        aside = {"lives": tmp_path / "a.db", "replaced": tmp_path / "a.db.replaced"}.get(fate)
        assert (tmp_path / "a.db.replaced").exists() == (fate == "replaced")
        if aside is not None:
            with ev.Site.open(aside) as a:
                assert (60, 1, -60) in a.rows("moved")
                for _ in range(3):
                    a.sync(b)
                assert a.rows("moved") == b.rows("moved")
                assert {(50, 1, -50), (60, 1, -60), (70, 1, -70)} <= set(a.rows("moved"))


def test_a_store_in_use_is_not_replaced(tmp_path):
    with opened(tmp_path / "a.db") as site:
        transfer(site, 1)
        site.backup(tmp_path / "backup")
        transfer(site, 2)
        with pytest.raises(StoreError, match="in use; stop what has it open"):
            ev.Site.restore(tmp_path / "backup", tmp_path / "a.db", replace=True)
        transfer(site, 3)
        assert len(site.rows("moved")) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db", "backup"]


def test_a_damaged_store_is_put_aside(tmp_path):
    with opened(tmp_path / "a.db") as site:
        transfer(site, 1)
        site.backup(tmp_path / "backup")
    (tmp_path / "a.db").write_bytes(b"nothing of it is left" * 1000)
    (tmp_path / "a.db-wal").write_bytes(b"of another file")
    with ev.Site.restore(tmp_path / "backup", tmp_path / "a.db", replace=True) as site:
        assert len(site.rows("moved")) == 2
    assert (tmp_path / "a.db.replaced").read_bytes().startswith(b"nothing of it")
    with pytest.raises(StoreError, match=r"a.db.replaced is there from before; remove it first"):
        ev.Site.restore(tmp_path / "backup", tmp_path / "a.db", replace=True)
    with opened(tmp_path / "a.db") as site:
        assert len(site.rows("moved")) == 2


@pytest.fixture
def backup(tmp_path):
    with opened(tmp_path / "a.db") as site:
        site.insert("moved", [(number, account, 1) for number in range(300) for account in (1, 2)])
        site.backup(tmp_path / "backup")
    return tmp_path / "backup"


def emptied(path):
    with sqlite3.connect(path) as file:
        file.execute("DELETE FROM everview_store")


def of_something_else(path):
    path.unlink()
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE t (x)")


def newer(path):
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {FORMAT + 1}")


def overwritten(path):
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 4096):
        data[place : place + 60] = bytes(60)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda path: path.unlink(), "is no file; name one that `everview backup` has made"),
        (
            lambda path: path.write_bytes(b"no database at all" * 99),
            "cannot be read: .*no backup of Everview's; name another",
        ),
        (lambda path: path.with_name("backup-wal").write_bytes(b"x"), "is a store in use"),
        (of_something_else, "is no Everview store"),
        (newer, "reads format"),
        (overwritten, "damaged"),
        (emptied, "does not say whose store it is of"),
    ],
)
def test_what_is_no_backup_is_not_put_back(harm, said, backup, tmp_path):
    harm(backup)
    with pytest.raises(StoreError, match=said):
        ev.Site.restore(backup, tmp_path / "b.db")
    assert not list(tmp_path.glob("b.db*"))


def test_nothing_is_overwritten_unasked(backup, tmp_path):
    with opened(tmp_path / "a.db") as site, pytest.raises(StoreError, match="exists already"):
        site.backup(backup)
    with pytest.raises(StoreError, match=r"exists already.*--replace"):
        ev.Site.restore(backup, tmp_path / "a.db")


def test_a_copy_that_fails_leaves_nothing_behind(tmp_path):
    with opened(tmp_path / "a.db") as site:
        transfer(site, 1)
        with pytest.raises(StoreError, match="cannot be written"):
            site.backup(tmp_path / "no such folder" / "backup")

        def stop(*_pages):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            site.backup(tmp_path / "backup", stop)
        transfer(site, 2)
    assert [path.name for path in tmp_path.glob("backup*")] == []


def test_within_a_transaction_there_is_none(tmp_path):
    with (
        opened(tmp_path / "a.db") as site,
        site.transaction(),
        pytest.raises(StoreError, match="transaction"),
    ):
        site.backup(tmp_path / "backup")


def test_a_copy_by_other_means_can_be_put_back_as_well(tmp_path):
    with opened(tmp_path / "a.db") as site:
        transfer(site, 1)
        before = site.replica.incarnation
    shutil.copy(tmp_path / "a.db", tmp_path / "copy")
    with ev.Site.restore(tmp_path / "copy", tmp_path / "b.db", name="b") as site:
        assert (site.name, len(site.rows("moved"))) == ("b", 2)
        assert (now := site.replica.incarnation) != before
    with ev.Site.open(tmp_path / "b.db") as site:  # which is no other, though it has met nobody
        assert site.replica.incarnation == now

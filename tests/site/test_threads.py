"""Many threads, one site: readers see whole commits, writers take turns."""

import threading
import time

import pytest
from tests.site.checks import assert_fresh

import everview as ev
from everview.engines.sqlite import connections, store

PROGRAM = """
CREATE TABLE account (id BIGINT PRIMARY KEY, amount BIGINT NOT NULL);
CREATE MATERIALIZED VIEW total AS SELECT sum(amount) AS n, count(*) AS c FROM account;
CREATE MATERIALIZED VIEW parity AS SELECT amount % 2 AS odd, sum(amount) AS n FROM account
    GROUP BY amount % 2;
CREATE MATERIALIZED VIEW pairs AS SELECT a.id, b.id AS other FROM account AS a JOIN account AS b
    ON a.amount = b.amount;
"""
ACCOUNTS = 6
SUM = 600


def run(threads):
    """Start, join, and raise what any of them raised."""
    errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    running = [threading.Thread(target=guarded, args=(work,)) for work in threads]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert not any(thread.is_alive() for thread in running)
    if errors:
        raise errors[0]


def opened(open_site, path):
    site = open_site(PROGRAM, path)
    site.insert("account", [(n, SUM // ACCOUNTS) for n in range(ACCOUNTS)])
    return site


def transfer(site, number):
    """Move money in two statements; in between the sum is wrong, and nobody may see that."""
    source, target = number % ACCOUNTS, (number * 5 + 1) % ACCOUNTS
    with site.transaction():
        site.execute("UPDATE account SET amount = amount - ? WHERE id = ?", (number % 7, source))
        site.execute("UPDATE account SET amount = amount + ? WHERE id = ?", (number % 7, target))


@pytest.mark.parametrize("where", ["file", "memory"])
def test_readers_always_see_a_whole_commit(open_site, tmp_path, where):
    site = opened(open_site, tmp_path / "site.db" if where == "file" else ":memory:")
    done = threading.Event()
    reads = []

    def write():
        for number in range(60):
            transfer(site, number)
            if number % 20 == 5:
                with pytest.raises(ev.DataError), site.transaction():  # noqa: PT012
                    site.execute("UPDATE account SET amount = amount + 1000 WHERE id = 1")
                    site.insert("account", [(1, None)])
        done.set()

    def read():
        seen = 0
        while not done.is_set() or not seen:
            (row,) = site.query(
                "SELECT t.n AS n, t.c AS c, p.n AS by_parity FROM total AS t, "
                "(SELECT sum(n) AS n FROM parity) AS p"
            )
            assert row == {"n": SUM, "c": ACCOUNTS, "by_parity": SUM}
            assert sum(n for _, n in site.rows("parity")) == SUM
            amounts = dict(site.rows("account"))
            assert sum(amounts.values()) == SUM
            status = site.status()
            assert status["views"]["total"] == 1
            seen += 1
        reads.append(seen)

    run([write, read, read, read, read])
    assert len(reads) == 4
    assert_fresh(site)


def test_why_reads_one_state(open_site, tmp_path):
    """The rows behind an aggregate are all of one commit: they add up to it."""
    site = opened(open_site, tmp_path / "site.db")
    done = threading.Event()

    def write():
        for number in range(40):
            transfer(site, number)
        done.set()

    def ask():
        while not done.is_set():
            why = site.why("total", (SUM, ACCOUNTS))
            assert sum(witness.values["amount"] for witness in why.tuples()) == SUM
            assert len(why.tuples()) == ACCOUNTS

    run([write, ask, ask])


def test_writers_take_turns(open_site, tmp_path):
    site = opened(open_site, tmp_path / "site.db")
    told = []
    site.watch("total", told.append)
    site.watch("account", told.append)

    def write(start):
        def work():
            for number in range(start, start + 15):
                transfer(site, number)
                site.insert("account", [(100 + number, 0)])

        return work

    run([write(0), write(20), write(40)])
    assert site.rows("total") == [(SUM, ACCOUNTS + 45)]
    assert site.status()["commits"] == 91
    assert_fresh(site)


def test_watches_may_come_and_go_while_others_write(open_site, tmp_path):
    site = opened(open_site, tmp_path / "site.db")
    done = threading.Event()

    def write():
        for number in range(40):
            transfer(site, number)
        done.set()

    def watch():
        while not done.is_set():
            for name in ("pairs", "parity", "account"):
                site.watch(name, lambda changes: None).cancel()

    run([write, watch, watch])
    assert_fresh(site)


def test_a_writer_does_not_wait_for_ever_for_another_thread(open_site, tmp_path, monkeypatch):
    for module in (connections, store):
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.2)
    site = opened(open_site, tmp_path / "site.db")
    caught = []

    def late():
        started = time.monotonic()
        with pytest.raises(ev.StoreError, match="another thread"):
            site.insert("account", [(9, 9)])
        caught.append(time.monotonic() - started)
        assert site.rows("total") == [(SUM, ACCOUNTS)]

    with site.transaction():
        run([late])
    assert 0.1 < caught[0] < 5
    assert site.insert("account", [(9, 9)]) == 1


def test_connections_do_not_pile_up(open_site, tmp_path):
    site = opened(open_site, tmp_path / "site.db")
    for _ in range(30):
        run([lambda: site.rows("total")])
    assert len(site._store._readers._free) <= 2


def test_closing_while_others_read(open_site, tmp_path):
    """They finish, or are told that the site is closed."""
    site = opened(open_site, tmp_path / "site.db")
    go = threading.Event()

    def read():
        try:
            while True:
                assert site.rows("total") == [(SUM, ACCOUNTS)]
                go.set()
        except ev.StoreError as error:
            assert "closed" in str(error)  # noqa: PT017

    def close():
        go.wait(10)
        site.close()

    run([read, read, read, close])
    assert [entry.name for entry in tmp_path.iterdir()] == ["site.db"]

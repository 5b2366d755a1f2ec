"""A site among tasks: under asyncio, uvloop and trio."""

import asyncio
import random
import sys
import types
from collections import Counter
from contextlib import suppress
from functools import partial

import anyio
import pytest

import everview as ev

PROGRAM = ev.Program.parse("""
    CREATE TABLE r (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE k (a BIGINT PRIMARY KEY, b BIGINT);
    CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM r GROUP BY a;
""")

LOOPS = {
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


@pytest.fixture(params=LOOPS.values(), ids=LOOPS)
def run(request):
    def run(main, *args):
        async def bounded():
            with anyio.fail_after(60):
                return await main(*args)

        return anyio.run(bounded, **request.param)

    return run


@pytest.fixture(params=[":memory:", "file"])
def opened(request, tmp_path):
    path = request.param if request.param == ":memory:" else tmp_path / "site.db"
    return partial(ev.AsyncSite.open, path, PROGRAM, name="a")


def test_what_is_awaited_is_what_a_site_does(run, opened):
    async def main():
        async with opened() as site:
            assert (site.name, site.program) == ("a", PROGRAM)
            assert await site.insert("r", [(1, 1), (1, 2)]) == 2
            assert await site.delete("r", [(1, 2)]) == 1
            assert await site.execute("INSERT INTO k VALUES (?, 7)", [1]) == 1
            assert await site.rows("v") == [(1, 1)]
            assert await site.query("SELECT b FROM k") == [{"b": 7}]
            assert (await site.table("k")).rows == [(1, 7)]
            assert len((await site.why("v", (1, 1))).monomials) == 1
            assert "v" in await site.explain("v")
            assert await site.conflicts("k") == []
            assert (await site.status())["name"] == "a"
            with pytest.raises(ev.DataError):
                await site.insert("v", [(1, 1)])

    run(main)


def test_a_transaction_belongs_to_its_task(run, opened):
    """What another task writes meanwhile waits, and is not undone with it."""

    async def main():
        async with opened() as site:
            begun, seen = anyio.Event(), []

            async def other():
                await begun.wait()
                assert await site.insert("r", [(2, 2)]) == 1
                seen.append("written")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other)
                with suppress(ZeroDivisionError):
                    async with site.transaction():
                        await site.insert("r", [(1, 1)])
                        begun.set()
                        await anyio.sleep(0.05)
                        assert await site.rows("r") == [(1, 1)]
                        assert not seen
                        raise ZeroDivisionError
            assert await site.rows("r") == [(2, 2)]

    run(main)


def test_others_read_the_last_commit(run, tmp_path):
    async def main():
        async with ev.AsyncSite.open(tmp_path / "site.db", PROGRAM) as site:
            async with anyio.create_task_group() as tasks:
                written, read = anyio.Event(), anyio.Event()

                async def reader():
                    await written.wait()
                    assert await site.rows("r") == []
                    read.set()

                tasks.start_soon(reader)
                async with site.transaction():
                    await site.insert("r", [(1, 1)])
                    written.set()
                    await read.wait()
            assert await site.rows("r") == [(1, 1)]

    run(main)


async def _in_a_task_of_its_own(site):
    async with site.transaction(), anyio.create_task_group() as tasks:
        tasks.start_soon(site.insert, "r", [(1, 1)])


def test_a_task_begun_inside_a_transaction_may_not_wait_for_it(run, opened):
    async def main():
        async with opened() as site:
            with pytest.raises(BaseExceptionGroup) as raised:
                await _in_a_task_of_its_own(site)
            assert raised.group_contains(ev.StoreError, match="begun inside a transaction")
            async with site.transaction():
                with pytest.raises(ev.StoreError, match="do not nest"):
                    await site.transaction().__aenter__()
                with pytest.raises(ev.StoreError, match="open in this task"):
                    await site.close()
            assert await site.insert("r", [(1, 1)]) == 1

    run(main)


@pytest.mark.parametrize("seed", range(3))
def test_cancelled_at_any_moment(run, opened, seed):
    """What was acknowledged is there; a transaction is there whole or not at all; the site goes on."""
    chance, acknowledged = random.Random(seed), Counter()

    async def writer(site, number):
        for step in range(1_000):
            if chance.random() < 0.5:
                await site.insert("r", [(number, step)])
                acknowledged[number, step] += 1
            else:
                async with site.transaction():
                    await site.insert("r", [(number, step)])
                    await site.insert("k", [(number * 1_000 + step, 0)])
                acknowledged[number, step] += 1

    async def main():
        async with opened() as site:
            for attempt in range(12):
                with anyio.move_on_after(chance.random() * 0.05):
                    async with anyio.create_task_group() as tasks:
                        for number in range(3):
                            tasks.start_soon(writer, site, 3 * attempt + number)
            there = await site.rows("r")
            assert acknowledged.keys() <= set(there)
            assert len(there) - len(acknowledged) <= 36  # what was under way when it was cancelled
            whole = {(key // 1_000, key % 1_000) for key, _ in await site.rows("k")}
            assert whole <= set(there)
            assert await site.insert("r", [(-1, -1)]) == 1
            assert dict(await site.rows("v"))[-1] == 1

    run(main)
    assert acknowledged


def test_changes_come_commit_by_commit(run, opened):
    async def main():
        async with opened() as site:
            async with site.watch("v") as changes:
                await site.insert("r", [(1, 1)])
                await site.insert("r", [(1, 2), (2, 1)])
                assert await anext(changes) == [((1, 1), 1)]
                assert sorted(await anext(changes)) == [((1, 1), -1), ((1, 2), 1), ((2, 1), 1)]
            await site.insert("r", [(3, 1)])
            with pytest.raises(StopAsyncIteration):
                await anext(changes)

    run(main)


def test_who_watches_slowly_misses_nothing(run, opened):
    async def main():
        async with opened() as site:
            async with site.watch("v") as changes:
                for number in range(200):
                    await site.insert("r", [(number % 7, number)])
                told, items = Counter(), 0
                while +told != Counter(await site.rows("v")):
                    items += 1
                    for row, weight in await anext(changes):
                        told[row] += weight
            assert items < 200

    run(main)


def test_closing_ends_what_watches(run, opened):
    async def main():
        async with opened() as site, anyio.create_task_group() as tasks:
            seen, ended = [], anyio.Event()

            async def watcher():
                seen.extend([changes async for changes in site.watch("r")])
                ended.set()

            tasks.start_soon(watcher)
            for number in range(20):
                await site.insert("r", [(1, number)])
                await anyio.sleep(0.01)
            await site.close()
            await ended.wait()
            assert seen
        with pytest.raises(ev.StoreError, match="not open"):
            await site.rows("r")

    run(main)


def test_sites_sync(run, tmp_path):
    async def main():
        here = ev.AsyncSite.open(tmp_path / "a.db", PROGRAM, name="a")
        there = ev.AsyncSite.open(tmp_path / "b.db", PROGRAM, name="b")
        async with here, there:
            await here.insert("r", [(1, 1)])
            await there.insert("r", [(2, 2)])
            report = await here.sync(there)
            assert (report.sent_rows, report.received_rows) == (1, 1)
            assert await here.rows("v") == await there.rows("v") == [(1, 1), (2, 1)]
            async with here.transaction():
                with pytest.raises(ev.StoreError, match="do it after that"):
                    await here.sync(there)

    run(main)


def test_a_cancelled_sync_ends_and_the_next_one_goes_on(run, tmp_path):
    async def main():
        here = ev.AsyncSite.open(tmp_path / "a.db", PROGRAM, name="a")
        there = ev.AsyncSite.open(tmp_path / "b.db", PROGRAM, name="b")
        async with here, there:
            await there.insert("r", [(number, number) for number in range(200_000)])
            stop = anyio.CancelScope()
            with stop:
                await here.sync(there, progress=lambda _: anyio.from_thread.run_sync(stop.cancel))
            assert stop.cancelled_caught
            assert not await here.rows("r")
            await here.sync(there)
            assert len(await here.rows("r")) == 200_000

    run(main)


@pytest.mark.parametrize("name", ["asyncio", "trio"])
def test_a_write_while_another_thread_imports_the_loop(monkeypatch, name):
    """The module is there then, and has nothing in it yet."""
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    with ev.Site.open(":memory:", PROGRAM) as site:
        for number in range(2):
            assert site.insert("r", [(number, 1)]) == 1


def test_tasks_that_share_a_plain_site_do_not_join_each_others_transactions(opened):
    """A plain site cannot wait in an event loop: it says so, and nothing that was acknowledged is undone."""
    path = ":memory:"

    async def main():
        with ev.Site.open(path, PROGRAM) as site:

            async def holder():
                with suppress(ZeroDivisionError), site.transaction():
                    site.insert("r", [(1, 1)])
                    await asyncio.sleep(0.05)
                    raise ZeroDivisionError

            async def other():
                await asyncio.sleep(0.02)
                with pytest.raises(ev.StoreError, match="another task"):
                    site.insert("r", [(2, 2)])
                with pytest.raises(ev.StoreError, match="another task"):
                    site.rows("r")

            await asyncio.gather(holder(), other())
            assert site.insert("r", [(3, 3)]) == 1
            assert site.rows("r") == [(3, 3)]

    asyncio.run(main())

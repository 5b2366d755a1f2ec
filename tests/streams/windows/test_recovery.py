"""Processors that fail, runners that die, sites that are lost, and what is emitted once all the same."""

import asyncio
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.streams.windows import child
from tests.streams.windows.sites import PROGRAM, check_sites

import everview as ev
from everview import windowed


@pytest.fixture
def site():
    with ev.Site.open(":memory:", PROGRAM, name="here") as opened:
        yield opened


async def until(is_so):
    while True:
        if is_so():
            return
        await asyncio.sleep(0.001)


def test_a_failed_processor_goes_on_from_its_last_window_while_the_others_go_on(site):
    handled, failures = {"a": [], "b": []}, iter([True])
    group = windowed.Group("g", ev.crdt.Counter, {"a", "b"})

    async def handle(ctx, number):
        handled[ctx.processor].append(number)
        ctx.state.add(1)
        await asyncio.sleep(0)
        if ctx.processor == "a" and number == 7 and next(failures, False):
            await asyncio.sleep(0.2)  # until what it has closed is kept
            raise RuntimeError("a broken wire")
        if number % 5 == 4:
            ctx.next_window()

    runner = windowed.Runner(
        site,
        group,
        {name: windowed.Processor(handle, windowed.Listed(range(20))) for name in "ab"},
        restart_seconds=0.3,
    )

    async def run():
        task = asyncio.create_task(runner.run())
        await until(lambda: runner.state("a").restarts > 0)
        assert handled["b"] == list(range(20))  # it was not held up
        assert runner.state("a").window == 1
        await task

    asyncio.run(run())
    assert handled["a"] == [*range(8), *range(5, 20)]
    windows = windowed.Windows(site, group)
    assert [windows.value(w).value for w in range(4)] == [10, 20, 30, 40]
    assert runner.state("a") == windowed.State(5, 20, False, 1, 7 + 15)


def test_a_processor_that_fails_again_and_again_is_given_up_with_its_error(site):
    async def handle(ctx, number):
        if number == 3:
            raise ValueError("it never works")

    runner = windowed.Runner(
        site,
        windowed.Group("g", ev.crdt.Counter, {"a"}),
        {"a": windowed.Processor(handle, windowed.Listed(range(9)))},
        restart_seconds=0,
        attempts=4,
    )
    with pytest.raises(ValueError, match="it never works") as caught:
        asyncio.run(runner.run())
    assert caught.value.__notes__ == ["a failed 4 times in window 0, at message 3, and was given up"]
    assert runner.state("a").restarts == 3


def test_a_run_that_was_given_up_can_be_taken_up_again(site):
    group, calls = windowed.Group("g", ev.crdt.Counter, {"a"}), []

    async def handle(ctx, number):
        calls.append(number)
        ctx.state.add(number)
        if number == 3 and calls.count(3) < 2:
            raise ev.DataError("not yet")
        ctx.next_window()

    processors = {"a": windowed.Processor(handle, windowed.Listed(range(5)))}
    with pytest.raises(ev.DataError, match="not yet"):
        windowed.run(site, group, processors)
    windowed.run(site, group, processors)
    assert calls == [0, 1, 2, 3, 3, 4]
    assert windowed.Windows(site, group).value(4).value == 10


def test_a_run_that_has_ended_does_nothing_when_it_is_run_again(site):
    group, calls = windowed.Group("g", ev.crdt.Counter, {"a", "b"}), []

    async def handle(ctx, number):
        calls.append(number)
        ctx.emit(number)
        ctx.next_window()

    for _ in range(2):
        windowed.run(site, group, {n: windowed.Processor(handle, windowed.Listed([1, 2])) for n in "ab"})
    assert len(calls) == 4


def test_outputs_are_told_once_although_messages_are_handled_again(site):
    """By a watch, and by the ordered log of the relation that holds them."""
    told = []
    log = site.changes("windowed_outputs", "consumer")
    site.watch("windowed_outputs", told.extend)
    group, handled = windowed.Group("g", ev.crdt.Counter, {"a", "b"}), []

    async def handle(ctx, number):
        handled.append(number)
        ctx.emit(number)
        await asyncio.sleep(0.002)
        if number % 10 == 9:
            ctx.next_window()

    runner = windowed.Runner(
        site,
        group,
        {name: windowed.Processor(handle, windowed.Listed(range(60))) for name in "ab"},
        restart_seconds=0.01,
    )

    async def run():
        task = asyncio.create_task(runner.run())
        chance = random.Random(3)
        while not task.done():
            await asyncio.sleep(chance.random() / 30)
            runner.restart(chance.choice("ab"))
        await task

    asyncio.run(run())
    expected = [("g", name, number, 0, str(number)) for name in "ab" for number in range(60)]
    assert sorted(row for row, weight in told) == expected
    assert sorted(change.row for change in log.read(0, 1000)) == expected
    assert len(handled) > len(expected)


# A site dies with its runner.


def sums(name="takeover"):
    group = windowed.Group(name, ev.crdt.Counter, {"a", "b"})

    async def handle(ctx, number):
        ctx.state.add(number)
        await asyncio.sleep(0.001)
        if ctx.current:
            ctx.emit((await ctx.window(ctx.current - 1)).value)
        if number % 4 == 3:
            ctx.next_window()

    return group, handle


def expected_outputs():
    totals = [2 * sum(range(4 * (window + 1))) for window in range(10)]
    return [totals[number // 4 - 1] for number in range(4, 40)] * 2


def test_a_peer_takes_a_processor_over_with_the_messages_that_were_replicated():
    """The site of b is lost; its source went with it. The peer was told of its messages and its windows."""
    group, handle = sums()
    mine, theirs = (ev.Site.open(":memory:", PROGRAM, name=name) for name in ("mine", "theirs"))
    b = windowed.Replicated(theirs, group, "b", windowed.Listed(range(40)))

    async def run():
        here = windowed.Runner(mine, group, {"a": windowed.Processor(handle, windowed.Listed(range(40)))})
        there = windowed.Runner(theirs, group, {"b": windowed.Processor(handle, b)})
        tasks = [asyncio.create_task(runner.run()) for runner in (here, there)]
        while windowed.Windows(mine, group).closed < 3:
            await asyncio.to_thread(mine.sync, theirs)
        tasks[1].cancel()
        await asyncio.wait([tasks[1]])
        assert there.state("b").window < 10
        here.adopt("b", windowed.Processor(handle, windowed.Replicated(mine, group, "b")))
        while len(windowed.Windows(mine, group).outputs()) < len(expected_outputs()):
            assert not tasks[0].done()  # nobody has told the peer that there will be no more messages
            await asyncio.sleep(0.01)
        tasks[0].cancel()
        await asyncio.wait([tasks[0]])
        return here

    here = asyncio.run(run())
    windows = windowed.Windows(mine, group)
    assert [one.value for one in windows.outputs()] == expected_outputs()
    assert here.state("b").handled < 40
    mine.close()
    theirs.close()


def test_a_supervisor_moves_processors_from_a_runner_that_died_to_one_that_lives(tmp_path):
    group, handle = sums()
    sites = [ev.Site.open(tmp_path / f"{name}.db", PROGRAM, name=name) for name in "ab"]
    runners = [
        windowed.Runner(site, group, {name: windowed.Processor(handle, windowed.Listed(range(40)))})
        for site, name in zip(sites, "ab", strict=True)
    ]
    moved = []

    def take_over(name, runner):
        moved.append((name, runner))
        return windowed.Processor(handle, windowed.Listed(range(40)))

    async def run():
        task = asyncio.create_task(windowed.Supervisor(runners, take_over).run())
        while windowed.Windows(sites[0], group).closed < 3:
            await asyncio.to_thread(sites[0].sync, sites[1])
            await asyncio.sleep(0)
        sites[1].close()  # its disk is gone
        await task

    asyncio.run(run())
    assert moved == [("b", runners[0])]
    assert [one.value for one in windowed.Windows(sites[0], group).outputs()] == expected_outputs()
    sites[0].close()


def test_when_no_runner_is_left_the_supervisor_says_why_and_the_disk_has_what_was(tmp_path):
    group, handle = sums()
    site = ev.Site.open(tmp_path / "a.db", PROGRAM, name="a")
    processors = {name: windowed.Processor(handle, windowed.Listed(range(40))) for name in "ab"}

    async def run():
        supervisor = windowed.Supervisor([windowed.Runner(site, group, processors)], lambda *_: None)
        task = asyncio.create_task(supervisor.run())
        await until(lambda: windowed.Windows(site, group).closed >= 3)
        site.close()
        await task

    with pytest.raises(ev.StoreError, match="has been closed"):
        asyncio.run(run())
    with ev.Site.open(tmp_path / "a.db") as again:
        assert windowed.Windows(again, group).closed >= 3
        windowed.run(again, group, processors)
        assert [one.value for one in windowed.Windows(again, group).outputs()] == expected_outputs()


def test_processors_in_several_processes_may_share_a_store(tmp_path):
    """A site of its own for each, on one file: of what the other commits no watch tells."""
    group, handle = sums()
    sites = [ev.Site.open(tmp_path / "a.db", PROGRAM, name="a") for _ in "ab"]

    async def run():
        await asyncio.gather(
            *(
                windowed.Runner(
                    site, group, {name: windowed.Processor(handle, windowed.Listed(range(12)))}
                ).run()
                for site, name in zip(sites, "ab", strict=True)
            )
        )

    asyncio.run(run())
    expected = expected_outputs()[:8] * 2
    assert [one.value for one in windowed.Windows(sites[0], group).outputs()] == expected
    for site in sites:
        site.close()


def test_nobody_is_taken_over_by_a_runner_that_does_not_run_or_has_him(site):
    group, handle = sums()
    processor = windowed.Processor(handle, windowed.Listed([]))
    runner = windowed.Runner(site, group, {"a": processor})
    with pytest.raises(ev.DataError, match="is not running"):
        runner.adopt("b", processor)
    with pytest.raises(ev.DataError, match="does not run here"):
        runner.restart("b")


def kill_until_done(path, chance, kills):
    """Run the child again and again, killed −9 after a random while, until one comes to its end."""
    for attempt in range(kills + 1):
        process = subprocess.Popen([sys.executable, "-m", "tests.streams.windows.child", str(path)])
        if attempt < kills:
            time.sleep(chance.uniform(0.4, 1.2))
            process.send_signal(signal.SIGKILL)
        if process.wait(60) == 0:
            return
    raise AssertionError("the last one was not killed, and did not end well")


def check_killed(path):
    """What a process that was killed leaves behind is what one leaves that was not."""
    with ev.Site.open(":memory:", PROGRAM) as whole, ev.Site.open(path) as site:
        windowed.run(whole, child.GROUP, child.processors())
        assert site.rows("windowed_outputs") == whole.rows("windowed_outputs") != []
        last = windowed.Windows(site, child.GROUP)
        assert last.closed == windowed.Windows(whole, child.GROUP).closed
        assert last.value(last.closed).value == 3 * sum(range(child.COUNT))


def test_a_process_that_is_killed_goes_on_from_its_disk(tmp_path):
    kill_until_done(tmp_path / "s.db", random.Random(5), 2)
    check_killed(tmp_path / "s.db")


def test_processors_over_sites_that_sync_and_crash_write_the_same(caplog):
    caplog.set_level("ERROR", "everview.windowed")
    sites = [ev.Site.open(":memory:", PROGRAM, name=f"s{number}") for number in range(3)]
    for seed in range(12):
        check_sites(seed, sites[: 1 + seed % 3])
    check_sites(3)
    for site in sites:
        site.close()

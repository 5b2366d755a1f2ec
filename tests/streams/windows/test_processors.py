"""The paper's programs with real processors, what a handler may do, and what it is told when it may not."""

import asyncio
import itertools
import random
from collections import Counter

import pytest
from tests.streams.windows import virtual
from tests.streams.windows.sites import PROGRAM

import everview as ev
from everview import windowed
from everview.algebra.lattices import GrowSet, Max, MergeMap
from everview.streams.windows import processor
from everview.streams.windows.site_ledger import SiteLedger

COUNTS = MergeMap(Max())


@pytest.fixture
def site():
    with ev.Site.open(":memory:", PROGRAM, name="here") as opened:
        yield opened


def processors(handler, **messages):
    return {name: windowed.Processor(handler, windowed.Listed(listed)) for name, listed in messages.items()}


def values(site, group):
    return [one.value for one in windowed.Windows(site, group).outputs()]


# Windows' Listings 1 to 3.


def test_program_a_reads_what_it_happens_to_know_and_its_results_vary(site):
    """Without windows: a shared count, read as it is. All that can be printed is printed by some schedule."""
    printed = {0: set(), 1: set()}
    for seed in range(80):
        chance = random.Random(seed)
        replicas = {name: ev.crdt.Counter(name) for name in "ab"}

        async def program_a(ctx, message, replicas=replicas, chance=chance):
            mine = replicas[ctx.processor]
            mine.add(1)
            await asyncio.sleep(chance.random())
            if chance.random() < 0.7:
                mine.join(replicas["b" if ctx.processor == "a" else "a"])
            ctx.emit([message, 100 * (message + 1) // mine.value])

        group = windowed.Group(f"a{seed}", ev.crdt.Counter, {"a", "b"})
        ledger = SiteLedger(site, group, threaded=False)
        runner = windowed.Runner(site, group, processors(program_a, a=[0, 1], b=[0, 1]), ledger=ledger)
        virtual.run(runner.run(), chance)
        for number, percent in values(site, group):
            printed[number].add(percent)
    assert printed == {0: {33, 50, 100}, 1: {50, 66, 100}}


async def program_b(ctx, message):
    """A barrier after each addition: the window is closed, and awaited at once."""
    if message == "add":
        ctx.update(1)
        ctx.next_window()
    else:
        ctx.emit(100 * ctx.current // (await ctx.window(ctx.current - 1)).value)


async def program_c(ctx, message):
    """Two additions in two windows; both are awaited after that."""
    if message == "add":
        ctx.update(1)
        ctx.next_window()
    else:
        for window in (0, 1):
            ctx.emit(100 * (window + 1) // (await ctx.window(window)).value)


@pytest.mark.parametrize(
    ("program", "messages"),
    [(program_b, ["add", "print", "add", "print"]), (program_c, ["add", "add", "print"])],
)
def test_programs_b_and_c_always_print_50(site, program, messages):
    for seed in range(25):
        group = windowed.Group(f"{program.__name__} {seed}", ev.crdt.Counter, {"a", "b"})
        ledger = SiteLedger(site, group, threaded=False)
        runner = windowed.Runner(site, group, processors(program, a=messages, b=messages), ledger=ledger)
        virtual.run(runner.run(), random.Random(seed))
        assert values(site, group) == [50] * 4
    group = windowed.Group(program.__name__, ev.crdt.Counter, {"a", "b"})
    windowed.run(site, group, processors(program, a=messages, b=messages))  # and on a loop with a clock
    assert values(site, group) == [50] * 4


def test_the_alert_follows_the_last_window(site):
    """Windows §3.5: 90 is the alert at first; 100 visitors are seen, and it becomes 110 everywhere.

    The paper's Listing 4 drops the message that closes a window, and awaits window −1 in window 0.
    """

    async def watch(ctx, visits):
        if visits["window"] > ctx.current:
            ctx.next_window(before=True)  # this visit belongs to the next window already
        alert = 90
        if ctx.current > 0:
            alert = (await ctx.window(ctx.current - 1)).value * 11 // 10
        if visits["total"] > alert:
            ctx.emit({"alert": alert, "seen": visits["total"]})
        ctx.state.add(visits["here"])

    def visit(window, here, total):
        return {"window": window, "here": here, "total": total}

    group = windowed.Group("alert", ev.crdt.Counter, {"s1", "s2", "s3"})
    windowed.run(
        site,
        group,
        processors(
            watch,
            s1=[visit(0, 50, 95), visit(1, 1, 105)],
            s2=[visit(0, 30, 80), visit(1, 1, 111)],
            s3=[visit(0, 20, 90), visit(1, 0, 110)],
        ),
    )
    seen = [(one.processor, one.value) for one in windowed.Windows(site, group).outputs()]
    assert seen == [("s1", {"alert": 90, "seen": 95}), ("s2", {"alert": 110, "seen": 111})]
    assert windowed.Windows(site, group).value(0).value == 100


# What a handler may do.


def test_a_message_that_closes_before_itself_is_handled_in_the_next_window_alone(site):
    calls = []

    async def handle(ctx, message):
        calls.append((message, ctx.current))
        ctx.update(frozenset({message}))
        ctx.emit(message)
        if ctx.current < message:
            ctx.next_window(before=True)

    group = windowed.Group("g", GrowSet(), {"a"})
    windowed.run(site, group, processors(handle, a=[0, 0, 3, 3]))
    assert calls == [(0, 0), (0, 0), (3, 0), (3, 1), (3, 2), (3, 3), (3, 3)]
    windows = windowed.Windows(site, group)
    assert [windows.value(number) for number in range(4)] == [{0}, {0}, {0}, {0, 3}]
    assert [(one.message, one.value) for one in windows.outputs()] == [(0, 0), (1, 0), (2, 3), (3, 3)]


def test_what_a_message_contributed_before_it_was_put_off_is_undone(site):
    async def handle(ctx, message):
        ctx.state.add(message)
        if ctx.current < 1:
            ctx.next_window(before=True)

    group = windowed.Group("g", ev.crdt.Counter, {"a"})
    windowed.run(site, group, processors(handle, a=[5]))
    windows = windowed.Windows(site, group)
    assert [windows.value(number).value for number in range(2)] == [0, 5]


def test_outputs_can_be_read_before_their_window_is_closed(site):
    class Waits(windowed.Listed):
        async def read(self, offset, limit):
            return await super().read(offset, limit) or await asyncio.Event().wait()

    async def run():
        group = windowed.Group("g", ev.crdt.Counter, {"a", "b"})
        runner = windowed.Runner(
            site,
            group,
            {
                "a": windowed.Processor(echo, Waits([1, 2])),  # waits for another message
                "b": windowed.Processor(echo_and_wait, windowed.Listed([3, 4, 5])),  # waits for a window
            },
        )
        task = asyncio.create_task(runner.run())
        while values(site, group) != [1, 2, 3, 4]:
            assert not task.done()
            await asyncio.sleep(0.005)
        assert windowed.Windows(site, group).closed == -1
        task.cancel()
        await asyncio.wait([task])

    async def echo(ctx, message):
        ctx.emit(message)

    async def echo_and_wait(ctx, message):
        if message == 5:
            await ctx.window(0)
        ctx.emit(message)
        if message == 3:
            ctx.next_window()

    asyncio.run(run())


def test_what_a_message_does_after_closing_belongs_to_the_window_that_it_closes(site):
    async def handle(ctx, message):
        ctx.next_window()
        ctx.state.add(message)

    group = windowed.Group("g", ev.crdt.Counter, {"a"})
    windowed.run(site, group, processors(handle, a=[1, 2]))
    windows = windowed.Windows(site, group)
    assert [windows.value(number).value for number in range(3)] == [1, 3, 3]


def test_processors_join_and_leave_at_window_boundaries(site):
    async def handle(ctx, message):
        ctx.update({ctx.processor: message})
        if ctx.processor == "a":
            ctx.next_window(joins={"late": 1} if ctx.current == 0 else {}, leaves=ctx.current == 2)
        elif message == 30:
            ctx.next_window(leaves=True)
        else:
            ctx.next_window()

    group = windowed.Group("g", COUNTS, {"a", "b"})
    windowed.run(
        site, group, processors(handle, a=[1, 2, 3], b=[10, 20, 30, 99], late=[0, 200, 300, 400, 500])
    )
    windows = windowed.Windows(site, group)
    assert windows.value(0) == {"a": 1, "b": 10}
    assert windows.value(1) == {"a": 2, "b": 20, "late": 200}  # from its message 1 on
    assert windows.value(2) == {"a": 3, "b": 30, "late": 300}
    assert windows.value(3) == {"late": 400}
    assert windows.closed == 5  # the last is closed by the end of its source
    assert windows.awaited(6) == frozenset()


@pytest.mark.parametrize("fetch", [1, 3, 256])
def test_a_windows_value_depends_neither_on_how_many_share_the_input_nor_on_batches(site, fetch, monkeypatch):
    """Words with the window that they belong to, dealt out to 1, 2, 3 and 7 processors."""
    monkeypatch.setattr(processor, "_FETCH", fetch)
    chance = random.Random(11)
    words = sorted((chance.randrange(8), chance.choice("abcd")) for _ in range(150))

    async def count(ctx, message):
        window, word = message
        if ctx.current < window:
            ctx.next_window(before=True)
        if word is not None:
            ctx.update(word, 1)

    found = []
    for parts in (1, 2, 3, 7):
        group = windowed.Group(
            f"{parts} {fetch}",
            lambda source: ev.crdt.Map(source, ev.crdt.Counter(source)),
            map(str, range(parts)),
        )
        # Each part ends with a message of window 8, so that all take part in all windows before.
        listed = {str(part): [*words[part::parts], (8, None)] for part in range(parts)}
        windowed.run(site, group, processors(count, **listed))
        windows = windowed.Windows(site, group)
        found.append([windows.value(window).value for window in range(8)])
    for window in range(8):
        counted = Counter(word for at, word in words if at <= window)
        assert all(values[window] == counted for values in found)


def test_old_windows_are_collected_and_so_is_what_would_be_replayed(site):
    released = []

    class Source(windowed.Listed):
        def release(self, offset):
            released.append(offset)

    async def handle(ctx, message):
        ctx.state.add(1)
        await asyncio.sleep(0.001)
        if ctx.current:
            ctx.emit((await ctx.window(ctx.current - 1)).value)
        ctx.next_window()

    group = windowed.Group("g", ev.crdt.Counter, {"a", "b"}, keep=2)
    windowed.run(site, group, {n: windowed.Processor(handle, Source(range(30))) for n in "ab"})
    windows = windowed.Windows(site, group)
    assert windows.floor >= 20
    assert {row[1] for row in site.rows("windowed_entries")} == set(range(windows.floor, windows.closed + 1))
    assert len(site.rows("windowed_floors")) == 1
    assert max(released) == windows.floor + 1
    assert [one.value for one in windows.outputs()] == [2 * n for n in range(1, 30)] * 2
    with pytest.raises(ev.DataError, match="was collected"):
        windows.value(0)


@pytest.mark.parametrize(
    ("make", "observations", "value"),
    [
        (ev.crdt.Counter, [(1,), (2,)], 6),
        (lambda s: ev.crdt.Sum(s, of=int), [(5,), (-2,)], 6),
        (lambda s: ev.crdt.Average(s, of=float), [(1.0,), (2.0,)], 1.5),
        (ev.crdt.Maximum, [(3,), (7,)], 7),
        (ev.crdt.Set, [("x",), ("y",)], frozenset("xy")),
        (ev.crdt.Bag, [("x",), ("x",)], None),
        (lambda s: ev.crdt.TopN(s, 1), [("x", 2), ("y", 5)], None),
        (lambda s: ev.crdt.Map(s, ev.crdt.Counter(s)), [("x", 2), ("y", 5)], {"x": 4, "y": 10}),
        (ev.crdt.DistinctCount, [(1,), (2,)], None),
    ],
)
def test_windows_hold_every_kind_of_crdt(site, make, observations, value):
    async def handle(ctx, message):
        ctx.update(*message)
        ctx.next_window()

    group = windowed.Group("g", make, {"a", "b"})
    windowed.run(site, group, processors(handle, a=observations, b=observations))
    found = windowed.Windows(site, group).value(1).value
    if value is not None:
        assert found == value
    whole = make("whole")
    for observation in observations * 2:
        whole.contribute(whole.aggregate.lift(*observation))
    assert found == whole.value or abs(found - whole.value) < 0.01


# Errors instead of waiting for ever.


@pytest.mark.parametrize("back", [0, -1, -5, 3])
def test_a_window_that_was_not_closed_here_or_lies_too_far_back_cannot_be_awaited(site, back):
    async def handle(ctx, message):
        if ctx.current < 5:
            ctx.next_window()
        else:
            await ctx.window(ctx.current - back)

    group = windowed.Group("g", ev.crdt.Counter, {"a"}, keep=2)
    with pytest.raises(ev.DataError, match="a is in window 5 and cannot await window") as caught:
        windowed.run(site, group, processors(handle, a=range(9)))
    assert caught.value.__notes__ == ["a in window 5, at message 5"]


def test_there_is_no_window_before_the_first(site):
    async def handle(ctx, message):
        await ctx.window(ctx.current - 1)

    with pytest.raises(ev.DataError, match="none before 0"):
        windowed.run(site, windowed.Group("g", COUNTS, {"a"}), processors(handle, a=[1]))


def test_a_handler_that_is_not_deterministic_is_found_out_when_it_is_read(site):
    chance = itertools.count()

    async def handle(ctx, message):
        ctx.update({ctx.processor: next(chance)})
        ctx.emit(next(chance))
        ctx.next_window()

    group = windowed.Group("g", COUNTS, {"a"})
    other = ev.Site.open(":memory:", PROGRAM, name="there")
    for where in (site, other):
        windowed.run(where, group, processors(handle, a=[1]))
    windows = windowed.Windows(site, group)
    assert windows.value(0)  # nobody knows yet
    site.sync(other)
    with pytest.raises(ev.NonDeterminismError, match="window 0 of a was written with two different values"):
        windows.value(0)
    with pytest.raises(ev.NonDeterminismError, match="output 0 of message 0 of a"):
        windows.outputs()
    with pytest.raises(ev.NonDeterminismError):
        windowed.run(site, group, processors(handle, a=[1]))
    other.close()


def test_bad_descriptions_are_refused(site):
    with pytest.raises(ev.DataError, match="a set of names, not the str"):
        windowed.Group("g", COUNTS, "ab")
    with pytest.raises(ev.DataError, match="needs a processor"):
        windowed.Group("g", COUNTS, ())
    with pytest.raises(ev.DataError, match="at least 1"):
        windowed.Group("g", COUNTS, {"a"}, keep=0)
    with pytest.raises(ev.DataError, match="windows are of a lattice"):
        windowed.Group("g", 7, {"a"})
    with pytest.raises(ev.DataError, match="randomised"):
        windowed.Group("g", lambda s: ev.crdt.Map(s, ev.crdt.Quantiles(s)), {"a"})
    bare = ev.Site.open(":memory:", ev.Program.parse("CREATE TABLE r (a BIGINT)"))
    with pytest.raises(ev.DataError, match=r"add everview.windowed.RELATIONS"):
        windowed.run(bare, windowed.Group("g", COUNTS, {"a"}), {})
    bare.close()


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda ctx: (ctx.next_window(), ctx.next_window()), "closes its window already"),
        (lambda ctx: ctx.next_window(before=True, leaves=True), "handles no message again"),
        (lambda ctx: ctx.next_window(joins={"b": -1}), "must not be negative"),
        (lambda ctx: ctx.emit(object()), "a JSON value"),
        (lambda ctx: ctx.update({"a": object()}) or ctx.next_window(), "no canonical bytes"),
    ],
)
def test_a_misused_context_says_so_and_nothing_is_written(site, misuse, message):
    async def handle(ctx, _message):
        misuse(ctx)

    with pytest.raises(ev.DataError, match=message):
        windowed.run(site, windowed.Group("g", COUNTS, {"a"}), processors(handle, a=[1]))
    assert site.rows("windowed_entries") == site.rows("windowed_outputs") == []


def test_a_context_serves_no_longer_than_its_handler_runs(site):
    kept = []

    async def handle(ctx, message):
        kept.append(ctx)

    windowed.run(site, windowed.Group("g", COUNTS, {"a"}), processors(handle, a=[1]))
    for use in (lambda c: c.update({}), lambda c: c.emit(1), lambda c: c.next_window(), lambda c: c.state):
        with pytest.raises(ev.DataError, match="has been handled"):
            use(kept[0])


def test_a_source_that_goes_back_is_refused(site):
    class Backwards(windowed.Listed):
        async def read(self, offset, limit):
            return [(1, "b"), (0, "a")]

    async def handle(ctx, message):
        pass

    with pytest.raises(ev.DataError, match="gave message 0 when asked from 2 on"):
        windowed.run(
            site, windowed.Group("g", COUNTS, {"a"}), {"a": windowed.Processor(handle, Backwards([]))}
        )

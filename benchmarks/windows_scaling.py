"""Windows' Figure 7: 1 to 16 processors, 1 ms a message, 100 ms between processors, with and without awaits.

Every processor has a runner and a board of its own; all write into one site, and hear of the others' entries
100 ms after these were committed. The paper's prototype writes nothing to a disk, so the site of the
headline is in memory; the same with a durable site, each entry on the disk before anybody hears of it, is
measured besides.

The ideal is the work alone, and with awaits one delay for each; with one processor there is nobody to wait
for. A cycle is what lies between two awaits. Whole cycles are measured, on the wall clock, after one to warm
up.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import everview as ev
from benchmarks.harness import Result
from benchmarks.simulated import Numbers, Post, Work
from everview.algebra.lattices import Max, MergeMap
from everview.streams.windows.context import Context
from everview.streams.windows.group import Group
from everview.streams.windows.processor import Processor
from everview.streams.windows.relations import RELATIONS
from everview.streams.windows.runner import Runner
from everview.streams.windows.site_ledger import SiteLedger

_WORK, _DELAY = 0.001, 0.1
_BASELINE_CYCLE = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """Messages a window, windows an await, and what the paper had at 16 processors, thousands a second."""

    messages: int | None
    windows: int
    paper: float

    @property
    def cycle(self) -> int:
        """The messages between two awaits."""
        return _BASELINE_CYCLE if self.messages is None else self.messages * self.windows

    @property
    def label(self) -> str:
        """How it is called in the table."""
        if self.messages is None:
            return "no windows, no awaits"
        often = "every window" if self.windows == 1 else f"every {self.windows} windows"
        return f"{self.messages} messages a window, await {often}"

    def ideal(self, processors: int) -> float:
        """The seconds of a cycle, if nothing but work and delay took time."""
        waits = self.messages is not None and processors > 1
        return self.cycle * _WORK + (_DELAY if waits else 0)


SETTINGS = (
    Setting(None, 1, 12.10),
    Setting(400, 1, 10.02),
    Setting(200, 1, 8.52),
    Setting(400, 10, 11.79),
    Setting(200, 10, 11.45),
    Setting(40, 10, 6.72),
    Setting(20, 10, 3.99),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Thousands of messages a second, the share of the ideal, and processor time a message."""

    throughput: float
    efficiency: float
    cpu_us: float

    @property
    def text(self) -> str:
        """How it is shown."""
        return f"{self.throughput:.2f} k/s, {self.efficiency:.1%} of the ideal, {self.cpu_us:.0f} µs of CPU"


def run(*, quick: bool) -> Result:
    """Measure all settings; quick: a few, with few processors, for a moment each."""
    counts = (1, 4) if quick else (1, 2, 4, 8, 16)
    most = max(counts)
    settings = (SETTINGS[0], SETTINGS[2], SETTINGS[6]) if quick else SETTINGS
    seconds, repeats = (0.3, 1) if quick else (10.0, 3)
    found: dict[tuple[Setting, int], Measured] = {}
    durable: dict[Setting, Measured] = {}
    controls: list[float] = []
    for setting in settings:
        for count in counts:
            lasts = seconds if count == most else seconds / 2
            found[setting, count] = _median(setting, count, lasts, repeats, durably=False)
        durable[setting] = _median(setting, most, seconds / 2, repeats, durably=True)
        controls.append(asyncio.run(_control(most, max(1, round(seconds)))))
    table = []
    for setting in settings:
        table += [(f"{setting.label}, {count}", found[setting, count].text) for count in counts]
        table.append((f"{setting.label}, {most}, durable", durable[setting].text))
        table.append((f"{setting.label}, 16, the paper", f"{setting.paper:.2f} k/s"))
    control = statistics.median(controls)
    table.append((f"tasks that only sleep and meet, {most}: the machine's own share", f"{control:.1%}"))
    overhead = asyncio.run(_overhead(2_000 if quick else 200_000))
    table.append(("the runtime's own time for a message without work", f"{overhead:.1f} µs"))
    figures = {
        "efficiency_min": min(one.efficiency for one in found.values()),
        "baseline_efficiency": min(one.efficiency for (s, _), one in found.items() if s.messages is None),
        "durable_efficiency_min": min(one.efficiency for one in durable.values()),
        "control_efficiency": control,
        "cpu_us_per_message": statistics.median(one.cpu_us for (_, n), one in found.items() if n == most),
        "overhead_us_per_message": overhead,
    }
    parameters = {
        "processors": list(counts),
        "work_ms": 1000 * _WORK,
        "delay_ms": 1000 * _DELAY,
        "seconds": seconds,
        "repeats": repeats,
    }
    return Result("windows_scaling", parameters, figures, table)


def _median(setting: Setting, count: int, seconds: float, repeats: int, *, durably: bool) -> Measured:
    turns = [_measure(setting, count, seconds, durably=durably) for _ in range(repeats)]
    return sorted(turns, key=lambda one: one.efficiency)[len(turns) // 2]


def _measure(setting: Setting, count: int, seconds: float, *, durably: bool) -> Measured:
    """Run whole cycles, one to warm up and then for so many seconds."""
    cycles = max(1, math.ceil(seconds / setting.ideal(count)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "windows.db" if durably else ":memory:"
        with ev.Site.open(path, ev.Program.parse(RELATIONS), name="bench") as site:
            return asyncio.run(_cycles(site, setting, count, cycles, durably=durably))


async def _cycles(site: ev.Site, setting: Setting, count: int, cycles: int, *, durably: bool) -> Measured:
    names = [f"p{number:02}" for number in range(count)]
    group = Group("scaling", MergeMap(Max()), names)
    post = Post(SiteLedger(site, group, threaded=durably), _DELAY)
    marks: dict[str, list[float]] = {name: [] for name in names}
    runners = [
        Runner(
            site,
            group,
            {name: Processor(_handler(setting, marks[name]), Numbers((cycles + 1) * setting.cycle))},
            ledger=post.link(name),
        )
        for name in names
    ]
    post.open()
    pump = asyncio.create_task(post.run())
    began = time.process_time()
    await asyncio.gather(*(runner.run() for runner in runners))
    spent = time.process_time() - began
    pump.cancel()
    post.close()
    taken = statistics.mean(ends[-1] - ends[0] for ends in marks.values())
    messages = cycles * setting.cycle
    return Measured(
        throughput=count * messages / taken / 1000,
        efficiency=cycles * setting.ideal(count) / taken,
        cpu_us=spent / (count * (messages + setting.cycle)) * 1e6,
    )


def _handler(setting: Setting, marks: list[float]) -> Any:
    """Count messages; close a window after so many, and await the last after so many windows."""
    work = Work(_WORK)

    async def handle(ctx: Context, number: int) -> None:
        if setting.messages is not None and number and number % setting.cycle == 0:
            await ctx.window(ctx.current - 1)
            work.pause()
        if number % setting.cycle == 0:
            marks.append(time.perf_counter())
        await work.do()
        ctx.update({ctx.processor: number})
        if setting.messages is not None and (number + 1) % setting.messages == 0:
            ctx.next_window()

    return handle


async def _control(count: int, cycles: int) -> float:
    """Return the share of the ideal that tasks reach which do nothing but the sleeping: no runtime, no site.

    What a busy machine takes from everybody is seen here, between any two settings.
    """
    loop, marks = asyncio.get_running_loop(), [[0.0] for _ in range(count)]
    gates = [(loop.create_future(), [count]) for _ in range(cycles + 1)]

    async def task(mine: list[float]) -> None:
        work = Work(_WORK)
        for gate, missing in gates:
            mine.append(time.perf_counter())
            for _ in range(200):
                await work.do()
            missing[0] -= 1
            if not missing[0]:
                loop.call_later(_DELAY, gate.set_result, None)
            await gate
            work.pause()

    await asyncio.gather(*(task(mine) for mine in marks))
    return cycles * (200 * _WORK + _DELAY) / statistics.mean(mine[-1] - mine[1] for mine in marks)


async def _overhead(count: int) -> float:
    """Return the microseconds that the runtime takes for a message that takes no time itself."""

    async def handle(ctx: Context, number: int) -> None:
        ctx.update({ctx.processor: number})

    with ev.Site.open(":memory:", ev.Program.parse(RELATIONS), name="bench") as site:
        runner = Runner(site, Group("none", MergeMap(Max()), {"p"}), {"p": Processor(handle, Numbers(count))})
        began = time.perf_counter()
        await runner.run()
        return (time.perf_counter() - began) / count * 1e6

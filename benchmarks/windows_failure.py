"""Windows' Figure 8: five processors, 4 ms a message, 1 s to restart, and somebody killed every five seconds.

Once every processor awaits each window that it has closed, so that all stand still with the one that was
killed; once none does, and those that are well go on. All run under one supervisor over one durable site. A
processor that was killed goes on from its last window; its progress counts again when it has passed where it
was.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import everview as ev
from benchmarks.harness import Result
from benchmarks.plot import Panel, svg
from benchmarks.simulated import Numbers, Work
from everview.algebra.lattices import Max, MergeMap
from everview.streams.windows.context import Context
from everview.streams.windows.group import Group
from everview.streams.windows.processor import Processor
from everview.streams.windows.relations import RELATIONS
from everview.streams.windows.runner import Runner

_WORK, _RESTART, _WINDOW, _SAMPLE = 0.004, 1.0, 80, 0.1
_NAMES = [f"p{number}" for number in range(5)]
_KILLS: dict[int, tuple[int, ...]] = {5: (0,), 10: (2, 3), 15: (0, 1, 4), 20: (4,), 25: (1, 3)}
_SECONDS = 30
_FAILURE = 1.5
"""How long a failure lasts: the restart, and most of a window that is done again."""
_PAPER = {"with": "4,964", "without": "5,475 to 5,913"}
_DOCS = Path(__file__).parents[1] / "docs"


@dataclass
class Run:
    """What became of every processor: how far it was at each sample, and how much it had handled."""

    times: list[float] = field(default_factory=list)
    progress: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _NAMES})
    handled: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _NAMES})
    kills: list[tuple[float, frozenset[str]]] = field(default_factory=list)

    def rate(self, name: str, begin: float, end: float) -> float:
        """Return the messages a second that a processor handled in some time."""
        inside = [i for i, t in enumerate(self.times) if begin <= t <= end]
        first, last = inside[0], inside[-1]
        return (self.handled[name][last] - self.handled[name][first]) / (self.times[last] - self.times[first])

    def healthy(self) -> list[float]:
        """Return, for each failure and each processor that was well, its rate against its own before."""
        return [
            self.rate(name, at, at + _FAILURE) / self.rate(name, at - _FAILURE, at)
            for at, killed in self.kills
            for name in _NAMES
            if name not in killed
        ]


def run(*, quick: bool) -> Result:
    """Run the schedule twice, with awaits and without; quick: with one kill, in four seconds."""
    kills: dict[int, tuple[int, ...]] = {2: (0, 2)} if quick else _KILLS
    seconds = 4 if quick else _SECONDS
    runs = {way: asyncio.run(_run(kills, seconds, awaits=way == "with")) for way in ("with", "without")}
    if not quick:
        _draw(runs)
    healthy = runs["without"].healthy()
    figures = {
        "healthy_throughput_min": min(healthy),
        "healthy_throughput_median": statistics.median(healthy),
        "healthy_with_awaits_median": statistics.median(runs["with"].healthy()),
    }
    table = [(name, f"{value:.3f}") for name, value in figures.items()]
    for way, found in runs.items():
        totals = ", ".join(f"{found.progress[name][-1]:,}" for name in _NAMES)
        table.append((f"messages in {seconds} s, {way} awaits", totals))
        table.append((f"the paper in 30 s, {way} awaits", _PAPER[way]))
        figures[f"total_min_{way}_awaits"] = min(found.progress[name][-1] for name in _NAMES)
    parameters = {
        "processors": len(_NAMES),
        "work_ms": 1000 * _WORK,
        "restart_seconds": _RESTART,
        "messages_per_window": _WINDOW,
        "seconds": seconds,
        "synchronous": "FULL",
    }
    return Result("windows_failure", parameters, figures, table)


async def _run(kills: dict[int, tuple[int, ...]], seconds: int, *, awaits: bool) -> Run:
    found = Run()
    program = ev.Program.parse(RELATIONS)
    with (
        tempfile.TemporaryDirectory() as folder,
        ev.Site.open(Path(folder) / "windows.db", program, name="bench") as site,
    ):
        processors = {name: Processor(_handler(awaits=awaits), Numbers()) for name in _NAMES}
        group = Group("failure", MergeMap(Max()), _NAMES)
        runner = Runner(site, group, processors, restart_seconds=_RESTART)
        task = asyncio.create_task(runner.run())
        await _watch(runner, found, dict(kills), seconds)
        task.cancel()
        await asyncio.wait([task])
    return found


async def _watch(runner: Runner, found: Run, kills: dict[int, tuple[int, ...]], seconds: int) -> None:
    """Kill by the schedule, and look at everybody every 100 ms."""
    began = time.perf_counter()
    while (now := time.perf_counter() - began) < seconds + _SAMPLE / 2:
        for at in [at for at in kills if at <= now]:
            killed = [_NAMES[number] for number in kills.pop(at)]
            found.kills.append((now, frozenset(killed)))
            for name in killed:
                runner.restart(name)
        found.times.append(now)
        for name in _NAMES:
            state = runner.state(name)
            before = found.progress[name][-1] if found.progress[name] else 0
            found.progress[name].append(max(before, state.index))
            found.handled[name].append(state.handled)
        await asyncio.sleep(_SAMPLE - (time.perf_counter() - began) % _SAMPLE)


def _handler(*, awaits: bool) -> Any:
    work = Work(_WORK)

    async def handle(ctx: Context, number: int) -> None:
        if awaits and number and number % _WINDOW == 0:
            await ctx.window(ctx.current - 1)
            work.pause()
        await work.do()
        ctx.update({ctx.processor: number})
        if (number + 1) % _WINDOW == 0:
            ctx.next_window()

    return handle


def _draw(runs: dict[str, Run]) -> None:
    """Draw everybody's progress over time, a point every half second."""
    panels = []
    for way, found in runs.items():
        shown = range(0, len(found.times), 5)
        lines = {name: [float(found.progress[name][i]) for i in shown] for name in _NAMES}
        times = [round(found.times[i], 1) for i in shown]
        panels.append(Panel(f"{way} awaits", "seconds", "messages, absolute progress", times, lines))
    (_DOCS / "benchmark-windows-failure.svg").write_text(svg(panels))

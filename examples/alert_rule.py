"""Windows §3.5: three servers of a website, and an alert that follows the last window.

Each server counts its visitors. At the end of a window the three counts become one, the same for everybody;
a server that sees more visitors at once than a tenth above that total raises an alert. No server waits for
another before it needs the total, and none can see a different one, whatever is slow and whoever fails: here
server s2 fails in the middle, and the site of s3 is lost and s3 is taken over by a peer.

Run it: `python examples/alert_rule.py`.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import everview as ev
from everview import windowed

PROGRAM = ev.Program.parse(windowed.RELATIONS)
SERVERS = windowed.Group("visitors", ev.crdt.Counter, {"s1", "s2", "s3"})
FIRST_ALERT = 90


def visits(server: str, windows: int = 6) -> list[dict[str, int]]:
    """What a server sees: for each window a few batches of visitors."""
    chance = random.Random(server)
    return [
        {"window": window, "visitors": chance.randint(5, 20), "at_once": chance.randint(60, 180)}
        for window in range(windows)
        for _ in range(3)
    ]


def handler(*, fails: list[int]) -> windowed.Handler:
    """What a server does with a batch; it `fails` at those batches, once each."""

    async def on_visits(ctx: windowed.Context, batch: dict[str, int]) -> None:
        if batch["window"] > ctx.current:
            ctx.next_window(before=True)  # this batch is the first of the next window
        alert = FIRST_ALERT
        if ctx.current > 0:
            last = (await ctx.window(ctx.current - 1)).value
            before = (await ctx.window(ctx.current - 2)).value if ctx.current > 1 else 0
            alert = (last - before) * 11 // 10
        if fails and batch["visitors"] in fails:
            fails.remove(batch["visitors"])
            raise RuntimeError("a cable was pulled")
        if batch["at_once"] > alert:
            ctx.emit({"window": ctx.current, "alert": alert, "seen": batch["at_once"]})
        ctx.state.add(batch["visitors"])
        await asyncio.sleep(0.002)

    return on_visits


async def run() -> list[Any]:
    """Run s1 and s2 at one site, s3 at another, which is lost on the way."""
    here, there = (ev.Site.open(":memory:", PROGRAM, name=name) for name in ("here", "there"))

    def processor(server: str, site: ev.Site, **options: list[int]) -> windowed.Processor:
        source = windowed.Replicated(site, SERVERS, server, windowed.Listed(visits(server)))
        return windowed.Processor(handler(fails=options.get("fails", [])), source)

    fails = [visits("s2")[7]["visitors"]]
    mine = windowed.Runner(
        here, SERVERS, {"s1": processor("s1", here), "s2": processor("s2", here, fails=fails)}
    )
    theirs = windowed.Runner(there, SERVERS, {"s3": processor("s3", there)})
    tasks = [asyncio.create_task(runner.run()) for runner in (mine, theirs)]
    windows = windowed.Windows(here, SERVERS)
    while windows.closed < 2:
        await asyncio.to_thread(here.sync, there)
    tasks[1].cancel()
    await asyncio.wait(tasks[1:])
    print(f"s3 was in window {theirs.state('s3').window} when its site was lost")
    there.close()
    mine.adopt("s3", processor("s3", here))
    await tasks[0]
    print(f"s2 failed {mine.state('s2').restarts} time; s3 went on with window {windows.closed} as its last")
    outputs = windows.outputs()
    here.close()
    return outputs


async def calm() -> list[Any]:
    """The same with one site, and nobody fails."""
    with ev.Site.open(":memory:", PROGRAM, name="calm") as site:
        servers = sorted(SERVERS.members)
        processors = {
            server: windowed.Processor(handler(fails=[]), windowed.Listed(visits(server)))
            for server in servers
        }
        await windowed.Runner(site, SERVERS, processors).run()
        return windowed.Windows(site, SERVERS).outputs()


def main() -> None:
    """Run both, and compare."""
    outputs = asyncio.run(run())
    for one in outputs:
        print(f"  {one.processor}, batch {one.message}: {one.value}")
    if outputs != asyncio.run(calm()):
        raise SystemExit("the failures have changed something")
    print(f"{len(outputs)} alerts, the same as without any failure")


if __name__ == "__main__":
    main()

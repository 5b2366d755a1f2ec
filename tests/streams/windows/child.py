"""A process to be killed, with processors over a site: `python -m tests.streams.windows.child FILE`."""

import asyncio
import sys

import everview as ev
from everview import windowed

GROUP = windowed.Group("killed", ev.crdt.Counter, {"a", "b", "c"}, keep=3)
COUNT = 120


async def handle(ctx, number):
    await asyncio.sleep(0.001)
    if ctx.current >= 2 and number % 3 == 0:
        ctx.emit([ctx.current - 2, (await ctx.window(ctx.current - 2)).value])
    ctx.state.add(number)
    if number % 7 == 6:
        ctx.next_window()


def processors():
    return {name: windowed.Processor(handle, windowed.Listed(range(COUNT))) for name in sorted(GROUP.members)}


def main(path):
    with ev.Site.open(path, ev.Program.parse(windowed.RELATIONS), name="child") as site:
        windowed.run(site, GROUP, processors())


if __name__ == "__main__":
    main(sys.argv[1])

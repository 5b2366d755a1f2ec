"""Windowed processors by random schedules, with crashes at any step: every run writes the same bytes.

Most cases are worlds of a virtual loop; every fiftieth runs over real sites that sync, and loses some of
them.
"""

import logging

from tests.streams.windows.sites import check_sites
from tests.streams.windows.world import check

PARALLEL = True
_seen = {"crashes": 0, "windows": 0, "outputs": 0, "over sites": 0, "lost sites": 0}


def case(seed):
    logging.getLogger("everview.windowed").setLevel(logging.ERROR)
    if seed % 50 == 0:
        world = check_sites(seed)
        return {"crashes": world.crashes, "over sites": 1, "lost sites": world.lost}
    world = check(seed, schedule=seed)
    windows = len({window for window, _ in world.history.entries})
    return {"crashes": world.crashes, "windows": windows, "outputs": len(world.history.outputs)}


def tally(found):
    for what, count in found.items():
        _seen[what] += count


def summary():
    return ", ".join(f"{count:,} {what}" for what, count in _seen.items())

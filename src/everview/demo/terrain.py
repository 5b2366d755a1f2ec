"""Where the mission takes place: sectors in the hills, paths between them, and who is there."""

from __future__ import annotations

import datetime as dt

NAMES = (
    "Camp",
    "Ford",
    "Mill",
    "Quarry",
    "Birch Wood",
    "Tarn",
    "Ridge",
    "Old Mine",
    "Scree",
    "Shelter",
    "Saddle",
    "Summit",
)
"""Sectors 1 to 12, in rows of four from the camp up."""

_WIDTH = 4

TEAMS = ("team-1", "team-2", "team-3")
DRONES = ("drone-1", "drone-2", "drone-3", "drone-4")
POST, HUB = "post", "hub"

RELATIONS = ("sectors", "paths", "units", "sightings")
VIEWS = ("reachable", "seen", "priority", "orders", "flown")
ON_DRONES = ("sightings", "orders", "flown")
"""What a drone hosts: not one row of sectors, paths and units, and yet the orders made from them."""

DAWN = dt.datetime(2026, 6, 1, 5, 0, tzinfo=dt.UTC)
STEP = dt.timedelta(minutes=2)
"""How much of the mission's time passes in one step of the demo."""


def sectors() -> list[tuple[int, str, bool]]:
    """All sectors, none of them searched but the camp."""
    return [(number, name, number == 1) for number, name in enumerate(NAMES, 1)]


def paths() -> list[tuple[int, int, bool]]:
    """A path between neighbours, all of them passable."""
    found = []
    for number in range(1, len(NAMES) + 1):
        if number % _WIDTH:
            found.append((number, number + 1, True))
        if number + _WIDTH <= len(NAMES):
            found.append((number, number + _WIDTH, True))
    return found


def units() -> list[tuple[str, int, bool]]:
    """The teams, in the camp and ready."""
    return [(team, 1, True) for team in TEAMS]

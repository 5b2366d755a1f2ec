"""A timeline: what happened to whom in a run, step by step, for people to look at."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from everview.testing.worlds import steps as do
from everview.testing.worlds.runs import Failure, Simulation
from everview.testing.worlds.world import START_US, World

__all__ = ["timeline"]

_FAULTS = (do.Crash, do.Restore, do.Copy, do.Leave, do.Partition, do.Lose, do.Lie)
"""Steps that are faults whatever they say."""


def timeline(case: do.Case) -> dict[str, Any]:
    """Run a case; return its steps with what each did, and how it ended, as plain values."""
    lanes = {
        place.name: {"name": place.name, "skew": place.skew, "from": 0, "to": None} for place in case.places
    }
    told: list[dict[str, Any]] = []
    before: Counter[str] = Counter()

    def watch(world: World, at: int) -> None:
        for name in world.sites:
            lanes.setdefault(name, {"name": name, "skew": world.skews[name], "from": at, "to": None})
        for name, lane in lanes.items():
            if name not in world.sites and lane["to"] is None:
                lane["to"] = at
        happened = world.counts - before
        before.update(happened)
        told.append(_told(world, at, case.steps[at] if at < len(case.steps) else None, happened))

    failure: dict[str, Any] | None = None
    try:
        Simulation(case=case).run(watch)
    except Failure as wrong:
        failure = {"step": wrong.step, "problem": wrong.problem}
        if wrong.step < len(case.steps):
            told.append(_plain(wrong.step, case.steps[wrong.step]))
    return {
        "seed": case.seed,
        "program": case.program,
        "lanes": list(lanes.values()),
        "steps": told,
        "length": len(case.steps),
        "failure": failure,
        "counts": dict(sorted(before.items())),
    }


def _told(world: World, at: int, step: do.AnyStep | None, happened: Counter[str]) -> dict[str, Any]:
    mended = isinstance(step, do.Partition) and (step.site, step.peer) not in world.network.down
    plain = _plain(at, step)
    return plain | {
        "fault": plain["fault"] and not mended,
        "at": round((world.now_us - START_US) / 1e6, 3),
        "happened": dict(sorted(happened.items())),
        "heads": {name: site.head for name, site in world.sites.items()},
        "down": sorted(map(list, world.network.down)),
        "packets": len(world.network.packets),
    }


def _plain(at: int, step: do.AnyStep | None) -> dict[str, Any]:
    """The step alone; None is the healing at the end."""
    if step is None:
        return {"number": at, "do": "heal", "sites": [], "fault": False, "more": {}}
    fields = msgspec.to_builtins(step)
    named = [fields.pop(name, None) for name in ("site", "peer", "name")]
    return {
        "number": at,
        "do": fields.pop("do"),
        "sites": [site for site in named if site],
        "fault": _is_fault(step),
        "more": fields,
    }


def _is_fault(step: do.AnyStep) -> bool:
    is_spoiled = isinstance(step, do.Deliver) and step.fate != "arrives"
    return isinstance(step, _FAULTS) or is_spoiled or bool(getattr(step, "crash", 0))

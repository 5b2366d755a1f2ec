"""Making a failing case small: steps are left out, and what is left is made simpler, while it still fails."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from everview.testing.worlds.runs import Failure, Simulation
from everview.testing.worlds.steps import AnyStep, Case, Deliver, Write

PATIENCE_SECONDS = 60.0


def failure(case: Case) -> Failure | None:
    """How a case fails, if it does."""
    try:
        Simulation(case=case).run()
    except Failure as found:
        return found
    return None


def kind(found: Failure) -> str:
    """What sort of failure it is: its words, without names and numbers."""
    return " ".join(word for word in found.problem.split(", ")[0].split()[:5] if word.isalpha())


def minimise(case: Case, *, seconds: float = PATIENCE_SECONDS) -> Case:
    """Return a small case that fails in the same way: no step can be left out, or the time is up."""
    end = time.monotonic() + seconds
    first = failure(case)
    if first is None:
        return case
    if first.step < len(case.steps):
        case = msgspec.structs.replace(case, steps=case.steps[: first.step + 1])
    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for attempt in _attempts(case):
            if time.monotonic() > end:
                break
            found = failure(attempt)
            if found is not None and kind(found) == kind(first):
                case, smaller = attempt, True
                break
    return case


def _attempts(case: Case) -> Iterator[Case]:
    """Ever smaller runs of steps left out; then sites, clocks, pages, crashes and operations."""
    steps, replace = case.steps, msgspec.structs.replace
    size = max(len(steps) // 2, 1)
    while size:
        for start in range(len(steps) - size, -1, -size):
            yield replace(case, steps=steps[:start] + steps[start + size :])
        size //= 2
    for place in case.places[::-1]:
        rest = [one for one in case.places if one is not place]
        if len(rest) > 1:
            yield replace(case, places=rest)
        if place.skew or place.hosts is not None:
            yield replace(
                case, places=[replace(p, skew=0, hosts=None) if p is place else p for p in case.places]
            )
    if case.page_cells < 1_000_000:
        yield replace(case, page_cells=1_000_000)
    lines = case.program.splitlines()
    for at, line in enumerate(lines):
        hosted = [name for place in case.places for name in place.hosts or ()]
        rest_of = " ".join([*lines[:at], *lines[at + 1 :], *hosted, ""])
        if "VIEW" in line and not case.transfers and f" {line.split()[3]} " not in rest_of:
            yield replace(case, program="\n".join(lines[:at] + lines[at + 1 :]))
    for at, step in enumerate(steps):
        for simpler in _simpler(step, transfers=case.transfers):
            yield replace(case, steps=[*steps[:at], simpler, *steps[at + 1 :]])


def _simpler(step: AnyStep, *, transfers: bool) -> Iterator[AnyStep]:
    if getattr(step, "crash", 0):
        yield msgspec.structs.replace(step, crash=0)
    if isinstance(step, Deliver) and step.pick:
        yield msgspec.structs.replace(step, pick=0)
    if isinstance(step, Write) and len(step.operations) > 1 and not transfers:
        for at in range(len(step.operations)):
            rest = step.operations[:at] + step.operations[at + 1 :]
            yield msgspec.structs.replace(step, operations=rest)

"""Making a failing case small: steps are left out, and what is left is made simpler, while it still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from everview.testing.simulation.network import around
from everview.testing.simulation.simulation import Failure, Simulation
from everview.testing.simulation.steps import AnyStep, Case, Deliver, Find, Write

PATIENCE_SECONDS = 60.0


def _simulate(case: Case) -> object:
    return Simulation(case=case).run()


def failure(case: Case, run: Callable[[Case], object] = _simulate) -> Failure | None:
    """How a case fails, if it does."""
    try:
        run(case)
    except Failure as found:
        return found
    return None


def kind(found: Failure) -> str:
    """What sort of failure it is: its words, without names and numbers."""
    return " ".join(word for word in found.problem.split(", ")[0].split()[:5] if word.isalpha())


def minimise(
    case: Case, *, seconds: float = PATIENCE_SECONDS, run: Callable[[Case], object] = _simulate
) -> Case:
    """Return a small case that fails in the same way: no step can be left out, or the time is up.

    `run` runs a case, and raises `Failure` if it shows something wrong.
    """
    end = time.monotonic() + seconds
    first = failure(case, run)
    if first is None:
        return case
    if first.step < len(case.steps):
        case = _with(case, case.steps[: first.step + 1])

    def fails(attempt: Case) -> bool:
        found = failure(attempt, run)
        return found is not None and kind(found) == kind(first)

    smaller = True
    while smaller and time.monotonic() < end:
        smaller = False
        for attempt in _attempts(case):
            if time.monotonic() > end:
                break
            if fails(attempt):
                case, smaller = attempt, True
                break
    return case


def _with(case: Case, steps: list[AnyStep]) -> Case:
    return msgspec.structs.replace(case, steps=steps)


def _attempts(case: Case) -> Iterator[Case]:
    """Ever smaller runs of steps left out; then sites, clocks, pages, crashes and operations."""
    steps = case.steps
    size = max(len(steps) // 2, 1)
    while size:
        for start in range(len(steps) - size, -1, -size):
            yield _with(case, steps[:start] + steps[start + size :])
        size //= 2
    # Where sites host parts, nothing is promised without the one that hosts everything.
    needed = case.places[0] if _hosts_parts(case) else None
    for place in case.places[::-1]:
        if len(case.places) > 2 and place is not needed:
            yield _without(case, place.name)
        if place.skew:
            rest = [msgspec.structs.replace(p, skew=0) if p is place else p for p in case.places]
            yield msgspec.structs.replace(case, places=rest)
    if case.page_rows < 20_000:
        yield msgspec.structs.replace(case, page_rows=20_000)
    for at, step in enumerate(steps):
        for simpler in _simpler(step, transfers=case.transfers):
            yield _with(case, [*steps[:at], simpler, *steps[at + 1 :]])


def _without(case: Case, name: str) -> Case:
    """A case without a site: its neighbours are linked instead."""
    near = [a if b == name else b for a, b in case.links if name in (a, b)]
    links = [pair for pair in case.links if name not in pair]
    links += [link for link in around(near, parts=_hosts_parts(case)) if link not in links]
    steps = [s for s in case.steps if name not in (getattr(s, "site", ""), getattr(s, "peer", ""))]
    places = [place for place in case.places if place.name != name]
    return msgspec.structs.replace(case, places=places, links=links, steps=steps)


def _hosts_parts(case: Case) -> bool:
    return any(place.hosts is not None for place in case.places)


def _simpler(step: AnyStep, *, transfers: bool) -> Iterator[AnyStep]:
    if getattr(step, "crash", 0):
        yield msgspec.structs.replace(step, crash=0)
    if isinstance(step, Deliver | Find) and step.pick:
        yield msgspec.structs.replace(step, pick=0)
    if isinstance(step, Write) and len(step.operations) > 1 and not transfers:
        for at in range(len(step.operations)):
            rest = step.operations[:at] + step.operations[at + 1 :]
            yield msgspec.structs.replace(step, operations=rest)

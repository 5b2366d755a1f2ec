"""Running a case: step by step, then the world heals, and all must agree."""

from __future__ import annotations

import hashlib
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path

from everview.replication.transports.report import SyncReport
from everview.testing.worlds.actions import happen, visit
from everview.testing.worlds.cases import random_case
from everview.testing.worlds.invariants import Wrong, check_rest
from everview.testing.worlds.network import deliver, sync
from everview.testing.worlds.sites import Site
from everview.testing.worlds.steps import Case, dump_case
from everview.testing.worlds.world import World

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - stores there are as real as elsewhere, and syncing them is quick

ROUNDS = 12
"""How often all may meet before they have to be at rest."""

FILING = 5
"""How often all visit the folder before nothing moves there."""

Watch = Callable[[World, int], None]
"""Told of the world and the number of the step that was done."""


class Failure(AssertionError):  # noqa: N818 - it names what was found; tests read better so
    """A case that shows something wrong: at which step, and what."""

    def __init__(self, case: Case, step: int, problem: str) -> None:
        self.case, self.step, self.problem = case, step, problem
        where = f"step {step}" if step < len(case.steps) else "healing"
        super().__init__(f"seed {case.seed}, {where}: {problem}\n{dump_case(case)}")


@dataclass(frozen=True, slots=True)
class Result:
    """What happened in a run, how often, and a trace that the same case leaves again."""

    seed: int
    counts: Counter[str]
    trace: list[str] = field(repr=False)

    @property
    def digest(self) -> str:
        """A hash of the trace."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()


class Simulation:
    """The case of a seed, or a given one. `run` raises `Failure` when it shows something wrong."""

    def __init__(self, seed: int = 0, *, kind: str = "", case: Case | None = None) -> None:
        self.case = random_case(seed, kind) if case is None else case

    def run(self, watch: Watch | None = None) -> Result:
        """Run all steps, heal, and compare; return what happened. `watch` is told after each of them."""
        where = MEMORY_DISK if MEMORY_DISK.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="everview-", dir=where, ignore_cleanup_errors=True) as folder:
            return self._run(Path(folder), watch)

    def _run(self, folder: Path, watch: Watch | None) -> Result:
        case, at = self.case, -1
        world = World(case, folder)
        try:
            for at, step in enumerate(case.steps):
                world.note(f"{at} {type(step).__name__}")
                happen(step, world)
                if watch is not None:
                    watch(world, at)
            at = len(case.steps)
            heal(world)
            if watch is not None:
                watch(world, at)
        except Wrong as wrong:
            raise Failure(case, at, str(wrong)) from wrong
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__} in {where.name}: {error}"
            raise Failure(case, at, problem) from error
        finally:
            world.close()
        return Result(case.seed, world.counts, world.trace)


def heal(world: World) -> None:
    """All faults end, what is on its way comes or is lost, all meet until nothing moves; then they agree."""
    world.note("healing")
    world.network.down.clear()
    for site in world.sites.values():
        site.rights.clear()
    packets, world.network.packets = world.network.packets, []
    for packet in packets[::-2]:
        to, sender = world.sites.get(packet.to), world.sites.get(packet.sender)
        if to and sender and (world.case.wild or not (to.fork or sender.fork)):
            deliver(world, packet)
            world.check(to)
    _find_out(world)
    _give_up(world)
    settle(world)
    if not world.case.wild:
        check_rest(world)
        if world.counts["visits"]:
            _rest_in_folder(world)


def _find_out(world: World) -> None:
    """A store that went back meets one that knows better; if there is none, it is lost."""
    for site in [site for site in world.sites.values() if site.fork]:
        for other in list(world.sites.values()):
            if site.fork and other is not site and other.knows(site):
                sync(world, site, other)
        if site.fork and not world.case.wild:
            world.counts["never found out"] += 1
            world.remove(site)


def _give_up(world: World) -> None:
    """Somebody says which stores are lost for good: views that only these could complete are read again."""
    there = {site.incarnation for site in world.sites.values()}
    sites = [site for name, site in sorted(world.sites.items()) if world.is_honest(name)]
    for number, lost in enumerate(sorted(world.gone - there)):
        site = sites[number % len(sites)]
        with world.acting(site):
            site.replica.give_up(lost)
        world.counts["given up"] += 1


def settle(world: World) -> None:
    """Let all who meet do so until that changes nothing anywhere."""
    for _ in range(ROUNDS):
        before = _state(world)
        for one, other in _pairs(world):
            sync(world, one, other)
            world.check(one)
            world.check(other)
        if _state(world) == before:
            return
    raise Wrong(f"the sites do not come to rest in {ROUNDS} rounds")


def _rest_in_folder(world: World) -> None:
    """Let all visit the folder until that moves nothing; then a newcomer learns there what they know.

    A file that was spoiled when its writer had left is noticed by newcomers only: nobody else reads it.
    """
    sites = [site for name, site in sorted(world.sites.items()) if world.is_honest(name)]
    reports: list[SyncReport] = []
    for _ in range(FILING):
        reports = [visit(world, site) for site in sites]
    if any(report.received_rows or report.sent_rows for report in reports):
        raise Wrong(f"the folder does not come to rest in {FILING} rounds")
    newcomer = world.add("newcomer", 0)
    if visit(world, newcomer).skipped:
        return
    for site in sites:
        for name in filter(world.is_sound, site.shares):
            if site.live(name) != newcomer.live(name):
                raise Wrong(f"in the folder {name} is not what {site.name} has of it")


def _state(world: World) -> dict[str, tuple[str, int]]:
    return {name: (site.incarnation, site.head) for name, site in world.sites.items()}


def _pairs(world: World) -> Iterator[tuple[Site, Site]]:
    sites = [site for name, site in sorted(world.sites.items()) if world.is_honest(name)]
    if any(site.hosts is not None for site in sites) or world.case.shape == "mesh":
        yield from combinations(sites, 2)
    elif world.case.shape == "star":
        yield from ((site, sites[0]) for site in sites[1:])
    else:
        yield from pairwise(sites)

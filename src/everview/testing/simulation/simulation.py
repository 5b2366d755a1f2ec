"""A simulation: a case is run step by step, then the world heals, and everyone must agree."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.generate import evolving_case, generate_case
from everview.testing.simulation.happenings import happen
from everview.testing.simulation.healing import heal
from everview.testing.simulation.steps import Case, dump_case
from everview.testing.simulation.world import World

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - stores there are as real as elsewhere, and syncing them is quick


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
    """The case of a seed, or a given one. `run` raises `Failure` when it shows something wrong.

    In an `evolving` one sites go over to a later program, one by one.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        large: bool = False,
        evolving: bool = False,
        faults: Collection[str] | None = None,
        case: Case | None = None,
    ) -> None:
        if case is None:
            case = evolving_case(seed) if evolving else generate_case(seed, large=large, faults=faults)
        self.case = case

    def run(self) -> Result:
        """Run all steps, heal, and compare; return what happened."""
        where = MEMORY_DISK if MEMORY_DISK.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="everview-", dir=where, ignore_cleanup_errors=True) as folder:
            return self._run(Path(folder))

    def _run(self, folder: Path) -> Result:
        case, at = self.case, -1
        world = World(case, folder)
        try:
            for at, step in enumerate(case.steps):
                world.note(f"{at} {type(step).__name__}")
                happen(step, world)
            at = len(case.steps)
            world.note("healing")
            heal(world)
            return Result(case.seed, +world.counts, world.trace)
        except Wrong as wrong:
            raise Failure(case, at, str(wrong)) from wrong
        except Exception as error:
            raise Failure(case, at, f"{type(error).__name__}: {error}") from error
        finally:
            world.close()

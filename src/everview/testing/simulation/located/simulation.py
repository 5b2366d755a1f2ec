"""A simulation of a located program: steps happen, then the world heals, and all places must be right."""

from __future__ import annotations

import tempfile
from collections.abc import Collection
from pathlib import Path

from everview.errors import LimitError
from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.located.generate import generate_located
from everview.testing.simulation.located.happenings import Refused, happen_located
from everview.testing.simulation.located.healing import heal_located
from everview.testing.simulation.located.steps import LocatedCase
from everview.testing.simulation.located.world import LocatedWorld
from everview.testing.simulation.simulation import MEMORY_DISK, Failure, Result


class LocatedSimulation:
    """The located case of a seed, or a given one. `run` raises `Failure` when it shows something wrong."""

    def __init__(
        self, seed: int = 0, *, faults: Collection[str] | None = None, case: LocatedCase | None = None
    ) -> None:
        self.case = case if case is not None else generate_located(seed, faults=faults)

    def run(self) -> Result:
        """Run all steps, heal, and compare; return what happened."""
        where = MEMORY_DISK if MEMORY_DISK.is_dir() else None
        with tempfile.TemporaryDirectory(prefix="everview-", dir=where, ignore_cleanup_errors=True) as folder:
            return self._run(Path(folder))

    def _run(self, folder: Path) -> Result:
        case, at = self.case, -1
        world = LocatedWorld(case, folder)
        try:
            for at, step in enumerate(case.steps):
                world.note(f"{at} {type(step).__name__}")
                happen_located(step, world)
            at = len(case.steps)
            world.note("healing")
            heal_located(world)
        except Refused:
            world.counts["refused to count from a backup"] += 1
        except LimitError:
            world.counts["too many proofs"] += 1
        except Wrong as wrong:
            raise Failure(case, at, str(wrong)) from wrong
        except Exception as error:
            raise Failure(case, at, f"{type(error).__name__}: {error}") from error
        finally:
            world.close()
        return Result(case.seed, +world.counts, world.trace)

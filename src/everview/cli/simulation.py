"""`everview simulate`: random worlds of sites, until one shows something wrong."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from everview.cli.options import Debug, Json, count, print_json
from everview.errors import DataError

if TYPE_CHECKING:
    from everview.testing.simulation import Case, Failure, Simulation
    from everview.testing.simulation.located import LocatedSimulation

__all__ = ["read_case", "simulate"]


def simulate(
    *,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many worlds.")] = 100,
    first: Annotated[int, typer.Option("--first", help="The first world's seed.")] = 0,
    large: Annotated[bool, typer.Option("--large", help="No faults, and over 100,000 rows each.")] = False,
    located: Annotated[
        bool, typer.Option("--located", help="Sites run a located program: rules that live at places.")
    ] = False,
    replay: Annotated[
        Path | None, typer.Option("--replay", help="Run the case in this file instead.", show_default=False)
    ] = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - its callback has taken note of it
) -> None:
    """Simulate sites that write, sync, crash and heal; check that they agree.

    A world that goes wrong is made small and written to a file, which --replay runs again.

    Example: everview simulate --seeds 500 --first 1000
    """
    from everview.testing.simulation import Failure, Simulation  # noqa: PLC0415 - not needed for --help
    from everview.testing.simulation.located import LocatedSimulation  # noqa: PLC0415

    if located and large:
        raise DataError("located worlds are small; leave out --large or --located")

    def world(seed: int) -> Simulation | LocatedSimulation:
        return LocatedSimulation(seed) if located else Simulation(seed, large=large)

    logging.getLogger("everview").setLevel(logging.ERROR)  # clocks that run ahead are part of the game
    worlds = [_of(read_case(replay))] if replay is not None else map(world, range(first, first + seeds))
    done, counts, digests = 0, Counter[str](), []
    try:
        with _Progress(1 if replay is not None else seeds) as progress:
            for each in worlds:
                result = each.run()
                counts += result.counts
                digests.append(result.digest)
                done += 1
                progress.advance()
    except Failure as failure:
        _fail(failure, done, as_json=as_json, written=replay)
        raise typer.Exit(1) from failure
    if as_json:
        print_json({"ok": True, "worlds": done, "counts": dict(sorted(counts.items())), "traces": digests})
        return
    for what, number in sorted(counts.items()):
        sys.stdout.write(f"{number:>10,}  {what}\n")
    sys.stdout.write(f"{count(done, 'world')}: all sites agree\n")


def _of(case: Case) -> Simulation | LocatedSimulation:
    from everview.testing.simulation import Simulation  # noqa: PLC0415
    from everview.testing.simulation.located import LocatedCase, LocatedSimulation  # noqa: PLC0415

    return LocatedSimulation(case=case) if isinstance(case, LocatedCase) else Simulation(case=case)


def read_case(path: Path) -> Case:
    """The case in a file."""
    from everview.testing.simulation import load_case  # noqa: PLC0415
    from everview.testing.simulation.located import load_located  # noqa: PLC0415

    data = path.read_bytes()
    with suppress(ValueError):
        return load_located(data)
    try:
        return load_case(data)
    except ValueError as error:
        raise DataError(f"{path} is no case that `everview simulate` wrote ({error})") from error


def _fail(failure: Failure, done: int, *, as_json: bool, written: Path | None) -> None:
    """Make the case small and write it down, unless it came from a file."""
    from everview.testing.simulation import dump_case, minimise  # noqa: PLC0415

    case = failure.case
    if written is None:
        case = minimise(case, run=lambda attempt: _of(attempt).run())
        written = Path(f"simulation-{case.seed}.json")
        written.write_text(dump_case(case))
    if as_json:
        told = {
            "ok": False,
            "worlds": done,
            "seed": case.seed,
            "step": failure.step,
            "problem": failure.problem,
        }
        print_json({**told, "replay": str(written)})
    typer.secho("error: ", nl=False, err=True, fg="red", bold=True)
    typer.echo(
        f"seed {case.seed}: {failure.problem}; again with: everview simulate --replay {written}", err=True
    )


class _Progress:
    """A bar, on a terminal only."""

    def __init__(self, total: int) -> None:
        from rich.console import Console  # noqa: PLC0415 - not needed for --help
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn  # noqa: PLC0415

        console = Console(stderr=True)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self) -> None:
        """One more is done."""
        self._bar.advance(self._task)

"""`everview simulate`: random worlds of sites, until one shows something wrong."""

from __future__ import annotations

import logging
import sys
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

from everview.cli.options import Debug, Json, count, print_json
from everview.errors import DataError

if TYPE_CHECKING:
    from everview.testing.worlds import Case, Failure

__all__ = ["read_case", "simulate"]


class Kind(StrEnum):
    """What worlds are like."""

    FAULTS = "faults"
    LIAR = "liar"
    WILD = "wild"
    LARGE = "large"


def simulate(
    *,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many worlds.")] = 100,
    first: Annotated[int, typer.Option("--first", help="The first world's seed.")] = 0,
    kind: Annotated[
        Kind,
        typer.Option("--kind", help="Worlds with faults; with a liar; where stores go back unseen; large."),
    ] = Kind.FAULTS,
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
    from everview.testing.worlds import Failure, Simulation  # noqa: PLC0415 - not needed for --help

    logging.getLogger("everview").setLevel(logging.CRITICAL)  # stores that go back are part of the game
    if replay is not None:
        worlds = iter([Simulation(case=read_case(replay))])
    else:
        chosen = "" if kind is Kind.FAULTS else kind.value
        worlds = (Simulation(seed, kind=chosen) for seed in range(first, first + seeds))
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


def read_case(path: Path) -> Case:
    """The case in a file."""
    from everview.testing.worlds import load_case  # noqa: PLC0415

    try:
        return load_case(path.read_bytes())
    except ValueError as error:
        raise DataError(f"{path} is no case that `everview simulate` wrote ({error})") from error


def _fail(failure: Failure, done: int, *, as_json: bool, written: Path | None) -> None:
    """Make the case small and write it down, unless it came from a file."""
    from everview.testing.worlds import dump_case, minimise  # noqa: PLC0415

    case = failure.case
    if written is None:
        case = minimise(case)
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

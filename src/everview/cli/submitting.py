"""A hub as a Spark application: what spark-submit runs (see docs/CLUSTER.md).

    spark-submit --py-files everview.zip everview-hub.py --store URI --program FILE --once

The session is the one that spark-submit sets up: master, memory and all else are its options.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from everview.cli.stopping import until_stopped
from everview.errors import EverviewError

if TYPE_CHECKING:
    from everview.hub import Hub, RefreshReport

__all__ = ["main"]

_LOOK = 0.2
"""Seconds between two looks at whether the run has ended by itself."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Refresh a hub once, or until SIGINT or SIGTERM; exit status 0, or 1 with one line on standard error."""
    given = _parser().parse_args(arguments)
    try:
        _run(given)
    except EverviewError as error:
        if given.debug:
            raise
        sys.exit(f"error: {' '.join(str(error).split())}")
    sys.exit(0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="everview-hub.py", description="A hub as a Spark application.")
    parser.add_argument("--store", metavar="URI", required=True, help="the hub's folder or URI")
    parser.add_argument("--program", metavar="FILE", required=True, help="the program's file, of the driver")
    parser.add_argument("--name", default="hub", help="the hub's name (hub)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--once", action="store_true", help="refresh once, and end")
    how.add_argument("--trigger", metavar="TIME", default="1 second", help="how often to look (1 second)")
    parser.add_argument("--publish", action="store_true", help="bring the published tables along, too")
    parser.add_argument("--debug", action="store_true", help="on an error, show the traceback")
    return parser


def _run(given: argparse.Namespace) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - not needed for --help

    from everview.hub import Hub  # noqa: PLC0415
    from everview.language.program import Program  # noqa: PLC0415

    program = Program.load(given.program)
    is_ours = SparkSession.getActiveSession() is None
    spark = SparkSession.builder.getOrCreate()
    freshness = 0.0 if given.publish else None
    try:
        with Hub.open(given.store, program, spark=spark, name=given.name, freshness=freshness) as hub:
            if given.once:
                _say(given.name, hub.refresh())
            else:
                _stay(hub, given.trigger)
    finally:
        if is_ours:
            spark.stop()


def _stay(hub: Hub, trigger: str) -> None:
    with until_stopped() as stopped, hub.run(trigger) as run:
        sys.stdout.write(f"{hub.name} runs\n")
        sys.stdout.flush()
        while not stopped.wait(_LOOK) and not run.wait(0):
            pass


def _say(name: str, report: RefreshReport) -> None:
    changes = {table: dataclasses.asdict(change) for table, change in report.changes.items()}
    said = {"hub": name, "refresh": report.refresh, "arrivals": report.arrivals, "changes": changes}
    sys.stdout.write(json.dumps(said, ensure_ascii=False) + "\n")

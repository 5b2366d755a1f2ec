"""What Spark's pages call a hub's jobs: the hub, what it does, tables and stages, in the program's words.

A job has a group, such as `rescue: refresh 12`, and a description, which begins with it. A group that is set
already stays: whoever set it, a stream or the caller, may cancel by it. Both are put back when the job is
done, so they never stand at a job that is not the hub's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from pyspark import SparkContext
from pyspark.errors import PySparkException

from everview.errors import MissingDependencyError

__all__ = ["NEEDED", "entitled", "job", "working"]

NEEDED = ("numpy", "pyarrow", "xxhash")
"""The modules that a task imports beside PySpark, this package and what comes with Python."""

_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_MISSING = re.compile(r"No module named '(\w+)|PACKAGE_NOT_INSTALLED\] (\w+)")

_work: ContextVar[str] = ContextVar("what a hub does", default="")

Task = TypeVar("Task", bound=Callable[..., object])


@contextmanager
def working(hub: str, what: str) -> Iterator[None]:
    """What the jobs that are run meanwhile, in this thread, are for."""
    token = _work.set(f"{hub}: {what}")
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def job(context: SparkContext, what: str, needed: Sequence[str] = NEEDED) -> Iterator[None]:
    """Name the job that is run meanwhile; MissingDependencyError when executors lack what it needs."""
    work = _work.get()
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    if work and before[_GROUP] is None:
        context.setLocalProperty(_GROUP, work)
    context.setLocalProperty(_DESCRIPTION, f"{work}, {what}" if work else what)
    try:
        yield
    except PySparkException as error:
        found = _MISSING.search(str(error))
        module = (found[1] or found[2]).lower() if found is not None else ""
        if module not in (*needed, "everview"):  # it may be a module of the caller's own functions
            raise
        raise MissingDependencyError(_lacking(module, needed)) from error
    finally:
        with suppress(Exception):  # Spark itself has ended, and the error says so
            for name, value in before.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]  # None takes it away


def entitled(task: Task, title: str) -> Task:
    """A task under the title by which the plan of its query shows it."""
    task.__name__ = title
    return task


def _lacking(module: str, needed: Sequence[str]) -> str:
    if module == "everview":
        return (
            "the executors' Python has no everview: open it on a session whose master is the "
            "cluster's, then the driver sends it, or give spark-submit --py-files everview.zip, which "
            "`everview package` makes"
        )
    return (
        f"the executors' Python has no {module}: the tasks need {', '.join(needed)} there, of the "
        "versions that everview[hub] asks for; install them on every worker, or choose a Python that has "
        "them by spark.pyspark.python"
    )

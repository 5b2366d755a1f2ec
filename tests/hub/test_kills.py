"""Whenever a hub is killed, what was acknowledged is there once it is opened again, and nothing else is."""

import random

import pytest
from tests.hub.kills import FEW_ROWS, STAGES, History, at_stage, history, open_place
from tests.hub.quick import quickly

SEED = 11
ON_EXECUTORS = ("arrived", "looked up", "runs written")
"""Stages that differ when the executors do the work."""


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("stage", STAGES)
def test_ended_at_every_stage(spark, tmp_path, stage, monkeypatch):
    """In this process: what it leaves is what a kill leaves, without the wait for another Spark."""
    told = History(tmp_path, SEED)
    go_on(told, spark)
    go_on(told, spark)
    for executors in (False, True) if stage in ON_EXECUTORS else (False,):
        with monkeypatch.context() as patch, pytest.raises(KilledError):
            go_on(told, spark, lambda patch=patch: at_stage(stage, end, patch.setattr), executors=executors)
        told.check(spark)


def go_on(told, spark, prepare=lambda: None, *, executors=False):
    """Open the store for two writes and a refresh."""
    with open_place(told.place, spark) as hub:
        quickly(hub)
        if executors:
            hub._store.driver_rows = FEW_ROWS
        prepare()
        for number in range(told.wrote, told.wrote + 2):
            relation, present, rows = history(told.seed, number)
            (hub.insert if present else hub.delete)(relation, rows)
            told.hear("wrote", number)
        told.hear("refresh", number)
        hub.refresh()
        told.hear("refreshed", number)


def end():
    raise KilledError


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_killed_at_stages_and_at_random(spark, tmp_path):
    """Five kills in the life of one store."""
    rng = random.Random(SEED)
    told = History(tmp_path, SEED)
    told.run(stage="before record", passes=1)
    told.check(spark)
    told.run(stage="after record", passes=2)
    told.check(spark)
    told.run(stage="runs written", passes=0, executors=True)
    told.check(spark)
    for _ in range(2):
        told.run(refreshes=rng.randrange(4), seconds=rng.uniform(0, 0.3))
        told.check(spark)
    assert told.kills == 5

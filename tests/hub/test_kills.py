"""Whenever a hub is killed, what was acknowledged is there once it is opened again, and nothing else is."""

import random

import pytest
from tests.hub.kills import FEW_ROWS, PROGRAM, STAGES, History, at_stage, history
from tests.hub.quick import quickly

from everview.hub import Hub

SEED = 11


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("stage", STAGES)
def test_ended_at_every_stage(spark, tmp_path, stage, monkeypatch):
    """In this process: what it leaves is what a kill leaves, without the wait for another Spark."""
    told = History(tmp_path, SEED)
    refreshes = [2, 4, 5]
    for number in range(6):
        with Hub.open(tmp_path, PROGRAM, spark=spark) as hub, monkeypatch.context() as patch:
            if number == refreshes[-1] and stage != "written":
                # The last one is the executors'.
                hub._driver_rows = FEW_ROWS
            if number == 4 or number == 5:
                at_stage(stage, end, patch.setattr)
            try:
                relation, present, rows = history(SEED, number)
                (quickly(hub).insert if present else hub.delete)(relation, rows)
                told.hear("wrote", number)
                if number in refreshes:
                    told.hear("refresh", number)
                    hub.refresh()
                    told.hear("refreshed", number)
            except KilledError:
                told.kills += 1
        if told.wrote <= number:
            assert stage == "written"
            told.check(spark)
            with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
                (hub.insert if present else hub.delete)(relation, rows)
                told.hear("wrote", number)
    told.check(spark)
    assert told.kills == 2


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
        told.run(seconds=rng.uniform(0, 4))
        told.check(spark)
    assert told.kills == 5

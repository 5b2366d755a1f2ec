"""Whenever the driver of a pipeline on Spark is killed, what was acknowledged is in when it is opened."""

import pytest
from tests.streams.kills import History


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_killed_at_random_while_it_takes_files_in(spark, tmp_path):
    history = History(tmp_path, seed=3)
    history.run(files=2, seconds=0.15)
    history.check(spark)

"""A Spark job that copies a view into a bag is killed, and nothing is lost or doubled."""

import pytest
from tests.hub.trips import Trip


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_job_that_was_killed_goes_on_where_it_was(spark, tmp_path):
    with Trip(tmp_path, spark, 3) as trip:
        trip.run_and_kill()
        trip.settle()

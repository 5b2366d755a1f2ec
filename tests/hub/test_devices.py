"""A slice of `tests.long.hub_devices`: six devices, at times offline, and `everview hub` in the middle."""

import pytest
from tests.long.hub_devices import case

SECONDS = 6


@pytest.mark.timeout(900)
def test_six_devices_and_a_hub_converge(spark):
    """Real processes and real HTTP; afterwards all files are equal, and to the reference."""
    counts = case(4, seconds=SECONDS, session=spark)
    assert counts["offline"] > 0
    assert counts["refreshes"] > 1
    assert counts["states watched"] > 1

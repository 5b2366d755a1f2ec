"""A slice of `tests.long.located_processes`: four places over HTTP, some of them killed."""

import pytest
from tests.long.located_processes import case


@pytest.mark.timeout(300)
def test_places_that_are_killed_come_to_what_the_text_says():
    counts = case(1, seconds=0.8, names="abcd")
    assert counts["kills"] > 0
    assert counts["turns"] > 0

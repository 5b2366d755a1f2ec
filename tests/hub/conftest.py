"""What several tests of hubs read and none changes."""

import random
from unittest import mock

import pytest
from tests.hub.changing import compare_changes

from everview.hub import compact


@pytest.fixture(scope="session")
def past(spark, tmp_path_factory):
    """A hub with some refreshes, whose runs were merged often, and whose changes were compared."""
    with mock.patch.object(compact, "FANOUT", 3):
        return compare_changes(spark, tmp_path_factory.mktemp("past"), random.Random(5), 12)

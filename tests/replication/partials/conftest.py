"""Sites of partial aggregates: two that hold rows, and one that holds none."""

import pytest
from tests.replication.partials.program import PROGRAM, VIEWS
from tests.replication.sites import World


@pytest.fixture
def world():
    return World()


@pytest.fixture
def a(world):
    return world.site("a", program=PROGRAM)


@pytest.fixture
def b(world):
    return world.site("b", program=PROGRAM)


@pytest.fixture
def reader(world):
    return world.site("reader", program=PROGRAM, hosts=VIEWS)

"""Random histories whose runs are merged early: a change is the difference of the rows at two refreshes."""

import functools
import random
import tempfile
from unittest import mock

from tests.hub.changing import compare_changes

from everview.engines.spark.session import start_session
from everview.hub import compact

_session = functools.cache(functools.partial(start_session, master="local[2]"))


def case(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(compact, "FANOUT", rng.choice([2, 3, 6])):
        compare_changes(_session(), folder, rng, rng.randrange(8, 20))

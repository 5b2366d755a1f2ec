"""Random histories on real stores and on the specification, compared after every step."""

import logging

from tests.replication.compared.histories import random_case, run

PARALLEL = True


def case(seed):
    """Run one history."""
    logging.getLogger("everview").setLevel(logging.ERROR)  # it is full of what that warns of
    run(*random_case(seed))

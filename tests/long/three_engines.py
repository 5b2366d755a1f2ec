"""Random programs and histories on reference, SQLite and Spark: one answer after every step.

A case is a program with ten histories of eight statements: every view's query, and every rule of the circuit
that a hub keeps the views by. What differs is minimised.
"""

import functools

from tests.engines.three.check import Compared, check, told
from tests.engines.three.expressions import with_expressions
from tests.engines.three.fused import session_of

from everview.engines.spark.session import start_session
from everview.testing.fuzz import Difference, generate_case

HISTORIES = 10
STATEMENTS = 8

_whole = Compared()


@functools.cache
def _session():
    return session_of(start_session(master="local[2]"))


def case(seed):
    seeds = range(seed * HISTORIES, (seed + 1) * HISTORIES)
    drawn = (generate_case(one, statements=STATEMENTS, histories=HISTORIES) for one in seeds)
    cases = [with_expressions(case) for case in drawn]
    try:
        return check(_session(), cases, rules=True)
    except Difference as found:
        raise AssertionError(told(_session(), found, rules=True)) from found


def tally(found):
    global _whole  # noqa: PLW0603  (as one runs for all)
    _whole += found


def summary():
    return str(_whole)

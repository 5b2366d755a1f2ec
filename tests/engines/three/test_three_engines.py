"""Random programs and histories on reference, SQLite and Spark: the same rows of the same types after every step."""

import pytest
from tests.engines.three.check import check, told
from tests.engines.three.fused import session_of

from everview.testing.fuzz import Difference, generate_case

PAIRS = 300
STATEMENTS = 5
HISTORIES = 5
"""How many histories a program has: Spark is asked about all of them at once."""

CHUNKS = 4
RULES = 2
"""How many programs of a chunk also have the rules of their circuits compared: they have ten times as many plans."""


@pytest.fixture(scope="module")
def quick(spark):
    return session_of(spark)


def cases(seeds):
    return [generate_case(seed, statements=STATEMENTS, histories=HISTORIES) for seed in seeds]


def agree(session, seeds, *, rules):
    given = cases(seeds)
    try:
        return check(session, given, rules=rules)
    except Difference as found:
        pytest.fail(told(session, found, rules=rules))


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_three_engines_give_one_answer(quick, chunk):
    size = PAIRS // CHUNKS
    seeds = range(chunk * size, (chunk + 1) * size)
    with_rules = RULES * HISTORIES
    compared = agree(quick, seeds[:with_rules], rules=True) + agree(quick, seeds[with_rules:], rules=False)
    assert compared.pairs == size
    assert compared.states > 10 * size
    assert compared.rows > 10 * size
    assert compared.refused < compared.plans / 10, str(compared)

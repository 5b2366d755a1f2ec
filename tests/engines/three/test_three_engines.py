"""Random programs and histories on reference, SQLite and Spark: after every step the same rows and types."""

from pathlib import Path

import pytest
from tests.engines.three.check import check, told
from tests.engines.three.expressions import with_expressions
from tests.engines.three.fused import session_of

from everview.testing.fuzz import Difference, generate_case, parse_case

PAIRS = 300
STATEMENTS = 5
HISTORIES = 5
"""How many histories a program has: Spark is asked about all of them at once."""

CHUNKS = 4
RULES = 1
"""How many programs of a chunk also have the rules of their circuits compared: ten times as many plans."""


@pytest.fixture(scope="module")
def quick(spark):
    return session_of(spark)


def cases(seeds):
    drawn = (generate_case(seed, statements=STATEMENTS, histories=HISTORIES) for seed in seeds)
    return [with_expressions(case) for case in drawn]


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


def test_what_failed_once_on_a_device_is_the_same_on_all(quick):
    kept = sorted((Path(__file__).parents[2] / "regressions" / "fuzz").glob("*.txt"))
    assert check(quick, [parse_case(path.read_text()) for path in kept]).pairs == len(kept)

"""Every expression of the fixture has the value that PostgreSQL gave it."""

from pathlib import Path

import pytest

from everview.engines.reference import evaluate
from everview.errors import DataError
from everview.language.program import Program

FIXTURE = Path(__file__).parent / "fixtures" / "expressions.txt"
EMPTY = Program.parse("")


def cases():
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            expression, _, expected = line.partition(" => ")
            yield pytest.param(expression, expected, id=expression)


@pytest.mark.parametrize(("expression", "expected"), list(cases()))
def test_value_is_postgresqls(expression, expected):
    query = EMPTY.bind_query(f"SELECT CAST(({expression}) AS TEXT)")
    lenient = evaluate(query.plan, {})
    [(value,)] = lenient.rows
    if expected == "ERROR":
        assert value is None
        assert lenient.failures == 1
        with pytest.raises(DataError):
            evaluate(query.plan, {}, strict=True)
        return
    assert lenient.failures == 0
    assert ("NULL" if value is None else value) == expected
    assert evaluate(query.plan, {}, strict=True).rows == [(value,)]

"""Every expression of the fixture has the value that PostgreSQL gave it."""

import pytest
from tests.language import goldens

from everview.engines.reference import evaluate
from everview.errors import DataError
from everview.language.program import Program

EMPTY = Program.parse("")


@pytest.mark.parametrize(
    ("expression", "expected"), [pytest.param(*case, id=case[0]) for case in goldens.expressions()]
)
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

"""Every query of the fixture has the rows that PostgreSQL gave it."""

import pytest
from tests.language import goldens

from everview.engines.reference import evaluate
from everview.language.program import Program


@pytest.fixture(scope="module")
def program():
    return Program.parse(goldens.declarations())


@pytest.fixture(scope="module")
def tables():
    return goldens.tables()


@pytest.mark.parametrize(
    ("query", "expected"), [pytest.param(*case, id=case[0][:80]) for case in goldens.queries()]
)
def test_rows_are_postgresqls(program, tables, query, expected):
    bound = program.bind_query(query)
    ours = [goldens.printed(row) for row in evaluate(bound.plan, tables, strict=True).rows]
    theirs = [goldens.comparable(line) for line in expected]
    if "ORDER BY" in query.rsplit(")", 1)[-1]:
        assert ours == theirs
    assert sorted(ours) == sorted(theirs)


def test_the_fixture_has_rows():
    assert sum(len(rows) for _, rows in goldens.queries()) > 400

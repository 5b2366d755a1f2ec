"""Every query of the language's goldens has, rewritten, the rows that PostgreSQL gave it, in their order."""

from __future__ import annotations

import pytest
from tests.language import goldens
from tests.planner.compare import columns

from everview.engines.reference import evaluate
from everview.language.program import Program
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import rewrite


@pytest.fixture(scope="module")
def program():
    return Program.parse(goldens.declarations())


@pytest.fixture(scope="module")
def tables():
    return goldens.tables()


@pytest.mark.parametrize(
    ("query", "expected"), [pytest.param(*case, id=case[0][:80]) for case in goldens.queries()]
)
def test_rewritten_queries_have_postgresqls_rows(program, tables, query, expected):
    plan = program.bind_query(query).plan
    after = rewrite(plan, facts=Facts(catalog_of(program)))
    assert columns(after) == columns(plan)
    ours = [goldens.printed(row) for row in evaluate(after, tables, strict=True).rows]
    theirs = [goldens.comparable(line) for line in expected]
    if "ORDER BY" in query.rsplit(")", 1)[-1]:
        assert ours == theirs
    assert sorted(ours) == sorted(theirs)

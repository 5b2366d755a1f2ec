"""Every query of the fixture has the rows that PostgreSQL gave it."""

import decimal
from pathlib import Path

import pytest

from everview.engines.reference import evaluate
from everview.language.casts import to_text
from everview.language.program import Program

FIXTURES = Path(__file__).parent / "fixtures"


def statements():
    return [
        part for part in (FIXTURES / "tables.sql").read_text(encoding="utf-8").split(";\n") if part.strip()
    ]


@pytest.fixture(scope="module")
def program():
    return Program.parse(";\n".join(part for part in statements() if part.startswith("CREATE")))


@pytest.fixture(scope="module")
def tables(program):
    rows = {name: [] for name in program.relations}
    for part in statements():
        if part.startswith("INSERT"):
            insert = program.bind(part)
            rows[insert.relation] += evaluate(insert.plan, rows, strict=True).rows
    return rows


def cases():
    for block in (FIXTURES / "queries.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        if not block.startswith("#"):
            query, _, expected = block.partition("\n----")
            yield pytest.param(query, expected.removeprefix("\n").splitlines(), id=query[:80])


def as_printed(cell):
    """A cell as psql prints it; numbers without regard to trailing zeros, which types decide."""
    if cell is None:
        return "NULL"
    return {True: "t", False: "f"}[cell] if isinstance(cell, bool) else as_number(to_text(cell))


def as_number(text):
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return text
    return str(number.normalize() + 0) if number.is_finite() else text


@pytest.mark.parametrize(("query", "expected"), list(cases()))
def test_rows_are_postgresqls(program, tables, query, expected):
    bound = program.bind_query(query)
    rows = evaluate(bound.plan, tables, strict=True).rows
    ours = ["|".join(as_printed(cell) for cell in row) for row in rows]
    theirs = ["|".join(as_number(cell) for cell in line.split("|")) for line in expected]
    if "ORDER BY" in query.rsplit(")", 1)[-1]:
        assert ours == theirs
    assert sorted(ours) == sorted(theirs)

"""What PostgreSQL answered, for any engine's tests: expressions with values, queries with rows.

from tests.language import goldens

for expression, expected in goldens.expressions(): ...   # expected: text, "NULL" or "ERROR"
for query, expected in goldens.queries(): ...            # expected: rows as psql prints them
"""

import decimal
from pathlib import Path

from everview.engines.reference import evaluate
from everview.language.casts import to_text
from everview.language.program import Program

FIXTURES = Path(__file__).parent / "fixtures"


def expressions():
    """(expression, its value as text)."""
    for line in (FIXTURES / "expressions.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            expression, _, expected = line.partition(" => ")
            yield expression, expected


def queries():
    """(query over the tables below, its rows as lines)."""
    for block in (FIXTURES / "queries.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        if not block.startswith("#"):
            query, _, expected = block.partition("\n----")
            yield query, expected.removeprefix("\n").splitlines()


def _statements(word):
    text = (FIXTURES / "tables.sql").read_text(encoding="utf-8")
    return [part for part in text.split(";\n") if part.startswith(word)]


def declarations():
    """CREATE TABLE for the tables of `queries`."""
    return ";\n".join(_statements("CREATE"))


def tables():
    """The rows of the tables of `queries`."""
    program = Program.parse(declarations())
    rows = {name: [] for name in program.relations}
    for part in _statements("INSERT"):
        insert = program.bind(part)
        rows[insert.relation] += evaluate(insert.plan, rows, strict=True).rows
    return rows


def printed(row):
    """A row as psql prints it; numbers without regard to trailing zeros, which types decide."""
    return "|".join(map(_cell, row))


def comparable(line):
    """A printed row, its numbers without regard to trailing zeros."""
    return "|".join(map(_number, line.split("|")))


def _cell(cell):
    if cell is None:
        return "NULL"
    return {True: "t", False: "f"}[cell] if isinstance(cell, bool) else _number(to_text(cell))


def _number(text):
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return text
    return str(number.normalize() + 0) if number.is_finite() else text

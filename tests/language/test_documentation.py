"""What the pages on SQL say is what the code does; the reference itself is compared in tests/docs."""

import re
from pathlib import Path

import pytest

from everview.engines.reference import evaluate
from everview.language.program import Program
from everview.language.sql.calls import SYNONYMS as FUNCTION_SYNONYMS
from everview.language.sql.typenames import SYNONYMS as TYPE_SYNONYMS

PAGE = Path(__file__).parents[2] / "docs" / "SQL.md"


def test_examples_are_programs():
    examples = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert [list(Program.parse(example).views) for example in examples] == [["latest", "totals"]]


@pytest.mark.parametrize(
    "name", [n for names in TYPE_SYNONYMS.values() for n in names.split(", ") if "(" not in n and n]
)
def test_synonyms_of_types_are_read(name):
    [relation] = Program.parse(f"CREATE TABLE t (a {name})").relations.values()
    owner = next(kind for kind, names in TYPE_SYNONYMS.items() if name in names.split(", "))
    assert str(relation.schema[0].type).startswith(owner.split("(")[0])


def test_synonyms_of_functions_are_read():
    query = Program.parse("").bind_query(
        "SELECT mod(7, 4), ceiling(1.5), pow(2, 3), char_length('ab'), character_length('')"
    )
    assert evaluate(query.plan, {}).rows == [(3, 2, 8.0, 2, 0)]
    assert {"mod", "ceiling", "pow", "char_length", "character_length"} <= FUNCTION_SYNONYMS.keys()

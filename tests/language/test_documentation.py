"""docs/SQL.md says what the code does. `python tests/language/test_documentation.py` writes its tables."""

import re
from pathlib import Path

import pytest

from everview.engines.reference import evaluate
from everview.language.aggregates import AGGREGATES, APPROXIMATE, RANKINGS, SHIFTS
from everview.language.functions import FUNCTIONS
from everview.language.program import Program
from everview.language.sql.calls import SYNONYMS as FUNCTION_SYNONYMS
from everview.language.sql.typenames import SYNONYMS as TYPE_SYNONYMS

PAGE = Path(__file__).parents[2] / "docs" / "SQL.md"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def signatures(function):
    if not function.signatures:
        return "any types with a common one" if function.name != "concat" else "any types"
    parts = []
    for signature in function.signatures:
        taken = ", ".join(kind.name for kind in signature.parameters)
        result = signature.result.kind.name if hasattr(signature.result, "kind") else "DECIMAL"
        parts.append(f"{taken} → {result}")
    return "; ".join(parts)


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def expected():
    functions = [
        (code(f.sql), signatures(f), f.meaning.replace("|", "\\|"), "yes" if f.fails else "")
        for f in FUNCTIONS.values()
    ]
    windows = {**RANKINGS, **SHIFTS}
    return {
        "types": table(("type", "synonyms"), TYPE_SYNONYMS.items()),
        "functions": table(("written", "takes", "meaning", "may fail"), functions),
        "aggregates": table(
            ("aggregate", "meaning"), [(code(n), m) for n, m in {**AGGREGATES, **APPROXIMATE}.items()]
        ),
        "windows": table(("function", "meaning"), [(code(n), m) for n, m in windows.items()]),
        "synonyms": ", ".join(f"`{n}` is `{m}`" for n, m in FUNCTION_SYNONYMS.items()),
    }


def sections(text):
    return {n: body.strip() for n, body in re.findall(r"<!-- (\w+) -->(.*?)<!-- /\1 -->", text, re.DOTALL)}


@pytest.mark.parametrize("name", list(expected()))
def test_tables_are_current(name):
    assert sections(PAGE.read_text(encoding="utf-8"))[name] == expected()[name]


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


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    for name, body in expected().items():
        inside = body if name == "synonyms" else f"\n{body}\n"
        page = re.sub(
            f"(<!-- {name} -->).*?(<!-- /{name} -->)",
            lambda m, t=inside: m[1] + t + m[2],
            page,
            flags=re.DOTALL,
        )
    PAGE.write_text(page, encoding="utf-8")

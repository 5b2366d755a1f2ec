"""The SQL reference: functions, aggregates and types from their tables; clauses by asking the compiler."""

from __future__ import annotations

from everview.errors import ProgramError
from everview.language.aggregates import AGGREGATES, APPROXIMATE, RANKINGS, SHIFTS, aggregate_type
from everview.language.functions import FUNCTIONS, NOT_DETERMINISTIC, Function, NoSignatureError
from everview.language.program import Program
from everview.language.sql.calls import SYNONYMS as FUNCTION_SYNONYMS
from everview.language.sql.typenames import SYNONYMS as TYPE_SYNONYMS
from everview.language.types import (
    BIGINT,
    BLOB,
    BOOLEAN,
    DATE,
    DOUBLE,
    TEXT,
    TIMESTAMP,
    Type,
    decimal_type,
    is_implicit,
)
from references.clauses import ACCEPTED, REFUSED, TABLES
from references.markdown import code, generated, table

__all__ = ["page"]

_DECIMAL = decimal_type(10, 2)
TYPES = {"BOOLEAN": BOOLEAN, "BIGINT": BIGINT, "DECIMAL": _DECIMAL, "DOUBLE": DOUBLE, "TEXT": TEXT}
TYPES |= {"BLOB": BLOB, "DATE": DATE, "TIMESTAMP": TIMESTAMP}

_GROUPS = {
    "Arithmetic": ("+", "power"),
    "Comparisons and NULL": ("=", "least"),
    "Text": ("||", "concat"),
    "Dates and times": ("add_microseconds", "date_trunc_year"),
    "Sketches": ("sketch_mark", "sketch_percentile"),
}
"""Heading → the first and the last function under it, in the order of the table."""


def page() -> str:
    """The whole page."""
    about = (
        "What the compiler accepts, written from its own tables; every example below was compiled when this "
        "page was written. [The language](../SQL.md) explains it, and says where it differs from PostgreSQL."
    )
    lines = generated("SQL reference", about)
    lines += ["The examples are over these relations:", "", "```sql", TABLES.strip(), "```", ""]
    lines += _clauses()
    lines += _types()
    lines += _functions()
    lines += _aggregates()
    lines += _refusals()
    return "\n".join(lines).rstrip() + "\n"


def _clauses() -> list[str]:
    lines = []
    for heading, examples in ACCEPTED.items():
        lines += [f"## {heading}", ""]
        rows = []
        for what, text in examples:
            _compile(text)
            rows.append((what, code(" ".join(text.split()))))
        lines += table(("", "such as"), rows)
    return lines


def _compile(text: str) -> None:
    """Read an example; it is a declaration, or a query or write over the tables."""
    if text.lstrip().upper().startswith("CREATE"):
        Program.parse(f"{TABLES}\n{text};")
    elif text.lstrip().upper().startswith("VIEW"):
        Program.parse(f"{TABLES}\nCREATE MATERIALIZED {text};")
    else:
        Program.parse(TABLES).bind(text)


def _types() -> list[str]:
    lines = ["## Types", ""]
    lines += table(("type", "also written"), ((code(name), names) for name, names in TYPE_SYNONYMS.items()))
    lines += ["A value becomes one of another type by itself where the other operand asks for it:", ""]
    lines += table(
        ("from", "to"),
        (
            (source, ", ".join(targets))
            for source, kind in TYPES.items()
            if (
                targets := [
                    name for name, other in TYPES.items() if other != kind and is_implicit(kind, other)
                ]
            )
        ),
    )
    lines += ["Everything else needs CAST, where there is one:", ""]
    header = ("CAST from, to", *TYPES)
    return [*lines, *table(header, ((name, *_casts(name)) for name in TYPES))]


def _casts(source: str) -> list[str]:
    column = {"BOOLEAN": "b", "BIGINT": "n", "DECIMAL": "m", "DOUBLE": "d", "TEXT": "t", "BLOB": "x"}
    name = (column | {"DATE": "day", "TIMESTAMP": "at"})[source]
    return [
        "yes" if _is_query(f"SELECT CAST({name} AS {target}) AS a FROM every") else "" for target in TYPES
    ]


def _is_query(text: str) -> bool:
    try:
        Program.parse(TABLES).bind_query(text)
    except ProgramError:
        return False
    return True


def _functions() -> list[str]:
    lines = [
        "## Functions and operators",
        "",
        (
            "One that *may fail* yields NULL inside a view, where it is counted in `status`; "
            "in a query it raises `DataError`."
        ),
        "",
    ]
    names = list(FUNCTIONS)
    for heading, (first, last) in _GROUPS.items():
        chosen = names[names.index(first) : names.index(last) + 1]
        rows = [
            (code(f.sql), _signatures(f), f.meaning, "yes" if f.fails else "")
            for f in (FUNCTIONS[name] for name in chosen)
        ]
        lines += [f"### {heading}", "", *table(("written", "takes", "meaning", "may fail"), rows)]
    other = ", ".join(f"{code(name)} is {code(meant)}" for name, meant in FUNCTION_SYNONYMS.items())
    return [*lines, f"Other names: {other}.", ""]


def _signatures(function: Function) -> str:
    if not function.signatures:
        return "any types" if function.name == "concat" else "any types with a common one"
    parts = []
    for signature in function.signatures:
        taken = ", ".join(kind.name for kind in signature.parameters)
        result = signature.result.kind.name if isinstance(signature.result, Type) else "DECIMAL"
        parts.append(f"{taken} → {result}")
    return "; ".join(parts)


def _aggregates() -> list[str]:
    lines = [
        "## Aggregates",
        "",
        "All skip NULLs and take FILTER (WHERE …); the exact ones take DISTINCT.",
        "",
    ]
    rows = [(code(name), meaning, _results(name)) for name, meaning in AGGREGATES.items()]
    rows += [(code(name), meaning, "") for name, meaning in APPROXIMATE.items()]
    lines += table(("aggregate", "meaning", "of → gives"), rows)
    lines += ["## Window functions", "", "The exact aggregates, without DISTINCT and FILTER, and:", ""]
    return [
        *lines,
        *table(("function", "meaning"), [(code(n), m) for n, m in {**RANKINGS, **SHIFTS}.items()]),
    ]


def _results(name: str) -> str:
    found = []
    for kind, given in TYPES.items():
        try:
            made = aggregate_type(name, given)
        except NoSignatureError:
            continue
        found.append((kind, made.kind.name))
    if len(found) == len(TYPES):
        same = all(kind == made for kind, made in found)
        return "any type, the same" if same else f"any type, {found[0][1]}"
    return ", ".join(f"{kind} → {made}" for kind, made in found)


def _refusals() -> list[str]:
    lines = ["## Refused, and what the compiler says", ""]
    rows = []
    for text in REFUSED:
        try:
            _compile(text)
        except ProgramError as error:
            rows.append((code(text), f"{error.message}" + (f" ({error.hint})" if error.hint else "")))
        else:
            raise AssertionError(f"the compiler takes {text}")
    lines += table(("written", "the answer"), rows)
    names = ", ".join(code(name) for name in sorted(NOT_DETERMINISTIC))
    return [
        *lines,
        f"Refused by name, since their result depends on when or where they are called: {names}.",
        "",
    ]

"""Random scalar expressions of a wanted kind, over the columns in sight.

Types are tracked by kind, so that nearly every text is a valid program. Expressions may fail when they are
evaluated (division by zero, overflow, bad casts), which is the point of half of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from everview.language.casts import can_cast
from everview.language.functions import COMPARISONS, FUNCTIONS
from everview.language.types import Kind
from everview.testing.fuzz.calls import CALLS, UNIFIED, written
from everview.testing.fuzz.domains import KINDS, TYPES, type_name
from everview.testing.fuzz.grammar import Grammar, Scopes, plain

__all__ = ["CASTS", "column", "condition", "equality", "expression", "subquery"]

_NARROWER: dict[Kind, tuple[Kind, ...]] = {
    Kind.DECIMAL: (Kind.BIGINT,),
    Kind.DOUBLE: (Kind.BIGINT, Kind.DECIMAL),
    Kind.TIMESTAMP: (Kind.DATE,),
}
"""Kinds that become the wider one without being asked to."""

CASTS: dict[Kind, tuple[Kind, ...]] = {
    target: tuple(
        source for source in KINDS if can_cast(TYPES[source][0], TYPES[target][0]) and source is not target
    )
    for target in KINDS
}
"""From which kinds a value of each kind can be cast."""


def column(g: Grammar, kind: Kind, scopes: Scopes) -> str | None:
    """A column of that kind, mostly of the innermost query, if there is one."""
    own = [c.sql for c in scopes[0] if c.kind is kind] if scopes else []
    outer = [c.sql for scope in scopes[1:] for c in scope if c.kind is kind]
    if own and not (outer and g.chance(0.1)):
        return g.pick(own)
    if outer and (not own or g.chance(0.5)):
        g.note("outer column")
        return g.pick(outer)
    return None


def _leaf(g: Grammar, kind: Kind, scopes: Scopes) -> str:
    found = column(g, kind, scopes) if g.chance(0.85) else None
    if found is not None:
        return found
    if g.chance(0.04):
        g.note("NULL literal")
        return f"CAST(NULL AS {type_name(TYPES[kind][0])})"
    # A kind that no column has is often reached by a cast from one that some column has.
    here = {c.kind for c in (scopes[0] if scopes else ())}
    near = [source for source in CASTS[kind] if source in here and (kind, source) not in _RISKY]
    if near and kind not in here and g.chance(0.5):
        return _cast(g, kind, scopes, 0, g.pick(near))
    return g.literal(kind)


_RISKY = {(target, Kind.TEXT) for target in KINDS}
"""Casts that mostly fail; they are drawn on purpose only."""


def expression(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    """An expression of the kind, nested at most `depth` deep."""
    if depth <= 0 or g.chance(0.3):
        return _leaf(g, kind, scopes)
    if kind is Kind.BOOLEAN and g.chance(0.7):
        return f"({condition(g, scopes, depth)})"
    choice = g.weighted(
        {"call": 5.0, "case": 1.2, "cast": 1.5, "unified": 1.2, "scalar": 0.5 if depth > 1 else 0.0}
    )
    match choice:
        case "call" if CALLS[kind]:
            return _call(g, kind, scopes, depth - 1)
        case "case":
            return _case(g, kind, scopes, depth - 1)
        case "cast":
            source = Kind.TEXT if Kind.TEXT in CASTS[kind] and g.chance(0.2) else g.pick(CASTS[kind])
            return _cast(g, kind, scopes, depth - 1, source)
        case "scalar" if g.subqueries > 0:
            inner = g.pick(_NARROWER.get(kind, ()) + (kind,) * 4)
            found = subquery(g, [inner], scopes, "scalar subquery", one=True)
            return found if inner is kind else f"CAST({found} AS {type_name(TYPES[kind][0])})"
        case _:
            return _unified(g, kind, scopes, depth - 1)


def _argument(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    """An operand where the others already fix the kind: a narrower one will do."""
    if g.chance(0.1) and kind in _NARROWER:
        g.note("implicit conversion")
        return expression(g, g.pick(_NARROWER[kind]), scopes, depth)
    return expression(g, kind, scopes, depth)


def _call(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    way = g.pick(CALLS[kind])
    g.note(f"function {way.function}")
    if FUNCTIONS[way.function].fails:
        g.note("expression that may fail")
    match way.function:
        case "like" | "ilike":
            return f"({_like(g, scopes, depth)})"
        case "add_microseconds":
            step = g.pick(("1 day", "-36 hours", "1 week 2 hours", "0.5 seconds", "9000000 days"))
            return f"({_argument(g, kind, scopes, depth)} {g.pick('+-')} INTERVAL '{step}')"
        case "tumble":
            size = g.pick(("1 second", "7 minutes", "1 hour 30 minutes", "3 days", "5 weeks"))
            return f"tumble({_argument(g, kind, scopes, depth)}, INTERVAL '{size}')"
        case "round" if len(way.parameters) == 2:
            digits = g.pick((-1, 0, 1, 2))
            return f"round({expression(g, Kind.DECIMAL, scopes, depth)}, {digits})"
    arguments = [expression(g, way.parameters[0], scopes, depth)]
    same = len(set(way.parameters)) == 1
    for parameter in way.parameters[1:]:
        operand = _argument if same else expression
        arguments.append(operand(g, parameter, scopes, depth))
    if len(arguments) == 2 and same and way.function in ("+", "*") and g.chance(0.5):
        arguments.reverse()
    return written(way.function, arguments)


def _case(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    otherwise = f" ELSE {_argument(g, kind, scopes, depth)}" if g.chance(0.7) else ""
    then = expression(g, kind, scopes, depth)
    if g.chance(0.7):
        g.note("CASE WHEN")
        return f"CASE WHEN {condition(g, scopes, depth)} THEN {then}{otherwise} END"
    g.note("CASE x WHEN")
    subject = g.kind()
    second = ""
    if g.chance(0.3):
        second = f" WHEN {expression(g, subject, scopes, 0)} THEN {expression(g, kind, scopes, 0)}"
    first = f"WHEN {expression(g, subject, scopes, 0)} THEN {then}"
    return f"CASE {expression(g, subject, scopes, depth)} {first}{second}{otherwise} END"


def _cast(g: Grammar, kind: Kind, scopes: Scopes, depth: int, source: Kind) -> str:
    g.note(f"cast {source.name} to {kind.name}")
    target = g.pick(TYPES[kind])
    operand = expression(g, source, scopes, depth)
    if source is Kind.TEXT and operand.startswith("'"):
        operand = f"CAST({operand} AS TEXT)"  # a bare literal that cannot be cast would be refused
    return f"CAST({operand} AS {type_name(target)})"


def _unified(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    function = g.pick(UNIFIED)
    g.note(f"function {function}")
    count = 2 if function == "nullif" else g.pick((2, 2, 3))
    first = expression(g, kind, scopes, depth)
    return f"{function}({', '.join([first, *(_argument(g, kind, scopes, depth) for _ in range(count - 1))])})"


# Conditions


def condition(g: Grammar, scopes: Scopes, depth: int) -> str:
    """A condition, by three-valued logic."""
    match g.weighted(_CONDITIONS if depth > 0 else _SIMPLE):
        case "comparison":
            return _comparison(g, scopes, depth)
        case "junction":
            word = g.pick(("AND", "OR", "OR"))
            g.note(word)
            return f"({condition(g, scopes, depth - 1)}) {word} ({condition(g, scopes, depth - 1)})"
        case "not":
            g.note("NOT")
            return f"NOT ({condition(g, scopes, depth - 1)})"
        case "null":
            word = g.pick(("IS NULL", "IS NOT NULL", "IS NOT NULL"))
            g.note(word)
            return f"{_operand(g, g.kind(), scopes, depth)} {word}"
        case "truth":
            word = g.pick(("IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE", "IS UNKNOWN"))
            g.note("IS TRUE")
            return f"({condition(g, scopes, depth - 1)}) {word}"
        case "distinct":
            word = g.pick(("IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
            g.note(word)
            kind = g.kind()
            return f"{_operand(g, kind, scopes, depth)} {word} {_argument(g, kind, scopes, depth - 1)}"
        case "between":
            word = g.pick(("BETWEEN", "NOT BETWEEN"))
            g.note(word)
            kind = g.kind()
            low, high = (_argument(g, kind, scopes, 0) for _ in range(2))
            return f"{_operand(g, kind, scopes, depth)} {word} {low} AND {high}"
        case "list":
            word = g.pick(("IN", "NOT IN"))
            g.note(f"{word} list")
            kind = g.kind()
            left = _operand(g, kind, scopes, depth)
            items = [_other(g, left, _argument(g, kind, scopes, 0), kind) for _ in range(g.pick((1, 2, 3)))]
            return f"{left} {word} ({', '.join(items)})"
        case "like":
            return _like(g, scopes, depth)
        case "call":
            return _call(g, Kind.BOOLEAN, scopes, depth - 1)
        case "column":
            return _leaf(g, Kind.BOOLEAN, scopes)
        case _ if g.subqueries > 0:
            return _subquery_condition(g, scopes, depth)
        case _:
            return _comparison(g, scopes, depth)


_SIMPLE = {"comparison": 4.0, "null": 1.0, "column": 0.5, "list": 0.5}
_CONDITIONS = {
    "comparison": 5.0,
    "junction": 2.0,
    "not": 1.0,
    "null": 1.2,
    "truth": 0.6,
    "distinct": 0.8,
    "between": 0.8,
    "list": 0.8,
    "like": 0.8,
    "call": 0.4,
    "column": 0.4,
    "subquery": 1.5,
}


def _operand(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    """The left side of a condition: mostly a column, or else the condition says little about the rows."""
    found = column(g, kind, scopes) if g.chance(0.6) else None
    return found or expression(g, kind, scopes, depth - 1)


def _comparison(g: Grammar, scopes: Scopes, depth: int) -> str:
    here = [c.kind for c in scopes[0]] if scopes else []
    kind = g.pick(here) if here and g.chance(0.8) else g.kind()
    operator = g.pick(COMPARISONS)
    g.note(f"function {operator}")
    left = _operand(g, kind, scopes, depth)
    return f"{left} {operator} {_other(g, left, _argument(g, kind, scopes, depth - 1), kind)}"


def _other(g: Grammar, left: str, right: str, kind: Kind) -> str:
    """The right operand, unless it is the left one again, which would say nothing."""
    return g.literal(kind) if right == left else right


def _like(g: Grammar, scopes: Scopes, depth: int) -> str:
    word = g.pick(("LIKE", "NOT LIKE", "ILIKE", "LIKE"))
    g.note(word)
    g.note(f"function {'ilike' if word == 'ILIKE' else 'like'}")
    pattern = g.pick(("'a%'", "'%'", "'_'", "'%b'", "'A_'", "'%é'", "'\\%'", "'a\\'", "''"))
    escape = ""
    if g.chance(0.2):
        g.note("LIKE ESCAPE")
        pattern, escape = g.pick(("'a!%'", "'!%'", "'%!'", "'!_%'")), " ESCAPE '!'"
    elif g.chance(0.3):
        pattern = _leaf(g, Kind.TEXT, scopes)
    return f"{_operand(g, Kind.TEXT, scopes, depth)} {word} {pattern}{escape}"


def equality(g: Grammar, left: Scopes, right: Scopes) -> str | None:
    """A column of the left equal to one of the right, computed keys now and then; None if no kinds meet."""
    kinds = sorted({c.kind for c in left[0]} & {c.kind for c in right[0]}, key=KINDS.index)
    if not kinds:
        return None
    # Truth values meet too often to tell joins apart.
    kind = g.pick([k for k in kinds if k is not Kind.BOOLEAN] or kinds)
    sides = [g.pick([c.sql for c in scope[0] if c.kind is kind]) for scope in (left, right)]
    match g.weighted({"=": 8.0, "computed": 2.0, "null-safe": 1.0}):
        case "computed":
            g.note("computed join key")
            place = g.pick((0, 1))
            sides[place] = expression(g, kind, (left, right)[place][:1], 1)
        case "null-safe":
            g.note("null-safe join key")
            return f"{sides[0]} IS NOT DISTINCT FROM {sides[1]}"
    return f"{sides[0]} = {sides[1]}"


# Subqueries


def subquery(
    g: Grammar, kinds: Sequence[Kind], scopes: Scopes, construct: str, *, one: bool = False, depth: int = 1
) -> str:
    """A query in parentheses; with `one`, made so that it mostly has at most one row."""
    g.subqueries -= 1
    g.note(construct)
    inner = plain(scopes)
    if one and g.chance(0.85):
        (kind,) = kinds
        return "(" + _one_row(g, kind, inner) + ")"
    return "(" + g.query(g, kinds, inner, depth) + ")"


def _one_row(g: Grammar, kind: Kind, scopes: Scopes) -> str:
    """One value out of many: the greatest, the count, the first."""
    inner = g.query(g, [kind], scopes, 1)
    name = g.name("o")
    if g.chance(0.4):
        g.note("ORDER BY LIMIT in a subquery")
        return f"SELECT {name}.c0 FROM ({inner}) AS {name} ORDER BY 1 LIMIT 1"
    if kind is Kind.BIGINT and g.chance(0.5):
        return (
            f"SELECT {g.pick(('count(*)', f'count({name}.c0)', f'sum({name}.c0)'))} FROM ({inner}) AS {name}"
        )
    if kind is Kind.BOOLEAN:
        return f"SELECT {g.pick(('bool_and', 'bool_or'))}({name}.c0) FROM ({inner}) AS {name}"
    return f"SELECT {g.pick(('min', 'max'))}({name}.c0) FROM ({inner}) AS {name}"


def _subquery_condition(g: Grammar, scopes: Scopes, depth: int) -> str:
    word = g.pick(("EXISTS", "NOT EXISTS", "IN", "NOT IN"))
    if word.endswith("EXISTS"):
        return f"{word} {subquery(g, [g.kind()], scopes, f'{word} subquery')}"
    here = [c.kind for c in scopes[0]] if scopes else []
    kind = g.pick(here) if here else g.kind()
    left = _operand(g, kind, scopes, depth)
    return f"{left} {word} {subquery(g, [kind], scopes, f'{word} subquery')}"

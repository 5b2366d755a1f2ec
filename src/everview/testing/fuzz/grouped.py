"""Random GROUP BY, aggregates and window calls.

What a grouped SELECT may name are its keys and its aggregates; they become columns of a scope of their own,
over which the select list and HAVING are drawn as over any other.
"""

from __future__ import annotations

from everview.language.aggregates import AGGREGATES, APPROXIMATE, RANKINGS, aggregate_type
from everview.language.casts import can_cast
from everview.language.functions import NoSignatureError
from everview.language.types import TEXT, Kind
from everview.testing.fuzz.domains import KINDS, TYPES
from everview.testing.fuzz.expressions import column, condition, expression
from everview.testing.fuzz.grammar import Column, Grammar, Scope

__all__ = ["grouping", "windows"]

_OVER: dict[str, tuple[Kind, ...]] = {}
"""The kinds that each aggregate takes."""
_RESULT: dict[tuple[str, Kind], Kind] = {}
for _name in AGGREGATES:
    for _kind in KINDS:
        try:
            _RESULT[_name, _kind] = aggregate_type(_name, TYPES[_kind][0]).kind
        except NoSignatureError:
            continue
        _OVER[_name] = (*_OVER.get(_name, ()), _kind)


def _argument(g: Grammar, kind: Kind, local: Scope) -> str:
    """What is aggregated: mostly a column, of this query only."""
    found = column(g, kind, (local,)) if g.chance(0.75) else None
    return found or expression(g, kind, (local,), 1)


def _call(g: Grammar, local: Scope, *, window: bool) -> Column:
    """An aggregate, preferably over a kind that some column has."""
    if not window and g.chance(0.1):
        return _approximate(g, local)
    name = g.pick(list(AGGREGATES))
    kinds = [kind for kind in _OVER[name] if any(c.kind is kind for c in local)] or list(_OVER[name])
    kind = g.pick(kinds)
    word = "window " if window else ""
    if name == "count" and g.chance(0.4):
        g.note(f"{word}count(*)")
        sql = "count(*)"
    else:
        argument = _argument(g, kind, local)
        distinct = not window and g.chance(0.25)
        g.note(f"{word}{name}{' DISTINCT' if distinct else ''}")
        sql = f"{name}({'DISTINCT ' if distinct else ''}{argument})"
    if not window and g.chance(0.2):
        g.note("FILTER")
        sql += f" FILTER (WHERE {condition(g, (local,), 1)})"
    return Column(sql, _RESULT[name, kind], plain=False)


def _approximate(g: Grammar, local: Scope) -> Column:
    name = g.pick(list(APPROXIMATE))
    g.note(name)
    if name == "approx_count_distinct":
        kind = g.pick([kind for kind in KINDS if can_cast(TYPES[kind][0], TEXT)])
        sql, result = f"{name}({_argument(g, kind, local)})", Kind.BIGINT
    else:
        kind = g.pick((Kind.BIGINT, Kind.DECIMAL, Kind.DOUBLE))
        part = g.pick(("0", "0.25", "0.5", "0.99", "1"))
        sql, result = f"{name}({_argument(g, kind, local)}, {part})", Kind.DOUBLE
    if g.chance(0.2):
        g.note("FILTER")
        sql += f" FILTER (WHERE {condition(g, (local,), 1)})"
    return Column(sql, result, plain=False)


def grouping(g: Grammar, local: Scope, kinds: list[Kind]) -> tuple[str, Scope]:
    """The GROUP BY clause, and what the select list may name: keys, and aggregates of the wanted kinds."""
    g.subqueries, saved = 0, g.subqueries
    keys: list[Column] = []
    if g.chance(0.75):
        g.note("GROUP BY")
        for _ in range(g.pick((1, 1, 2))):
            picked = g.pick(local)
            if g.chance(0.2):
                g.note("computed group key")
                keys.append(Column(expression(g, picked.kind, (local,), 1), picked.kind, plain=False))
            else:
                keys.append(picked)
    else:
        g.note("aggregate without keys")
    keys = [key for key in keys if not _is_constant(key, local)]
    found = [_call(g, local, window=False) for _ in range(g.pick((1, 2, 3)))]
    for kind in kinds:
        fitting = [(n, k) for (n, k), result in _RESULT.items() if result is kind]
        if not any(c.kind is kind for c in (*keys, *found)):
            name, over = g.pick(fitting)
            g.note(name)
            found.append(Column(f"{name}({_argument(g, over, local)})", kind, plain=False))
    g.subqueries = saved
    clause = f" GROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
    scope = (*keys, *found)
    if g.chance(0.3):
        g.note("HAVING")
        having = condition(g, (scope,), 1) if g.chance(0.5) else f"count(*) >= {g.pick((1, 1, 2))}"
        clause += f" HAVING {having}"
    return clause, scope


def _is_constant(key: Column, local: Scope) -> bool:
    """Whether a key names no column: a bare number in GROUP BY would be a position."""
    return not any(c.sql in key.sql for c in local)


def windows(g: Grammar, local: Scope) -> Scope:
    """Some window calls over these columns."""
    g.subqueries, saved = 0, g.subqueries
    found = tuple(_window(g, local) for _ in range(g.pick((1, 1, 2))))
    g.subqueries = saved
    return found


def _window(g: Grammar, local: Scope) -> Column:
    inside = []
    if g.chance(0.7):
        g.note("PARTITION BY")
        inside.append(f"PARTITION BY {g.pick(local).sql}")
    ordered = g.chance(0.8)
    if ordered:
        keys = ", ".join(g.pick(local).sql + order_words(g) for _ in range(g.pick((1, 1, 2))))
        inside.append(f"ORDER BY {keys}")
    kind: Kind
    match g.pick(("ranking", "shift", "value", "aggregate", "aggregate", "aggregate")):
        case "ranking":
            name = g.pick(list(RANKINGS))
            g.note(f"window {name}")
            sql, kind = f"{name}()", Kind.BIGINT
        case "shift":
            name = g.pick(("lag", "lead"))
            g.note(f"window {name}")
            kind = g.pick(local).kind
            rest = g.pick(("", "", ", 2", f", 1, {g.literal(kind)}", ", 0"))
            sql = f"{name}({_argument(g, kind, local)}{rest})"
        case "value":
            name = g.pick(("first_value", "last_value"))
            g.note(f"window {name}")
            kind = g.pick(local).kind
            sql = f"{name}({_argument(g, kind, local)})"
            inside += _frame(g, ordered=ordered)
        case _:
            found = _call(g, local, window=True)
            sql, kind = found.sql, found.kind
            inside += _frame(g, ordered=ordered)
    return Column(f"{sql} OVER ({' '.join(inside)})", kind, plain=False)


def order_words(g: Grammar) -> str:
    """ASC or DESC, and where NULLs go."""
    words = g.pick(("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))
    if "DESC" in words:
        g.note("ORDER BY DESC")
    if "NULLS" in words:
        g.note("NULLS FIRST or LAST")
    return words


_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS 2 PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE CURRENT ROW",
)


def _frame(g: Grammar, *, ordered: bool) -> list[str]:
    if not ordered or g.chance(0.4):
        return []
    frame = g.pick(_FRAMES)
    g.note(f"{frame.split()[0]} frame")
    return [frame]

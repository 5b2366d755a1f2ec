"""Random queries: SELECT in all its shapes, set operations, WITH."""

from __future__ import annotations

from collections.abc import Sequence

from everview.language.types import Kind
from everview.testing.fuzz.expressions import condition, equality, expression
from everview.testing.fuzz.grammar import Column, Grammar, Scope, Scopes
from everview.testing.fuzz.grouped import grouping, order_words, windows
from everview.testing.fuzz.sources import source

__all__ = ["query"]

_SET_OPERATIONS = ("UNION", "UNION ALL", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")


def query(g: Grammar, kinds: Sequence[Kind], scopes: Scopes, depth: int) -> str:
    """A query whose columns are `c0`, `c1`, … of these kinds; `scopes` are those of the queries around."""
    draw = g.rng.random()
    if depth > 1 and not scopes and draw < 0.1:
        return _with(g, kinds, depth)
    if draw < 0.25 and depth > 0:
        return _set_operation(g, kinds, scopes, depth)
    return _select(g, kinds, scopes, depth)


def _with(g: Grammar, kinds: Sequence[Kind], depth: int) -> str:
    g.note("WITH")
    name = g.name("w")
    inner = [g.kind() for _ in range(g.pick((1, 2, 2)))]
    text = query(g, inner, (), depth - 1)
    columns = ""
    names = [f"c{i}" for i in range(len(inner))]
    if g.chance(0.3):
        names = [f"d{i}" for i in range(len(inner))]
        columns = f" ({', '.join(names)})"
    before = dict(g.tables)
    # Twice, so that the query mostly reads what it names, sometimes more than once.
    g.tables = {**before, name: tuple(zip(names, inner, strict=True))}
    again = g.name("w")
    second = ""
    if g.chance(0.3):
        more = [g.kind()]
        second = f", {again} AS ({query(g, more, (), 1)})"
        g.tables[again] = (("c0", more[0]),)
    body = _select(g, kinds, (), depth - 1, tables=[name, *([again] if second else [])])
    g.tables = before
    return f"WITH {name}{columns} AS ({text}){second} {body}"


def _set_operation(g: Grammar, kinds: Sequence[Kind], scopes: Scopes, depth: int) -> str:
    word = g.pick(_SET_OPERATIONS)
    g.note(word)
    sides = _alike(g, kinds) if g.chance(0.45) else []
    while len(sides) < 2:
        sides.append(_select(g, kinds, scopes, depth - 1, limited=False))
    text = f" {word} ".join(sides)
    if g.chance(0.15):
        third = g.pick(_SET_OPERATIONS)
        g.note(third)
        text = f"({text}) {third} {_select(g, kinds, scopes, 0, limited=False)}"
    if g.chance(0.08):
        text += _limit(g, len(kinds))
    return text


def _alike(g: Grammar, kinds: Sequence[Kind]) -> list[str]:
    """Two plain selections from tables that have columns of these kinds, so that rows of both often meet."""
    fitting = [
        name
        for name, columns in g.tables.items()
        if sum(any(kind is other for _, other in columns) for kind in kinds) * 2 > len(kinds)
    ]
    sides = []
    for _ in range(2 if fitting else 0):
        name, alias = g.pick(fitting), g.name("t")
        local = tuple(Column(f"{alias}.{column}", kind) for column, kind in g.tables[name])
        items = []
        for kind in kinds:
            own = [column.sql for column in local if column.kind is kind]
            items.append(g.pick(own) if own else g.literal(kind))
        where = f" WHERE {condition(g, (local,), 1)}" if g.chance(0.4) else ""
        sides.append(f"SELECT {_listed(items)} FROM {name} AS {alias}{where}")
    return sides


def _limit(g: Grammar, width: int) -> str:
    g.note("ORDER BY LIMIT")
    places = g.rng.sample(range(1, width + 1), g.rng.randint(1, width))
    order = f" ORDER BY {', '.join(f'{place}{order_words(g)}' for place in places)}"
    if g.chance(0.1):
        order = ""
    if g.chance(0.15):
        g.note("FETCH FIRST")
        return f"{order} FETCH FIRST {g.pick((1, 2, 3))} ROWS ONLY"
    offset = ""
    if g.chance(0.35):
        g.note("OFFSET")
        offset = f" OFFSET {g.pick((0, 1, 1, 2))}"
        if g.chance(0.2):
            return order + offset
    return f"{order} LIMIT {g.pick((0, 1, 2, 3, 4))}{offset}"


def _select(
    g: Grammar,
    kinds: Sequence[Kind],
    scopes: Scopes,
    depth: int,
    *,
    limited: bool = True,
    tables: list[str] | None = None,
) -> str:
    if depth == 0 and not scopes and g.chance(0.08):
        g.note("SELECT without FROM")
        return f"SELECT {_listed([expression(g, kind, (), 1) for kind in kinds])}"
    text, local = _from(g, scopes, depth, tables)
    where = _where(g, local, scopes, depth)
    style = g.weighted({"plain": 5.0, "grouped": 2.5, "window": 1.4 if depth > 0 else 0.0})
    tail, distinct, complexity = "", "", 2 if depth > 0 else 1
    if style == "grouped":
        tail, local = grouping(g, local, list(kinds))
        complexity = 1
    if style == "window" or (style == "grouped" and g.chance(0.06)):
        if style == "grouped":
            g.note("window over groups")
        local = (*local, *windows(g, local))
        g.note("window function")
    items = [_item(g, kind, (local, *scopes), complexity) for kind in kinds]
    if style != "grouped" and g.chance(0.15):
        g.note("DISTINCT")
        distinct = "DISTINCT "
    if limited and g.chance(0.12):
        tail += _limit(g, len(kinds))
    return f"SELECT {distinct}{_listed(items)} FROM {text}{where}{tail}"


def _from(g: Grammar, scopes: Scopes, depth: int, tables: list[str] | None) -> tuple[str, Scope]:
    if tables is None:
        return source(g, scopes, depth)
    before = g.tables
    g.tables = {name: before[name] for name in tables} if g.chance(0.6) else before
    found = source(g, scopes, max(depth, 1))
    g.tables = before
    return found


def _item(g: Grammar, kind: Kind, scopes: Scopes, depth: int) -> str:
    """A select item: what GROUP BY and OVER made should be seen, and columns more than constants."""
    made = [c.sql for c in scopes[0] if c.kind is kind and not c.plain]
    if made and g.chance(0.6):
        return g.pick(made)
    own = [c.sql for c in scopes[0] if c.kind is kind]
    if own and g.chance(0.45):
        return g.pick(own)
    return expression(g, kind, scopes, depth)


def _listed(items: list[str]) -> str:
    return ", ".join(f"{item} AS c{index}" for index, item in enumerate(items))


def _where(g: Grammar, local: Scope, scopes: Scopes, depth: int) -> str:
    parts: list[str] = []
    outer: Scopes = tuple(scope for scope in scopes if scope)
    if outer and g.chance(0.75):
        equal = equality(g, (local,), (g.pick(outer),))
        if equal is not None:
            g.note("correlated subquery")
            parts.append(equal)
    if g.chance(0.45 if not parts else 0.2):
        g.note("WHERE")
        found = condition(g, (local, *scopes), 2 if depth > 0 else 1)
        if g.chance(0.25):  # true of more rows, so that fewer views are empty
            g.note("IS TRUE")
            found = f"({found}) IS NOT FALSE"
        parts.append(found)
        if g.chance(0.25):
            g.note("WHERE on several conditions")
            parts.append(condition(g, (local, *scopes), 1))
    return f" WHERE {' AND '.join(f'({part})' for part in parts)}" if parts else ""

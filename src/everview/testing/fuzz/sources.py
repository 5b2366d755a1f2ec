"""Random FROM clauses: tables, subqueries, VALUES, and joins of every kind."""

from __future__ import annotations

from everview.language.types import Kind
from everview.testing.fuzz.expressions import condition, equality
from everview.testing.fuzz.grammar import Column, Grammar, Scope, Scopes, plain

__all__ = ["source"]


def source(g: Grammar, scopes: Scopes, depth: int) -> tuple[str, Scope]:
    """What a SELECT reads, and the columns that it sees."""
    joins = g.weighted({0: 4.0, 1: 4.0, 2: 1.2, 3: 0.4} if depth > 1 else {0: 6.0, 1: 1.0})
    if joins >= 2:
        g.note("join of three or more")
    first = None if joins != 1 or not g.chance(0.2) else g.pick(list(g.tables))
    text, local = _item(g, scopes, depth, first)
    if first is not None:
        g.note("self join")
    for _ in range(joins):
        right, columns = _item(g, scopes, depth, first)
        text, local = _joined(g, (text, local), (right, columns), scopes)
    return text, local


def _item(g: Grammar, scopes: Scopes, depth: int, table: str | None) -> tuple[str, Scope]:
    if table is None and depth > 1 and g.chance(0.15):
        return _derived(g, scopes, depth)
    if table is None and g.chance(0.05):
        return _values(g)
    name = table or g.pick(list(g.tables))
    alias = g.name("t")
    return f"{name} AS {alias}", tuple(Column(f"{alias}.{c}", kind) for c, kind in g.tables[name])


def _derived(g: Grammar, scopes: Scopes, depth: int) -> tuple[str, Scope]:
    g.note("subquery in FROM")
    kinds = [g.kind() for _ in range(g.pick((1, 2)))]
    # What stands in FROM does not see the other tables there, but it does see the rows outside.
    text = g.query(g, kinds, plain(scopes), depth - 1)
    alias = g.name("q")
    return f"({text}) AS {alias}", tuple(Column(f"{alias}.c{i}", kind) for i, kind in enumerate(kinds))


def _values(g: Grammar) -> tuple[str, Scope]:
    g.note("VALUES")
    kinds = [g.kind() for _ in range(g.pick((1, 2)))]
    rows = ", ".join(
        "(" + ", ".join(g.literal(kind) for kind in kinds) + ")" for _ in range(g.pick((1, 2, 3)))
    )
    alias = g.name("l")
    names = [f"c{i}" for i in range(len(kinds))]
    columns = tuple(Column(f"{alias}.{name}", kind) for name, kind in zip(names, kinds, strict=True))
    return f"(VALUES {rows}) AS {alias} ({', '.join(names)})", columns


_KINDS = {"JOIN": 4.0, "LEFT JOIN": 1.6, "RIGHT JOIN": 1.2, "FULL JOIN": 1.2, "CROSS JOIN": 0.5, ",": 0.3}


def _joined(
    g: Grammar, left: tuple[str, Scope], right: tuple[str, Scope], scopes: Scopes
) -> tuple[str, Scope]:
    word = g.weighted(_KINDS)
    both = (*left[1], *right[1])
    if word == ",":
        # A comma binds looser than JOIN, so the right side of a later ON would not see the left one.
        word = "CROSS JOIN"
    if word == "CROSS JOIN":
        g.note(word)
        return f"{left[0]} CROSS JOIN {right[0]}", both
    g.note(word)
    using = _using(g, left[1], right[1])
    if using is not None:
        return f"{left[0]} {word} {right[0]} USING ({using})", both
    return f"{left[0]} {word} {right[0]} ON {_on(g, word, left[1], right[1], scopes)}", both


def _using(g: Grammar, left: Scope, right: Scope) -> str | None:
    """A column that both sides have once, under the same name and kind."""
    if not g.chance(0.12):
        return None

    def once(scope: Scope) -> dict[str, Kind]:
        names = [c.sql.split(".")[1] for c in scope]
        return {n: c.kind for n, c in zip(names, scope, strict=True) if names.count(n) == 1}

    mine, theirs = once(left), once(right)
    common = [name for name, kind in mine.items() if theirs.get(name) is kind]
    if not common:
        return None
    g.note("USING")
    return g.pick(common)


def _on(g: Grammar, word: str, left: Scope, right: Scope, scopes: Scopes) -> str:
    equal = equality(g, (left,), (right,)) if g.chance(0.85) else None
    parts = [] if equal is None else [equal]
    if equal is not None:
        g.note(f"equi {word}")
    if not parts or g.chance(0.3):
        g.note(f"theta {word}")
        before, g.subqueries = g.subqueries, 0 if word == "FULL JOIN" or g.chance(0.3) else g.subqueries
        left_over = g.subqueries
        parts.append(condition(g, ((*left, *right), *scopes), g.pick((1, 1, 2))))
        if g.subqueries < left_over:
            g.note("subquery in ON")
        g.subqueries = before - (left_over - g.subqueries)
    if len(parts) > 1:
        g.note("join on several conditions")
    return " AND ".join(f"({part})" for part in parts)

"""Random queries over bags, a set and a keyed relation, as SQL text, and random contents for them.

A query is grown from the top: FROM, WHERE, grouping, windows, set operations, LIMIT, and subqueries in
every place that takes an expression, reading rows any number of levels out. `coverage` counts what was
drawn.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from everview.language.program import Program

PROGRAM = Program.parse(
    """
    CREATE TABLE r (a BIGINT, b BIGINT, c TEXT) WITH (semantics = 'bag');
    CREATE TABLE s (a BIGINT, d BIGINT, e TEXT) WITH (semantics = 'bag');
    CREATE TABLE t (d BIGINT NOT NULL, f BIGINT) WITH (semantics = 'bag');
    CREATE TABLE u (a BIGINT, g BIGINT);
    CREATE TABLE k (id BIGINT, v BIGINT, w TEXT, PRIMARY KEY (id));
    """
)
TABLES = {
    "r": (("a", "n"), ("b", "n"), ("c", "s")),
    "s": (("a", "n"), ("d", "n"), ("e", "s")),
    "t": (("d", "n"), ("f", "n")),
    "u": (("a", "n"), ("g", "n")),
    "k": (("id", "n"), ("v", "n"), ("w", "s")),
}


def contents(rng, *, most=5):
    """Rows for every table: NULLs, duplicates, often nothing."""

    def number():
        return rng.choice([None, 0, 1, 1, 2, 3])

    def text():
        return rng.choice([None, "x", "x", "y", ""])

    def rows(*cells):
        return [tuple(cell() for cell in cells) for _ in range(rng.randrange(most + 1))]

    ids = rng.sample(range(5), rng.randrange(5))
    return {
        "r": rows(number, number, text),
        "s": rows(number, number, text),
        "t": rows(lambda: rng.choice([0, 1, 2, 3]), number),
        "u": list(dict.fromkeys(rows(number, number))),
        "k": [(i, number(), text()) for i in ids],
    }


@dataclass
class Queries:
    """A source of random queries; `scopes` are the columns in sight, the innermost query's first."""

    rng: random.Random
    coverage: Counter = field(default_factory=Counter)
    _alias: int = 0

    def query(self):
        self._alias = 0
        return self._query([], 3, self.rng.randint(1, 3))[0]

    def _drawn(self, what):
        self.coverage[what] += 1
        return what

    def _chance(self, probability):
        return self.rng.random() < probability

    def _new(self, prefix):
        self._alias += 1
        return f"{prefix}{self._alias}"

    # Queries: each gives its text and the (name, kind) pairs of its columns.

    def _query(self, scopes, depth, width, kinds=None):
        kinds = kinds or [self.rng.choice("nns") for _ in range(width)]
        if depth > 1 and self._chance(0.12):
            word = self._drawn(
                self.rng.choice(
                    ["UNION", "UNION ALL", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
                )
            )
            left, columns = self._select(scopes, depth - 1, kinds, limited=False)
            right, _ = self._select(scopes, depth - 1, kinds, limited=False)
            return f"{left} {word} {right}", columns
        return self._select(scopes, depth, kinds, limited=True)

    def _select(self, scopes, depth, kinds, *, limited):
        if self._chance(0.1):
            source, local, where = self._chain(scopes)
        else:
            source, local = self._from(scopes, depth)
            where = (
                " WHERE " + self._condition([local, *scopes], depth) if self._chance(0.7) or scopes else ""
            )
        inner = [local, *scopes]
        names = [f"o{index}" for index in range(len(kinds))]
        style = self.rng.random()
        if style < 0.2:
            body = self._grouped(inner, depth, kinds, names)
            text = f"SELECT {body[0]} FROM {source}{where}{body[1]}"
        elif style < 0.28 and depth > 1:
            items = [self._window(inner, kind) for kind in kinds]
            text = f"SELECT {self._listed(items, names)} FROM {source}{where}"
        else:
            items = [self._value(inner, kind, depth) for kind in kinds]
            distinct = ""
            if self._chance(0.15):
                distinct = self._drawn("DISTINCT") + " "
            text = f"SELECT {distinct}{self._listed(items, names)} FROM {source}{where}"
        if limited and self._chance(0.12):
            self._drawn("LIMIT")
            keys = self.rng.sample(range(1, len(kinds) + 1), self.rng.randint(1, len(kinds)))
            order = ", ".join(f"{key}{self.rng.choice(['', ' DESC', ' NULLS FIRST'])}" for key in keys)
            offset = f" OFFSET {self.rng.randint(0, 2)}" if self._chance(0.3) else ""
            text = f"{text} ORDER BY {order} LIMIT {self.rng.randint(0, 3)}{offset}"
        return text, list(zip(names, kinds, strict=True))

    @staticmethod
    def _listed(items, names):
        return ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))

    def _grouped(self, scopes, depth, kinds, names):
        local, *outer = scopes
        if self._chance(0.4):
            self._drawn("global aggregate")
            keys = []
        else:
            self._drawn("GROUP BY")
            keys = self.rng.sample(local, min(len(local), self.rng.randint(1, 2)))
        groups = [keys, *outer]
        items = []
        for kind in kinds:
            known = [name for name, other in keys if other == kind]
            if known and self._chance(0.5):
                items.append(self.rng.choice(known))
            elif depth > 1 and self._chance(0.15):
                items.append(self._scalar(groups, depth, kind))
            else:
                items.append(self._aggregate(scopes, kind, depth))
        by = f" GROUP BY {', '.join(name for name, _ in keys)}" if keys else ""
        having = ""
        if self._chance(0.3):
            self._drawn("HAVING")
            other = self._scalar(groups, depth, "n") if depth > 1 and self._chance(0.4) else "1"
            having = f" HAVING {self._aggregate(scopes, 'n', depth)} >= {other}"
        return self._listed(items, names), by + having

    def _aggregate(self, scopes, kind, depth):
        local = scopes[0]
        own = [name for name, other in local if other == kind]
        if kind == "s":
            if not own:
                return "min('z')"
            return f"{self._drawn(self.rng.choice(['min', 'max']))}({self.rng.choice(own)})"
        choice = self.rng.choice(["count(*)", "count", "sum", "min", "max", "count distinct", "filter"])
        self._drawn(choice)
        argument = self.rng.choice(own) if own else "1"
        if depth > 2 and own and self._chance(0.1):
            self._drawn("subquery in an aggregate")
            argument = f"({argument} + {self._scalar(scopes, depth, 'n')})"
        match choice:
            case "count(*)":
                return choice
            case "count distinct":
                return f"count(DISTINCT {argument})"
            case "filter":
                return f"sum({argument}) FILTER (WHERE {self._simple(scopes)})"
            case _:
                return f"{choice}({argument})"

    def _window(self, scopes, kind):
        local = scopes[0]
        part = self.rng.choice(local)[0]
        order = self.rng.choice(local)[0]
        own = [name for name, other in local if other == kind]
        over = f"OVER (PARTITION BY {part} ORDER BY {order})"
        if kind == "n":
            name = self._drawn(self.rng.choice(["row_number", "rank", "count over"]))
            return f"{'count(*)' if name == 'count over' else name + '()'} {over}"
        self._drawn("lag")
        return f"lag({self.rng.choice(own)}) {over}" if own else "'w'"

    def _from(self, scopes, depth):
        text, local = self._table(scopes, depth)
        joins = self.rng.choice([0, 0, 0, 1, 1, 2]) if depth > 1 else self.rng.choice([0, 0, 1])
        for _ in range(joins):
            kind = self._drawn(
                self.rng.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ", "])
            )
            right, columns = self._table(scopes, depth)
            if kind == ", ":
                text, local = f"{text} CROSS JOIN {right}", local + columns
                continue
            both = [local + columns, *scopes]
            on = self._equality([local], [columns])
            if self._chance(0.3):
                on += f" AND {self._join_condition(kind, both, local, columns, depth, scopes)}"
            text, local = f"{text} {kind} {right} ON {on}", local + columns
        return text, local

    def _chain(self, scopes):
        """Tables with commas between them, and conditions that do not join neighbours."""
        self._drawn("comma joins")
        tables = [self._table(scopes, 1) for _ in range(3)]
        first, second, third = (columns for _, columns in tables)
        local = first + second + third
        conditions = [self._equality([first], [third]), self._equality([third], [second])]
        conditions += [self._simple([local, *scopes])] * self._chance(0.5)
        return ", ".join(text for text, _ in tables), local, " WHERE " + " AND ".join(conditions)

    def _join_condition(self, kind, both, local, columns, depth, scopes):
        # A subquery over both sides of a FULL JOIN is refused; over one side it is not.
        side = [self.rng.choice([local, columns]), *scopes] if kind == "FULL JOIN" else both
        if depth > 1 and self._chance(0.3):
            self._drawn(f"subquery in ON of {kind}")
            return self._subquery_condition(side, depth)
        return self._simple(both)

    def _table(self, scopes, depth):
        if depth > 1 and self._chance(0.15):
            self._drawn("subquery in FROM")
            # What stands in FROM does not see the other tables there, but it does see the rows outside.
            text, columns = self._query(scopes, depth - 1, self.rng.randint(1, 3))
            alias = self._new("q")
            return f"({text}) AS {alias}", [(f"{alias}.{name}", kind) for name, kind in columns]
        name = self.rng.choice(["k", "u"] if self._chance(0.3) else ["r", "s", "t"])
        alias = self._new(name)
        return f"{name} AS {alias}", [(f"{alias}.{column}", kind) for column, kind in TABLES[name]]

    # Expressions

    def _columns(self, scopes, kind):
        return [name for scope in scopes for name, other in scope if other == kind]

    def _value(self, scopes, kind, depth):
        own = self._columns(scopes[:1], kind)
        if depth > 1 and self._chance(0.15):
            return self._scalar(scopes, depth, kind)
        draw = self.rng.random()
        if own and draw < 0.6:
            return self.rng.choice(own)
        if draw < 0.68 and len(scopes) > 1 and (outer := self._columns(scopes[1:], kind)):
            self._drawn("outer column in the select list")
            return self.rng.choice(outer)
        if draw < 0.78:
            self._drawn("CASE")
            one, other = (self._atom(scopes, kind) for _ in range(2))
            return f"CASE WHEN {self._condition(scopes, depth - 1)} THEN {one} ELSE {other} END"
        if draw < 0.86:
            self._drawn("coalesce")
            return f"coalesce({self._atom(scopes, kind)}, {self._atom(scopes, kind)})"
        if kind == "s":
            return f"{self._atom(scopes, 's')} || {self._atom(scopes, 's')}"
        operator = self._drawn(self.rng.choice(["+", "-", "*", "/", "%"]))
        return f"({self._atom(scopes, 'n')} {operator} {self._atom(scopes, 'n')})"

    def _atom(self, scopes, kind):
        known = self._columns(scopes, kind)
        if known and self._chance(0.8):
            return self.rng.choice(known)
        return str(self.rng.randint(0, 3)) if kind == "n" else self.rng.choice(["'x'", "'y'", "''"])

    def _scalar(self, scopes, depth, kind):
        self._drawn("scalar subquery" + (", correlated" if scopes[0] else ""))
        return f"({self._query(scopes, depth - 1, 1, [kind])[0]})"

    def _equality(self, one, other):
        kind = self.rng.choice("nns")
        left, right = self._columns(one, kind), self._columns(other, kind)
        if not left or not right:
            kind = "n" if kind == "s" else "s"
            left, right = self._columns(one, kind), self._columns(other, kind)
        if not left or not right:
            return "TRUE"
        operator = self.rng.choice(["=", "=", "=", "<", "IS NOT DISTINCT FROM"])
        return f"{self.rng.choice(left)} {operator} {self.rng.choice(right)}"

    def _condition(self, scopes, depth):
        parts = []
        if len(scopes) > 1 and self._chance(0.8):
            self._drawn(f"correlation {len(scopes) - 1} deep")
            parts.append(self._equality(scopes[:1], [self.rng.choice(scopes[1:])]))
        for _ in range(self.rng.randint(0 if parts else 1, 2)):
            if depth > 1 and self._chance(0.35):
                parts.append(self._subquery_condition(scopes, depth))
            else:
                parts.append(self._simple(scopes))
        if len(parts) > 1 and self._chance(0.2):
            self._drawn("OR")
            return "(" + " OR ".join(parts) + ")"
        return " AND ".join(parts)

    def _subquery_condition(self, scopes, depth):
        draw = self.rng.random()
        negated = self.rng.choice(["", "NOT "])
        if draw < 0.4:
            self._drawn(f"{negated}EXISTS")
            width = self.rng.randint(1, 2)
            return f"{negated}EXISTS ({self._query(scopes, depth - 1, width)[0]})"
        if draw < 0.8:
            kind = self.rng.choice("nns")
            self._drawn(f"{negated}IN")
            operand = self._value(scopes, kind, 1)
            return f"{operand} {negated}IN ({self._query(scopes, depth - 1, 1, [kind])[0]})"
        return f"{self._atom(scopes, 'n')} >= {self._scalar(scopes, depth, 'n')}"

    def _simple(self, scopes):
        kind = self.rng.choice("nns")
        one, other = self._atom(scopes, kind), self._atom(scopes, kind)
        match self.rng.randint(0, 6):
            case 0:
                return f"{one} IS {self.rng.choice(['', 'NOT '])}NULL"
            case 1:
                return f"{one} IN ({other}, {self._atom(scopes, kind)})"
            case 2:
                return f"NOT ({one} = {other})"
            case 3 if kind == "n":
                return f"{one} / {other} > 0"
            case 4:
                return f"coalesce({one}, {other}) = {other}"
            case 5:
                return f"{one} IS DISTINCT FROM {other}"
            case _:
                return f"{one} {self.rng.choice(['=', '<', '<=', '>', '<>'])} {other}"

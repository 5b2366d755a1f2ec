"""Random programs, and random changes of them that are safe."""

import copy
from dataclasses import dataclass, field

import everview as ev

KINDS = ("set", "keyed", "bag", "add_wins")
TEXTS = ("a", "b", "c", None)


@dataclass
class Table:
    """A relation: its first column, `n`, tells its rows apart in a history."""

    name: str
    kind: str
    columns: list[str] = field(default_factory=lambda: ["n"])

    def sql(self):
        types = ["n BIGINT" + (" PRIMARY KEY" if self.kind == "keyed" else " NOT NULL")]
        types += [f"{column} {'TEXT' if column.startswith('t') else 'BIGINT'}" for column in self.columns[1:]]
        kind = f" WITH (semantics = '{self.kind}')" if self.kind in ("bag", "add_wins") else ""
        return f"CREATE TABLE {self.name} ({', '.join(types)}){kind};"

    def row(self, rng, n):
        return (n, *(rng.choice(TEXTS) if c.startswith("t") else rng.randrange(3) for c in self.columns[1:]))


@dataclass
class Draft:
    """A program that can still be changed."""

    tables: list[Table]
    views: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def text(self, rng):
        views = [f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in self.views.items()]
        declared = [table.sql() for table in self.tables] + views
        rng.shuffle(declared)
        return "\n".join(declared)

    def program(self, rng):
        return ev.Program.parse(self.text(rng))

    def table(self, name):
        return next(table for table in self.tables if table.name == name)


def draft(rng):
    """A small program."""
    made = Draft([])
    for _ in range(rng.randint(1, 3)):
        add_table(rng, made)
    made.views["v0"] = query(rng, made)
    for _ in range(rng.randint(0, 2)):
        add_view(rng, made)
    return made


def add_table(rng, made):
    made.made += 1
    table = Table(f"r{made.made}", rng.choice(KINDS))
    table.columns += [f"{rng.choice('tx')}{place}" for place in range(rng.randint(0, 2))]
    made.tables.append(table)


def add_view(rng, made):
    made.made += 1
    made.views[f"v{made.made}"] = query(rng, made)


def query(rng, made):
    """A query over relations, and sometimes over a view."""
    one, other = rng.choice(made.tables), rng.choice(made.tables)
    column = rng.choice(one.columns)
    filtered = f"WHERE a.n % {rng.randint(2, 4)} <> {rng.randint(0, 1)}"
    return rng.choice(
        [
            f"SELECT a.{column} AS c FROM {one.name} a {filtered}",
            f"SELECT a.{column} AS c, b.n AS m FROM {one.name} a JOIN {other.name} b ON a.n = b.n {filtered}",
            f"SELECT a.n, b.n AS m FROM {one.name} a JOIN {other.name} b ON a.n % 3 = b.n % 3",
            f"SELECT a.n % 3 AS g, count(*) AS c, max(a.n) AS m FROM {one.name} a GROUP BY a.n % 3",
            f"SELECT DISTINCT a.{column} AS c FROM {one.name} a {filtered}",
            f"SELECT a.n FROM {one.name} a UNION ALL SELECT b.n FROM {other.name} b",
            f"SELECT a.* FROM {one.name} a {filtered}",
        ]
    )


def evolved(rng, made):
    """The program after a few changes that are safe."""
    new = copy.deepcopy(made)
    for _ in range(rng.randint(1, 4)):
        match rng.randrange(6):
            case 0:
                add_table(rng, new)
            case 1 | 2:
                table = rng.choice(new.tables)
                table.columns.append(f"{rng.choice('tx')}{len(table.columns)}")
            case 3:
                add_view(rng, new)
            case 4:
                new.views[rng.choice(list(new.views))] = query(rng, new)
            case _:
                droppable = [name for name in new.views if name != "v0"]
                if droppable:
                    del new.views[rng.choice(droppable)]
    rng.shuffle(new.tables)
    return new

"""Relations of every kind, as the store declares them and as the specification does; rows of both, alike."""

from dataclasses import dataclass
from typing import Any

from spec.replication import kinds, lattices
from spec.replication.rows import Row


class Bag(kinds.Bag):
    """A bag of which the oldest row goes first; which that is, each store decides for itself."""

    age = staticmethod(lambda dot: dot)

    def delete(self, group):
        """Remove that row."""
        return kinds.Change(frozenset({min(group, key=self.age)})) if group else None


@dataclass(frozen=True)
class Declared:
    """A kind: what a table of it looks like, and how its rows are read."""

    columns: str
    kind: kinds.Kind
    values: int = 0
    """How many columns stand beside the key."""

    def split(self, row: Any) -> tuple[Any, Any]:
        """Return the key and value of a row as it is written."""
        key, *values = row
        if isinstance(self.kind, lattices.Merged):
            return key, tuple(zip("bc", values, strict=True))
        return key, values[0] if values else None

    def of_rule(self, row: Row) -> Any:
        """Return a row of the specification as a site holds it."""
        match self.kind:
            case kinds.Set() | lattices.Greatest():
                return row.key, row.value
            case kinds.Keyed():
                return row.key, row.value, row.stamp
            case lattices.Merged():
                columns = [cell for _, cell in row.value]
                return (row.key, *(cell.value for cell in columns), *(cell.stamp for cell in columns))
            case _:
                return (row.key,)

    def named(self, row: Row) -> Any:
        """Return what a reader sees of a row that is shown."""
        return (row.key, row.value) if self.values else (row.key,)

    def shown(self, item: Any) -> Any:
        """Return what a reader sees, of what the specification says that a key shows."""
        match self.kind:
            case kinds.Keyed() | lattices.Greatest():
                return item
            case lattices.Merged():
                return (item[0], *(value for _, value in item[1]))
            case Bag():
                return (item[0],)
            case _:
                return (item,)


KINDS = {
    "set": Declared("(a BIGINT NOT NULL)", kinds.Set()),
    "keyed": Declared("(a BIGINT PRIMARY KEY, b BIGINT)", kinds.Keyed(), 1),
    "add-wins": Declared("(a BIGINT) WITH (semantics = 'add_wins')", kinds.AddWins()),
    "bag": Declared("(a BIGINT) WITH (semantics = 'bag')", Bag()),
    "greatest": Declared("(a BIGINT PRIMARY KEY, b BIGINT) WITH (merge = 'max')", lattices.Greatest(), 1),
    "merged": Declared(
        "(a BIGINT PRIMARY KEY, b BIGINT, c BIGINT) WITH (merge = 'column')", lattices.Merged(), 2
    ),
}


def program(r: Declared, s: Declared) -> str:
    """Two relations and their join."""
    columns = ["r.a", *(f"r.{c} AS r{c}" for c in "bc"[: r.values]), *(f"s.{c}" for c in "bc"[: s.values])]
    return (
        f"CREATE TABLE r {r.columns};\nCREATE TABLE s {s.columns};\n"
        f"CREATE MATERIALIZED VIEW v AS SELECT {', '.join(columns)} FROM r JOIN s ON r.a = s.a;"
    )

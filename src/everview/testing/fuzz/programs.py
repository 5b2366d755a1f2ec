"""Random programs as SQL text: relations of every kind and type, and views over them and over each other."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from everview.errors import ProgramError
from everview.language.program import Program
from everview.language.relations import Semantics
from everview.language.types import Kind
from everview.testing.fuzz.domains import TYPES, Domain, type_name
from everview.testing.fuzz.grammar import Grammar
from everview.testing.fuzz.queries import query

__all__ = ["Generated", "generate_program"]

Columns = tuple[tuple[str, Kind], ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """A valid program, what each view's text holds, and why earlier attempts were refused."""

    program: Program
    constructs: Mapping[str, frozenset[str]]
    domain: Domain
    refusals: Counter[str]


def generate_program(rng: random.Random, *, views: int | None = None) -> Generated:
    """A program that the language accepts; texts that it refuses are counted and drawn anew."""
    refusals: Counter[str] = Counter()
    while True:
        text, constructs, domain = _attempt(rng, views or rng.choice((2, 3, 3, 4)))
        try:
            return Generated(Program.parse(text), constructs, domain, refusals)
        except ProgramError as error:
            refusals[str(error)] += 1


def _attempt(rng: random.Random, count: int) -> tuple[str, dict[str, frozenset[str]], Domain]:
    domain = Domain.draw(rng)
    tables: dict[str, Columns] = {}
    declarations: list[str] = []
    kinds = _Kinds(rng)
    for index in range(rng.choice((2, 2, 3))):
        name = f"r{index}"
        text, tables[name] = _relation(rng, name, kinds)
        declarations.append(text)
    constructs: dict[str, frozenset[str]] = {}
    depths = dict.fromkeys(tables, 0)
    for index in range(count):
        name = f"v{index}"
        g = Grammar(rng, domain, _readable(rng, tables, depths), query)
        g.subqueries = rng.choice((1, 2, 3))
        declarations.append(_view(g, name))
        read = [table for table in g.tables if f" {table} AS " in declarations[-1]]
        depths[name] = 1 + max((depths[table] for table in read), default=0)
        g.noted.update(f"relation: {kind}" for table in read if (kind := kinds.semantics.get(table)))
        g.noted.update(f"type {kind.name}" for table in read for _, kind in tables[table])
        if depths[name] > 1:
            g.note("view over a view")
        if depths[name] > 2:
            g.note("views three deep")
        tables[name] = _columns_of(g)
        constructs[name] = frozenset(g.noted)
    return "\n".join(declarations) + "\n", constructs, domain


def _readable(
    rng: random.Random, tables: Mapping[str, Columns], depths: Mapping[str, int]
) -> dict[str, Columns]:
    """What a view may read: everything, or mostly views, so that they nest."""
    deep = [name for name in tables if depths[name]]
    if deep and rng.random() < 0.6:
        others = rng.sample([name for name in tables if name != deep[-1]], 1)
        return {name: tables[name] for name in [deep[-1], *others]}
    return dict(tables)


def _columns_of(g: Grammar) -> Columns:
    return g.tables[""]


def _view(g: Grammar, name: str) -> str:
    kinds = [g.kind() for _ in range(g.pick((1, 2, 2, 3)))]
    text = query(g, kinds, (), 2)
    names = tuple(f"c{index}" for index in range(len(kinds)))
    listed = ""
    if g.chance(0.1):
        g.note("view with named columns")
        names = tuple(f"n{index}" for index in range(len(kinds)))
        listed = f" ({', '.join(names)})"
    g.tables = {**g.tables, "": tuple(zip(names, kinds, strict=True))}
    return f"CREATE MATERIALIZED VIEW {name}{listed} AS {text};"


class _Kinds:
    """Which kinds the columns of a program have: few, so that relations can be joined."""

    def __init__(self, rng: random.Random) -> None:
        self.common = [Kind.BIGINT, *rng.sample([kind for kind in TYPES if kind is not Kind.BIGINT], 3)]
        self.semantics: dict[str, str] = {}


def _relation(rng: random.Random, name: str, kinds: _Kinds) -> tuple[str, Columns]:
    semantics = rng.choice((Semantics.SET, Semantics.SET, Semantics.KEYED, Semantics.BAG, Semantics.ADD_WINS))
    kinds.semantics[name] = semantics.value
    columns = tuple((f"{letter}", rng.choice(kinds.common)) for letter in "abcd"[: rng.choice((2, 3, 3, 4))])
    lines = [
        f"{column} {type_name(rng.choice(TYPES[kind]))}{rng.choice(('', '', ' NOT NULL'))}"
        for column, kind in columns
    ]
    options = ""
    if semantics is Semantics.KEYED:
        if rng.random() < 0.3:
            lines.append("PRIMARY KEY (a, b)")
        else:
            lines[0] = lines[0].removesuffix(" NOT NULL") + " PRIMARY KEY"
    elif semantics is not Semantics.SET:
        options = f" WITH (semantics = '{semantics.value}')"
    return f"CREATE TABLE {name} ({', '.join(lines)}){options};", columns

"""A program: relations, and views over them, declared in one text.

Declarations may stand in any order. Views are bound after what they read, and `views` lists them so. A
view that reads itself, directly or through others, is refused and the cycle named.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from everview.errors import DataError, ProgramError
from everview.language.conflicts import CONFLICTS, CONFLICTS_SCHEMA
from everview.language.correlation import scans_of
from everview.language.datalog.ast import Directive
from everview.language.datalog.facts import read_facts
from everview.language.datalog.program import read_datalog
from everview.language.expressions import Column, Parameter
from everview.language.parameters import parameters_of
from everview.language.plan import Plan, Project, Schema
from everview.language.relations import Relation, View
from everview.language.sql.context import Catalog, Context, Parameters
from everview.language.sql.declarations import Declared, read_declaration
from everview.language.sql.dialect import Token
from everview.language.sql.queries import bind_query, bind_root
from everview.language.sql.source import Source, folded, words
from everview.language.sql.writes import bind_delete, bind_insert, bind_update, refuse_target
from everview.language.statements import Delete, Insert, Query, Statement, Update
from everview.language.windowed import companions

__all__ = ["Program"]


@dataclass(frozen=True)
class Program:
    """What a site or hub runs. Equal programs have equal hashes, however they are laid out.

    The hash is over the words of the text, without comments, spaces and the case of names, and over the
    declarations as a set; so it does not change when this library learns to plan better.
    """

    text: str = field(compare=False)
    relations: Mapping[str, Relation] = field(compare=False)
    views: Mapping[str, View] = field(compare=False)
    hash: str
    directives: tuple[Directive, ...] = field(default=(), compare=False)
    """What a Datalog program says of files: which relations are read from them, and written to them."""

    @classmethod
    def parse(cls, text: str, *, language: str = "sql") -> Program:
        """The program that a text declares; ProgramError with line, column and hint if it cannot be."""
        if language not in ("sql", "datalog"):
            raise ProgramError(f"programs are written in 'sql' or 'datalog', not in {language!r}")
        with _bounded_depth():
            return _read(text) if language == "sql" else _read_datalog(text)

    @classmethod
    def load(cls, path: str | Path) -> Program:
        """The program in a file: Datalog if its name ends with .dl, else SQL."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(f"cannot read {path}: {error}") from error
        return cls.parse(text, language="datalog" if Path(path).suffix == ".dl" else "sql")

    @classmethod
    def stored(cls, text: str) -> Program:
        """The program of a text that was one before, in the language that it begins like."""
        return cls.parse(text, language="datalog" if _DATALOG.match(text) else "sql")

    def facts(self, folder: str | Path) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """The relations that a Datalog program reads from files (`.input`), each with its file's rows."""
        for directive in self.directives:
            if directive.kind == "input":
                relation = self.relations[directive.relation]
                yield relation.name, read_facts(directive, relation, Path(folder))

    @property
    def outputs(self) -> tuple[str, ...]:
        """What a Datalog program marks with `.output`, each once."""
        return tuple(dict.fromkeys(d.relation for d in self.directives if d.kind == "output"))

    def schema(self, name: str) -> Schema:
        """The columns of a relation or view; DataError if there is none of that name."""
        found = self.relations.get(name) or self.views.get(name)
        if found is None:
            there = ", ".join(one for one in self.names() if not one.startswith("everview_"))
            raise DataError(f"there is no relation or view {name}; there are {there}", relation=name)
        return found.schema

    def names(self) -> Iterator[str]:
        """All relations, then all views."""
        yield from self.relations
        yield from self.views

    def bind_query(self, sql: str) -> Query:
        """A SELECT with parameters `?` or `:name`."""
        statement = self.bind(sql)
        if not isinstance(statement, Query):
            raise ProgramError("query() takes a SELECT", hint="writes go to execute()")
        return statement

    def bind(self, sql: str) -> Statement:
        """A SELECT, INSERT, UPDATE or DELETE."""
        with _bounded_depth():
            return self._bind(sql)

    def _bind(self, sql: str) -> Statement:
        source = Source(sql)
        trees = [tree for tree, _ in source.statements()]
        if len(trees) != 1:
            raise ProgramError(f"one statement at a time, not {len(trees)}")
        tree = trees[0]
        context = Context(
            source,
            Catalog(self._readable, self.names, self.relations.get),
            Parameters(allowed=True),
            bind_query,
        )
        match tree:
            case exp.Insert():
                relation, plan = bind_insert(context, tree, self._writable)
                return Insert(relation.name, plan, _checked(context, plan))
            case exp.Update():
                relation, plan = bind_update(context, tree, self._writable)
                return Update(relation.name, plan, _checked(context, plan))
            case exp.Delete():
                relation, plan = bind_delete(context, tree, self._writable)
                return Delete(relation.name, plan, _checked(context, plan))
            case exp.Query() | exp.Values():
                plan = bind_root(tree, context, ordered=True)
                return Query(plan, _checked(context, plan))
            case _:
                word = words(tree)
                raise source.error_at(
                    source.tokens[0].start,
                    f"{word} cannot be run",
                    hint="SELECT, INSERT, UPDATE and DELETE can",
                )

    def _readable(self, name: str) -> Schema | None:
        found = self.relations.get(name) or self.views.get(name)
        return found.schema if found is not None else _OF_STORES.get(name)

    def _writable(self, name: str) -> Relation:
        if name not in self.relations:
            raise refuse_target(name, is_view=name in self.views)
        return self.relations[name]


_OF_STORES: Mapping[str, Schema] = {CONFLICTS: CONFLICTS_SCHEMA}
"""What queries may read besides relations and views: what a store says of itself."""


@contextmanager
def _bounded_depth() -> Iterator[None]:
    """Text nested beyond what Python's stack holds is an error of the text."""
    try:
        yield
    except RecursionError:
        raise ProgramError(
            "expressions or queries are nested too deeply", hint="split it into several views, or WITH"
        ) from None


def _checked(context: Context, plan: Plan) -> tuple[Parameter, ...]:
    """The parameters of a plan; `?` and `:name` do not mix."""
    if context.parameters.named and context.parameters.positional:
        raise context.source.error(
            context.parameters.positional[0], "? and :name are mixed", hint="use one of them", word="?"
        )
    return parameters_of(plan)


def _read(text: str) -> Program:
    source = Source(text)
    relations: dict[str, Relation] = {}
    declared: dict[str, Declared] = {}
    canonical: list[str] = []
    for tree, tokens in source.statements():
        found = read_declaration(source, tree)
        taken = {name.lower() for name in (*relations, *declared)}
        if found.name.lower() in taken:
            raise source.error(tree, f"{found.name} is declared twice")
        canonical.append(_canonical(tokens))
        if isinstance(found, Relation):
            relations[found.name] = found
        else:
            declared[found.name] = found
    relations |= {relation.name: relation for relation in companions(relations.values())}
    views = _Views(source, relations, declared).bind()
    digest = hashlib.sha256("\n".join(sorted(canonical)).encode()).hexdigest()
    return Program(text, MappingProxyType(relations), MappingProxyType(views), digest)


_DATALOG = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*(?:\.[a-z]|\w+\s*\()", re.DOTALL)
"""How a Datalog program begins: with a directive, or an atom. No SQL statement does."""


def _read_datalog(text: str) -> Program:
    found = read_datalog(text)
    return Program(
        text,
        MappingProxyType(found.relations),
        MappingProxyType(found.views),
        found.hash,
        found.directives,
    )


def _canonical(tokens: list[Token]) -> str:
    """The words of a statement, one space apart; only quoted words keep their case."""
    words = []
    for token in tokens:
        if token.token_type is TokenType.STRING:
            words.append("'" + token.text.replace("'", "''") + "'")
        elif token.token_type is TokenType.IDENTIFIER and token.text != token.text.lower():
            words.append('"' + token.text.replace('"', '""') + '"')
        else:
            words.append(" ".join(token.text.lower().split()))
    return " ".join(words)


class _Views:
    """Binds the views of a program, each after those it reads."""

    def __init__(
        self, source: Source, relations: Mapping[str, Relation], declared: Mapping[str, Declared]
    ) -> None:
        self._source = source
        self._relations = relations
        self._declared = declared
        self._bound: dict[str, View] = {}
        self._entered: list[str] = []
        self._names = (*relations, *declared)

    def bind(self) -> dict[str, View]:
        reads = {name: self._reads(view) for name, view in self._declared.items()}
        for name in self._in_order(reads):
            self._schema(name)
        return self._bound

    def _reads(self, view: Declared) -> list[str]:
        """The views that a query names, apart from its own WITH."""
        own = {folded(cte.args["alias"].this) for cte in view.query.find_all(exp.CTE)}
        tables = (
            folded(table.this)
            for table in view.query.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier)
        )
        return [name for name in dict.fromkeys(tables) if name in self._declared and name not in own]

    def _in_order(self, reads: Mapping[str, list[str]]) -> list[str]:
        """Each view after those it reads, otherwise as declared; without recursion, so to any depth."""
        order: list[str] = []
        done: set[str] = set()
        for root in reads:
            path: list[tuple[str, Iterator[str]]] = [] if root in done else [(root, iter(reads[root]))]
            while path:
                name, rest = path[-1]
                following = next((other for other in rest if other not in done), None)
                if following is None:
                    done.add(name)
                    order.append(name)
                    path.pop()
                    continue
                entered = [entry for entry, _ in path]
                if following in entered:
                    self._refuse_cycle([*entered[entered.index(following) :], following])
                path.append((following, iter(reads[following])))
        return order

    def _refuse_cycle(self, cycle: list[str]) -> None:
        raise self._source.error(
            self._declared[cycle[0]].node.this,
            f"views read each other in a cycle: {' → '.join(cycle)}",
            hint="write one view with WITH RECURSIVE and the queries that read each other",
        )

    def _schema(self, name: str) -> Schema | None:
        if name in self._declared and name not in self._bound:
            # Only a view whose name some WITH also uses is met here before its turn.
            if name in self._entered:
                self._refuse_cycle([*self._entered[self._entered.index(name) :], name])
            self._entered.append(name)
            self._bound[name] = self._view(self._declared[name])
            self._entered.pop()
        found = self._relations.get(name) or self._bound.get(name)
        return found.schema if found is not None else None

    def _view(self, view: Declared) -> View:
        catalog = Catalog(self._schema, lambda: self._names, self._relations.get)
        context = Context(self._source, catalog, Parameters(allowed=False), bind_query)
        plan = bind_query(view.query, context)
        if view.columns:
            plan = self._renamed(view, plan)
        names = [column.name for column in plan.schema]
        twice = next((n for i, n in enumerate(names) if n.lower() in {m.lower() for m in names[:i]}), None)
        if twice is not None:
            raise self._source.error(
                view.query, f"view {view.name} has two columns {twice}", hint="name them apart with AS"
            )
        return View(view.name, plan, tuple(sorted(set(scans_of(plan)))), view.authority)

    def _renamed(self, view: Declared, plan: Plan) -> Plan:
        if len(view.columns) != len(plan.schema):
            raise self._source.error(
                view.node.this,
                f"view {view.name} names {len(view.columns)} columns, its query has {len(plan.schema)}",
            )
        if isinstance(plan, Project):
            return replace(plan, names=view.columns)
        columns = tuple(Column(index, f.type, f.name) for index, f in enumerate(plan.schema))
        return Project(plan, columns, view.columns)

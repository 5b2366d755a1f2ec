"""A located program at given sites: the relations that hold it, as a program of everyday SQL.

Every located relation is one relation a place, `link@a`, which only that site hosts: so its rows live there,
and SQL, views, watches and `why` know them as any others. What is on its way to a place lies in the place's
mail, a relation that its site hosts, and the sites that send to it: so whatever carries relations carries
it, over any transport, with losses, repeats and crashes. The names of mail have a digest of the rules, so
sites that run others do not understand each other by mistake.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from everview.errors import DataError, ProgramError
from everview.language.datalog.compiler import compile_text
from everview.language.datalog.declared import Declared
from everview.language.datalog.localising import Localised, localise
from everview.language.datalog.parser import error_at, parse
from everview.language.identity import tuple_id
from everview.language.program import Program
from everview.language.relations import Relation
from everview.language.types import BIGINT, BOOLEAN, TEXT
from everview.located.facts import Fact
from everview.located.rules import Rules

__all__ = ["LocatedProgram", "Mode"]

Mode = Literal["provenance", "counting"]

_TYPES = (TEXT, BIGINT, BOOLEAN)
_PLACE = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class LocatedProgram:
    """A Datalog program with places, the sites it runs at, and the SQL program that they all open."""

    text: str
    places: tuple[str, ...]
    mode: Mode
    localised: Localised = field(repr=False)
    rules: Rules = field(repr=False)
    program: Program = field(repr=False)
    relations: Mapping[str, Relation] = field(repr=False)
    """The declared relations by their names in the text."""
    digest: str = field(repr=False)

    @classmethod
    def parse(
        cls, text: str, places: Iterable[str], *, mode: Mode = "provenance", views: str = ""
    ) -> LocatedProgram:
        """The program that a text declares, at sites of these names.

        `views` is SQL that every place has besides, with `{place}` where its name goes: views over
        "path@{place}", say.
        """
        if mode not in ("provenance", "counting"):
            raise ProgramError(f"a located program runs by 'provenance' or by 'counting', not by {mode!r}")
        named = tuple(dict.fromkeys(places))
        for place in named:
            if not _PLACE.fullmatch(place):
                raise DataError(
                    f"{place!r} cannot be a place: names are made of letters, digits, '.', '_', '-'"
                )
        tree = parse(text)
        declared = compile_text(tree).declared  # types, safety, and that recursion ends
        localised = localise(tree)
        rules = Rules(localised)
        relations = {name: _relation(found) for name, found in declared.items()}
        digest = hashlib.sha256(f"{mode}\n{localised}".encode()).hexdigest()[:8]
        statements = "\n".join(
            statement
            for place in named
            for statement in (
                *(_table(f"{relation.name}@{place}", relation) for relation in relations.values()),
                *_mail(digest, place, mode),
                views.replace("{place}", place),
            )
        )
        if mode == "counting":
            statements += _REPORTS.format(name=f"reports.{digest}")
        program = Program.parse(statements)
        return cls(text, named, mode, localised, rules, program, relations, digest)

    def hosts(self, place: str, neighbours: Iterable[str] | None = None) -> set[str]:
        """What the site of a place hosts: its relations, its mail, and that of those to whom it sends.

        Those are all places, unless neighbours are named; a place must be among them if a rule at this one
        can have a head there.
        """
        self.require(place)
        others = self.places if neighbours is None else tuple(neighbours)
        for other in others:
            self.require(other)
        found = {f"{name}@{place}" for name in self.relations}
        found |= {self.mail(other) for other in (place, *others)}
        if self.mode == "counting":
            found |= {self.counts(place), self.sent(place), self.reports}
        for name, view in self.program.views.items():
            if found.issuperset(view.reads):
                found.add(name)
        return found

    def require(self, place: str) -> None:
        """Refuse a name that is no place."""
        if place not in self.places:
            raise DataError(f"{place!r} is no place of this program, only {', '.join(self.places)}")

    def mail(self, place: str) -> str:
        """The relation of what is on its way to a place."""
        return f"mail.{self.digest}@{place}"

    def counts(self, place: str) -> str:
        """In counting mode, the relation of the derivations at a place."""
        return f"counts.{self.digest}@{place}"

    def sent(self, place: str) -> str:
        """In counting mode, the relation of how much a place has sent and consumed."""
        return f"sent.{self.digest}@{place}"

    @property
    def reports(self) -> str:
        """In counting mode, the relation by which places find out that all is quiet."""
        return f"reports.{self.digest}"

    def identify(self, fact: Fact) -> bytes:
        """The id of a base fact."""
        return tuple_id(self.relations[fact[0]], fact[1])

    def __str__(self) -> str:
        """The localised program."""
        return str(self.localised)


def _relation(declared: Declared) -> Relation:
    for position, (field_, column) in enumerate(
        zip(declared.schema, declared.declaration.columns, strict=True)
    ):
        here = position == declared.location
        if field_.type not in ((TEXT,) if here else _TYPES):
            wanted = "symbol" if here else "symbol, number or boolean"
            raise error_at(
                column.place,
                f"{declared.name}.{column.name} is a {column.type}",
                hint=f"in a located relation it must be a {wanted}",
            )
    return Relation(declared.name, declared.schema)


def _table(name: str, relation: Relation) -> str:
    columns = ", ".join(f'"{column.name}" {column.type} NOT NULL' for column in relation.schema)
    return f'CREATE TABLE "{name}" ({columns});'


def _mail(digest: str, place: str, mode: Mode) -> list[str]:
    return [text.format(digest=digest, place=place) for text in _MAIL[mode]]


# In provenance mode a derivation has a relation's name, a row and ids; a length has the place of a base fact,
# its id and the length. In counting mode the numbers of a sender tell its updates apart.
_MAIL: Mapping[Mode, tuple[str, ...]] = {
    "provenance": (
        (
            'CREATE TABLE "mail.{digest}@{place}" '
            "(name TEXT NOT NULL, what BLOB NOT NULL, ids BLOB NOT NULL, length BIGINT NOT NULL);"
        ),
    ),
    "counting": (
        (
            'CREATE TABLE "mail.{digest}@{place}" '
            "(sender TEXT NOT NULL, number BIGINT NOT NULL, sign BIGINT NOT NULL, derived BLOB NOT NULL);"
        ),
        'CREATE TABLE "counts.{digest}@{place}" (derived BLOB PRIMARY KEY, n BIGINT NOT NULL);',
        (
            'CREATE TABLE "sent.{digest}@{place}" '
            "(place TEXT PRIMARY KEY, n BIGINT NOT NULL, store TEXT NOT NULL);"
        ),
    ),
}

_REPORTS = (
    'CREATE TABLE "{name}" (place TEXT NOT NULL, round BIGINT NOT NULL, sent BIGINT NOT NULL, '
    "consumed BIGINT NOT NULL, waiting BIGINT NOT NULL);"
)

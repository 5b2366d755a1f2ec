"""What a Datalog text says, before types and plans: frozen nodes, each with its place in the text.

A rule has one head and a body of literals that must all hold; `a, b :- c; d.` is four rules here. A fact is
a rule without a body. Names of variables and relations are kept as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

__all__ = [
    "Aggregate",
    "Anonymous",
    "Atom",
    "BodyLiteral",
    "ColumnDeclaration",
    "Comparison",
    "Constant",
    "Declaration",
    "Directive",
    "Fold",
    "Negation",
    "Operation",
    "Place",
    "Rule",
    "Term",
    "Text",
    "TypeName",
    "Variable",
    "atoms_of",
    "variables_of",
]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line and column, from 1."""

    line: int
    column: int


_NOWHERE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that stands for one value throughout its rule."""

    name: str
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Anonymous:
    """`_`: some value, another one each time."""

    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Constant:
    """A number (int, or Decimal when written with a point), a symbol, true or false."""

    value: int | Decimal | str | bool
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function over terms, such as `+`, `neg` and `cat`."""

    name: str
    arguments: tuple[Term, ...]
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`sum w : { edge(x, y, w) }`: over all matches of a body of its own; `count` has no argument."""

    function: str
    argument: Term | None
    body: tuple[BodyLiteral, ...]
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Fold:
    """`min<c>` in a head: over the matches of the rule's body, grouped by the head's other arguments."""

    function: str
    argument: Term | None
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


Term: TypeAlias = Variable | Anonymous | Constant | Operation | Aggregate | Fold


@dataclass(frozen=True, slots=True)
class Atom:
    """`relation(arguments)`; `location` is the position of the argument marked with `@`."""

    relation: str
    arguments: tuple[Term, ...]
    location: int | None = None
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negation:
    """`!atom`: no row matches."""

    atom: Atom
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right`, with =, !=, <, <=, > or >=."""

    operator: str
    left: Term
    right: Term
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


BodyLiteral: TypeAlias = Atom | Negation | Comparison


@dataclass(frozen=True, slots=True)
class Rule:
    """The head holds wherever the whole body does."""

    head: Atom
    body: tuple[BodyLiteral, ...]
    place: Place = field(default=_NOWHERE, compare=False, repr=False)

    @property
    def is_fact(self) -> bool:
        """Whether it holds without conditions."""
        return not self.body


@dataclass(frozen=True, slots=True)
class ColumnDeclaration:
    """A column's name and the name of its type."""

    name: str
    type: str
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Declaration:
    """`.decl relation(column: type, …)`; `location` is the position of the column marked with `@`."""

    relation: str
    columns: tuple[ColumnDeclaration, ...]
    location: int | None = None
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TypeName:
    """`.type Name = number` or `.type Name <: symbol`."""

    name: str
    type: str
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input relation(option=value)`, `.output relation`, `.printsize relation`."""

    kind: str
    relation: str
    options: tuple[tuple[str, str], ...] = ()
    place: Place = field(default=_NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Text:
    """A whole program, each kind of statement in the order of the text."""

    types: tuple[TypeName, ...]
    declarations: tuple[Declaration, ...]
    directives: tuple[Directive, ...]
    rules: tuple[Rule, ...]


def variables_of(*parts: Term | BodyLiteral) -> Iterator[Variable]:
    """The variables in terms and literals, as often as they occur; not those in bodies of aggregates."""
    for part in parts:
        match part:
            case Variable():
                yield part
            case Operation(_, arguments) | Atom(_, arguments):
                yield from variables_of(*arguments)
            case Fold(_, argument):
                yield from variables_of(*(() if argument is None else (argument,)))
            case Negation(atom):
                yield from variables_of(atom)
            case Comparison(_, left, right):
                yield from variables_of(left, right)
            case Anonymous() | Constant() | Aggregate():
                pass


def atoms_of(rule: Rule) -> Iterator[tuple[Atom, bool]]:
    """The atoms that a rule reads, those inside aggregates too, and whether it needs all of their rows.

    An atom that is negated or aggregated over has to be complete before the rule is applied.
    """
    terms: list[Term] = [*rule.head.arguments]
    for literal in rule.body:
        match literal:
            case Atom():
                yield literal, any(isinstance(term, Fold) for term in rule.head.arguments)
                terms += literal.arguments
            case Negation(atom):
                yield atom, True
                terms += atom.arguments
            case Comparison(_, left, right):
                terms += (left, right)
    while terms:
        match terms.pop():
            case Operation(_, arguments):
                terms += arguments
            case Aggregate(_, argument, body):
                inner = Rule(Atom("", () if argument is None else (argument,)), body)
                yield from ((atom, True) for atom, _ in atoms_of(inner))
            case _:
                pass

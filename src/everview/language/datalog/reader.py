"""What lark finds in a text, made into the tree of the program while it is read.

A parenthesis in a body may begin a group of literals or a term, and `f(x)` may be an atom or a call; which it
is shows only from what stands around it, so both are kept as they are until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, TypeAlias

import lark

from everview.errors import ProgramError
from everview.language.datalog.ast import (
    Aggregate,
    Anonymous,
    Atom,
    BodyLiteral,
    ColumnDeclaration,
    Comparison,
    Constant,
    Declaration,
    Directive,
    Fold,
    Negation,
    Operation,
    Place,
    Rule,
    Term,
    TypeName,
    Variable,
)

__all__ = ["error_at", "reader"]

_MOST_ALTERNATIVES = 1000
"""How many rules one rule with `;` may stand for."""

_IGNORED = frozenset({"inline", "no_inline", "btree", "brie", "magic", "no_magic", "btree_delete"})
"""What tells Soufflé how to run a relation and changes nothing of what it holds."""


def error_at(place: Place, message: str, *, hint: str | None = None) -> ProgramError:
    """An error about what stands at this place."""
    return ProgramError(message, line=place.line, column=place.column, hint=hint)


@dataclass(frozen=True, slots=True)
class _Located:
    """A term marked with @."""

    term: _Part
    place: Place


@dataclass(frozen=True, slots=True)
class _Applied:
    """`f(…)`: an atom or a call."""

    name: str
    arguments: tuple[_Part, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class _Group:
    """`(…)`: alternatives of conjunctions, or a term."""

    alternatives: tuple[tuple[_Part, ...], ...]
    place: Place


@dataclass(frozen=True, slots=True)
class _Not:
    """`!…`."""

    part: _Part
    place: Place


@dataclass(frozen=True, slots=True)
class _Compared:
    operator: str
    left: _Part
    right: _Part
    place: Place


@dataclass(frozen=True, slots=True)
class _Joined:
    """An operator between parts."""

    name: str
    arguments: tuple[_Part, ...]
    place: Place


_Part: TypeAlias = Term | _Located | _Applied | _Group | _Not | _Compared | _Joined
_Body: TypeAlias = tuple[tuple[BodyLiteral, ...], ...]


def _at(token: lark.Token) -> Place:
    return Place(token.line or 0, token.column or 0)


def _place_of(part: _Part) -> Place:
    return part.place


class _Reader(lark.Transformer[Any, Any]):
    """Builds the tree while the text is read."""

    def start(self, statements: list[Any]) -> list[Any]:
        return statements

    # statements

    def declaration(self, parts: list[Any]) -> list[Any]:
        _, names, columns, *qualifiers = parts
        found: list[Any] = []
        for name in names:
            marked = [at for at, _ in columns or () if at is not None]
            if len(marked) > 1:
                raise error_at(_at(marked[1]), f"{name} has two columns marked with @", hint="keep one")
            location = next((i for i, (at, _) in enumerate(columns or ()) if at is not None), None)
            listed = tuple(column for _, column in columns or ())
            found.append(Declaration(str(name), listed, location, _at(name)))
        for word in qualifiers:
            if word in ("input", "output", "printsize"):
                found += [Directive(str(word), str(name), (), _at(word)) for name in names]
            elif str(word) not in _IGNORED:
                raise error_at(_at(word), f"{word} relations are not supported", hint="write its rules out")
        return found

    def names(self, names: list[Any]) -> list[Any]:
        return names

    def columns(self, columns: list[Any]) -> list[Any]:
        return columns

    def column(self, parts: list[Any]) -> tuple[Any, ColumnDeclaration]:
        at, name, kind = parts
        return at, ColumnDeclaration(str(name), kind, _at(name))

    def type_name(self, parts: list[Any]) -> str:
        word, precision, scale = parts
        if precision is None:
            return str(word)
        return f"{word}({precision}{'' if scale is None else f',{scale}'})"

    def type_alias(self, parts: list[Any]) -> list[Any]:
        _, name, kind = parts
        return [TypeName(str(name), str(kind), _at(name))]

    def directive(self, parts: list[Any]) -> list[Any]:
        word, names, *options = parts
        listed = tuple(option for option in options if option is not None)
        return [Directive(str(word)[1:], str(name), listed, _at(name)) for name in names]

    def option(self, parts: list[Any]) -> tuple[str, str]:
        name, value = parts
        return str(name), _unquoted(value) if value.type == "STRING" else str(value)

    def unsupported(self, parts: list[Any]) -> list[Any]:
        word = parts[0]
        raise error_at(
            _at(word),
            f"{word} is not supported",
            hint="the directives are .decl, .type, .input, .output and .printsize",
        )

    def rule(self, parts: list[Any]) -> list[Any]:
        heads, body = parts
        bodies = ((),) if body is None else _bodies(body)
        return [Rule(head, conjunction, head.place) for head in heads for conjunction in bodies]

    def heads(self, heads: list[Any]) -> list[Any]:
        return heads

    def head(self, parts: list[Any]) -> Atom:
        name, arguments = parts
        return _atom(_Applied(str(name), tuple(arguments or ()), _at(name)))

    def head_arguments(self, arguments: list[Any]) -> list[Any]:
        return arguments

    def fold(self, parts: list[Any]) -> Fold:
        word, argument = parts
        if isinstance(argument, lark.Token):
            if word != "count":
                raise error_at(_at(word), f"{word}<*>: only count takes *", hint=f"write {word}<variable>")
            return Fold(str(word), None, _at(word))
        return Fold(str(word), _term(argument), _at(word))

    # bodies

    def body(self, conjunctions: list[Any]) -> list[Any]:
        return conjunctions

    def conjunction(self, literals: list[Any]) -> list[Any]:
        return literals

    def comparison(self, parts: list[Any]) -> _Compared:
        left, operator, right = parts
        return _Compared(str(operator), left, right, _place_of(left))

    def compare(self, parts: list[Any]) -> Any:
        return parts[0]

    def negation(self, parts: list[Any]) -> _Not:
        return _Not(parts[0], _place_of(parts[0]))

    # terms

    def located(self, parts: list[Any]) -> _Located:
        at, term = parts
        return _Located(term, _at(at))

    def binary(self, parts: list[Any]) -> _Joined:
        left, sign, right = parts
        return _Joined(str(sign), (left, right), _place_of(left))

    def negative(self, parts: list[Any]) -> _Part:
        sign, operand = parts
        if isinstance(operand, Constant) and not isinstance(operand.value, bool | str):
            return Constant(-operand.value, _at(sign))
        return _Joined("neg", (operand,), _at(sign))

    def extreme(self, parts: list[Any]) -> _Applied:
        word, group = parts
        if len(group.alternatives) != 1 or len(group.alternatives[0]) < 2:
            raise error_at(
                _at(word),
                f"{word} compares at least two terms, or takes a body",
                hint=f"write {word}(a, b), or {word} x : {{ … }}",
            )
        return _Applied(str(word), group.alternatives[0], _at(word))

    def aggregate(self, parts: list[Any]) -> Aggregate:
        word, *argument, body = parts
        matches = [[body]] if isinstance(body, _Applied) else body
        found = _bodies(matches)
        if len(found) != 1:
            raise error_at(_at(word), f"{word} over alternatives", hint="give them a relation of their own")
        return Aggregate(str(word), _term(argument[0]) if argument else None, found[0], _at(word))

    def variable(self, parts: list[Any]) -> Variable:
        return Variable(str(parts[0]), _at(parts[0]))

    def anonymous(self, parts: list[Any]) -> Anonymous:
        return Anonymous(_at(parts[0]))

    def number(self, parts: list[Any]) -> Constant:
        return Constant(int(parts[0], 0) if parts[0][:2] in ("0x", "0b") else int(parts[0]), _at(parts[0]))

    def float_(self, parts: list[Any]) -> Constant:
        return Constant(Decimal(str(parts[0])), _at(parts[0]))

    def string(self, parts: list[Any]) -> Constant:
        return Constant(_unquoted(parts[0]), _at(parts[0]))

    def truth(self, parts: list[Any]) -> Constant:
        return Constant(str(parts[0]) == "true", _at(parts[0]))

    def applied(self, parts: list[Any]) -> _Applied:
        name, arguments = parts
        return _Applied(str(name), tuple(arguments or ()), _at(name))

    def arguments(self, arguments: list[Any]) -> list[Any]:
        return arguments

    def group(self, parts: list[Any]) -> _Group:
        alternatives = tuple(tuple(conjunction) for conjunction in parts[0])
        return _Group(alternatives, _place_of(alternatives[0][0]))


def reader() -> lark.Transformer[Any, Any]:
    """Return what lark calls for every part of a text that it has recognised."""
    return _Reader()


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


def _unquoted(token: lark.Token) -> str:
    inner = iter(str(token)[1:-1])
    return "".join(_ESCAPES.get(mark := next(inner), "\\" + mark) if c == "\\" else c for c in inner)


def _bodies(alternatives: Iterable[Sequence[_Part]]) -> _Body:
    """Every way in which a body may hold, as conjunctions."""
    found: list[tuple[BodyLiteral, ...]] = []
    for conjunction in alternatives:
        ways = [tuple(_literal(part)) for part in conjunction]
        for chosen in product(*ways):
            found.append(tuple(literal for part in chosen for literal in part))
            if len(found) > _MOST_ALTERNATIVES:
                raise error_at(
                    _place_of(conjunction[0]),
                    f"a rule with more than {_MOST_ALTERNATIVES} alternatives",
                    hint="give some of them a relation of their own",
                )
    return tuple(found)


def _literal(part: _Part) -> Iterator[tuple[BodyLiteral, ...]]:
    """The ways in which one member of a conjunction may hold."""
    match part:
        case _Applied():
            yield (_atom(part),)
        case _Group(alternatives):
            yield from _bodies(alternatives)
        case _Compared(operator, left, right, place):
            yield (Comparison(operator, _term(left), _term(right), place),)
        case _Not(inner, place):
            while isinstance(inner, _Group) and len(inner.alternatives) == len(inner.alternatives[0]) == 1:
                inner = inner.alternatives[0][0]
            if not isinstance(inner, _Applied):
                raise error_at(place, "! stands before an atom only", hint="turn the comparison round")
            yield (Negation(_atom(inner), place),)
        case _:
            raise error_at(
                _place_of(part), "a term alone is no condition", hint="compare it, or write an atom"
            )


def _atom(applied: _Applied) -> Atom:
    marked = [(i, a) for i, a in enumerate(applied.arguments) if isinstance(a, _Located)]
    if len(marked) > 1:
        raise error_at(marked[1][1].place, f"{applied.name} has two arguments marked with @", hint="keep one")
    arguments = tuple(_term(a.term if isinstance(a, _Located) else a) for a in applied.arguments)
    return Atom(applied.name, arguments, marked[0][0] if marked else None, applied.place)


def _term(part: _Part) -> Term:
    match part:
        case _Applied(name, arguments, place) | _Joined(name, arguments, place):
            return Operation(name, tuple(map(_term, arguments)), place)
        case _Group(((inner,),)):
            return _term(inner)
        case _Group() | _Compared() | _Not():
            raise error_at(_place_of(part), "a condition where a value is expected")
        case _Located(_, place):
            raise error_at(place, "@ stands before an argument of an atom only")
        case _:
            return part

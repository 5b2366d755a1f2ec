"""Datalog as text again: what is printed reads back as the same tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from everview.language.datalog.ast import (
    Aggregate,
    Anonymous,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Declaration,
    Fold,
    Negation,
    Operation,
    Rule,
    Term,
    Variable,
)

__all__ = ["show_atom", "show_declaration", "show_rule", "show_term"]

_INFIX = frozenset({"+", "-", "*", "/", "%", "^"})
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"})


def show_declaration(declaration: Declaration) -> str:
    """A declaration, with the column of its place marked."""
    columns = (
        f"{'@' if position == declaration.location else ''}{column.name}: {column.type}"
        for position, column in enumerate(declaration.columns)
    )
    return f".decl {declaration.relation}({', '.join(columns)})"


def show_rule(rule: Rule) -> str:
    """A rule or a fact, with its full stop."""
    body = f" :- {_body(rule.body)}" if rule.body else ""
    return f"{show_atom(rule.head)}{body}."


def show_atom(atom: Atom) -> str:
    """An atom, with the argument that is its place marked."""
    arguments = (
        f"{'@' if position == atom.location else ''}{show_term(argument)}"
        for position, argument in enumerate(atom.arguments)
    )
    return f"{atom.relation}({', '.join(arguments)})"


def show_term(term: Term) -> str:
    """A term; what is computed inside another is in parentheses."""
    match term:
        case Variable(name):
            return name
        case Anonymous():
            return "_"
        case Constant(bool() as value):
            return "true" if value else "false"
        case Constant(str() as value):
            return f'"{value.translate(_ESCAPED)}"'
        case Constant(value):
            return str(value)
        case Operation("neg", (operand,)):
            return f"-({show_term(operand)})"
        case Operation(name, (left, right)) if name in _INFIX:
            return f"{_inner(left)} {name} {_inner(right)}"
        case Operation(name, arguments):
            return f"{name}({', '.join(map(show_term, arguments))})"
        case Aggregate(function, argument, body):
            over = "" if argument is None else f" {_inner(argument)}"
            return f"{function}{over} : {{ {_body(body)} }}"
        case Fold(function, argument):
            return f"{function}<{'*' if argument is None else show_term(argument)}>"
        case _:
            assert_never(term)


def _inner(term: Term) -> str:
    infix = isinstance(term, Operation) and term.name in _INFIX
    return f"({show_term(term)})" if infix or isinstance(term, Aggregate) else show_term(term)


def _body(literals: Sequence[BodyLiteral]) -> str:
    return ", ".join(map(_literal, literals))


def _literal(literal: BodyLiteral) -> str:
    match literal:
        case Atom():
            return show_atom(literal)
        case Negation(atom):
            return f"!{show_atom(atom)}"
        case Comparison(operator, left, right):
            return f"{show_term(left)} {operator} {show_term(right)}"
        case _:
            assert_never(literal)

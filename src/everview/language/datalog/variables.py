"""The variables of rules: which have a value, of which type, and by which names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from everview.language.datalog.ast import (
    Atom,
    BodyLiteral,
    ColumnDeclaration,
    Comparison,
    Declaration,
    Negation,
    Operation,
    Rule,
    Term,
    Text,
    Variable,
    variables_of,
)
from everview.language.datalog.declared import read_declarations
from everview.language.datalog.printing import show_term
from everview.language.datalog.terms import term_expression
from everview.language.expressions import Column, Expression

__all__ = ["bound_by", "renamed", "renamed_term", "terms_of", "type_name", "word_of"]


def bound_by(atoms: Iterable[Atom], conditions: Iterable[Comparison]) -> set[str]:
    """The variables that atoms give a value, and those that conditions compute from them."""
    found = {v.name for atom in atoms for v in atom.arguments if isinstance(v, Variable)}
    equal = [c for c in conditions if c.operator == "="]
    grown = True
    while grown:
        grown = False
        for condition in equal:
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                known = all(v.name in found for v in variables_of(other))
                if isinstance(side, Variable) and side.name not in found and known:
                    found.add(side.name)
                    grown = True
    return found


def terms_of(rule: Rule) -> Iterator[Term]:
    """All terms of a rule, those inside others too, but for what it negates."""
    waiting: list[Term] = [*rule.head.arguments]
    for literal in rule.body:
        match literal:
            case Atom(_, arguments):
                waiting += arguments
            case Comparison(_, left, right):
                waiting += (left, right)
            case Negation():
                pass
    while waiting:
        term = waiting.pop()
        yield term
        if isinstance(term, Operation):
            waiting += term.arguments


def renamed(literal: BodyLiteral, numbers: Mapping[str, str]) -> BodyLiteral:
    """A literal with its variables under other names, so that literals can be compared."""
    match literal:
        case Atom(_, arguments):
            return replace(literal, arguments=tuple(renamed_term(a, numbers) for a in arguments))
        case Comparison(operator, left, right):
            return Comparison(operator, renamed_term(left, numbers), renamed_term(right, numbers))
        case Negation(atom):
            return replace(literal, atom=atom)


def renamed_term(term: Term, numbers: Mapping[str, str]) -> Term:
    """A term with its variables under other names."""
    match term:
        case Variable(name):
            return Variable(numbers.get(name, name))
        case Operation(_, arguments):
            return replace(term, arguments=tuple(renamed_term(a, numbers) for a in arguments))
        case _:
            return term


def type_name(term: Term, types: Mapping[str, str], aliases: Text) -> str:
    """The name of a term's type over variables of named types."""
    used = dict.fromkeys(v.name for v in variables_of(term))
    columns = tuple(ColumnDeclaration(f"c{at}", types[name]) for at, name in enumerate(used))
    bound: dict[str, Expression] = {}
    if columns:
        typed = read_declarations(replace(aliases, declarations=(Declaration("terms", columns),)))
        bound = {name: Column(at, typed["terms"].schema[at].type, name) for at, name in enumerate(used)}
    found = str(term_expression(term, bound).type).lower()
    return {"text": "symbol", "bigint": "number"}.get(found, found)


def word_of(term: Term) -> str:
    """A word that can be part of a name, made from a variable or a constant."""
    text = term.name if isinstance(term, Variable) else show_term(term)
    word = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text.lower()).strip("_")
    return word if word and word[0].isalpha() else f"x{word}"

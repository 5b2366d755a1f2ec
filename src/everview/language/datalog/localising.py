"""Localising: rules over several places, rewritten so that every body is at one place (PSN §2.2).

The atoms of a body are grouped by where they live. One place after the other joins its atoms with what it
was sent, and sends on what the rest of the rule needs, as a relation of its own that lives at the next place.
That must be a place which is named in what was found: a link is sent where it leads. The paper's own
rewriting looks for a link back, and misses (1, 3) on the directed path 1 → 2 → 3.

Of several orders the one that sends the fewest derived facts is taken, then the one nearest to the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from everview.errors import ProgramError
from everview.language.datalog.ast import (
    Aggregate,
    Atom,
    BodyLiteral,
    ColumnDeclaration,
    Comparison,
    Constant,
    Declaration,
    Fold,
    Negation,
    Place,
    Rule,
    Text,
    TypeName,
    Variable,
    variables_of,
)
from everview.language.datalog.declared import read_declarations
from everview.language.datalog.parser import error_at
from everview.language.datalog.printing import show_declaration, show_rule, show_term
from everview.language.datalog.variables import bound_by, renamed, renamed_term, terms_of, type_name, word_of
from everview.language.plan import Schema

__all__ = ["Localised", "localise"]

_MOST_PLACES = 6
"""How many places a rule may join: of more, not all orders are looked through."""

Location = Variable | Constant


@dataclass(frozen=True, slots=True)
class Localised:
    """A program whose bodies are each at one place; a head may live elsewhere, and is sent there.

    `origin` says of each rule which rule of the text it is for.
    """

    types: tuple[TypeName, ...]
    declarations: tuple[Declaration, ...]
    rules: tuple[Rule, ...]
    origin: tuple[Rule, ...]

    @property
    def base(self) -> tuple[Declaration, ...]:
        """The relations that are written, not derived."""
        derived = {rule.head.relation for rule in self.rules}
        return tuple(found for found in self.declarations if found.relation not in derived)

    def schemas(self) -> dict[str, Schema]:
        """The columns of all relations, those that are sent on too."""
        declared = read_declarations(Text(self.types, self.declarations, (), ()))
        return {name: found.schema for name, found in declared.items()}

    def __str__(self) -> str:
        lines = [f".type {found.name} = {found.type}" for found in self.types]
        lines += [*map(show_declaration, self.declarations), *map(show_rule, self.rules)]
        return "\n".join(lines) + "\n"


def localise(text: Text) -> Localised:
    """The same program with every body at one place; ProgramError names the rule that has no such form."""
    return _Localising(text).run()


class _Localising:
    def __init__(self, text: Text) -> None:
        self._text = text
        self._declared = {found.relation: found for found in text.declarations}
        self._derived = {rule.head.relation for rule in text.rules}
        self._made: dict[str, Declaration] = {}
        self._rules: list[tuple[Rule, Rule]] = []
        self._sent: dict[tuple[object, ...], Atom] = {}

    def run(self) -> Localised:
        for found in self._text.declarations:
            if found.location is None:
                raise error_at(
                    found.place,
                    f"{found.relation} has no place, and others have",
                    hint="mark with @ the column that names the site at which a row lives",
                )
        for rule in self._text.rules:
            self._rule(rule)
        rules, origin = zip(*self._rules, strict=True) if self._rules else ((), ())
        return Localised(self._text.types, (*self._text.declarations, *self._made.values()), rules, origin)

    def _rule(self, rule: Rule) -> None:
        head = self._located(rule.head)
        atoms, conditions = self._monotone(rule)
        groups: dict[Location, list[Atom]] = {}
        for atom in atoms:
            groups.setdefault(_location(atom), []).append(atom)
        bound = bound_by(atoms, conditions)
        for variable in variables_of(head, *conditions):
            if variable.name not in bound:
                raise error_at(
                    variable.place,
                    f"{variable.name} is in no atom of the body of {show_rule(rule)}",
                    hint="a rule can only say something of values that its body gives",
                )
        order = self._order(rule, groups, conditions)
        self._cut(rule, head, [(place, groups[place]) for place in order], conditions)

    # What a rule may have.

    def _located(self, atom: Atom) -> Atom:
        """The atom with its place marked, as it is declared."""
        found = self._declared.get(atom.relation)
        if found is None:
            raise error_at(
                atom.place,
                f"{atom.relation} is not declared",
                hint=f"write .decl {atom.relation}(@at: symbol, …)",
            )
        if len(atom.arguments) != len(found.columns):
            raise error_at(
                atom.place,
                f"{atom.relation} has {len(found.columns)} columns, not {len(atom.arguments)}",
            )
        if atom.location not in (None, found.location):
            raise error_at(
                atom.place,
                f"{atom.relation} lives where its column {found.columns[found.location or 0].name} says",
                hint="mark the same argument with @ everywhere",
            )
        return replace(atom, location=found.location)

    def _monotone(self, rule: Rule) -> tuple[list[Atom], list[Comparison]]:
        atoms: list[Atom] = []
        conditions: list[Comparison] = []
        for literal in rule.body:
            match literal:
                case Atom():
                    atoms.append(self._located(literal))
                case Comparison():
                    conditions.append(literal)
                case Negation():
                    raise _not_monotone(rule, literal.place, "a negation")
        for term in terms_of(rule):
            if isinstance(term, Aggregate | Fold):
                raise _not_monotone(rule, term.place, "an aggregate")
        if not atoms:
            raise error_at(
                rule.place,
                f"{show_rule(rule)} is a fact, and facts of located relations are written where they live",
                hint="insert it at its site",
            )
        return atoms, conditions

    # The order of places.

    def _order(
        self, rule: Rule, groups: Mapping[Location, Sequence[Atom]], conditions: Sequence[Comparison]
    ) -> Sequence[Location]:
        if len(groups) > _MOST_PLACES:
            raise error_at(
                rule.place,
                f"{show_rule(rule)} joins {len(groups)} places, more than {_MOST_PLACES}",
                hint="give a part of it a relation of its own",
            )
        ways = [order for order in permutations(groups) if self._leads(order, groups, conditions)]
        if not ways:
            names = ", ".join(map(show_term, groups))
            raise error_at(
                rule.place,
                f"no place of {show_rule(rule)} leads to all the others ({names})",
                hint="what is found at one place must name the next, or the places must be the same",
            )
        return min(ways, key=lambda order: sum(self._cost(groups[place]) for place in order[:-1]))

    def _leads(
        self,
        order: Sequence[Location],
        groups: Mapping[Location, Sequence[Atom]],
        conditions: Sequence[Comparison],
    ) -> bool:
        found: list[Atom] = []
        for place in order:
            if found and isinstance(place, Variable) and place.name not in bound_by(found, conditions):
                return False
            found += groups[place]
        return True

    def _cost(self, atoms: Iterable[Atom]) -> int:
        return sum(1 + 100 * (atom.relation in self._derived) for atom in atoms)

    # The rules.

    def _cut(
        self,
        rule: Rule,
        head: Atom,
        groups: Sequence[tuple[Location, list[Atom]]],
        conditions: Sequence[Comparison],
    ) -> None:
        have: list[Atom] = []
        waiting = list(conditions)
        for step, (_, atoms) in enumerate(groups):
            have += atoms
            bound = bound_by(have, conditions)
            ready = [c for c in waiting if all(v.name in bound for v in variables_of(c))]
            waiting = [c for c in waiting if c not in ready]
            body: tuple[BodyLiteral, ...] = (*have, *ready)
            if step == len(groups) - 1:
                self._rules.append((Rule(head, body, rule.place), rule))
                return
            to, later = groups[step + 1][0], [atom for _, rest in groups[step + 1 :] for atom in rest]
            needed = {v.name for v in variables_of(head, *later, *waiting)}
            have = [self._send(rule, to, body, needed)]

    def _send(self, rule: Rule, to: Location, body: tuple[BodyLiteral, ...], needed: set[str]) -> Atom:
        """The atom that a body is sent on as; what several rules send alike is sent once."""
        names = dict.fromkeys(v.name for v in variables_of(*body) if v.name in needed)
        if isinstance(to, Variable):
            names.pop(to.name, None)
        arguments = (to, *map(Variable, names))
        numbers = {name: str(i) for i, name in enumerate(dict.fromkeys(v.name for v in variables_of(*body)))}
        key = (
            tuple(renamed(literal, numbers) for literal in body),
            tuple(renamed_term(argument, numbers) for argument in arguments),
        )
        if key in self._sent:
            return replace(self._sent[key], arguments=arguments)
        first = next(literal for literal in body if isinstance(literal, Atom))
        relation = self._free_name(f"{first.relation}_at_{word_of(to)}")
        types = self._types(body)
        columns = tuple(
            ColumnDeclaration(
                word_of(to_send),
                types[to_send.name] if isinstance(to_send, Variable) else type_name(to_send, {}, self._text),
                rule.place,
            )
            for to_send in arguments
        )
        self._made[relation] = Declaration(relation, columns, 0, rule.place)
        atom = Atom(relation, arguments, 0, rule.place)
        self._sent[key] = atom
        self._rules.append((Rule(atom, body, rule.place), rule))
        return atom

    def _free_name(self, wanted: str) -> str:
        taken = self._declared.keys() | self._made.keys()
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _types(self, body: Sequence[BodyLiteral]) -> dict[str, str]:
        """The names of the types of a body's variables: as declared, or of what they are computed as."""
        found: dict[str, str] = {}
        for literal in body:
            if isinstance(literal, Atom):
                declared = self._declared.get(literal.relation) or self._made[literal.relation]
                for argument, column in zip(literal.arguments, declared.columns, strict=True):
                    if isinstance(argument, Variable):
                        found.setdefault(argument.name, column.type)
        aliases = Text(self._text.types, (), (), ())
        equal = [literal for literal in body if isinstance(literal, Comparison) and literal.operator == "="]
        for condition in equal * len(equal):  # each may need what another computes
            for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
                known = all(v.name in found for v in variables_of(other))
                if isinstance(side, Variable) and side.name not in found and known:
                    found[side.name] = type_name(other, found, aliases)
        return found


def _location(atom: Atom) -> Location:
    found = atom.arguments[atom.location or 0]
    if isinstance(found, Variable | Constant):
        return found
    raise error_at(
        atom.place, f"the place of {atom.relation} is not a name or a variable", hint="give it a variable"
    )


def _not_monotone(rule: Rule, place: Place, what: str) -> ProgramError:
    return error_at(
        place,
        f"{what} in a rule of located relations: {show_rule(rule)}",
        hint="what is at one place may be counted or negated there, in a view over the relation",
    )

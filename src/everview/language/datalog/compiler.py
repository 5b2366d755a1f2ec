"""From the tree of a Datalog program to relations and views.

Relations that depend on each other become one Fixpoint; what a rule negates or aggregates must be complete
before, so it may not depend on the rule's head (stratification). The views are sets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from everview.errors import ProgramError
from everview.language import plan as plans
from everview.language.correlation import scans_of
from everview.language.datalog.ast import Anonymous, Atom, Fold, Rule, Text, atoms_of, variables_of
from everview.language.datalog.bodies import ONE_ROW, Body, aggregate_call, not_null, set_apart
from everview.language.datalog.declared import Declared, read_declarations
from everview.language.datalog.parser import error_at
from everview.language.datalog.terms import call, fitted, term_expression
from everview.language.expressions import Column, Expression, Literal, conjunction, is_nullable
from everview.language.graphs import components
from everview.language.growth import unbounded
from everview.language.plan import (
    Distinct,
    Filter,
    Fixpoint,
    Plan,
    Project,
    RecursiveScan,
    Scan,
    Schema,
    UnionAll,
    Values,
)
from everview.language.printing import expression_text
from everview.language.recursion import Clause, NotMonotoneError, clauses_of
from everview.language.relations import Relation, View
from everview.language.sql.source import nearest
from everview.language.types import BIGINT

__all__ = ["Compiled", "compile_text"]

_WIDEST = 32
"""How many rules one union takes; more are united in parts, which engines keep apart."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The relations that sites write, and the views, each after those it reads."""

    relations: dict[str, Relation]
    views: dict[str, View]
    declared: Mapping[str, Declared]


def compile_text(text: Text) -> Compiled:
    """Check a program and make plans of it."""
    return _Compiler(text).compile()


class _Compiler:
    def __init__(self, text: Text) -> None:
        self._declared = read_declarations(text)
        self._rules: dict[str, list[Rule]] = defaultdict(list)
        for rule in text.rules:
            self._check_atom(rule.head)
            for atom, _ in atoms_of(rule):
                self._check_atom(atom)
            self._rules[rule.head.relation].append(rule)
        self._schemas: dict[str, Schema] = {
            name: declared.schema for name, declared in self._declared.items() if name not in self._rules
        }
        self._group: Collection[str] = ()

    def compile(self) -> Compiled:
        relations = {name: Relation(name, schema) for name, schema in self._schemas.items()}
        views: dict[str, View] = {}
        for group in self._strata():
            for name, plan in self._plans(group).items():
                self._schemas[name] = plan.schema
                views[name] = View(name, plan, tuple(sorted(set(scans_of(plan)))))
        return Compiled(relations, views, self._declared)

    def _check_atom(self, atom: Atom) -> None:
        declared = self._declared.get(atom.relation)
        if declared is None:
            hint = nearest(atom.relation, self._declared) or f"write .decl {atom.relation}(…) before"
            raise error_at(atom.place, f"{atom.relation} is not declared", hint=hint)
        if len(atom.arguments) != len(declared.schema):
            columns = ", ".join(f"{f.name}: {f.type}" for f in declared.schema)
            raise error_at(
                atom.place,
                f"{atom.relation} has {len(declared.schema)} columns, here are {len(atom.arguments)}",
                hint=f"it is declared as {atom.relation}({columns})",
            )
        if atom.location is not None and atom.location != declared.location and declared.location is not None:
            where = declared.schema[declared.location].name
            raise error_at(atom.place, f"@ stands before column {where} of {atom.relation}")

    # Strata.

    def _strata(self) -> list[list[str]]:
        """The relations with rules in groups that depend on each other, each after what it depends on."""
        reads = {
            name: dict.fromkeys(
                atom.relation for rule in rules for atom, _ in atoms_of(rule) if atom.relation in self._rules
            )
            for name, rules in self._rules.items()
        }
        groups = components(reads)
        member = {name: number for number, group in enumerate(groups) for name in group}
        for name, rules in self._rules.items():
            for rule in rules:
                for atom, complete in atoms_of(rule):
                    if complete and member.get(atom.relation) == member[name]:
                        raise self._unstratified(rule, atom)
        return groups

    def _unstratified(self, rule: Rule, atom: Atom) -> ProgramError:
        name, other = rule.head.relation, atom.relation
        depends = "which is the same relation" if name == other else f"and {other} depends on {name}"
        return error_at(
            atom.place,
            f"the rule for {name} on line {rule.place.line} needs all rows of {other}, {depends}",
            hint="what is negated or aggregated must be complete before, so it may not depend on the head",
        )

    # Plans.

    def _plans(self, group: Sequence[str]) -> dict[str, Plan]:
        recursive = any(
            atom.relation in group
            for name in group
            for rule in self._rules[name]
            for atom, _ in atoms_of(rule)
        )
        if not recursive:
            return {name: _united(self._arms(name)) for name in group}
        self._group = frozenset(group)
        arms = {name: self._arms(name) for name in group}
        self._group = ()
        self._check_growth(arms)
        schemas = tuple(self._declared[name].schema for name in group)
        made = [UnionAll(tuple(plan for plan, _ in arms[name])) for name in group]
        return {name: Fixpoint(tuple(group), schemas, tuple(made), name) for name in group}

    def _arms(self, name: str) -> list[tuple[Plan, Rule]]:
        """The plan of each rule; facts are one plan together."""
        rules = self._rules[name]
        facts = [rule for rule in rules if rule.is_fact]
        found = [(self._facts(name, facts), facts[0])] if facts else []
        return found + [(self._rule(rule), rule) for rule in rules if not rule.is_fact]

    def _read(self, atom: Atom) -> Plan:
        if atom.relation in self._group:
            return RecursiveScan(atom.relation, self._declared[atom.relation].schema)
        return Scan(atom.relation, self._schemas[atom.relation])

    def _facts(self, name: str, facts: Sequence[Rule]) -> Plan:
        schema = self._declared[name].schema
        rows: dict[tuple[Expression, ...], None] = {}
        for fact in facts:
            rows[tuple(self._head(fact, {}, schema))] = None
        constant = all(isinstance(cell, Literal) for row in rows for cell in row)
        if constant:
            return Values(schema, tuple(rows))
        names = tuple(field.name for field in schema)
        return UnionAll(tuple(Project(ONE_ROW, row, names) for row in rows))

    def _rule(self, rule: Rule) -> Plan:
        schema = self._declared[rule.head.relation].schema
        literals, arguments = set_apart(rule.body, rule.head.arguments, count(1))
        body = Body(rule, self._read)
        body.take(literals, {v.name for v in variables_of(*rule.head.arguments, *rule.body)})
        body.check_bound(*arguments)
        head = Rule(Atom(rule.head.relation, tuple(arguments), None, rule.head.place), (), rule.place)
        if any(isinstance(argument, Fold) for argument in arguments):
            return self._folded(head, body, schema)
        made = self._head(head, body.bound, schema)
        return _projected(body.plan, made, schema)

    def _head(self, rule: Rule, bound: Mapping[str, Expression], schema: Schema) -> list[Expression]:
        made: list[Expression] = []
        for field, argument in zip(schema, rule.head.arguments, strict=True):
            what = f"column {field.name} of {rule.head.relation}"
            if isinstance(argument, Anonymous):
                raise error_at(argument.place, f"{what} must have a value; _ stands for any")
            for variable in variables_of(argument):
                if variable.name not in bound:
                    raise error_at(
                        variable.place,
                        f"{variable.name} is not bound: a fact has constants only",
                        hint='symbols are written in double quotes: "a"',
                    )
            made.append(fitted(term_expression(argument, bound), field.type, what, argument.place))
        return made

    def _folded(self, rule: Rule, body: Body, schema: Schema) -> Plan:
        """A head with `min<c>` and the like: one row for each value of its other arguments."""
        keys: list[Expression] = []
        calls: list[plans.AggregateCall] = []
        places: list[tuple[bool, int]] = []
        for argument in rule.head.arguments:
            if isinstance(argument, Fold):
                value = None if argument.argument is None else term_expression(argument.argument, body.bound)
                places.append((True, len(calls)))
                calls.append(aggregate_call(argument.function, value, argument.place))
            else:
                places.append((False, len(keys)))
                keys.append(term_expression(argument, body.bound))
        calls.append(plans.AggregateCall("count", None))
        names = tuple(f"c{place}" for place in range(len(keys) + len(calls)))
        groups = plans.Aggregate(body.plan, tuple(keys), tuple(calls), names)
        every = [Column(place, f.type, f.name) for place, f in enumerate(groups.schema)]
        some = call(">", [every[-1], Literal(0, BIGINT)], rule.place)
        made = []
        for field, argument, (fold, place) in zip(schema, rule.head.arguments, places, strict=True):
            found = every[len(keys) + place if fold else place]
            what = f"column {field.name} of {rule.head.relation}"
            made.append(fitted(found, field.type, what, argument.place))
        return _projected(Filter(groups, some), made, schema)

    # Growth.

    def _check_growth(self, arms: Mapping[str, Sequence[tuple[Plan, Rule]]]) -> None:
        clauses: list[tuple[str, Clause]] = []
        rules: list[Rule] = []
        for name, found in arms.items():
            for plan, rule in found:
                try:
                    own = clauses_of(plan, arms.keys())
                except NotMonotoneError as error:
                    where = f"the rule for {name} on line {rule.place.line}"
                    raise error_at(rule.place, f"{where} cannot be recursive so: {error}") from None
                clauses += [(name, clause) for clause in own]
                rules += [rule] * len(own)
        creation = unbounded(clauses)
        if creation is not None:
            rule = rules[creation.clause]
            column = self._declared[rule.head.relation].schema[creation.column].name
            raise error_at(
                rule.place,
                f"the rule for {rule.head.relation} on line {rule.place.line} computes column {column} from "
                f"the recursion itself, as {expression_text(creation.expression)}, and may do so without end",
                hint=f"state {creation.missing}",
            )


def _projected(plan: Plan, made: Sequence[Expression], schema: Schema) -> Plan:
    """The rows of a head; where an expression fails there is none."""
    doubtful = [not_null(expression) for expression in made if is_nullable(expression, plan.schema)]
    if doubtful:
        plan = Filter(plan, conjunction(doubtful))
    return Project(plan, tuple(made), tuple(field.name for field in schema))


def _united(arms: Sequence[tuple[Plan, Rule]]) -> Plan:
    """The rows of all rules as a set, in unions of bounded width."""
    parts = [plan for plan, _ in arms]
    while len(parts) > _WIDEST:
        chunks = [parts[start : start + _WIDEST] for start in range(0, len(parts), _WIDEST)]
        parts = [Distinct(UnionAll(tuple(chunk))) for chunk in chunks]
    return Distinct(parts[0] if len(parts) == 1 else UnionAll(tuple(parts)))

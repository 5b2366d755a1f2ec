"""Random Datalog programs: up to four relations that are defined by each other, strata below and above.

Rules are safe by construction: a head takes its variables from atoms of the body. Some negate or aggregate
what lies below, some compare, some count up to a bound. Values come from a few numbers and symbols, so that
circles close, rows have several derivations, and deletions leave some of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from everview.engines.reference.evaluate import evaluate_views
from everview.language.program import Program
from everview.testing.fuzz.histories import Statement, Write
from everview.testing.fuzz.model import Model, Row
from everview.testing.fuzz.stores import EngineStore, Store

__all__ = ["RuleCase", "check_rules", "generate_rules", "rule_case"]

_NAMES = ("x", "y", "z", "w")
_SYMBOLS = ("a", "b", "c", "d", "e")


@dataclass(frozen=True, slots=True)
class RuleCase:
    """A Datalog program and what happens to its relations, statement by statement."""

    program: Program
    history: tuple[Statement, ...]

    def __str__(self) -> str:
        lines = [" and ".join(f"{w.action} {w.relation} {list(w.rows)}" for w in s) for s in self.history]
        return f"{self.program.text}\n// history\n" + "\n".join(f"// {line}" for line in lines)


@lru_cache(maxsize=2)
def _program(seed: int) -> Program:
    return Program.parse(generate_rules(random.Random(f"rules {seed}")), language="datalog")


def rule_case(seed: int, *, statements: int = 8, histories: int = 10) -> RuleCase:
    """The case of a seed, the same in every process; `histories` seeds in a row share a program."""
    program = _program(seed // histories)
    rng = random.Random(f"rules history {seed}")
    model = Model(program)
    history: list[Statement] = [_filled(rng, program, model)]
    history += [_statement(rng, program, model) for _ in range(statements - 1)]
    return RuleCase(program, tuple(history))


def _row(rng: random.Random, program: Program, name: str) -> Row:
    values = rng.choice((3, 4, 5))
    return tuple(
        rng.randrange(values) if field.type.kind.name == "BIGINT" else rng.choice(_SYMBOLS[:values])
        for field in program.relations[name].schema
    )


def _filled(rng: random.Random, program: Program, model: Model) -> Statement:
    writes = []
    for name in program.relations:
        rows = tuple(dict.fromkeys(_row(rng, program, name) for _ in range(rng.randrange(2, 8))))
        model.insert(name, rows)
        writes.append(Write("insert", name, rows))
    return tuple(writes)


def _statement(rng: random.Random, program: Program, model: Model) -> Statement:
    writes = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(program.relations))
        here = model.rows(name)
        if here and rng.random() < 0.55:
            rows = tuple(rng.sample(here, min(len(here), rng.choice((1, 1, 1, 2, 3, 9)))))
            model.delete(name, rows)
            writes.append(Write("delete", name, rows))
        else:
            rows = tuple(dict.fromkeys(_row(rng, program, name) for _ in range(rng.choice((1, 1, 2)))))
            model.insert(name, rows)
            writes.append(Write("insert", name, rows))
    return tuple(writes)


def check_rules(case: RuleCase, store_of: Callable[[Program], Store] = EngineStore) -> set[str]:
    """Compare every view with the reference after every statement; return the views that changed."""
    store = store_of(case.program)
    model = Model(case.program)
    changed: set[str] = set()
    before: dict[str, set[Row]] = {}
    try:
        for number, statement in enumerate(case.history):
            with store.together():
                for write in statement:
                    getattr(model, write.action)(write.relation, write.rows)
                    getattr(store, write.action)(write.relation, write.rows)
            tables = {name: model.rows(name) for name in case.program.relations}
            for name, result in evaluate_views(case.program, tables).items():
                got, wanted = sorted(store.rows(name)), sorted(result.rows)
                if got != wanted:
                    lacks, extra = set(wanted) - set(got), set(got) - set(wanted)
                    raise AssertionError(
                        f"after statement {number}: {name} lacks {lacks}, has too much {extra}\n\n{case}"
                    )
                if before.get(name, set()) != set(wanted):
                    changed.add(name)
                before[name] = set(wanted)
            if faults := store.faults():
                raise AssertionError(f"after statement {number}: {faults}\n\n{case}")
    finally:
        store.close()
    return changed


def generate_rules(rng: random.Random) -> str:
    """The text of a program."""
    return _Rules(rng).text()


@dataclass(slots=True)
class _Rules:
    rng: random.Random
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The types of each relation's columns."""
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        rng = self.rng
        kind = rng.choice(("number", "number", "symbol"))
        base = ["e", "f"] if rng.random() < 0.6 else ["e"]
        for name in base:
            self._declare(name, (kind, kind))
        if rng.random() < 0.6:
            base.append("u")
            self._declare("u", (kind,))
        lower = list(base)
        if rng.random() < 0.5:
            self._declare("low", (kind,) * rng.choice((1, 2)))
            self._rule("low", lower, base, negate=base)
            lower.append("low")
        group = [f"p{number}" for number in range(rng.choice((1, 1, 2, 2, 3, 4)))]
        for name in group:
            self._declare(name, (kind,) * rng.choice((1, 2, 2, 2)))
        for name in group:
            self._rule(name, lower, lower, negate=lower)
            for _ in range(rng.choice((1, 1, 2))):
                self._rule(name, group, [*group, *lower, *lower], negate=lower)
        if kind == "number" and rng.random() < 0.3:
            self._counter(lower, kind)
            group.append("n")
        if rng.random() < 0.6:
            self._above(group, lower, kind)
        return "\n".join(self.lines) + "\n"

    def _declare(self, name: str, types: tuple[str, ...]) -> None:
        self.columns[name] = types
        listed = ", ".join(f"c{place}: {kind}" for place, kind in enumerate(types))
        self.lines.append(f".decl {name}({listed})")

    def _rule(self, head: str, first: Sequence[str], others: Sequence[str], *, negate: Sequence[str]) -> None:
        rng = self.rng
        bound: list[str] = []
        body = [self._atom(rng.choice(first), bound)]
        body += [self._atom(rng.choice(others), bound) for _ in range(rng.choice((0, 1, 1, 2, 2)))]
        if rng.random() < 0.25:
            name = rng.choice(negate)
            arguments = [rng.choice((*bound, *bound, "_")) for _ in self.columns[name]]
            body.append(f"!{name}({', '.join(arguments)})")
        if rng.random() < 0.2:
            sign = rng.choice(("!=", "!=", "<", "<="))
            body.append(f"{rng.choice(bound)} {sign} {rng.choice((*bound, self._constant(head)))}")
        width = len(self.columns[head])
        shown = rng.sample(bound, width) if len(bound) >= width else [rng.choice(bound) for _ in range(width)]
        if rng.random() < 0.07:
            shown[rng.randrange(width)] = self._constant(head)
        self.lines.append(f"{head}({', '.join(shown)}) :- {', '.join(body)}.")

    def _atom(self, name: str, bound: list[str]) -> str:
        """An atom; a variable that is bound already joins it to the rest, most of the time."""
        arguments: list[str] = []
        joined = self.rng.randrange(len(self.columns[name])) if self.rng.random() < 0.9 else -1
        for place, _ in enumerate(self.columns[name]):
            known = [variable for variable in bound if variable not in arguments]
            chance = self.rng.random()
            if known and (place == joined or chance < 0.2):
                arguments.append(known[-1] if self.rng.random() < 0.6 else self.rng.choice(known))
            elif bound and chance > 0.94:
                arguments.append("_" if chance > 0.97 else self._constant(name))
            else:
                free = next((variable for variable in _NAMES if variable not in bound), _NAMES[-1])
                arguments.append(free)
                bound += [] if free in bound else [free]
        return f"{name}({', '.join(arguments)})"

    def _constant(self, name: str) -> str:
        if self.columns[name][0] == "number":
            return str(self.rng.randrange(4))
        return f'"{self.rng.choice(_SYMBOLS[:4])}"'

    def _counter(self, lower: Sequence[str], kind: str) -> None:
        """Steps along a relation, counted up to a bound."""
        step = self.rng.choice([name for name in lower if len(self.columns[name]) == 2])
        self._declare("n", (kind, "number"))
        self.lines.append(f"n(x, 0) :- {step}(x, _).")
        bound = self.rng.choice(("k < 3", "k + 1 <= 3"))
        self.lines.append(f"n(y, k + 1) :- n(x, k), {step}(x, y), {bound}.")

    def _above(self, group: Sequence[str], lower: Sequence[str], kind: str) -> None:
        """A relation over the recursion: by negation, or by an aggregate."""
        rng = self.rng
        below = rng.choice(group)
        count = "count : { " + below + "(" + ", ".join(["x", "_"][: len(self.columns[below])]) + ") }"
        for made in self._chosen(rng):
            if made == "not":
                self._declare("t", (kind,))
                self._rule("t", lower, [*lower, *group], negate=group)
                self._rule("t", lower, lower, negate=group)
            elif made == "count":
                self._declare("d", (kind, "number"))
                self.lines.append(f"d(x, {count}) :- e(x, _).")
            elif made == "fold" and len(self.columns[below]) == 2:
                self._declare("g", (kind, self.columns[below][1]))
                self.lines.append(f"g(x, {rng.choice(('min', 'max'))}<y>) :- {below}(x, y).")

    def _chosen(self, rng: random.Random) -> Iterator[str]:
        return (made for made in ("not", "count", "fold") if rng.random() < 0.4)

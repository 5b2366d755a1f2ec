"""What is asked of Spark, and what the other two engines say: a case run step by step.

After every step the device's circuits on SQLite, the same program's rules on the reference, and the naive
answer of the reference agree, values and types. On the way every plan that was run is written down with the
tables that it read and the rows that it gave.
"""

import functools
from collections import Counter
from dataclasses import dataclass, field

from tests.planner.circuit.plain import PlainCircuit, circuit_of

from everview.engines.reference import evaluate_views
from everview.language.plan import Scan, walk_plan
from everview.planner.circuit.parts import table_of
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import rewrite
from everview.testing.fuzz.case import Case
from everview.testing.fuzz.check import MOST, Difference
from everview.testing.fuzz.model import Model
from everview.testing.fuzz.stores import EngineStore


@dataclass(slots=True)
class Asked:
    """One plan over the tables of several states, and the rows of each; `title` is the view, or "rule"."""

    plan: object
    title: str
    states: list = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class State:
    """The tables that a plan read after a step of a case, and its rows by the reference."""

    case: Case
    step: int
    tables: dict
    rows: list


class Asking(PlainCircuit):
    """A circuit on the reference that writes down what it runs."""

    def __init__(self, program, note):
        self.note = note
        super().__init__(program)
        self.circuit = compiled(program)[0]

    def evaluate(self, plan, tables):
        rows = super().evaluate(plan, tables)
        self.note("rule", plan, tables, rows)
        return rows


@functools.lru_cache(maxsize=2)
def compiled(program):
    """The circuit of a program, and the plans of its views without subqueries."""
    facts = Facts(catalog_of(program))
    return circuit_of(program), {
        name: rewrite(view.plan, facts=facts) for name, view in program.views.items()
    }


class Recorder:
    """Runs cases on SQLite and the reference; `asked` is what Spark is to answer."""

    def __init__(self, *, rules=True):
        self.rules = rules
        self.asked = {}

    def run(self, case):
        engine = EngineStore(case.program)
        try:
            _Steps(self, case, engine).run()
        finally:
            engine.close()


class _Steps:
    def __init__(self, recorder, case, engine):
        self.recorder, self.case, self.engine = recorder, case, engine
        self.model = Model(case.program)
        self.step = 0
        self.circuit = Asking(case.program, self.note) if recorder.rules else None

    def note(self, title, plan, tables, rows):
        read = {table_of(node.name)[0] for node in walk_plan(plan) if isinstance(node, Scan)}
        kept = {name: list(tables.get(name, ())) for name in read}
        asked = self.recorder.asked.setdefault((self.case.program.text, plan), Asked(plan, title))
        asked.states.append(State(self.case, self.step, kept, rows))

    def run(self):
        if self.circuit is not None:
            self.circuit.refresh({})
        self.compare()
        for statement in self.case.history:
            self.step += 1
            before = {name: Counter(table) for name, table in self.model.tables.items()}
            for write in statement:
                wanted = getattr(self.model, write.action)(write.relation, write.rows)
                got = getattr(self.engine, write.action)(write.relation, write.rows)
                if got != wanted:
                    self.differ(f"{write.action} {write.relation} returned {got}, not {wanted}")
            if self.circuit is not None:
                for name, table in self.model.tables.items():
                    before[name].subtract(table)
                self.circuit.refresh({n: Counter({r: -w for r, w in t.items()}) for n, t in before.items()})
            if self.compare() > MOST:
                break

    def compare(self):
        """The number of rows of the greatest view."""
        tables = {name: self.model.rows(name) for name in self.model.tables}
        views = {name: result.rows for name, result in evaluate_views(self.case.program, tables).items()}
        tables |= views
        for name, rows in tables.items():
            self.same("SQLite", name, self.engine.rows(name), rows)
        for problem in self.engine.faults():
            self.differ(problem)
        for name, plan in compiled(self.case.program)[1].items():
            if self.circuit is not None:
                self.same("the circuit", name, self.circuit.rows(name), views[name])
            self.note(name, plan, tables, views[name])
        return max(map(len, views.values()))

    def same(self, who, name, got, wanted):
        problem = difference(who, name, got, wanted)
        if problem:
            self.differ(problem)

    def differ(self, problem):
        raise Difference(cut(self.case, self.step), [f"after statement {self.step}:", problem])


def cut(case, step):
    return Case(case.program, case.history[:step], case.constructs)


def difference(who, name, got, wanted):
    """What `who` has too much and what it lacks, as bags of values with their types; None if nothing."""
    mine, theirs = Counter(map(repr, got)), Counter(map(repr, wanted))
    if mine == theirs:
        return None
    more, less = (sorted((one - other).elements())[:5] for one, other in ((mine, theirs), (theirs, mine)))
    return (
        f"{who}: {name} has too much {', '.join(more) or 'nothing'}, and lacks {', '.join(less) or 'nothing'}"
    )

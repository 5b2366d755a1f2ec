"""View = defining query, after every statement.

After each statement every relation equals the model, and every view the reference engine's naive answer:
values and types, as bags, in both directions; and each write returns the model's count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from everview.engines.reference.evaluate import evaluate
from everview.language.program import Program
from everview.testing.fuzz.case import Case, write_case
from everview.testing.fuzz.model import Model, Row
from everview.testing.fuzz.stores import EngineStore, Store

__all__ = ["Checked", "Difference", "check_case"]


MOST = 300
"""The most rows of a view that are worth the wait."""


class Difference(AssertionError):  # noqa: N818 - it names what was found; tests read better so
    """A store and the reference differ; `case` is the case, cut after the statement where they do."""

    def __init__(self, case: Case, problems: list[str]) -> None:
        self.case = case
        self.problems = problems
        super().__init__("\n".join([*problems, "", write_case(case)]))


@dataclass(slots=True)
class Checked:
    """What a passing case has shown: the views that had rows, those that changed, failing expressions.

    `cut` says that some view grew beyond `MOST` rows, where the naive reference would take minutes: the
    statements after that were not run.
    """

    filled: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    statements: int = 0
    cut: bool = False


def check_case(case: Case, store: Callable[[Program], Store] = EngineStore) -> Checked:
    """Run the history and compare after every statement; Difference at the first that is wrong."""
    return _Check(case, store(case.program)).run()


class _Check:
    def __init__(self, case: Case, store: Store) -> None:
        self._case = case
        self._store = store
        self._model = Model(case.program)
        self._expected: dict[str, list[Row]] = {name: [] for name in case.program.relations}
        self._bags: dict[str, Counter[str]] = {name: Counter() for name in case.program.relations}
        self._checked = Checked()

    def run(self) -> Checked:
        try:
            self._evaluate(set(self._case.program.relations))
            self._compare(0, [])
            for number, statement in enumerate(self._case.history, start=1):
                problems = []
                with self._store.together():
                    for write in statement:
                        wanted = getattr(self._model, write.action)(write.relation, write.rows)
                        got = getattr(self._store, write.action)(write.relation, write.rows)
                        if got != wanted:
                            problems.append(f"{write.action} {write.relation} returned {got}, not {wanted}")
                self._evaluate({write.relation for write in statement})
                self._compare(number, problems)
                self._checked.statements = number
                if any(len(rows) > MOST for rows in self._expected.values()):
                    self._checked.cut = number < len(self._case.history)
                    break
        finally:
            self._store.close()
        return self._checked

    def _evaluate(self, written: set[str]) -> None:
        """Bring what is expected up to date; a view whose inputs are as before is as before."""
        touched = set()
        for name in written:
            self._expected[name] = self._model.rows(name)
            if self._put(name):
                touched.add(name)
        for name, view in self._case.program.views.items():
            first = name not in self._expected
            if not first and not touched.intersection(view.reads):
                continue
            result = evaluate(view.plan, self._expected)
            self._expected[name] = result.rows
            if self._put(name):
                touched.add(name)
                if not first:
                    self._checked.changed.add(name)
            if result.rows:
                self._checked.filled.add(name)
            if result.failures:
                self._checked.failed.add(name)

    def _put(self, name: str) -> bool:
        before = self._bags.get(name)
        self._bags[name] = Counter(map(repr, self._expected[name]))
        return before != self._bags[name]

    def _compare(self, number: int, problems: list[str]) -> None:
        for name, wanted in self._bags.items():
            got = Counter(map(repr, self._store.rows(name)))
            if got != wanted:
                problems.append(_difference(name, got, wanted))
        problems += self._store.faults()
        if problems:
            cut = Case(self._case.program, self._case.history[:number], self._case.constructs)
            raise Difference(cut, [f"after statement {number}:", *problems])


def _difference(name: str, got: Counter[str], wanted: Counter[str]) -> str:
    def listed(rows: Counter[str]) -> str:
        return ", ".join(sorted(rows.elements())[:5]) or "nothing"

    return f"{name} has too much {listed(got - wanted)}, and lacks {listed(wanted - got)}"

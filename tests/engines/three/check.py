"""Three engines, one answer: cases on the reference, SQLite and Spark, compared after every step."""

from dataclasses import dataclass

from everview.errors import ProgramError
from everview.testing.fuzz import Difference, failure, minimise, write_case

from .fused import answers, jobs, query, wanted_types
from .lift import keeps_shape
from .record import Asked, Recorder, cut, difference


@dataclass(slots=True)
class Compared:
    """How much was compared; `refused` are plans that Spark refuses when they are compiled."""

    pairs: int = 0
    plans: int = 0
    states: int = 0
    rows: int = 0
    refused: int = 0

    def __add__(self, other):
        return Compared(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def __str__(self):
        return (
            f"{self.pairs} pairs, {self.plans} plans in {self.states} states with {self.rows} rows on Spark, "
            f"{self.refused} plans refused"
        )


def check(spark, cases, *, rules=False):
    """Compare all engines on the cases; Difference at the first that is wrong.

    The device's engine and the reference go step by step. On Spark each view's query runs over the
    relations and views of every step, and with `rules` also each rule of the circuit that a hub keeps the
    views by, over the changes and kept rows of every step. A rule that gives what the reference gives, over
    what the reference gave the step before, keeps what the reference keeps. All steps of a plan are one
    query; where that changes a node, the plan itself runs over one step as well.
    """
    recorder = Recorder(rules=rules)
    for case in cases:
        recorder.run(case)
    queries, refused = [], 0
    for asked in recorder.asked.values():
        try:
            queries.append(query(asked))
        except ProgramError:
            refused += 1
            continue
        if not keeps_shape(asked.plan):
            fullest = max(asked.states, key=lambda state: sum(map(len, state.tables.values())))
            queries.append(query(Asked(asked.plan, asked.title, [fullest]), lift=False))
    states = rows = 0
    for job in jobs(queries):
        for one, (found, types) in zip(job, answers(spark, job), strict=True):
            _compare(one.asked, found, types)
            states += len(found)
            rows += sum(map(len, found))
    return Compared(len(cases), len(queries), states, rows, refused)


def _compare(asked, found, types):
    for state, rows in zip(asked.states, found, strict=True):
        problem = difference("Spark", asked.title, rows, state.rows)
        if problem is None and types - {wanted_types(asked)}:
            problem = f"Spark: {asked.title} has types {types}, not {wanted_types(asked)}"
        if problem:
            problems = [f"after statement {state.step}:", problem]
            raise Difference(cut(state.case, state.step), problems)


def told(spark, found, *, rules):
    """What differs, and the smallest case that still does."""

    def again(case):
        return check(spark, [case], rules=rules)

    small = minimise(found.case, again)
    return f"{found}\n\nsmaller:\n{write_case(small, title=failure(small, again) or '')}"

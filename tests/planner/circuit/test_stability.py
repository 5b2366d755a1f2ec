"""Which recursions fall apart, and by what."""

import pytest

from everview.language.plan import Fixpoint, walk_plan
from everview.language.program import Program
from everview.planner.circuit.stability import stable_columns

DECLARED = """
.decl e(a: number, b: number)
.decl u(a: number)
.decl p(a: number, b: number)
.decl q(a: number, b: number)
"""


def stable(rules, view="p"):
    program = Program.parse(DECLARED + rules, language="datalog")
    (group,) = [node for node in walk_plan(program.views[view].plan) if isinstance(node, Fixpoint)]
    return dict(zip(group.names, stable_columns(group), strict=False))


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        ("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).", {"p": 0}),
        ("p(x, y) :- e(x, y). p(x, z) :- e(x, y), p(y, z).", {"p": 1}),
        ("p(x, y) :- e(x, y). p(y, x) :- p(x, y), u(y).", {}),
        ("p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).", {}),
        ("p(x, y) :- e(x, y). p(x, y) :- p(x, z), e(z, y). p(x, y) :- e(x, z), p(z, y).", {}),
        ("p(x, y) :- e(w, x), e(w, y). p(x, y) :- p(v, w), e(v, x), e(w, y).", {}),
        ("p(x, 1) :- u(x). p(x, 2) :- p(x, _), !e(x, x).", {"p": 0}),
        ("p(x, y) :- e(x, y). p(x, z) :- q(z, x). q(y, x) :- p(x, z), e(z, y).", {"p": 0, "q": 1}),
        ("p(x, y) :- e(x, y). p(x, z) :- q(x, z). q(y, x) :- p(x, z), e(z, y).", {}),
    ],
)
def test_a_column_is_stable_if_every_clause_hands_it_on(rules, wanted):
    assert stable(rules) == wanted

"""Golden pairs: a query, and its plan after a rule, as text.

Each file in `fixtures/` is named for a rule, which is applied to the plan after decorrelation; `rewrite`
stands for all rules, with the relations' keys known. A block is a comment, the query, `=>` and the tree.
`python -m tests.planner.test_golden` writes the trees anew; read the difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.compare import bound
from tests.planner.generate import PROGRAM

from everview.planner.explain import explain
from everview.planner.facts import Facts, catalog_of
from everview.planner.rewrite import RULES, rewrite
from everview.planner.rules.decorrelate import decorrelate

FIXTURES = Path(__file__).parent / "fixtures"
BY_NAME = {rule.__name__: rule for rule in RULES}


def blocks(path):
    """(heading and query, tree) of each block."""
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        head, _, tree = block.partition("\n=>")
        yield head, tree.strip("\n")


def after(rule, head):
    plan = bound("\n".join(line for line in head.splitlines() if not line.startswith("--")))
    if rule == "rewrite":
        return explain(rewrite(plan, facts=Facts(catalog_of(PROGRAM))))
    plain = decorrelate(plan)
    return explain(plain if rule == "decorrelate" else BY_NAME[rule](plain))


CASES = [(path.stem, *block) for path in sorted(FIXTURES.glob("*.txt")) for block in blocks(path)]


@pytest.mark.parametrize(
    ("rule", "head", "tree"), CASES, ids=[f"{rule}: {head.splitlines()[0]}" for rule, head, _ in CASES]
)
def test_golden(rule, head, tree):
    assert after(rule, head) == tree


def test_every_rule_has_golden_pairs():
    assert {rule for rule, _, _ in CASES} == {*BY_NAME, "rewrite"}


if __name__ == "__main__":
    for file in sorted(FIXTURES.glob("*.txt")):
        written = [f"{head}\n=>\n{after(file.stem, head)}" for head, _ in blocks(file)]
        file.write_text("\n\n".join(written) + "\n", encoding="utf-8")

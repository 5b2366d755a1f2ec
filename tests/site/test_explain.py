"""Explain is a text for people: a golden file for a few views, and rules for all.

After a change that is meant, write the golden file anew: python -m tests.site.test_explain
"""

import re
from pathlib import Path

import pytest
from tests.site.test_why_oracle import MONOTONE, OTHER

import everview as ev

GOLDEN = Path(__file__).parent / "fixtures" / "explain.txt"
PROGRAM = """
CREATE TABLE sale (till TEXT, product BIGINT, pieces BIGINT, price DECIMAL(8,2)) WITH (semantics = 'bag');
CREATE TABLE product (id BIGINT PRIMARY KEY, name TEXT);
CREATE MATERIALIZED VIEW cheap AS SELECT till, product FROM sale WHERE price < 1;
CREATE MATERIALIZED VIEW named AS SELECT s.till, p.name FROM sale AS s JOIN product AS p ON p.id = s.product;
CREATE MATERIALIZED VIEW takings AS SELECT till, sum(pieces * price) AS total, count(*) AS n
    FROM sale GROUP BY till;
CREATE MATERIALIZED VIEW dearest AS SELECT product, max(price) AS price FROM sale GROUP BY product;
CREATE MATERIALIZED VIEW best AS SELECT till, total FROM takings ORDER BY total DESC LIMIT 3;
CREATE MATERIALIZED VIEW unsold AS SELECT name FROM product AS p
    WHERE NOT EXISTS (SELECT 1 FROM sale AS s WHERE s.product = p.id);
CREATE MATERIALIZED VIEW dearer AS SELECT p.id FROM product AS p
    WHERE NOT EXISTS (SELECT 1 FROM sale AS s WHERE s.price > p.id);
CREATE MATERIALIZED VIEW ranked AS SELECT till, rank() OVER (PARTITION BY product ORDER BY pieces) AS r
    FROM sale;
CREATE MATERIALIZED VIEW running AS SELECT till, sum(pieces) OVER (ORDER BY till) AS n FROM sale;
"""


def explained():
    with ev.Site.open(":memory:", ev.Program.parse(PROGRAM)) as site:
        site.insert("product", [(1, "bread"), (2, "milk")])
        site.insert("sale", [("t1", 1, 2, 3), ("t1", 1, 2, 3)])
        texts = [site.explain(name) for name in site.program.names()]
    # The numbers in names of tables are of no interest to readers, and change with every new rule.
    return re.sub(r"(everview_[a-z]|shared_)\w+", r"\1…", "\n\n".join(texts)) + "\n"


def test_the_golden_file():
    assert explained() == GOLDEN.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def site():
    from tests.site.test_why_oracle import world

    return world(1)[0]


@pytest.mark.parametrize("name", [*MONOTONE, *OTHER])
def test_every_construct(site, name):
    text = site.explain(name)
    assert text.startswith(f"{name} is kept by a local circuit, because")
    assert "\nPlan:\n  " in text
    assert "\nOn a commit:\n  " in text
    steps = [line for line in text.split("On a commit:\n")[1].splitlines() if line.startswith("  ")]
    assert steps
    for step in steps:
        assert re.search(r"by change|again|every left row", step), step
    again = any("again" in step or "every" in step for step in steps)
    assert ("Computed again" in text) == again
    assert ("All of it is by change" in text) != again
    assert max(map(len, text.splitlines())) < 140


def test_both_sides_of_a_set_operation_are_shown(site):
    assert site.explain("except_").count("remembers") == 2


if __name__ == "__main__":
    GOLDEN.write_text(explained(), encoding="utf-8")

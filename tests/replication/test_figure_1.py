"""Streams, Figure 1: six sites, Table 1, and a deletion that meets an insertion on every path."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from tests.replication.sites import World

from everview.language.program import Program

EXAMPLE = Path(__file__).parents[2] / "examples" / "streams_figure_1.py"

PROGRAM = Program.parse("""
    CREATE TABLE r0 (a TEXT NOT NULL, b TEXT NOT NULL, c TEXT NOT NULL);
    CREATE MATERIALIZED VIEW r2 AS SELECT DISTINCT a, b FROM r0;
    CREATE MATERIALIZED VIEW r4 AS SELECT DISTINCT b, c FROM r0;
    CREATE MATERIALIZED VIEW r5 AS SELECT r2.a, r2.b, r4.c FROM r2 JOIN r4 ON r2.b = r4.b;
""")
HOSTS = [{"r0"}, {"r0"}, {"r2"}, {"r2"}, {"r4"}, {"r2", "r4", "r5"}]
PATHS = [(0, 1), (2, 0), (3, 1), (4, 0), (4, 1), (5, 2), (5, 3), (5, 4)]
FIRST, SECOND = ("a1", "b1", "c1"), ("a2", "b1", "c1")


@pytest.fixture
def six():
    world = World()
    return [world.site(f"s{number}", program=PROGRAM, hosts=hosts) for number, hosts in enumerate(HOSTS)]


def spread(six):
    for _ in range(3):
        for one, other in PATHS:
            six[one].sync(six[other])


def shown(six):
    return [site.rows(name) for site, name in zip(six, ("r0", "r0", "r2", "r2", "r4", "r5"), strict=True)]


def test_the_example_runs_and_agrees_with_the_paper():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("  R4@s4  ⟨b1, c1⟩\n") == done.stdout.count("  R4@s4")
    assert done.stdout.rstrip().endswith("nothing is left to send.")


@pytest.mark.parametrize("writer", [0, 1])
def test_table_1(six, writer):
    changes = []
    six[4].watch("r4", changes.append)
    six[writer].insert("r0", [FIRST])
    spread(six)
    one = [[FIRST], [FIRST], [("a1", "b1")], [("a1", "b1")], [("b1", "c1")], [FIRST]]
    assert shown(six) == one
    assert changes == [[(("b1", "c1"), 1)]]
    six[writer].insert("r0", [SECOND])
    spread(six)
    two, pairs = [FIRST, SECOND], [("a1", "b1"), ("a2", "b1")]
    assert shown(six) == [two, two, pairs, pairs, [("b1", "c1")], two]
    six[writer].delete("r0", [SECOND])
    spread(six)
    assert shown(six) == one
    assert len(changes) == 1  # R4 by neither the insertion nor the deletion


@pytest.mark.parametrize("order", list(itertools.permutations([(2, 0), (3, 1), (5, 2), (5, 3)])), ids=str)
def test_at_s5_the_deletion_wins_over_the_insertion_in_every_order(six, order):
    six[0].insert("r0", [FIRST])
    spread(six)
    six[0].insert("r0", [SECOND])
    six[1].insert("r0", [SECOND])
    six[1].delete("r0", [SECOND])
    for one, other in [*order, *order]:
        six[one].sync(six[other])
    assert six[5].rows("r5") == [FIRST]
    spread(six)
    assert shown(six) == [[FIRST], [FIRST], [("a1", "b1")], [("a1", "b1")], [("b1", "c1")], [FIRST]]

"""Streams, Figure 1: six sites, Table 1, the conflicts of Section 2, and R5 fed by R2 or R3 at random."""

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


class Six:
    """The sites of the figure, and beside each what it has been told: tuple → causal length, per stream.

    A site that hosts R0 tells what it knows to both views; a view's site tells only the same view.
    """

    def __init__(self, *, apart=False):
        self.world = World()
        self.sites = [self.world.site(f"s{n}", program=PROGRAM, hosts=h) for n, h in enumerate(HOSTS)]
        self.told = [{stream: {} for stream in hosts - {"r5"}} for hosts in HOSTS]
        if not apart:
            self.spread()  # everybody is a member before the story begins

    def write(self, site, action, row):
        getattr(self.sites[site], action)("r0", [row])
        lengths = self.told[site]["r0"]
        lengths[row] = lengths.get(row, 0) + (lengths.get(row, 0) % 2 == (action == "delete"))

    def meet(self, one, other):
        self.world.seconds += 1
        report = self.sites[one].sync(self.sites[other])
        pair = self.told[one], self.told[other]
        news = [
            (mine[stream], theirs[source])
            for mine, theirs in (pair, pair[::-1])
            for stream in mine
            for source in theirs
            if source in (stream, "r0")
        ]
        for lengths, others in [(lengths, dict(others)) for lengths, others in news]:
            for row, length in others.items():
                lengths[row] = max(length, lengths.get(row, 0))
        return report

    def spread(self):
        for _ in range(3):
            for one, other in PATHS:
                self.meet(one, other)

    def check(self):
        """Every site shows what follows from what it has been told, and nothing else."""
        for number, (site, told) in enumerate(zip(self.sites, self.told, strict=True)):
            live = {s: {row for row, n in lengths.items() if n % 2} for s, lengths in told.items()}
            expected = {"r0": sorted(live.get("r0", ()))}
            r2 = {(a, b) for a, b, _ in live.get("r2", ())}
            r4 = {(b, c) for _, b, c in live.get("r4", ())}
            expected |= {"r2": sorted(r2), "r4": sorted(r4)}
            expected["r5"] = sorted((a, b, c) for a, b in r2 for d, c in r4 if b == d)
            for name in HOSTS[number]:
                assert site.rows(name) == expected[name], (number, name)

    def shown(self):
        names = ("r0", "r0", "r2", "r2", "r4", "r5")
        return [site.rows(name) for site, name in zip(self.sites, names, strict=True)]


def test_the_example_runs_and_agrees_with_the_paper():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("  R4@s4  ⟨b1, c1⟩\n") == done.stdout.count("  R4@s4")
    assert done.stdout.rstrip().endswith("nothing is left to send.")


@pytest.mark.parametrize("writer", [0, 1])
def test_table_1(writer):
    six = Six()
    unchanged = []
    six.sites[4].watch("r4", unchanged.append)
    six.write(writer, "insert", FIRST)
    six.spread()
    one = [[FIRST], [FIRST], [("a1", "b1")], [("a1", "b1")], [("b1", "c1")], [FIRST]]
    assert six.shown() == one
    assert unchanged == [[(("b1", "c1"), 1)]]
    six.write(writer, "insert", SECOND)
    six.spread()
    two, pairs = [FIRST, SECOND], [("a1", "b1"), ("a2", "b1")]
    assert six.shown() == [two, two, pairs, pairs, [("b1", "c1")], two]
    six.write(writer, "delete", SECOND)
    six.spread()
    assert six.shown() == one
    assert len(unchanged) == 1  # R4 by both the insertion and the deletion
    six.check()


def after_the_initial_state():
    six = Six()
    six.write(0, "insert", FIRST)
    six.spread()
    return six


ORDERS = [
    [pair[:: -1 if turned else 1] for pair, turned in zip(order, turns, strict=True)]
    for order in itertools.permutations([(4, 0), (4, 1), (0, 1)])
    for turns in itertools.product([False, True], repeat=3)
]


@pytest.mark.parametrize("order", list(itertools.permutations([(2, 0), (3, 1), (5, 2), (5, 3)])), ids=str)
def test_at_s5_the_deletion_wins_over_the_insertion_in_every_order(order):
    six = after_the_initial_state()
    six.write(0, "insert", SECOND)
    six.write(1, "insert", SECOND)
    six.write(1, "delete", SECOND)
    for one, other in [*order, *order]:
        six.meet(one, other)
        six.check()
    assert six.sites[5].rows("r5") == [FIRST]
    six.spread()
    assert six.shown() == [[FIRST], [FIRST], [("a1", "b1")], [("a1", "b1")], [("b1", "c1")], [FIRST]]

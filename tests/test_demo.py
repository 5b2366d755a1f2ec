"""The demo as a user runs it, and the example that shows one table of a paper."""

import io
import os
import re
import subprocess
import sys

import pytest
from examples import streams_table_2
from rich.console import Console

from everview.demo import proof, terrain


@pytest.mark.spark
def test_everyone_agrees_at_the_end_of_the_mission():
    done = subprocess.run(
        [sys.executable, "-m", "everview.demo", "--fast", "--no-browser"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    told = done.stdout
    assert "drone-2 has fallen from the sky: SIGKILL" in told
    assert "drone-2 is up again" in told
    for site in (terrain.HUB, terrain.POST, *terrain.TEAMS, *terrain.DRONES, "recomputed"):
        assert re.search(rf"^ *{site} ", told, re.MULTILINE), site
    assert "✗" not in told
    acknowledged, missing = re.search(r"(\d+) sightings were acknowledged, (\d+) are missing", told).groups()
    assert int(acknowledged) > 10
    assert missing == "0"
    assert "Everyone agrees." in told
    assert "should go to" in told


def test_a_site_that_shows_something_else_is_seen():
    base = {
        "sectors": [(1, "Camp", True), (2, "Ford", False)],
        "paths": [(1, 2, True)],
        "units": [("team-1", 1, True)],
        "sightings": [("drone-1", f"2026-06-01 05:0{i}:00+00:00", 2, "torch") for i in range(3)],
    }
    wanted = proof.recomputed(base)
    assert wanted["orders"] == [("team-1", 2, "Ford", 3)]
    assert wanted["seen"] == [("2026-06-01 05:00:00+00:00", 2, 3, 1)]
    assert proof.agreement({"post": wanted}, wanted)[1]
    wrong = {**wanted, "orders": [("team-1", 2, "Ford", 4)]}
    assert not proof.agreement({"post": wanted, "team-1": wrong}, wanted)[1]
    assert not proof.agreement({"post": {**wanted, "reachable": [(1,)]}}, wanted)[1]


@pytest.mark.spark
def test_the_table_of_the_paper_agrees_with_spark(spark):
    console = Console(file=io.StringIO(), width=100)
    assert streams_table_2.show(spark, console)
    told = console.file.getvalue()
    assert "│ ⟨a1, c2⟩ │ t1·t3 + t2 │" in told
    assert told.count("t1·t3 + t2 │ absent  │ absent") == 1

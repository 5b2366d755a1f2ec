"""A simulator's run in the console: its timeline, and the command that shows it."""

import os
import re
import signal
import subprocess
import sys

import httpx
import msgspec
import pytest
from typer.testing import CliRunner

from everview.cli.app import app
from everview.testing.worlds import Simulation, Wrong, dump_case, random_case, runs, timeline
from everview.testing.worlds.steps import Crash, Leave, Partition


def test_a_timeline_has_every_step_and_what_it_did():
    case = random_case(0)
    case = msgspec.structs.replace(case, steps=[*case.steps, Crash(case.places[0].name)])
    found, result = timeline(case), Simulation(case=case).run()
    assert found["failure"] is None
    assert [step["number"] for step in found["steps"]] == list(range(len(case.steps) + 1))
    assert found["steps"][-1]["do"] == "heal"
    assert found["counts"] == dict(sorted(result.counts.items()))
    assert sum(step["happened"].get("writes", 0) for step in found["steps"]) == result.counts["writes"]
    crashed = found["steps"][-2]
    assert (crashed["do"], crashed["fault"], crashed["happened"]) == ("crash", True, {"crashes": 1})
    assert {lane["name"] for lane in found["lanes"]} >= {place.name for place in case.places}


def test_a_link_is_cut_and_mended():
    case = random_case(0)
    one, other = (place.name for place in case.places[:2])
    toggles = msgspec.structs.replace(case, steps=[Partition(one, other), Partition(one, other)])
    cut, mended, _ = timeline(toggles)["steps"]
    assert (cut["fault"], cut["down"]) == (True, [[one, other]])
    assert (mended["fault"], mended["down"]) == (False, [])


def test_a_site_that_leaves_has_an_end():
    case = random_case(3)
    gone = case.places[-1].name
    found = timeline(msgspec.structs.replace(case, steps=[*case.steps, Leave(gone)]))
    assert found["counts"]["left"] == 1
    (lane,) = [lane for lane in found["lanes"] if lane["to"] is not None]
    assert (lane["name"], lane["to"]) == (gone, len(case.steps))
    step = found["steps"][lane["to"]]
    assert (step["do"], step["sites"], step["fault"]) == ("leave", [gone], True)


def test_a_run_that_goes_wrong_says_where(monkeypatch):
    real = runs.happen

    def broken(step, world):
        if len(world.trace) > 30:
            raise Wrong("s0 and s1 differ")
        real(step, world)

    monkeypatch.setattr(runs, "happen", broken)
    case = random_case(0)
    found = timeline(case)
    assert found["failure"]["problem"] == "s0 and s1 differ"
    assert found["steps"][-1]["number"] == found["failure"]["step"] < len(case.steps)


def test_the_command_shows_a_case(tmp_path):
    path = tmp_path / "simulation-3.json"
    path.write_text(dump_case(random_case(3)))
    words = [sys.executable, "-m", "everview", "console", str(path), "--port", "0"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        address, token = re.fullmatch(
            r"console at (\S+)/console/#token=(\S+)\n", process.stdout.readline()
        ).groups()
        assert httpx.get(f"{address}/v1/console/simulation").status_code == 401
        ask = lambda path: httpx.get(
            f"{address}/v1/console/{path}", headers={"Authorization": f"Bearer {token}"}
        )
        assert ask("simulation").json()["run"]["seed"] == 3
        assert ask("about").json()["kind"] == "simulation"
        assert (ask("sites").status_code, ask("sites").json()["code"]) == (404, "address")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 1, "say either FILE or --seed"),
        (["x.json", "--seed", "1"], 1, "say either FILE or --seed"),
        (["nothing.json"], 1, "nothing.json"),
    ],
)
def test_what_is_wrong_with_the_command(words, status, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["console", *words], env={"COLUMNS": "200", "TERM": "dumb"})
    assert (done.exit_code, said in done.stderr) == (status, True)

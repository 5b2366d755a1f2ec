import json
import subprocess
import sys

import pytest

from everview.testing.worlds import Simulation, dump_case, random_case


def simulate(*arguments, folder=None, code=0, prelude=""):
    program = f"{prelude}\nfrom everview.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program, "simulate", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def test_it_says_what_happened():
    lines = simulate("--seeds", "2", "--first", "3").stdout.splitlines()
    assert lines[-1] == "2 worlds: all sites agree"
    assert any(line.endswith("  messages") for line in lines)


def test_for_programs():
    told = json.loads(simulate("--seeds", "1", "--json").stdout)
    assert told["ok"]
    assert told["worlds"] == 1
    assert told["traces"] == [Simulation(0).run().digest]


def test_a_case_in_a_file_is_run_again(tmp_path):
    (tmp_path / "x.json").write_text(dump_case(random_case(5)))
    assert "1 world: all sites agree" in simulate("--replay", "x.json", folder=tmp_path).stdout


def test_a_kind_of_worlds():
    told = json.loads(simulate("--seeds", "1", "--kind", "liar", "--json").stdout)
    assert told["traces"] == [Simulation(0, kind="liar").run().digest]
    assert told["counts"]["lies"]


def test_a_file_that_is_no_case_is_one_line(tmp_path):
    (tmp_path / "x.json").write_text('{"seed": 1}')
    done = simulate("--replay", "x.json", folder=tmp_path, code=1)
    assert done.stderr.startswith("error: x.json is no case")
    assert len(done.stderr.splitlines()) == 1


BROKEN = """
from everview.engines.sqlite.rows.lineage import Lineage
Lineage.strange = lambda self, connection: None
"""


@pytest.mark.timeout(200)
def test_a_world_that_goes_wrong_is_made_small_and_written_to_a_file(tmp_path):
    """Copies that go unnoticed are the fault here, put into the process that simulates."""
    done = simulate("--seeds", "60", folder=tmp_path, code=1, prelude=BROKEN)
    (written,) = tmp_path.glob("simulation-*.json")
    assert f"--replay {written.name}" in done.stderr
    assert len(written.read_text().splitlines()) < 20
    simulate("--replay", written.name, folder=tmp_path, code=1, prelude=BROKEN)
    assert "all sites agree" in simulate("--replay", written.name, folder=tmp_path).stdout

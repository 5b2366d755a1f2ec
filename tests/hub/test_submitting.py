"""The script that spark-submit runs, here in the tests' own Spark; `test_cluster` has it submitted."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from everview.cli.submitting import main
from everview.hub import Hub
from everview.hub.files import LocalFiles
from everview.hub.publish import FOLDER
from everview.hub.record import latest
from everview.language.program import Program

PROGRAM = """
CREATE TABLE visit (id BIGINT, place TEXT);
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
"""


@pytest.fixture
def given(spark, tmp_path):
    """The options for a hub with a row that waits."""
    (tmp_path / "program.sql").write_text(PROGRAM)
    with Hub.open(tmp_path / "hub", Program.parse(PROGRAM), spark=spark) as hub:
        hub.insert("visit", [(1, "ridge")])
    return ["--store", str(tmp_path / "hub"), "--program", str(tmp_path / "program.sql")]


def test_once_refreshes_and_says_what_changed(given, spark, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*given, "--name", "rescue", "--once", "--publish"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out) == {
        "hub": "rescue",
        "refresh": 1,
        "arrivals": 1,
        "changes": {
            "visit": {"appeared": 1, "disappeared": 0},
            "per_place": {"appeared": 1, "disappeared": 0},
        },
    }
    assert sorted(path.name for path in (tmp_path / "hub" / FOLDER).iterdir()) == ["per_place", "visit"]
    assert spark.range(3).count() == 3  # a session that was there goes on


def test_without_once_it_refreshes_until_it_is_told_to_stop(given, tmp_path, capsys):
    files, pause, program = LocalFiles(tmp_path / "hub"), threading.Event(), Program.parse(PROGRAM)

    def stop():
        while latest(files, program.hash).refresh < 1:
            pause.wait(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(SystemExit) as ended:
        main([*given, "--trigger", "100 milliseconds"])
    stopping.join()
    assert ended.value.code == 0
    assert capsys.readouterr().out == "hub runs\n"


@pytest.mark.parametrize("wrong", [["--trigger", "soon"], ["--program", "nowhere.sql", "--once"]])
def test_what_is_wrong_is_said_in_one_line(given, wrong):
    with pytest.raises(SystemExit) as ended:
        main([*given, *wrong])
    assert ended.value.code.startswith("error: ")
    assert "\n" not in ended.value.code

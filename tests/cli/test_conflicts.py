"""`everview conflicts`."""

import datetime as dt
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everview as ev
from everview.cli.app import app
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.store import Store

NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)


@pytest.fixture
def store(here: Path) -> str:
    program = ev.Program.parse(
        "CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT); CREATE TABLE tag (word TEXT)"
    )
    sites = []
    for minute, name in enumerate(("ann", "bo")):
        at = int(NOON.timestamp() + 60 * minute) * 1_000_000
        clock = Environment(now_us=lambda at=at: at)
        site = ev.Site(Store(str(here / f"{name}.db"), program, name, environment=clock))
        site.insert("person", [(1, name), (2, "both")])
        sites.append(site)
    sites[0].sync(sites[1])
    for site in sites:
        site.close()
    return "ann.db"


def test_a_relations_conflicts(run, store):
    assert json.loads(run("conflicts", store, "person", "--json")) == {
        "id": 1,
        "name": "ann",
        "author": "ann",
        "time": "2030-01-01T12:00:00Z",
    }
    assert run("conflicts", store, "person").split() == [
        *("id", "name", "author", "time"),
        *("1", "ann", "ann", "2030-01-01T12:00:00Z"),
    ]


def test_all_conflicts(run, store):
    found = json.loads(run("conflicts", store, "--json"))
    assert found["relation"] == "person"
    assert json.loads(found["key"]) == {"id": 1}
    assert json.loads(found["row"]) == {"id": 1, "name": "ann"}
    assert "person" in run("conflicts", store)


def test_what_has_no_conflicts(store):
    for name, said in (("tag", "tag has no PRIMARY KEY"), ("nothing", "not in the program")):
        done = CliRunner().invoke(app, ["conflicts", store, name])
        assert done.exit_code == 1
        assert said in done.stderr

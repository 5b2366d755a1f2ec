"""`everview migrate`, and the project that `everview init` makes."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everview.cli.app import app

MORE = """
CREATE TABLE extra (n BIGINT);
CREATE MATERIALIZED VIEW doubled AS SELECT n + n AS n FROM extra;
"""


@pytest.fixture
def changed(here):
    """The program with a relation and a view more, a column more, and a view changed."""
    text = (here / "p.sql").read_text().replace("place TEXT)", "place TEXT, mood TEXT)")
    text = text.replace("SELECT place, count(*) AS n", "SELECT place, count(*) AS n, min(id) AS first")
    text = text.replace("JOIN visit ON person.id = visit.id", "JOIN link ON person.id = link.a")
    text = text.replace("SELECT DISTINCT name, place", "SELECT DISTINCT name, b")
    (here / "q.sql").write_text(text + MORE)
    return "q.sql"


def test_the_plan_comes_first(run, store, changed, here):
    (here / "v.csv").write_text("id,place\n1,Oslo\n")
    run("insert", store, "visit", "v.csv")
    shown = run("migrate", store, "--program", changed, "--dry-run")
    assert shown.splitlines()[0] == "keep    3 relations, 0 views"
    assert "widen   relation visit: mood TEXT, NULL in the rows there are" in shown
    assert "change  view seen, computed anew" in shown
    asked = CliRunner().invoke(app, ["migrate", store, "-p", changed], input="n\n")
    assert asked.stdout.endswith("migrate s.db? [y/N]: n\n") or "[y/N]" in asked.stdout
    assert run("query", store, "SELECT count(*) AS n FROM visit", "--json") == '{"n": 1}\n'
    assert run("migrate", store, "-p", changed, "--yes").endswith("s.db: migrated\n")
    assert json.loads(run("query", store, "SELECT * FROM per_place", "--json")) == {
        "place": "Oslo",
        "n": 1,
        "first": 1,
    }
    assert run("migrate", store, "-p", changed) == "the store has this program already\n"


def test_it_asks_and_then_does_it(run, store, changed):
    assert run("migrate", store, "-p", changed, stdin="y\n").endswith("s.db: migrated\n")


def test_in_json(run, store, changed):
    planned = json.loads(run("migrate", store, "-p", changed, "--json"))
    assert planned["migrated"] is False
    assert planned["relations"]["widened"] == {"visit": ["mood"]}
    assert json.loads(run("migrate", store, "-p", changed, "--json", "--yes")) == planned | {"migrated": True}


def test_a_store_hosts_more_when_it_is_told_to(run, fails, store, here):
    """As the message says that a newcomer sees who asks a store for what it does not host."""
    (here / "v.csv").write_text("id,place\n1,Oslo\n1,Rome\n2,Rome\n")
    run("insert", store, "visit", "v.csv")
    run("init", "h.db", "-p", "p.sql", "--hosts", "seen")
    asked = "SELECT count(*) AS n FROM per_place"
    for words in (("query", "h.db", asked), ("why", "h.db", "per_place", "place=Oslo", "n=1")):
        said = fails(*words)
        assert said.endswith("`everview migrate h.db --hosts per_place` has it host that too"), said
        assert "hosts=" not in said
    command = shlex.split(said.split("`everview ")[1].split("`")[0])
    planned = "host    view per_place; rows of it that are not here come with the next sync\n"
    assert run(*command, "--dry-run") == planned
    assert "not hosted" in fails("query", "h.db", asked)
    assert json.loads(run(*command, "--json")) | {"from": "", "to": ""} == {
        "migrated": False,
        "hosted": ["per_place"],
        "from": "",
        "to": "",
        "relations": {"kept": ["person", "visit", "link", "tag"], "added": [], "widened": {}},
        "views": {"kept": ["seen", "per_place"], "added": [], "changed": [], "dropped": []},
        "refused": [],
    }
    assert run(*command, stdin="y\n") == f"{planned}migrate h.db? [y/N]: y\nh.db: migrated\n"
    assert run("query", "h.db", asked, "--json") == '{"n": 0}\n'
    for name in (store, "h.db", store, "h.db"):  # the first that comes to a folder finds nothing yet
        run("sync", "--store", name, "stick")
    assert run("query", "h.db", asked, "--json") == '{"n": 2}\n'
    assert run(*command, "--yes") == "the store has this program already\n"
    assert "say --program FILE" in CliRunner().invoke(app, ["migrate", "h.db"]).stderr
    assert "there is no relation or view nothing" in fails("migrate", "h.db", "--hosts", "nothing")
    (here / "hub").mkdir()
    assert "hosts all there is" in fails("migrate", "hub", "--hosts", "visit")


def test_what_cannot_be_done_is_said_in_one_line(fails, run, store, here):
    (here / "q.sql").write_text("CREATE TABLE visit (id BIGINT, place TEXT);")
    said = fails("migrate", store, "-p", "q.sql", "--yes")
    assert said.startswith("s.db cannot go over to q.sql, and nothing was changed: person would be dropped")
    assert "leave it declared" in said
    assert run("status", store)
    assert "does not exist; `everview init no.db --program q.sql`" in fails("migrate", "no.db", "-p", "q.sql")
    (here / "folder").mkdir()
    assert "there is no hub" in fails("migrate", "folder", "-p", "q.sql")


def test_init_makes_a_project_that_runs(run, fails, here, monkeypatch):
    said = run("init", "mission")
    assert said.startswith("created mission: program.sql, data, site.db, README.md\n")
    assert "mission is there and not empty" in fails("init", "mission")
    assert "--hosts goes with --program" in fails("init", "other", "--hosts", "busy")
    monkeypatch.chdir(here / "mission")
    assert "lake" in run(*shlex.split(said.splitlines()[1].split("everview ", 1)[1]))
    ran = 0
    for line in Path("README.md").read_text().splitlines():  # all that it says to type
        if not line.startswith("    ") or "migrate" in line:
            continue
        stdin, _, command = line.strip().rpartition("| ")
        run(*shlex.split(command)[1:], stdin=stdin.removeprefix("echo ").strip("' ") or None)
        ran += 1
    assert ran == 9
    assert run("query", "other.db", "SELECT a FROM reachable WHERE b = 'valley' ORDER BY a", "--json") == (
        '{"a": "base"}\n{"a": "lake"}\n'
    )
    text = Path("program.sql").read_text() + "CREATE TABLE note (at TIMESTAMP, text TEXT);"
    Path("program.sql").write_text(text)
    assert "add     relation note" in run("migrate", "site.db", "--program", "program.sql", "--yes")
    assert json.loads(run("init", str(here / "again"), "--json"))["name"] == "again"

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import everview as ev
from everview.cli.app import app


def test_init_creates_a_store(run, here):
    assert run("init", "s.db", "--program", "p.sql", "--name", "x") == "created s.db: 4 relations, 2 views\n"
    with ev.Site.open(here / "s.db") as site:
        assert site.name == "x"
        assert set(site.program.views) == {"seen", "per_place"}


def test_init_hosts_what_is_named(run, fails, here):
    assert run("init", "h.db", "-p", "p.sql", "--hosts", "seen") == "created h.db: 0 relations, 1 view\n"
    assert "is not hosted here, only seen" in fails("query", "h.db", "SELECT * FROM visit")
    assert "nothing" in fails("init", "n.db", "-p", "p.sql", "--hosts", "nothing")
    assert not (here / "n.db").exists()


def test_init_in_json(run, here):
    told = json.loads(run("init", "s.db", "-p", "p.sql", "-n", "x", "--json"))
    assert told["name"] == "x"
    assert told["path"] == "s.db"
    assert told["program"] == ev.Program.load("p.sql").hash
    assert len(told["incarnation"]) == 16


def test_init_leaves_what_exists_alone(fails, here):
    Path("s.db").write_text("precious")
    assert "exists already" in fails("init", "s.db", "-p", "p.sql")
    assert Path("s.db").read_text() == "precious"


def test_an_empty_file_becomes_a_store_as_it_says(run, fails, here):
    Path("s.db").touch()
    said = "s.db is empty; `everview init s.db --program FILE` makes a store of it"
    assert fails("status", "s.db") == said
    assert run("init", "s.db", "--program", "p.sql").startswith("created s.db")
    assert run("status", "s.db")


def test_init_with_a_wrong_program_leaves_no_file(fails, here):
    Path("bad.sql").write_text("CREATE TABLE t (a BIGINT);\nCREATE MATERIALIZED VIEW v AS SELECT b FROM t;")
    assert fails("init", "s.db", "-p", "bad.sql").startswith("bad.sql, line 2, column 38: ")
    assert not Path("s.db").exists()


def test_init_needs_a_folder_and_a_program(fails, here):
    assert "no folder" in fails("init", "nowhere/s.db", "-p", "p.sql")
    assert fails("init", "s.db", "-p", "nowhere.sql") == (
        "nowhere.sql does not exist; name the file with the program's CREATE statements"
    )
    Path("rescue.sql").write_text("")
    assert fails("init", "s.db", "-p", "resuce.sql") == "resuce.sql does not exist; did you mean rescue.sql?"


def test_check_prints_relations_and_views(run):
    printed = run("check", "p.sql")
    assert "relation person (keyed)\n  id      BIGINT  key\n  name    TEXT  NOT NULL\n" in printed
    assert "relation tag (bag)" in printed
    assert "view seen (reads person, visit)\n  name   TEXT\n" in printed
    assert printed.endswith("4 relations, 2 views: the program is right\n")


def test_check_in_json(run):
    told = json.loads(run("check", "p.sql", "--json"))
    assert told["ok"] is True
    assert [relation["name"] for relation in told["relations"]] == ["person", "visit", "link", "tag"]
    assert told["relations"][2]["key"] == ["a", "b"]
    assert told["relations"][0]["columns"][1] == {"name": "name", "type": "TEXT", "nullable": False}
    assert [view["reads"] for view in told["views"]] == [["person", "visit"], ["visit"]]


WRONG = "CREATE TABLE t (name TEXT);\nCREATE MATERIALIZED VIEW v AS\n\tSELECT '李', nmae FROM t;\n"


def test_check_shows_the_line_a_caret_and_the_hint(here):
    Path("bad.sql").write_text(WRONG)
    done = CliRunner().invoke(app, ["check", "bad.sql"])
    assert done.exit_code == 1
    assert done.stderr == "error: bad.sql, line 3, column 14: there is no column nmae\n"
    # The two columns of a wide character are two spaces before the caret, and a tab stays a tab.
    assert done.stdout == (
        "3 | \tSELECT '李', nmae FROM t;\n  | \t" + " " * 13 + "^\nhint: did you mean name?\n"
    )


def test_check_tells_programs_what_is_wrong(here):
    Path("bad.sql").write_text(WRONG)
    done = CliRunner().invoke(app, ["check", "bad.sql", "--json"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["ok"] is False
    assert told["error"]["line"] == 3
    assert told["error"]["column"] == 14
    assert told["error"]["hint"] == "did you mean name?"
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_check_of_what_cannot_be_read(fails, here, content):
    if content is None:
        assert fails("check", ".") == (". is no file; name the file with the program's CREATE statements")
    else:
        Path("bad.sql").write_bytes(content)
        assert "cannot read bad.sql" in fails("check", "bad.sql")

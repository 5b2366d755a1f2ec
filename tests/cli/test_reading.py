import json
import sys

import pytest
from typer.testing import CliRunner

import everview as ev
from everview.cli.app import app

PEOPLE = "id,name,born,height\n1,Ann,1990-02-03,1.75\n2,李雷,,\n3,Żółć,2001-01-01,-0.5\n"
VISITS = "id,place\n1,Oslo\n1,Rome\n2,Oslo\n"


@pytest.fixture
def full(run, store):
    run("insert", store, "person", "-", "-f", "csv", stdin=PEOPLE)
    run("insert", store, "visit", "-", "-f", "csv", stdin=VISITS)
    return store


def test_query_is_aligned_text(run, full):
    assert run("query", full, "SELECT id, name, born, height FROM person ORDER BY id") == (
        "id  name  born        height\n"
        " 1  Ann   1990-02-03    1.75\n"
        " 2  李雷  NULL          NULL\n"
        " 3  Żółć  2001-01-01    -0.5\n"
    )


def test_query_without_rows_still_names_the_columns(run, store):
    assert run("query", store, "SELECT id, name FROM person") == "id  name\n"
    assert run("query", store, "SELECT id, name FROM person", "--csv") == "id,name\n"
    assert run("query", store, "SELECT id, name FROM person", "--json") == ""


def test_control_characters_do_not_reach_the_screen(run, store):
    run("insert", store, "tag", "-", "-f", "json", stdin='{"word": "\\u001b[31mred\\n[bold]x"}')
    assert run("query", store, "SELECT word FROM tag") == "word\n\\x1b[31mred\\n[bold]x\n"


def test_a_terminal_gets_a_table(capsys, monkeypatch):
    from everview.cli import tables
    from everview.language.types import BIGINT, TEXT, Field

    schema = [Field("n", BIGINT), Field("word", TEXT)]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    tables.print_rows(schema, [(1, "[bold]x"), (10, None)])
    printed = capsys.readouterr().out
    assert "───" in printed
    assert " 1   [bold]x" in printed
    assert "(2 rows)" in printed
    tables.print_rows(schema, [(1, "x")] * 2001)
    assert "───" not in capsys.readouterr().out


def test_parameters(run, full):
    by_place = "SELECT id FROM visit WHERE place = ? AND id > ? ORDER BY id"
    assert run("query", full, by_place, "--param", "Oslo", "--param", "1") == "id\n 2\n"
    born = "SELECT name FROM person WHERE born < :day AND name <> :name"
    assert run("query", full, born, "--param", "name=a=b", "--param", "day=2000-01-01") == "name\nAnn\n"


@pytest.mark.parametrize(
    ("sql", "params", "said"),
    [
        ("SELECT nam FROM person", [], "line 1, column 8: there is no column nam (did you mean name?)"),
        ("SELEC 1", [], "line 1, column"),
        ("SELECT 1 FROM nosuch", [], "line 1, column 15: there is no relation or view nosuch"),
        ("SELECT 1 / 0 AS x", [], "division by zero"),
        ("DELETE FROM visit", [], "a query is a SELECT; `everview insert` and `everview delete` write"),
        ("SELECT p.id, v.id FROM person p JOIN visit v ON p.id = v.id", [], "two columns of the query"),
        ("SELECT id FROM visit WHERE id = ?", [], "no value for parameter 1"),
        ("SELECT id FROM visit WHERE id = ?", ["x"], "parameter 1 cannot be 'x': expected BIGINT"),
        ("SELECT id FROM visit WHERE id = ?", ["1", "2"], "the query has no parameter 2; it has 1"),
        ("SELECT id FROM visit WHERE id = :n", ["m=1"], "the query has no parameter m; it has n"),
        ("SELECT id FROM visit WHERE id = :n", ["1"], "the query has parameters with names"),
        ("SELECT id FROM visit", ["1"], "the query has no parameter 1; it has none"),
    ],
)
def test_bad_queries(fails, full, sql, params, said):
    words = [word for param in params for word in ("--param", param)]
    assert fails("query", full, sql, *words).startswith(said)


def test_json_and_csv_exclude_each_other(full):
    done = CliRunner().invoke(app, ["query", full, "SELECT 1 AS x", "--json", "--csv"])
    assert done.exit_code == 1
    assert "choose one" in done.stderr


OSLO = (
    "t1·t2\n"
    "  t1  person(id=1, name=Ann, born=1990-02-03, height=1.75, paid=NULL, ok=NULL, pic=NULL, seen=NULL)"
    "  from drone-7\n"
    "  t2  visit(id=1, place=Oslo)  from drone-7\n"
)


@pytest.mark.parametrize(
    "row",
    [["name=Ann", "place=Oslo"], ["place=Oslo", "name=Ann"], ['{"place": "Oslo", "name": "Ann"}'],
     ['["Ann", "Oslo"]']],
)  # fmt: skip
def test_why(run, full, row):
    assert run("why", full, "seen", *row) == OSLO


def test_why_in_json(run, full, here):
    told = json.loads(run("why", full, "per_place", "place=Oslo", "n=2", "--json"))
    assert told["view"] == "per_place"
    assert told["row"] == {"place": "Oslo", "n": 2}
    assert told["provenance"] == "t1·t2"
    assert told["monomials"] == [["t1", "t2"]]
    assert [t["values"] for t in told["tuples"]] == [{"id": 1, "place": "Oslo"}, {"id": 2, "place": "Oslo"}]
    with ev.Site.open(here / full) as site:
        ids = {witness.id.hex() for witness in site.why("per_place", ("Oslo", 2)).tuples()}
    assert {t["id"] for t in told["tuples"]} == ids


def test_why_has_alternatives(run, full):
    run("insert", full, "person", "-", "-f", "csv", stdin="id,name\n7,Ann\n")
    run("insert", full, "visit", "-", "-f", "csv", stdin="id,place\n7,Oslo\n")
    told = json.loads(run("why", full, "seen", "name=Ann", "place=Oslo", "--json"))
    assert told["provenance"] == "t1·t3 + t2·t4"
    assert told["monomials"] == [["t1", "t3"], ["t2", "t4"]]


def test_why_of_an_absent_row_is_0(run, full):
    assert run("why", full, "seen", "name=Ann", "place=Paris") == "0\nseen has no such row\n"
    told = json.loads(run("why", full, "seen", "name=Ann", "place=Paris", "--json"))
    assert (told["provenance"], told["monomials"], told["tuples"]) == ("0", [], [])


def test_why_tells_null_from_the_empty_text(run, store):
    run("insert", store, "tag", "-", "-f", "csv", stdin='word\n""\n')
    assert run("why", store, "tag", "word=").startswith("0\n")
    assert run("why", store, "tag", 'word=""') == 't1\n  t1  tag(word="")  from drone-7\n'
    assert run("why", store, "tag", '{"word": ""}').startswith("t1\n")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (["name=Ann"], "a row of seen needs every column; say place=… too, or place= for NULL"),
        (["name=Ann", "plce=Oslo"], "seen has no column plce; its columns are name, place"),
        (["Ann"], "'Ann' is no COLUMN=VALUE; seen has the columns name, place"),
        (['["Ann"]'], "seen has 2 columns (name, place), the row has 1"),
        (['{"name": "Ann"'], "the row is not JSON"),
        (['{"name": 1, "place": "Oslo"}'], "seen.name cannot hold 1: expected TEXT"),
    ],
)
def test_bad_rows(fails, full, row, said):
    assert fails("why", full, "seen", *row).startswith(said)


def test_why_reads_values_as_the_views_types(fails, full):
    said = fails("why", full, "per_place", "place=Oslo", "n=two")
    assert said.startswith("per_place.n cannot be 'two': expected BIGINT")


def test_explain(run, full, fails, here):
    with ev.Site.open(here / full) as site:
        assert run("explain", full, "seen") == site.explain("seen") + "\n"
    said = "there is no relation or view nosuch; there are person, visit, link, tag, seen, per_place"
    assert fails("explain", full, "nosuch") == fails("why", full, "nosuch", "a=1") == said


def test_status(run, full):
    printed = run("status", full)
    assert "name:               drone-7\n" in printed
    assert "commits:            2\n" in printed
    assert "failed expressions: 0\n" in printed
    assert printed.endswith("view      per_place  2 rows\n")


def test_status_in_json(run, full, here):
    with ev.Site.open(here / full) as site:
        expected = site.status()
    told = json.loads(run("status", full, "--json"))
    assert {**told, "path": ""} == {**expected, "path": ""}
    assert told["relations"] == {"person": 3, "visit": 3, "link": 0, "tag": 0}


@pytest.mark.parametrize("command", ["query", "why", "explain", "status"])
def test_a_missing_store_is_not_created(fails, here, command):
    words = {"query": ["SELECT 1 AS x"], "why": ["seen", "a=1"], "explain": ["seen"], "status": []}[command]
    assert fails(command, "no.db", *words).startswith("no.db does not exist; `everview init no.db")
    assert not (here / "no.db").exists()
    assert fails(command, ".", *words).startswith(". is no file")


def test_a_datalog_program_and_the_proof_of_a_row(run, here, fails):
    rules = "p(x, y) :- e(x, y).\np(x, z) :- p(x, y), e(y, z).\n"
    (here / "p.dl").write_text(f".decl e(a: number, b: number)\n.decl p(a: number, b: number)\n{rules}")
    run("init", "d.db", "--program", "p.dl")
    run("insert", "d.db", "e", "-", "-f", "csv", stdin="a,b\n1,2\n2,3\n")
    assert run("query", "d.db", "SELECT * FROM p", "--csv") == "a,b\n1,2\n1,3\n2,3\n"
    assert run("why", "d.db", "p", "a=1", "b=3").endswith("\np(1, 3)\n  p(1, 2)\n    e(1, 2)\n  e(2, 3)\n")
    proof = json.loads(run("why", "d.db", "p", "a=1", "b=3", "--json"))["proof"]
    assert [premise["relation"] for premise in proof["premises"]] == ["p", "e"]
    (here / "bad.dl").write_text("p(x) :- q(x).")
    assert "line 1, column 1: p is not declared" in fails("check", "bad.dl")

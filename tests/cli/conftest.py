"""A program, a store made for it, and the command line run as a user does, in this process."""

import json

import pytest
from typer.testing import CliRunner

from everview.cli.app import app

PROGRAM = """\
CREATE TABLE person (
    id BIGINT PRIMARY KEY, name TEXT NOT NULL, born DATE, height DOUBLE, paid DECIMAL(10,2),
    ok BOOLEAN, pic BLOB, seen TIMESTAMP
);
CREATE TABLE visit (id BIGINT, place TEXT);
CREATE TABLE link (b BIGINT, a BIGINT, PRIMARY KEY (a, b));
CREATE TABLE tag (word TEXT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW seen AS
    SELECT DISTINCT name, place FROM person JOIN visit ON person.id = visit.id;
CREATE MATERIALIZED VIEW per_place AS SELECT place, count(*) AS n FROM visit GROUP BY place;
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the program in it, which commands run in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.sql").write_text(PROGRAM)
    return tmp_path


@pytest.fixture
def run(here):
    """Run a command that succeeds and writes nothing to standard error; return what it prints."""

    def call(*words, stdin=None):
        done = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
        assert done.exit_code == 0, done.output
        assert done.stderr == ""
        return done.stdout

    return call


@pytest.fixture
def store(here, run):
    run("init", "s.db", "--program", "p.sql", "--name", "drone-7")
    return "s.db"


@pytest.fixture
def stores(here, run):
    """Two stores, each with a row."""
    for name in ("a", "b"):
        run("init", f"{name}.db", "--program", "p.sql", "--name", name)
        run("insert", f"{name}.db", "visit", "-", "-f", "csv", stdin=f"id,place\n1,{name}\n")


@pytest.fixture
def fails(here):
    """Run a command that fails with status 1 and exactly one line, no traceback; return the line."""

    def call(*words, stdin=None):
        done = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
        assert done.exit_code == 1, done.output
        (line,) = done.stderr.splitlines()
        assert line.startswith("error: ")
        assert "Traceback" not in done.output
        return line.removeprefix("error: ")

    return call


@pytest.fixture
def rows(run, store):
    """The rows of a SELECT, as JSON."""
    return lambda sql: [json.loads(line) for line in run("query", store, sql, "--json").splitlines()]

"""`everview expire`, and `--expiry` of the commands that open a store."""

import json
import sys

import pytest
from tests.cli.test_sync import serving
from typer.testing import CliRunner

from everview.cli import expiring
from everview.cli.app import app


@pytest.fixture
def two(here, run):
    """Two stores that have met, a.db and b.db, and what b is known by."""
    for name in "ab":
        run("init", f"{name}.db", "--program", "p.sql", "--name", name)
        run("insert", f"{name}.db", "visit", "-", "-f", "csv", stdin=f"id,place\n1,{name}\n")
    for name in "abab":
        run("sync", "--store", f"{name}.db", "stick")
    return json.loads(run("status", "b.db", "--json"))["incarnation"]


def members(run, store="a.db"):
    return json.loads(run("status", store, "--json"))["replication"]["members"]


def test_a_member_is_given_up_and_comes_back_with_its_writes(two, run):
    run("insert", "b.db", "visit", "-", "-f", "csv", stdin="id,place\n9,unseen\n")
    said = run("expire", "a.db", "b", "--yes")
    assert f"b ({two[:8]}) is given up for good under this incarnation" in said
    assert "joins again by a snapshot" in said
    assert "what it wrote that nobody has seen is applied again" in said
    assert said.endswith(f"a.db: gave up b ({two[:8]})\n")
    assert [one["expired"] for one in members(run)] == [True]
    assert "expired" in run("status", "a.db")
    for name in "abababab":
        run("sync", "--store", f"{name}.db", "stick")
    assert json.loads(run("status", "b.db", "--json"))["incarnation"] != two
    for name in "ab":
        rows = run("query", f"{name}.db", "SELECT id, place FROM visit ORDER BY 1, 2", "--csv")
        assert rows.splitlines()[1:] == ["1,a", "1,b", "9,unseen"]


def test_for_programs(two, run):
    assert json.loads(run("expire", "a.db", two, "--json")) == {
        "expired": True,
        "incarnation": two,
        "name": "b",
    }


def test_on_a_terminal_it_asks(two, run, monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    class System:
        def __getattr__(self, name):
            return Terminal() if name == "stdin" else getattr(sys, name)

    monkeypatch.setattr(expiring, "sys", System())
    for answer, done in (("n\n", False), ("", False), ("y\n", True)):
        found = CliRunner().invoke(app, ["expire", "a.db", "b"], input=answer)
        assert f"give up b ({two[:8]})?" in found.stderr
        assert [one["expired"] for one in members(run)] == [done]


def test_who_is_not_there_is_said_with_those_who_are(two, fails, run):
    assert f"no member is called x; members: b ({two})" in fails("expire", "a.db", "x", "--yes")
    assert "this site itself" in fails("expire", "a.db", "a", "--yes")
    assert "does not exist" in fails("expire", "none.db", "a")
    assert [one["expired"] for one in members(run)] == [False]


def test_the_limit_is_declared_where_a_store_is_opened(here, run, fails):
    run("init", "s.db", "--program", "p.sql", "--expiry", "30d")
    assert "given up:           members not heard of for 30 days" in run("status", "s.db")
    run("sync", "--store", "s.db", "stick", "--expiry", "1d")
    assert "members not heard of for 1 day\n" in run("status", "s.db")
    run("sync", "--store", "s.db", "stick")
    assert json.loads(run("status", "s.db", "--json"))["replication"]["expiry_days"] == 1
    with serving("--store", "s.db", "--insecure", "--expiry", "12d"):
        assert json.loads(run("status", "s.db", "--json"))["replication"]["expiry_days"] == 12
    run("sync", "--store", "s.db", "stick", "--expiry", "1d")
    assert "--expiry goes with --program" in fails("init", "project", "--expiry", "30d")
    for wrong in ("30", "0d", "-1d", "1.5d", "2h", "d", ""):
        done = CliRunner().invoke(app, ["sync", "--store", "s.db", "stick", f"--expiry={wrong}"])
        assert done.exit_code == 1
        assert "is no whole number of days, at least one; say 90d" in done.stderr
    assert "from 1 to 1,000,000" in fails("sync", "--store", "s.db", "stick", "--expiry", "1000001d")
    assert json.loads(run("status", "s.db", "--json"))["replication"]["expiry_days"] == 1


def test_doctor_goes_by_the_limit(two, run):
    run("delete", "a.db", "visit", "-", "-f", "csv", stdin="id,place\n1,a\n")
    assert "or been away for 90 days" in run("doctor", "a.db")
    run("sync", "--store", "a.db", "stick", "--expiry", "7d")
    assert "or been away for 7 days" in run("doctor", "a.db")

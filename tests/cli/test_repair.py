"""`everview repair`: a relation that differs although both have seen the same is read again."""

import json
import sqlite3
from contextlib import closing

from tests.cli.processes import serving
from typer.testing import CliRunner

import everview as ev
from everview.cli.app import app


def test_a_relation_is_read_again_from_a_server(stores, run, here, fails):
    with serving("--store", "a.db", "--insecure") as (_, address):
        run("sync", "--store", "b.db", address)
    with ev.Site.open("b.db") as site:
        table = site.replica.shares["visit"].table.name
    with closing(sqlite3.connect("b.db")) as file, file:
        file.execute(f"UPDATE {table} SET c1 = 'z' WHERE c1 = 'a'")
        file.execute("UPDATE everview_partitions SET summed = 0")  # as if it had been summed so
    run("insert", "a.db", "visit", "-", "-f", "csv", stdin="id,place\n3,c\n")
    with serving("--store", "a.db", "--insecure") as (_, address):
        done = CliRunner().invoke(app, ["sync", "--store", "b.db", address])
        assert "visit differs from that of a" in done.stderr
        (alarm,) = json.loads(run("status", "b.db", "--json"))["replication"]["alarms"]
        assert (alarm["relation"], alarm["peer"]) == ("visit", "a")
        assert "visit differs from that of a" in run("status", "b.db")
        assert "nothing" in fails("repair", "b.db", "nothing", "--from", address)
        assert "computed here" in fails("repair", "b.db", "seen", "--from", address)
        assert "name a server" in fails("repair", "b.db", "visit", "--from", "stick")
        done = CliRunner().invoke(app, ["repair", "b.db", "visit", "--from", address, "--json"])
        assert json.loads(done.stdout)["received_rows"] > 0
        assert done.exit_code == 0
        assert json.loads(run("status", "b.db", "--json"))["replication"]["alarms"] == []
    found = run("query", "b.db", "SELECT place FROM visit ORDER BY place", "--csv")
    assert found.split()[1:] == ["a", "b", "c"]

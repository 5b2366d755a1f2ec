"""A store goes over to a changed program: all of it or nothing, and what is not safe is refused."""

import datetime as dt
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from tests.evolution.programs import draft, evolved
from tests.site.checks import assert_fresh, typed

import everview as ev
from everview.language.evolution import Evolution

R = "CREATE TABLE r (a BIGINT NOT NULL, b TEXT);"
V = "CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM r GROUP BY b;"


def parse(text, language="sql"):
    return ev.Program.parse(text, language=language)


def contents(site):
    return {name: typed(site.rows(name)) for name in site.program.names()}


@pytest.mark.parametrize("seed", range(12))
def test_it_is_as_if_the_rows_had_been_written_to_a_new_store(seed, tmp_path):
    rng = random.Random(seed)
    before = draft(rng)
    after = evolved(rng, before)
    path, n = tmp_path / "site.db", 0
    with ev.Site.open(path, before.program(rng), name="s") as site:
        for _ in range(12):
            table = rng.choice(before.tables)
            n += 3
            site.insert(table.name, [table.row(rng, n - rng.randrange(4)) for _ in range(3)])
            there = site.rows(table.name)
            if there and rng.random() < 0.4:
                site.delete(table.name, [rng.choice(there)])
        rows = {table.name: site.rows(table.name) for table in before.tables}
    program = after.program(rng)
    ev.Site.migrate(path, program)
    with ev.Site.open(path, program) as site, ev.Site.open(":memory:", program) as twin:
        for table in after.tables:
            there = rows.get(table.name, [])
            twin.insert(table.name, [row + (None,) * (len(table.columns) - len(row)) for row in there])
        for one in (site, twin):
            assert_fresh(one)
        assert contents(site) == contents(twin)
        for table in after.tables:  # and work goes on alike
            more = [table.row(rng, rng.randrange(n + 2)) for _ in range(4)]
            for one in (site, twin):
                one.insert(table.name, more)
            if rows.get(table.name):
                gone = rng.choice(rows[table.name])
                for one in (site, twin):
                    one.delete(table.name, [gone + (None,) * (len(table.columns) - len(gone))])
        assert contents(site) == contents(twin)
        assert_fresh(site)


def test_a_store_in_use_is_left_alone(tmp_path):
    path = tmp_path / "s.db"
    with ev.Site.open(path, parse(R)) as site:
        with pytest.raises(ev.StoreError, match="is in use; stop what has it open"):
            ev.Site.migrate(path, parse(R + V))
        assert site.rows("r") == []
    ev.Site.migrate(path, parse(R + V))


def test_another_program_says_what_to_do(tmp_path):
    path = tmp_path / "s.db"
    ev.Site.open(path, parse(R)).close()
    with pytest.raises(ev.StoreError, match=r"everview migrate .*s\.db --program FILE"):
        ev.Site.open(path, parse(R + V))


def test_a_dry_run_does_nothing(tmp_path):
    path = tmp_path / "s.db"
    ev.Site.open(path, parse(R)).close()
    before = path.read_bytes()
    assert ev.Site.migrate(path, parse(R + V), dry_run=True).new_views == ("v",)
    assert path.read_bytes() == before
    ev.Site.open(path, parse(R)).close()
    with pytest.raises(ev.StoreError, match="nothing to migrate"):
        ev.Site.migrate(tmp_path / "none.db", parse(R))


def test_hosts_stay_what_they_were_and_more(tmp_path):
    path = tmp_path / "s.db"
    ev.Site.open(path, parse(R + V), hosts={"r"}).close()
    ev.Site.migrate(path, parse(R + V + "CREATE TABLE s (n BIGINT);"))
    with ev.Site.open(path) as site:
        assert site._store.engine.hosted() == ["r"]
    ev.Site.migrate(path, parse(R + "CREATE TABLE s (n BIGINT);"), hosts={"s"})
    with ev.Site.open(path) as site:
        assert site._store.engine.hosted() == ["r", "s"]
        site.insert("s", [(1,)])
    third = tmp_path / "t.db"
    ev.Site.open(third, parse(R + V), hosts={"v"}).close()
    assert ev.Site.migrate(third, parse(R + V), hosts={"r"}, dry_run=True).is_nothing
    with ev.Site.open(third) as site:
        assert site._store.engine.hosted() == ["v"]
    ev.Site.migrate(third, parse(R + V), hosts={"r"})  # the same program, and more of it
    with ev.Site.open(third) as site:
        assert site._store.engine.hosted() == ["r", "v"]
    other = tmp_path / "o.db"
    ev.Site.open(other, parse(R + V), hosts={"v"}).close()
    with pytest.raises(ev.StoreError, match="nothing would be left"):
        ev.Site.migrate(other, parse(R))


def test_who_reads_changes_of_what_changes_is_not_passed_over(tmp_path):
    path = tmp_path / "s.db"
    with ev.Site.open(path, parse(R + V)) as site:
        site.changes("v", "mailer")
        site.changes("r", "archive")
        site.insert("r", [(1, "x")])
    new = parse(R + "CREATE MATERIALIZED VIEW v AS SELECT b FROM r;")
    with pytest.raises(ev.StoreError, match="mailer reads the changes of v"):
        ev.Site.migrate(path, new)
    with ev.Site.open(path, parse(R + V)) as site:
        site.changes("v", "mailer").cancel()
    ev.Site.migrate(path, new)
    with ev.Site.open(path) as site:
        assert [change.row for change in site.changes("r", "archive").read(0, 10)] == [(1, "x")]


def test_datalog_too(tmp_path):
    text = ".decl e(a:number, b:number)\n.decl p(a:number, b:number)\n"
    text += "p(a,b) :- e(a,b).\np(a,c) :- p(a,b), e(b,c).\n"
    path, old = tmp_path / "s.db", parse(text, "datalog")
    with ev.Site.open(path, old) as site:
        site.insert("e", [(1, 2), (2, 3)])
    new = parse(text + ".decl n(a:number)\nn(a) :- p(a,_).\n", "datalog")
    evolution = ev.Site.migrate(path, new)
    assert (evolution.same_views, evolution.new_views) == (("p",), ("n",))
    with ev.Site.open(path) as site:
        assert site.rows("n") == [(1,), (2,)]


REFUSED = {
    "CREATE TABLE q (a BIGINT);": "r would be dropped with its rows.*leave it declared",
    "CREATE TABLE r (a BIGINT, b TEXT);": "r.a is BIGINT NOT NULL, and would become another",
    "CREATE TABLE r (a BIGINT NOT NULL, b BIGINT);": "r.b is TEXT, and would become another",
    "CREATE TABLE r (a BIGINT NOT NULL);": "r.b would be dropped",
    "CREATE TABLE r (b TEXT, a BIGINT NOT NULL);": "r.a would move: new columns stand behind",
    "CREATE TABLE r (a BIGINT NOT NULL, c TEXT, b TEXT);": "r.b would move",
    "CREATE TABLE r (a BIGINT NOT NULL, b TEXT, c TEXT NOT NULL);": "r.c would be NOT NULL.*without NOT NULL",
    "CREATE TABLE r (a BIGINT PRIMARY KEY, b TEXT);": "r is declared as set, and would be keyed; key a",
    "CREATE TABLE r (a BIGINT NOT NULL, b TEXT) WITH (semantics = 'bag');": "would be bag",
    "CREATE TABLE r (a BIGINT NOT NULL, b TEXT) WITH (owner = 'b');": "would be set; owner b",
    "CREATE TABLE q (a BIGINT); CREATE MATERIALIZED VIEW r AS SELECT a FROM q;": "r is a relation",
    R + "CREATE TABLE v (a BIGINT);": "v is a view, and would be a relation",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_safe_is_refused_with_what_to_do(text, tmp_path):
    path = tmp_path / "s.db"
    with ev.Site.open(path, parse(R + V)) as site:
        site.insert("r", [(1, "x")])
    with pytest.raises(ev.ProgramError, match=REFUSED[text]) as caught:
        ev.Site.migrate(path, parse(text))
    assert "\n" not in str(caught.value)
    with ev.Site.open(path, parse(R + V)) as site:
        assert site.rows("v") == [("x", 1)]


def test_windowed_relations_get_no_columns_and_others_may_come(tmp_path):
    def windowed(name, more=""):
        return (
            f"CREATE TABLE {name} (src TEXT NOT NULL, at TIMESTAMP NOT NULL{more}) "
            "WITH (semantics = 'bag', owner = 'src', event_time = 'at', sources = 's');"
        )

    old = parse(windowed("e"))
    assert "is windowed" in Evolution(old, parse(windowed("e", ", n BIGINT"))).refused[0]
    path = tmp_path / "s.db"
    with ev.Site.open(path, old, name="s") as site:
        site.insert("e", [("s", ev_time(1))])
        site.close_windows(ev_time(2))
    new = parse(windowed("f") + windowed("e"))
    ev.Site.migrate(path, new)
    with ev.Site.open(path, new) as site, ev.Site.open(":memory:", old, name="t") as behind:
        site.insert("f", [("s", ev_time(1))])
        site.close_windows(ev_time(3))
        behind.sync(site)
        assert behind.rows("everview_progress") == [("s", "e", ev_time(3))]


def ev_time(hour):
    return dt.datetime(2024, 1, 1, hour, tzinfo=dt.UTC)


KILLED = """
import os, signal, sys
import everview as ev
from everview.engines.sqlite import evolving
target, at = sys.argv[1], int(sys.argv[2])
found = evolving.Alone.__enter__
def enter(self):
    connection, seen = found(self), [0]
    def trace(_statement):
        seen[0] += 1
        if seen[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)
    connection.set_trace_callback(trace)
    return connection
evolving.Alone.__enter__ = enter
ev.Site.migrate(target, ev.Program.load(sys.argv[3]))
"""


def test_a_kill_in_the_middle_leaves_the_old_version_working(tmp_path):
    old = parse(R + V + "CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);")
    text = (
        "CREATE TABLE first (n BIGINT);CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT, w TEXT);"
        + R.replace("b TEXT", "b TEXT, c TEXT")
        + V.replace("count", "max").replace("(*)", "(a)")
    )
    (tmp_path / "new.sql").write_text(text)
    path = tmp_path / "s.db"
    with ev.Site.open(path, old, name="s") as site:
        site.insert("r", [(n, "x") for n in range(50)])
        site.insert("k", [(1, "one")])
        before = contents(site)
    killed = 0
    for at in (2, 12, 30, 48):
        child = subprocess.run(
            [sys.executable, "-c", KILLED, str(path), str(at), str(tmp_path / "new.sql")],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            check=False,
            capture_output=True,
        )
        assert child.returncode == -signal.SIGKILL, child.stderr
        killed += 1
        with ev.Site.open(path, old) as site:
            assert contents(site) == before
            assert_fresh(site)
        with closing(sqlite3.connect(path)) as plain:
            assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert killed == 4
    ev.Site.migrate(path, parse(text))
    with ev.Site.open(path, parse(text)) as site:
        assert site.rows("v") == [("x", 49)]
        assert site.rows("k") == [(1, "one", None)]

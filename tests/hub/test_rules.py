"""Datalog programs on a hub: reference, SQLite and Spark agree after every refresh.

Several programs are one hub's, under names of their own, so that a refresh carries the statements of all of
them. Most refreshes are the driver's, one of each hub is the executors', and halfway the hub is opened again.
"""

import functools
import itertools
import re
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest
from tests.hub.quick import quickly

from everview import Program, Site
from everview.engines.reference.evaluate import evaluate_views
from everview.errors import StoreError
from everview.hub import Hub
from everview.hub.costs import Choice, Costs
from everview.hub.files import open_files
from everview.hub.record import commit
from everview.testing.fuzz.datalog import RuleCase, check_rules, rule_case

PROGRAMS = 25
TOGETHER = 9
STATEMENTS = 4
_ATOM = re.compile(r"\b([a-z]\w*)\(")


def several(seeds, statements):
    """The cases of several programs as one."""
    cases = [rule_case(seed, statements=statements, histories=1) for seed in seeds]
    texts = [_ATOM.sub(rf"q{number}_\1(", case.program.text) for number, case in enumerate(cases)]
    history = tuple(
        tuple(
            replace(write, relation=f"q{number}_{write.relation}")
            for number, statement in enumerate(together)
            for write in statement
        )
        for together in zip(*(case.history for case in cases), strict=True)
    )
    return RuleCase(Program.parse("\n".join(texts), language="datalog"), history)


class HubStore:
    """A hub that refreshes after every statement, after some on executors, and is opened again once."""

    def __init__(self, folder, spark, program, executed=(1, 4), reopened=3):
        self._folder, self._spark, self._program = folder, spark, program
        self._hub = self._open()
        self._hub.refresh()
        self._executed, self._reopened = executed, reopened
        self._statement = itertools.count(1)
        self.jobs = []

    def _open(self):
        return quickly(Hub.open(self._folder, self._program, spark=self._spark))

    @contextmanager
    def together(self):
        number = next(self._statement)
        if number == self._reopened:
            self._hub.close()
            self._hub = self._open()
        yield
        store = self._hub._store
        usual = store.driver_rows
        store.driver_rows = 0 if number in self._executed else usual
        self.jobs.append(self._hub.refresh().jobs)
        store.driver_rows = usual

    def insert(self, relation, rows):
        self._hub.insert(relation, rows)

    def delete(self, relation, rows):
        self._hub.delete(relation, rows)

    def rows(self, name):
        return self._hub.rows(name)

    def faults(self):
        return []

    def close(self):
        self._hub.close()


@pytest.mark.spark
def test_reference_sqlite_and_spark_agree(spark, tmp_path):
    changed = 0
    for executed, first in enumerate(range(0, PROGRAMS, TOGETHER), start=1):
        case = several(range(first, min(first + TOGETHER, PROGRAMS)), STATEMENTS)
        opened = functools.partial(HubStore, tmp_path / str(first), spark, executed=(executed,))
        changed += len(check_rules(case, opened))
        check_rules(case)
    assert changed > 2 * PROGRAMS


WHY = Program.parse("""
    CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);
    CREATE TABLE closed (x BIGINT);
    CREATE MATERIALIZED VIEW reach AS
        WITH RECURSIVE t(x, y) AS (
            SELECT a, b FROM edge
            UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a
            WHERE NOT EXISTS (SELECT 1 FROM closed WHERE closed.x = e.a)
        ) SELECT y AS target, x AS source FROM t;
    CREATE MATERIALIZED VIEW odd AS
        WITH RECURSIVE
        t(x) AS (SELECT a FROM edge WHERE b = 1 UNION SELECT e.b FROM s JOIN edge e ON s.x = e.a),
        s(x) AS (SELECT e.b FROM t JOIN edge e ON t.x = e.a) SELECT x FROM s;
    CREATE MATERIALIZED VIEW far AS SELECT source, count(*) AS n FROM reach GROUP BY source;
    CREATE MATERIALIZED VIEW within AS
        WITH RECURSIVE
        t(x, y) AS (SELECT a, b FROM edge UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a),
        u(x) AS (SELECT x FROM t WHERE y = 5 UNION SELECT t.y FROM u JOIN t ON t.x = u.x)
        SELECT u.x, t.y, closed.x AS c, count(*) AS n
        FROM u JOIN t ON t.x = u.x LEFT JOIN closed ON closed.x = t.y
        WHERE EXISTS (SELECT 1 FROM t AS back WHERE back.y = u.x) GROUP BY u.x, t.y, closed.x;
""")


@pytest.mark.spark
def test_why_of_a_recursive_row_is_what_a_site_says(spark, tmp_path):
    edges = [(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (2, 4), (4, 5)]
    with Site.open(":memory:", WHY, name="hub") as site, quickly(Hub.open(tmp_path, WHY, spark=spark)) as hub:
        for store in (site, hub):
            store.insert("edge", edges)
            store.insert("closed", [(4,), (None,)])
        hub.refresh()
        for view in WHY.views:
            assert hub.rows(view) == site.rows(view) != []
            for row in site.rows(view):
                ours, theirs = hub.why(view, row), site.why(view, row)
                assert (str(ours), str(ours.proof)) == (str(theirs), str(theirs.proof))
        assert not hub.why("reach", (5, 0))


@pytest.mark.spark
def test_a_recursion_is_computed_anew_with_its_view(spark, tmp_path, monkeypatch):
    with quickly(Hub.open(tmp_path, WHY, spark=spark)) as hub:
        hub.insert("edge", [(0, 1), (1, 2), (2, 3), (3, 1), (4, 0)])
        hub.refresh()
        before = set(hub.rows("reach"))
        monkeypatch.setattr(Costs, "choice", lambda *_given: Choice(True, 2.0, 1.0))
        hub.insert("edge", [(2, 5), (5, 5)])
        hub.delete("edge", [(3, 1)])
        changes = hub.refresh().changes["reach"]
        monkeypatch.undo()
        after = set(hub.rows("reach"))
        assert (changes.appeared, changes.disappeared) == (len(after - before), len(before - after))
        for _ in range(2):
            wanted = evaluate_views(WHY, {name: hub.rows(name) for name in WHY.relations})
            for view, result in wanted.items():
                assert hub.rows(view) == sorted(result.rows) != []
            hub.delete("edge", [(4, 0)])  # what was computed anew is carried on
            hub.refresh()


def test_a_store_from_before_there_were_levels_gets_them_with_its_next_refresh(spark, tmp_path):
    program = Program.parse(
        "CREATE TABLE e (a BIGINT, b BIGINT); CREATE MATERIALIZED VIEW t AS WITH RECURSIVE r(x, y) AS "
        "(SELECT a, b FROM e UNION SELECT r.x, e.b FROM r JOIN e ON r.y = e.a) SELECT x, y FROM r"
    )
    with quickly(Hub.open(tmp_path / "hub", program, spark=spark)) as hub:
        hub.insert("e", [(0, 1), (1, 2), (2, 0), (2, 3)])
        hub.refresh()
        names = {kept.name for one in hub._store.catalog.circuit.operators.values() for kept in one.searched}
        record = hub._store.record
    # An older version has neither these tables nor the word that they are there.
    tables = {name: runs for name, runs in record.tables.items() if name not in names}
    assert len(tables) < len(record.tables)
    old = msgspec.structs.replace(
        record, number=record.number + 1, epoch=record.epoch + 1, tables=tables, levels=False, format=6
    )
    commit(open_files(tmp_path / "hub"), old)
    with quickly(Hub.open(tmp_path / "hub", program, spark=spark)) as hub:
        assert len(hub.rows("t")) == 12
        with pytest.raises(StoreError, match="refresh once"):
            hub.why("t", (0, 3))
        hub.delete("e", [(1, 2)])
        report = hub.refresh()
        assert sorted(hub.rows("t")) == [(0, 1), (2, 0), (2, 1), (2, 3)]
        assert (report.changes["t"].appeared, report.changes["t"].disappeared) == (0, 8)
        assert hub.why("t", (2, 1))
        hub.insert("e", [(1, 2)])
        hub.refresh()
        assert len(hub.rows("t")) == 12

"""The doctor finds what is wrong with a store, and touches nothing."""

import shutil
import sqlite3

import pytest

import everview as ev
from everview.doctor import examine
from everview.engines.sqlite import examining
from everview.engines.sqlite.names import FORMAT

PROGRAM = ev.Program.parse(
    "CREATE TABLE visit (id BIGINT, place TEXT);"
    "CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT, score DOUBLE);"
    "CREATE MATERIALIZED VIEW found AS SELECT place, count(*) AS n, avg(score) AS score"
    " FROM visit LEFT JOIN person USING (id) GROUP BY place;"
    "CREATE MATERIALIZED VIEW named AS SELECT DISTINCT name FROM person WHERE score / 0 IS NULL;"
)


@pytest.fixture
def path(tmp_path):
    with ev.Site.open(tmp_path / "a.db", PROGRAM, name="a") as site:
        site.insert("visit", [(1, "x"), (2, "y"), (1, "somewhere"), (3, None)])
        site.insert("person", [(1, "A", 1.5), (2, "B", None), (3, None, float("nan"))])
        site.delete("visit", [(2, "y")])
    return tmp_path / "a.db"


def found(path, level="error"):
    return [(one.about, one.text) for one in examine(path) if one.level == level]


def harmed(path, *statements):
    with sqlite3.connect(path) as file:
        for statement in statements:
            file.execute(statement)


def in_a_table_but_not_its_index(path):
    path.write_bytes(path.read_bytes().replace(b"somewhere", b"elsewhere", 1))


def test_a_healthy_store_is_fine_and_stays_as_it_is(path):
    before, incarnation = path.read_bytes(), ev.Site.open(path).replica.incarnation
    assert {one.level for one in examine(path)} == {"fine"}
    assert ("views", "2 are what their inputs make") in found(path, "fine")
    assert path.read_bytes() == before
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    assert found(copy, "warning") == [
        ("file", "the file is a copy of another: it takes a new incarnation when it is opened")
    ]
    assert copy.read_bytes() == before
    with ev.Site.open(path) as site:
        assert site.replica.incarnation == incarnation


def test_it_looks_at_a_store_in_use(path):
    with ev.Site.open(path) as site:
        site.insert("visit", [(9, "z")])
        assert found(path) == found(path, "warning") == []
        site.insert("visit", [(10, "z")])


def test_a_view_that_is_not_what_its_inputs_make(path):
    harmed(path, "DELETE FROM everview_r0 WHERE c1 = 'x'")
    ((about, text),) = found(path)
    assert about == "views"
    assert text.startswith(
        "found differs from what its inputs make; rows that do: 1, such as ('x', 1, 1.5) too much"
    )


def test_tables_that_cannot_be(path):
    harmed(path, "UPDATE everview_r0 SET version = 99", "UPDATE everview_r0 SET cl = 0 WHERE c1 = 'x'")
    told = dict(found(path))
    assert "rows of visit with version out of bounds: 4" in told["relations"]
    assert "rows of visit with cl out of bounds: 1" in told["relations"]


@pytest.mark.parametrize(
    ("harm", "about", "said"),
    [
        (lambda path: path.write_bytes(b"nothing" * 999), "file", "cannot be read"),
        (lambda path: harmed(path, "PRAGMA application_id = 7"), "file", "is no Everview store"),
        (lambda path: harmed(path, f"PRAGMA user_version = {FORMAT + 1}"), "file", "reads format"),
        (
            lambda path: harmed(path, "UPDATE everview_store SET program = 'SELECT'"),
            "program",
            "cannot be read",
        ),
        (in_a_table_but_not_its_index, "file", "SQLite finds damage"),
    ],
)
def test_files_that_cannot_be_opened(harm, about, said, path):
    harm(path)
    ((where, text),) = found(path)
    assert where == about
    assert said in text
    assert str(path) in text or "copy.db" not in text


def test_advice_is_given_once(path):
    path.write_bytes(b"nothing" * 999)
    (one,) = examine(path)
    assert one.text.endswith("the file is damaged, or no SQLite file")
    assert one.advice == f"restore it from a backup: `everview restore BACKUP {path} --replace`"


def test_no_backup_is_advised_where_it_does_not_help(path, monkeypatch):
    def locked(*_words, **_options):
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(examining.sqlite3, "connect", locked)
    (one,) = examine(path)
    assert (one.level, one.advice) == ("error", "")


def test_one_of_each_is_said_as_one(tmp_path):
    path = tmp_path / "a.db"
    program = ev.Program.parse("CREATE TABLE r (a BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a FROM r;")
    with ev.Site.open(path, program) as site, ev.Site.open(":memory:", program, name="b") as other:
        site.insert("r", [(1,)])
        told = dict(found(path, "fine"))
        assert told["relations"] == "1 looked through, 1 commit"
        assert told["views"] == "1 is what its inputs make"
        other.insert("r", [(2,)])
        site.sync(other)
    assert ("sites", "other stores whose rows were seen: 1") in found(path, "fine")


def test_what_is_known_of_others(path, tmp_path, monkeypatch):
    with ev.Site.open(path) as site, ev.Site.open(tmp_path / "b.db", PROGRAM, name="b") as other:
        site.sync(other)
        other.insert("visit", [(5, "z")])
        site.sync(other)
        site.delete("visit", [(1, "x")])
    assert dict(found(path, "fine"))["sites"] == "other stores whose rows were seen: 1"
    harmed(
        path,
        "UPDATE everview_store SET clock = clock + (3600000000 << 10)",
        "INSERT INTO everview_alarms VALUES ('person', '', 'abc', 1)",
        "INSERT INTO everview_refused VALUES (1, 'visit', '{}', 'not the owner''s', 'b', 'a', 1)",
    )
    monkeypatch.setattr(examining.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(10, 9, 1))
    warned = dict(found(path, "warning"))
    assert "s ahead of this machine's clock" in warned["clock"]
    assert "the disk has 0 MB left" in warned["disk"]
    assert warned["rows"] == "1 row was refused"
    assert dict(found(path))["person"].startswith("person differs from that of abc")

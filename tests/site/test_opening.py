"""Opening: what a file is, whose it is, and what is refused with advice."""

import os
import re
import sqlite3
import subprocess
import sys

import pytest
from tests.site.checks import assert_fresh

import everview as ev
from everview.engines.sqlite.names import FORMAT

A = "CREATE TABLE a (x BIGINT);"
B = "CREATE TABLE b (x BIGINT, y TEXT);"
V = "CREATE MATERIALIZED VIEW v AS SELECT a.x, b.y FROM a JOIN b ON a.x = b.x;"
W = "CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM v;"


@pytest.fixture
def path(tmp_path, open_site):
    """A store with a few rows."""
    path = tmp_path / "site.db"
    site = open_site(A + B + V + W, path, name="s0")
    site.insert("a", [(1,), (2,)])
    site.insert("b", [(1, "one"), (3, "three")])
    site.close()
    return path


def test_a_store_is_opened_again_with_or_without_its_program(path, open_site):
    for text in (None, A + B + V + W, f"-- a comment\n{A}\n\n{B}{V}  {W}".replace("BIGINT", "bigint")):
        site = open_site(text, path)
        assert site.rows("v") == [(1, "one")]
        assert site.rows("w") == [(1,)]
        assert site.name == "s0"
        assert_fresh(site)
        site.close()


def test_the_same_declarations_in_another_order_are_the_same_program(path, open_site):
    site = open_site(B + W + A + V, path)
    assert site.rows("a") == [(1,), (2,)]
    site.insert("b", [(2, "two")])
    assert site.rows("v") == [(1, "one"), (2, "two")]
    assert_fresh(site)


def test_another_program_is_refused(path, open_site):
    with pytest.raises(ev.StoreError, match="another program") as caught:
        open_site(A + B + V, path)
    assert caught.value.path == str(path)


def test_a_new_store_needs_a_program(tmp_path, open_site):
    with pytest.raises(ev.StoreError, match="program is needed"):
        open_site(None, tmp_path / "new.db")
    with pytest.raises(ev.StoreError, match="program is needed"):
        open_site(None, ":memory:")
    assert open_site(A, tmp_path / "new.db").rows("a") == []


def test_an_empty_file_becomes_a_store(tmp_path, open_site):
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(ev.StoreError, match="program is needed"):
        open_site(None, path)
    assert open_site(A, path).insert("a", [(1,)]) == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder, "folder"),
        (lambda folder: folder / "missing" / "site.db", "no folder"),
        (lambda folder: "", "empty path"),
    ],
)
def test_paths_that_are_no_files(tmp_path, open_site, make, words):
    with pytest.raises(ev.StoreError, match=words):
        open_site(A, make(tmp_path))


def test_a_file_of_something_else_is_refused_and_untouched(tmp_path, open_site):
    text, database = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database at all, but long enough to look like one " * 20)
    other = sqlite3.connect(database)
    other.execute("CREATE TABLE t (a)")
    other.close()
    for path in (text, database):
        before = path.read_bytes()
        with pytest.raises(ev.StoreError) as caught:
            open_site(A, path)
        assert caught.value.path == str(path)
        assert path.read_bytes() == before


def test_a_newer_format_is_refused(path, open_site):
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version = 999")
    raw.close()
    with pytest.raises(ev.StoreError, match="upgrade"):
        open_site(None, path)


def test_the_file_says_what_it_is(path):
    raw = sqlite3.connect(path)
    assert raw.execute("PRAGMA application_id").fetchone() == (0x45565657,)
    assert raw.execute("PRAGMA user_version").fetchone() == (FORMAT,)
    assert raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    text, digest = raw.execute("SELECT program, program_hash FROM everview_store").fetchone()
    raw.close()
    program = ev.Program.parse(text)
    assert program.hash == digest
    assert list(program.views) == ["v", "w"]


def test_every_commit_is_durable(path, open_site):
    """FULL: in WAL mode the log is synced at each commit; NORMAL would lose the last ones with the power."""
    site = open_site(None, path)
    assert site._store.writer.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert site._store.writer.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_name_holds_for_the_opening_that_gives_it(path, open_site):
    assert open_site(None, path, name="other").name == "other"
    assert open_site(None, path).name == "s0"
    assert open_site(None, path).status()["name"] == "s0"


def test_a_relative_path_stays_the_same_file(path, open_site, monkeypatch):
    monkeypatch.chdir(path.parent)
    site = open_site(None, path.name)
    monkeypatch.chdir("/")
    assert site.rows("w") == [(1,)]
    assert site.status()["bytes"] > 0


def test_context_manager_and_closed_site(path):
    with ev.Site.open(path) as site:
        watch = site.watch("v", print)
    site.close()
    watch.cancel()
    for use in (
        lambda: site.insert("a", [(9,)]),
        lambda: site.delete("a", [(9,)]),
        lambda: site.execute("DELETE FROM a"),
        lambda: site.query("SELECT x FROM a"),
        lambda: site.rows("a"),
        lambda: site.why("v", (1, "one")),
        lambda: site.explain("v"),
        site.status,
        lambda: site.watch("v", print),
        lambda: site.transaction().__enter__(),
    ):
        with pytest.raises(ev.StoreError, match="closed"):
            use()


def test_closing_leaves_one_file(path):
    assert [entry.name for entry in path.parent.iterdir()] == ["site.db"]


def test_several_processes_may_create_the_same_store(tmp_path):
    path = tmp_path / "race.db"
    script = (
        "import sys, everview as ev\n"
        "site = ev.Site.open(sys.argv[1], ev.Program.parse(sys.argv[2]))\n"
        "site.insert('a', [(int(sys.argv[3]),)])\n"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", script, str(path), A + B + V + W, str(number)])
        for number in range(4)
    ]
    assert [child.wait(60) for child in children] == [0] * 4
    with ev.Site.open(path) as site:
        assert site.rows("a") == [(n,) for n in range(4)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_opens_its_own(path, open_site):
    site = open_site(None, path)
    child = os.fork()
    if not child:
        try:
            site.rows("a")
        except ev.StoreError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert site.insert("a", [(5,)]) == 1


@pytest.mark.parametrize("broken", ["drop", "layout", "index"])
def test_views_are_made_anew_when_their_layout_is_another(path, open_site, broken):
    """As after an upgrade of this library that keeps the same program's views in other tables."""
    raw = sqlite3.connect(path)
    tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    made = {name for name in tables if re.fullmatch(r"everview_[a-qs-z]\d+", name)}  # for views
    assert made
    raw.execute("UPDATE everview_store SET layout = 'of another version'")
    if broken == "drop":
        for table in made:
            raw.execute(f"DROP TABLE {table}")
    if broken == "index":
        raw.execute("CREATE TABLE everview_old (c0)")
        raw.execute("CREATE INDEX everview_old_by_c0 ON everview_old (c0)")
    raw.commit()
    raw.close()
    site = open_site(None, path)
    assert site.rows("v") == [(1, "one")]
    site.insert("a", [(3,)])
    assert site.rows("w") == [(2,)]
    assert_fresh(site)
    raw = sqlite3.connect(path)
    assert not raw.execute("SELECT 1 FROM sqlite_master WHERE name = 'everview_old'").fetchall()
    assert len(raw.execute("SELECT * FROM v").fetchall()) == 2
    raw.close()

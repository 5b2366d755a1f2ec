"""A full disk, a read-only file: a StoreError with advice, nothing lost, and work goes on afterwards."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.site.checks import assert_fresh

import everview as ev

ROOT = Path(__file__).parent.parent.parent
PROGRAM = """
CREATE TABLE t (a BIGINT, b TEXT);
CREATE MATERIALIZED VIEW sums AS SELECT a % 10 AS k, count(*) AS n, max(b) AS b FROM t GROUP BY a % 10;
CREATE MATERIALIZED VIEW firsts AS SELECT a FROM t ORDER BY a LIMIT 3;
CREATE MATERIALIZED VIEW texts AS SELECT DISTINCT b FROM t;
"""


def rows(start, count=200):
    return [(n, f"{n} " * 40) for n in range(start, start + count)]


def fill(site, limit=500):
    """Insert until it fails; return what was committed."""
    for batch in range(limit):
        try:
            site.insert("t", rows(batch * 200))
        except ev.StoreError as error:
            return batch, error
    raise AssertionError("it never got full")


def check_full(site, make_room):
    """What must hold on a full disk, and when there is room again."""
    site.insert("t", rows(-200))
    batches, error = fill(site)
    assert error.path == str(site._store.path)
    assert "full" in str(error) or "no room" in str(error)
    assert "again" in str(error)
    held = rows(-200) + [row for batch in range(batches) for row in rows(batch * 200)]
    assert site.rows("t") == sorted(held)
    assert_fresh(site)
    with pytest.raises(ev.StoreError), site.transaction():
        site.insert("t", rows(10**6, 20_000))
    assert site.rows("t") == sorted(held)
    make_room()
    assert site.insert("t", rows(10**6)) == 200
    assert site.execute("DELETE FROM t WHERE a >= 0 AND a < 1000000") == batches * 200
    assert_fresh(site)


def test_a_file_that_may_not_grow(open_site, tmp_path):
    """SQLite's own bound on the pages of a file: SQLITE_FULL within a statement."""
    site = open_site(PROGRAM, tmp_path / "site.db")
    connection = site._store.writer.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 120}")
    check_full(site, lambda: connection.execute("PRAGMA max_page_count = 1000000"))


def test_a_full_disk_in_a_transaction_that_goes_on(open_site, tmp_path):
    """Whoever catches the error inside has a transaction that is whole, or one that says it is lost."""
    site = open_site(PROGRAM, tmp_path / "site.db")
    site.insert("t", rows(0))
    connection = site._store.writer.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages + 50}")
    told = []
    site.watch("sums", told.append)
    try:
        with site.transaction():
            site.insert("t", rows(200, 10))
            with pytest.raises(ev.StoreError, match="full"):
                site.insert("t", rows(1000, 5000))
            site.insert("t", rows(210, 10))
    except ev.StoreError as error:
        assert "undone" in str(error)  # noqa: PT017
        assert site.rows("t") == sorted(rows(0))
        assert told == []
    else:
        assert site.rows("t") == sorted(rows(0, 220))
        assert len(told) == 1
    connection.execute("PRAGMA max_page_count = 1000000")
    assert site.insert("t", rows(1000)) == 200
    assert_fresh(site)


def test_a_transaction_that_sqlite_undid_cannot_go_on(open_site, tmp_path):
    """SQLite may undo a whole transaction when the disk fails; later writes must not be let through alone."""
    site = open_site(PROGRAM, tmp_path / "site.db")
    with pytest.raises(ev.StoreError, match="undone"), site.transaction():  # noqa: PT012
        site.insert("t", [(1, "x")])
        site._store.writer.connection.execute("ROLLBACK")
        for use in (
            lambda: site.insert("t", [(2, "y")]),
            lambda: site.execute("DELETE FROM t"),
            lambda: site.rows("t"),
            lambda: site.query("SELECT a FROM t"),
        ):
            with pytest.raises(ev.StoreError, match="undone"):
                use()
    assert site.rows("t") == []
    assert site.insert("t", [(3, "z")]) == 1
    assert_fresh(site)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MB, where this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk(open_site, small_disk):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(2_500_000))
    site = open_site(PROGRAM, small_disk / "site.db")
    check_full(site, filler.unlink)
    site.close()


CHILD = """
import resource, sys
import everview as ev
from tests.site.test_bad_days import PROGRAM, check_full
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
site = ev.Site.open(sys.argv[1], ev.Program.parse(PROGRAM))
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
check_full(site, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))
site.close()
print("fine")
"""


def test_a_limit_on_the_size_of_files(tmp_path):
    """A write that the system cuts short: SQLite calls it an I/O error."""
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path / "site.db")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "fine", done.stderr
    with ev.Site.open(tmp_path / "site.db") as site:
        assert len(site.rows("t")) == 400
        assert_fresh(site)


READER = """
import os, sys
import everview as ev
ev.Site.open(":memory:", ev.Program.parse("CREATE TABLE t (a BIGINT)")).close()  # imports all there is
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    site = ev.Site.open(sys.argv[1])
except ev.StoreError as error:
    print("open:", error)
    sys.exit()
try:
    print("rows", len(site.rows("t")))
except ev.StoreError as error:
    print("rows:", error)
try:
    site.insert("t", [(1, "x")])
    print("written")
except ev.StoreError as error:
    print("insert:", error)
"""


@pytest.fixture
def open_folder():
    """A folder that other users can get to; pytest's own ones are closed to them."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_what_is_read_only(open_site, open_folder, what):
    """Somebody who may not write: a StoreError that says so, at the latest when they try."""
    folder = open_folder
    path = folder / "site.db"
    site = open_site(PROGRAM, path)
    site.insert("t", rows(0, 10))
    site.close()
    before = path.read_bytes()
    path.chmod(0o444 if what in ("file", "both") else 0o666)
    folder.chmod(0o555 if what in ("folder", "both") else 0o777)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=False, cwd=ROOT
    )
    folder.chmod(0o755)
    path.chmod(0o644)
    *_, last = done.stdout.strip().splitlines()
    assert last.startswith(("open:", "insert:")), done
    assert "read-only" in last or "opened and written to" in last
    assert path.read_bytes() == before
    again = open_site(None, path)
    assert len(again.rows("t")) == 10
    assert again.insert("t", [(99, "x")]) == 1
    assert os.access(path, os.W_OK)

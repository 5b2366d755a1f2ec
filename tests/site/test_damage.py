"""A damaged file says so: a StoreError, or the right rows; never another error, never a crash."""

import random
import sqlite3

import pytest

import everview as ev

PROGRAM = """
CREATE TABLE t (id BIGINT PRIMARY KEY, name TEXT, price DECIMAL(30,2), d DATE);
CREATE MATERIALIZED VIEW per_name AS SELECT name, count(*) AS n, sum(price) AS p FROM t GROUP BY name;
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a store of some pages, all in the one file."""
    import datetime as dt

    path = tmp_path_factory.mktemp("sound") / "site.db"
    with ev.Site.open(path, ev.Program.parse(PROGRAM)) as site:
        site.insert("t", [(n, f"name {n % 50}", n, dt.date(2024, 1, 1)) for n in range(300)])
    return path.read_bytes()


def use(path):
    """Open and read everything; return whether that was refused, as it should be if anything is."""
    try:
        with ev.Site.open(path) as site:
            for name in site.program.names():
                site.rows(name)
            site.insert("t", [{"id": -1, "name": "x"}])
    except ev.StoreError as error:
        assert error.path == str(path)  # noqa: PT017
        return str(error)
    return ""


def test_a_sound_file_is_not_called_damaged(sound, tmp_path):
    path = tmp_path / "site.db"
    path.write_bytes(sound)
    assert use(path) == ""


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9])
def test_a_truncated_file(sound, tmp_path, part):
    path = tmp_path / "site.db"
    path.write_bytes(sound[: int(len(sound) * part)])
    assert use(path)


def test_a_file_of_rubbish(sound, tmp_path):
    path = tmp_path / "site.db"
    path.write_bytes(b"SQLite format 3\0" + random.Random(1).randbytes(len(sound)))
    assert "damaged" in use(path)
    path.write_bytes(sound[:100] + bytes(len(sound) - 100))
    assert "damaged" in use(path)


def test_flipped_bytes(sound, tmp_path):
    """Many random places, pages and bytes: refused or read, and nothing else."""
    rng = random.Random(4)
    path = tmp_path / "site.db"
    refused = 0
    for _ in range(120):
        spoiled = bytearray(sound)
        start = rng.randrange(len(sound) - 64)
        size = rng.choice([1, 8, 64])
        for place in range(start, start + size):
            spoiled[place] ^= rng.randrange(1, 256)
        path.write_bytes(spoiled)
        refused += bool(use(path))
        for side in path.parent.glob("site.db-*"):
            side.unlink()
    assert refused > 5


def test_a_program_that_was_changed_in_the_file(sound, tmp_path):
    path = tmp_path / "site.db"
    for sql in (
        "UPDATE everview_store SET program = replace(program, 'count', 'sum')",
        "UPDATE everview_store SET program = 'CREATE TABLE t'",
        "DELETE FROM everview_store",
        "DROP TABLE everview_store",
        "DROP TABLE everview_r0",
        "PRAGMA user_version = 0",
        "PRAGMA user_version = -3",
    ):
        path.write_bytes(sound)
        raw = sqlite3.connect(path)
        raw.execute(sql)
        raw.commit()
        raw.close()
        assert "damaged" in use(path), sql

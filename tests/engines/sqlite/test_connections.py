"""Connections: how long the log of a file may get before it is written back."""

from __future__ import annotations

from pathlib import Path

import pytest

from everview.engines.sqlite.connections import connect, lengthen_log


@pytest.mark.parametrize(
    ("before", "after"), [(10, 50), (70, 70), (0, 0)], ids=["half the file", "longer already", "by hand"]
)
def test_the_log_of_a_large_file_grows_to_half_of_it(tmp_path: Path, before: int, after: int) -> None:
    connection = connect(str(tmp_path / "store.db"), lambda _what: None).connection
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (c)")
    connection.execute("INSERT INTO t VALUES (zeroblob(99 * 4092 - 500))")
    assert connection.execute("PRAGMA page_count").fetchone() == (100,)
    connection.execute(f"PRAGMA wal_autocheckpoint = {before}")
    lengthen_log(connection)
    assert connection.execute("PRAGMA wal_autocheckpoint").fetchone() == (after,)
    connection.close()

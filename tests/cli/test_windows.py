"""`everview close`: a source says that it is done."""

import json
from pathlib import Path

PROGRAM = """
    CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value BIGINT)
        WITH (owner = 'source', event_time = 'at', sources = 'drone-1');
    CREATE MATERIALIZED VIEW v AS
        SELECT tumble(at, INTERVAL '1 hour') AS w, count(*) AS n, window_final() AS final
        FROM reading GROUP BY 1;
"""


def test_a_source_closes_its_windows_and_what_comes_late_does_not_appear(run, tmp_path):
    program, store, rows = (str(tmp_path / name) for name in ("p.sql", "s.db", "rows.csv"))
    Path(program).write_text(PROGRAM)
    run("init", store, "--program", program, "--name", "drone-1")
    Path(rows).write_text("source,at,value\ndrone-1,2026-06-01T12:10:00Z,1\n")
    run("insert", store, "reading", rows)
    assert run("close", store, "2026-06-01T13:00:00Z") == "closed the windows of 1 relation\n"
    assert json.loads(run("close", store, "2026-06-01T13:00:00Z", "-r", "reading", "--json")) == {"closed": 0}
    Path(rows).write_text("source,at,value\ndrone-1,2026-06-01T12:20:00Z,2\n")
    assert run("insert", store, "reading", rows) == "1 row read, 0 appeared in reading\n"
    assert "true" in run("query", store, "SELECT final FROM v", "--json")


def test_what_is_no_moment_is_one_clear_line(run, fails, tmp_path):
    program, store = str(tmp_path / "p.sql"), str(tmp_path / "s.db")
    Path(program).write_text(PROGRAM)
    run("init", store, "--program", program, "--name", "drone-1")
    assert "'noon' is no moment" in fails("close", store, "noon")

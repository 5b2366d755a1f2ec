"""Windowed relations and event-time windows: what is read, and what is refused with a reason."""

import pytest

from everview import Program, ProgramError
from everview.language.printing import plan_text

READING = """
    CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value DOUBLE)
        WITH (owner = 'source', event_time = 'at', sources = 'drone-1, drone-2', lateness = '30 seconds');
"""
OTHER = """
    CREATE TABLE alarm (source TEXT NOT NULL, at TIMESTAMP NOT NULL, level BIGINT)
        WITH (owner = 'source', event_time = 'at', sources = 'drone-1');
    CREATE TABLE place (source TEXT, name TEXT);
"""
W = "tumble(at, INTERVAL '10 minutes')"


def parsed(query, tables=READING + OTHER):
    return Program.parse(f"{tables} CREATE MATERIALIZED VIEW v AS {query}")


def refused(query, tables=READING + OTHER):
    with pytest.raises(ProgramError) as raised:
        parsed(query, tables)
    error = raised.value
    assert error.line is not None
    return f"{error}"


def test_a_windowed_relation_knows_its_event_time_sources_and_lateness():
    program = Program.parse(READING)
    reading = program.relations["reading"]
    assert (reading.event_time, reading.sources) == ("at", ("drone-1", "drone-2"))
    assert reading.lateness == 30_000_000
    assert [*program.relations] == [
        "reading",
        "everview_closed",
        "everview_progress",
        "everview_participants",
        "everview_late_reading",
    ]
    assert program.relations["everview_progress"].local


def test_a_program_without_windowed_relations_has_none_of_their_companions():
    assert [*Program.parse("CREATE TABLE r (a BIGINT)").relations] == ["r"]


@pytest.mark.parametrize(
    ("columns", "options", "told"),
    [
        ("s TEXT NOT NULL, t TIMESTAMP NOT NULL", "event_time = 't', sources = 'a'", "needs owner"),
        ("s TEXT NOT NULL, t TIMESTAMP NOT NULL", "owner = 's', event_time = 't'", "needs sources"),
        ("s TEXT NOT NULL, t TIMESTAMP NOT NULL", "owner = 's', lateness = '1 day'", "needs event_time and"),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 'tt', sources = 'a'",
            "no column tt",
        ),
        ("s TEXT NOT NULL, t TIMESTAMP", "owner = 's', event_time = 't', sources = 'a'", "may be NULL"),
        ("s TEXT, t TIMESTAMP NOT NULL", "owner = 's', event_time = 't', sources = 'a'", "may be NULL"),
        ("s TEXT NOT NULL, t DATE NOT NULL", "owner = 's', event_time = 't', sources = 'a'", "t is DATE"),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a,,b'",
            "name sites",
        ),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a, a'",
            "each once",
        ),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a', lateness = '1 month'",
            "depends on the date",
        ),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a', lateness = '-1 day'",
            "not negative",
        ),
        (
            "s TEXT PRIMARY KEY, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a'",
            "none takes the place of another",
        ),
        (
            "s TEXT NOT NULL, t TIMESTAMP NOT NULL",
            "owner = 's', event_time = 't', sources = 'a', semantics = 'add_wins'",
            "none takes the place of another",
        ),
    ],
)
def test_a_windowed_relation_that_cannot_be_is_refused(columns, options, told):
    with pytest.raises(ProgramError, match=told) as raised:
        Program.parse(f"CREATE TABLE r ({columns}) WITH ({options})")
    assert raised.value.line == 1


def test_final_compares_the_windows_with_the_last_that_all_sources_have_closed():
    view = parsed(f"SELECT {W} AS w, count(*) AS n, window_final() AS final FROM reading GROUP BY {W}")
    text = plan_text(view.views["v"].plan)
    assert view.views["v"].reads == ("everview_progress", "reading")
    assert "CASE WHEN #0 = 2 THEN #1 ELSE NULL END" in text
    assert "tumble(add_microseconds(until, -600000000), 600000000)" in text


def test_joined_relations_need_all_their_sources():
    on = "tumble(r.at, INTERVAL '10 minutes') = tumble(a.at, INTERVAL '10 minutes')"
    view = parsed(
        "SELECT tumble(r.at, INTERVAL '10 minutes') AS w, count(*) AS n, window_final() AS final "
        f"FROM reading r LEFT JOIN alarm a ON {on} AND r.source = a.source GROUP BY 1"
    )
    text = plan_text(view.views["v"].plan)
    assert "#0 = 3" in text
    assert "relation IN ('alarm', 'reading')" in text


def test_a_hopping_window_lies_in_size_by_slide_windows():
    hop = "hop(at, INTERVAL '5 minutes', INTERVAL '15 minutes')"
    text = plan_text(parsed(f"SELECT {hop} AS w, count(*) AS n FROM reading GROUP BY {hop}").views["v"].plan)
    assert "Values 3 rows" in text


def test_tumble_needs_no_windowed_relation():
    parsed(f"SELECT {W} AS w, count(*) AS n FROM t GROUP BY 1", "CREATE TABLE t (at TIMESTAMP);")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT window_final() AS final FROM reading", "needs one window in GROUP BY"),
        ("SELECT count(*) AS n, window_final() AS final FROM reading", "needs one window in GROUP BY"),
        ("SELECT source, window_final() AS final FROM reading GROUP BY 1", "needs one window in GROUP BY"),
        (f"SELECT {W} AS w, window_final(1) AS final FROM reading GROUP BY 1", "takes no argument"),
        (f"SELECT {W} AS w FROM reading WHERE window_final() GROUP BY 1", "not allowed in WHERE"),
        (
            f"SELECT {W} AS w, count(*) FILTER (WHERE window_final()) AS n FROM reading GROUP BY 1",
            "not allowed",
        ),
        (f"SELECT DISTINCT {W} AS w, window_final() AS f FROM reading GROUP BY 1", "does not go with"),
        (
            f"SELECT {W} AS w, window_final() AS f FROM reading GROUP BY 1 ORDER BY 1 LIMIT 3",
            "does not go with",
        ),
        (
            f"SELECT {W} AS w, window_final() AS f, rank() OVER (ORDER BY {W}) AS r FROM reading GROUP BY 1",
            "OVER",
        ),
        (
            (
                "SELECT tumble(reading.at, INTERVAL '1 hour') AS w, window_final() AS f FROM reading "
                "JOIN place ON reading.source = place.source GROUP BY 1"
            ),
            "place is not a windowed relation",
        ),
        (
            (
                "SELECT tumble(r.at, INTERVAL '1 hour') AS w, window_final() AS f FROM reading r "
                "JOIN alarm a ON r.source = a.source GROUP BY 1"
            ),
            "rows of alarm from other windows",
        ),
        (
            (
                "SELECT tumble(r.at, INTERVAL '1 hour') AS w, window_final() AS f FROM reading r "
                "JOIN alarm a ON tumble(r.at, INTERVAL '2 hours') = tumble(a.at, INTERVAL '2 hours') "
                "GROUP BY 1"
            ),
            "rows of alarm from other windows",
        ),
        (
            (
                "SELECT tumble(r.at, INTERVAL '1 hour') AS w, window_final() AS f FROM reading r "
                "JOIN alarm a ON r.source = a.source LEFT JOIN reading q ON r.at = a.at AND q.at = a.at "
                "GROUP BY 1"
            ),
            "rows of alarm from other windows",
        ),
        (
            (
                "SELECT tumble(r.at, INTERVAL '1 hour') AS w, window_final() AS f FROM reading r "
                "FULL JOIN alarm a ON r.at = a.at GROUP BY 1"
            ),
            "goes with JOIN and LEFT JOIN",
        ),
        (
            f"SELECT {W} AS w, window_final() AS f FROM (SELECT * FROM reading WHERE value > 0) x GROUP BY 1",
            "not subqueries and views",
        ),
        (
            (
                f"SELECT {W} AS w, window_final() AS f FROM reading "
                "WHERE source IN (SELECT source FROM place) GROUP BY 1"
            ),
            "a subquery reads what the window does not hold",
        ),
        (
            (
                f"SELECT {W} AS w, max(value - (SELECT count(*) FROM alarm)) AS m, window_final() AS f "
                "FROM reading GROUP BY 1"
            ),
            "a subquery reads what the window does not hold",
        ),
        (
            (
                f"SELECT {W} AS w, (SELECT count(*) FROM alarm) AS m, window_final() AS f "
                "FROM reading GROUP BY 1"
            ),
            "a subquery reads what the window does not hold",
        ),
        (
            (
                f"SELECT {W} AS w, window_final() AS f FROM reading GROUP BY 1 "
                "HAVING count(*) > (SELECT count(*) FROM alarm)"
            ),
            "a subquery reads what the window does not hold",
        ),
        (
            (
                f"SELECT {W} AS w, tumble(at, INTERVAL '1 hour') AS x, window_final() AS f "
                "FROM reading GROUP BY 1, 2"
            ),
            "needs one window",
        ),
        ("SELECT tumble(at) AS w FROM reading", "takes a TIMESTAMP and an INTERVAL"),
        ("SELECT tumble(at, INTERVAL '0 seconds') AS w FROM reading", "longer than nothing"),
        ("SELECT tumble(value, INTERVAL '1 hour') AS w FROM reading", "tumble"),
        ("SELECT tumble(at, INTERVAL '1 month') AS w FROM reading", "depends on the date"),
        (
            "SELECT count(*) AS n FROM reading WHERE hop(at, INTERVAL '1 day', INTERVAL '2 days') > at",
            "in WHERE",
        ),
        (
            (
                "SELECT hop(at, INTERVAL '7 minutes', INTERVAL '15 minutes') AS w, count(*) AS n "
                "FROM reading GROUP BY 1"
            ),
            "whole multiple",
        ),
        (
            (
                "SELECT hop(at, INTERVAL '1 second', INTERVAL '1 hour') AS w, count(*) AS n "
                "FROM reading GROUP BY 1"
            ),
            "at most 100 times",
        ),
        (
            "SELECT hop(at, INTERVAL '0 s', INTERVAL '1 hour') AS w, count(*) AS n FROM reading GROUP BY 1",
            "longer than nothing",
        ),
        (
            "SELECT hop(at, INTERVAL '1 hour') AS w, count(*) AS n FROM reading GROUP BY 1",
            "slide and the size",
        ),
        (
            (
                "SELECT hop(at, INTERVAL '1 hour', INTERVAL '2 hours') AS w, "
                "hop(at, INTERVAL '1 hour', INTERVAL '3 hours') AS x, count(*) AS n "
                "FROM reading GROUP BY 1, 2"
            ),
            "one kind of hopping windows",
        ),
    ],
)
def test_what_could_let_a_final_row_change_is_refused(query, told):
    assert told in refused(query)

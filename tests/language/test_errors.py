"""Errors point at the offending word and say what to write instead."""

import re
from pathlib import Path

import pytest

from everview.errors import DataError, ProgramError
from everview.language.program import Program

FIXTURE = Path(__file__).parent / "fixtures" / "errors.txt"
PROGRAM = Program.parse(
    "CREATE TABLE t (a BIGINT, b TEXT NOT NULL, d DATE);"
    "CREATE TABLE k (id BIGINT PRIMARY KEY, x DOUBLE PRECISION);"
    "CREATE MATERIALIZED VIEW v AS SELECT a FROM t"
)


def cases():
    for block in FIXTURE.read_text(encoding="utf-8").strip().split("\n\n"):
        if not block.startswith("#"):
            text, _, expected = block.partition("\n----\n")
            yield pytest.param(text, expected, id=text.splitlines()[-1][:90])


@pytest.mark.parametrize(("text", "expected"), list(cases()))
def test_program_is_refused_with_place_and_hint(text, expected):
    with pytest.raises(ProgramError) as refused:
        Program.parse(text)
    error = refused.value
    assert str(error) == expected
    place = re.match(r"line (\d+), column (\d+): ", expected)
    assert place is not None, "every error in the fixture has a place"
    assert (error.line, error.column) == (int(place[1]), int(place[2]))
    # The place is the beginning of a word or sign, not the inside of one and not a blank.
    line = text.splitlines()[error.line - 1]
    assert not line[error.column - 1].isspace()
    inside = error.column > 1 and (line[error.column - 2] + line[error.column - 1]).isalnum()
    assert not inside


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT * FROM nowhere", DataError, "there is no relation or view nowhere"),
        ("INSERT INTO v VALUES (1)", DataError, "v is a view; write to the relations it is made from"),
        ("DELETE FROM nowhere", DataError, "there is no relation nowhere"),
        ("UPDATE v SET a = 1", DataError, "v is a view"),
        ("INSERT INTO t (a, c) VALUES (1, 2)", ProgramError, "line 1, column 19: t has no column c"),
        (
            "INSERT INTO t VALUES (1, 2, NULL)",
            ProgramError,
            "line 1, column 26: column b is TEXT, not BIGINT",
        ),
        (
            "INSERT INTO t VALUES (1, 'x', NULL, 4)",
            ProgramError,
            "line 1, column 23: t takes 3 values here, not 4",
        ),
        ("INSERT INTO t (a, a) VALUES (1, 2)", ProgramError, "a column is named twice"),
        ("INSERT INTO t SELECT id, x FROM k", ProgramError, "column b is TEXT, not DOUBLE"),
        (
            "INSERT INTO t VALUES (1, 'x', '2024-99-01')",
            ProgramError,
            "line 1, column 31: '2024-99-01' cannot be cast",
        ),
        (
            "INSERT INTO k VALUES (1, 2) ON CONFLICT DO NOTHING",
            ProgramError,
            "ON CONFLICT is not supported here",
        ),
        ("INSERT INTO k VALUES (1, 2) RETURNING id", ProgramError, "RETURNING is not supported here"),
        ("INSERT INTO k DEFAULT VALUES", ProgramError, "DEFAULT is not supported here"),
        ("UPDATE t SET c = 1", ProgramError, "line 1, column 14: t has no column c"),
        ("UPDATE t SET a = 1, a = 2", ProgramError, "column a is set twice"),
        ("UPDATE t SET (a, b) = (1, 'x')", ProgramError, "SET takes column = value"),
        ("UPDATE t SET a = 1.5", ProgramError, "column a is BIGINT, not DECIMAL(2,1)"),
        ("UPDATE t SET a = 1 FROM k", ProgramError, "FROM is not supported here"),
        ("DELETE FROM t USING k", ProgramError, "USING is not supported here"),
        ("DELETE FROM t WHERE a", ProgramError, "WHERE takes BOOLEAN, not BIGINT"),
        ("SELECT ? + :x", ProgramError, "? and :name are mixed"),
        ("SELECT 1; SELECT 2", ProgramError, "one statement at a time, not 2"),
        ("", ProgramError, "one statement at a time, not 0"),
        ("CREATE TABLE x (a INT)", ProgramError, "CREATE cannot be run"),
        ("EXPLAIN SELECT 1", ProgramError, "EXPLAIN … is not a statement that Everview knows"),
        ("SELECT $1", ProgramError, "$ or @ is not supported (write ? or :name)"),
        ("SELECT a FROM t LIMIT -1", ProgramError, "LIMIT takes a whole number or a parameter"),
    ],
)
def test_statement_is_refused(sql, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        PROGRAM.bind(sql)


def test_writes_do_not_go_to_query():
    with pytest.raises(ProgramError, match=r"writes go to execute\(\)"):
        PROGRAM.bind_query("DELETE FROM t")


def test_unreadable_file_and_unknown_language(tmp_path):
    with pytest.raises(ProgramError, match="cannot read"):
        Program.load(tmp_path / "missing.sql")
    with pytest.raises(ProgramError, match="programs are written in 'sql'"):
        Program.parse("", language="prolog")


def test_text_nested_too_deeply_is_refused():
    with pytest.raises(ProgramError, match="nested too deeply"):
        PROGRAM.bind("SELECT " + "(" * 3000 + "1" + ")" * 3000)
    with pytest.raises(ProgramError, match="nested too deeply"):
        Program.parse("CREATE MATERIALIZED VIEW v AS SELECT " + "+ ".join(["1"] * 3000) + " AS n")


def test_long_lists_are_not_deep():
    chain = " OR ".join(f"a = {n}" for n in range(2000))
    assert len(PROGRAM.bind(f"SELECT a FROM t WHERE {chain}").plan.input.predicate.arguments) == 2000
    rows = ", ".join(f"({n}, 'x', date '2024-01-01')" for n in range(3000))
    assert len(PROGRAM.bind(f"INSERT INTO t VALUES {rows}").plan.rows) == 3000


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("SELECT '😀ä', bet FROM t", 1, 14),
        ("SELECT a,\r\n\t bet\r\nFROM t", 2, 3),
        ("-- ü\n/* 😀 */ SELECT bet FROM t", 2, 16),
        ('SELECT "a", "A" FROM t', 1, 13),
        ("SELECT a FROM t;\n", None, None),
    ],
)
def test_places_count_characters(text, line, column):
    if line is None:
        PROGRAM.bind(text)
        return
    with pytest.raises(ProgramError) as refused:
        PROGRAM.bind(text)
    assert (refused.value.line, refused.value.column) == (line, column)

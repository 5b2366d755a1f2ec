import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import everview as ev

PEOPLE = '''\
id,name,born,height,paid,ok,pic,seen
1,Ann,1990-02-03,1.7,12.5,true,00ff,2026-01-31T12:30:00Z
2,"Żółć, ""Z""",,NaN,,f,,2026-01-31 12:30:00.25+02:00
3,"",2000-12-31,-inf,0,,"",
4,李雷,,,,,,
5,"two
lines",,,,,,
'''

AS_JSON = [
    {"id": 1, "name": "Ann", "born": "1990-02-03", "height": 1.7, "paid": "12.50", "ok": True,
     "pic": "00ff", "seen": "2026-01-31T12:30:00Z"},
    {"id": 2, "name": 'Żółć, "Z"', "born": None, "height": "NaN", "paid": None, "ok": False,
     "pic": None, "seen": "2026-01-31T10:30:00.250000Z"},
    {"id": 3, "name": "", "born": "2000-12-31", "height": "-Infinity", "paid": "0.00", "ok": None,
     "pic": "", "seen": None},
    {"id": 4, "name": "李雷", "born": None, "height": None, "paid": None, "ok": None, "pic": None,
     "seen": None},
    {"id": 5, "name": "two\nlines", "born": None, "height": None, "paid": None, "ok": None, "pic": None,
     "seen": None},
]  # fmt: skip

ALL = "SELECT * FROM person ORDER BY id"


def test_csv_is_typed_by_the_schema(run, store, rows):
    Path("people.csv").write_text(PEOPLE)
    assert run("insert", store, "person", "people.csv") == "5 rows read, 5 appeared in person\n"
    assert rows(ALL) == AS_JSON


@pytest.mark.parametrize("form", ["json", "csv"])
def test_what_query_prints_insert_reads(run, store, rows, form):
    Path("people.csv").write_text(PEOPLE)
    run("insert", store, "person", "people.csv")
    printed = run("query", store, ALL, f"--{form}")
    run("delete", store, "person", "people.csv")
    assert rows(ALL) == []
    run("insert", store, "person", "-", "--format", form, stdin=printed)
    assert rows(ALL) == AS_JSON
    assert run("query", store, ALL, f"--{form}") == printed


def test_one_column_of_nulls_and_empty_texts_round_trips(run, store, rows):
    run("insert", store, "tag", "-", "-f", "csv", stdin='word\n\n""\nNULL\n\n')
    words = [None, None, "", "NULL"]
    found = rows("SELECT word FROM tag ORDER BY word NULLS FIRST")
    assert [row["word"] for row in found] == words
    printed = run("query", store, "SELECT word FROM tag ORDER BY word", "--csv")
    assert printed == 'word\n""\nNULL\n\n\n'


def test_parquet(run, store, rows):
    import datetime as dt
    from decimal import Decimal

    seen = dt.datetime(2026, 1, 31, 10, 30, 0, 250000, tzinfo=dt.UTC)
    table = pa.table(
        {
            "seen": pa.array([seen, None], pa.timestamp("ns", tz="Europe/Oslo")),
            "id": pa.array([1, 2], pa.int32()),
            "name": pa.array(["Ann", "李雷"]).dictionary_encode(),
            "born": pa.array([dt.date(1990, 2, 3), None]),
            "paid": pa.array([Decimal("12.5"), None], pa.decimal128(10, 1)),
            "pic": pa.array([b"\x00\xff", None]),
        }
    )
    parquet.write_table(table, "people.parquet")
    assert run("insert", store, "person", "people.parquet") == "2 rows read, 2 appeared in person\n"
    first, second = rows(ALL)
    assert first["seen"] == "2026-01-31T10:30:00.250000Z"
    assert (first["paid"], first["pic"], first["born"]) == ("12.50", "00ff", "1990-02-03")
    assert second["name"] == "李雷"
    content = Path("people.parquet").read_bytes()
    printed = run("delete", store, "person", "-", "-f", "parquet", stdin=content)
    assert printed == "2 rows read, 2 disappeared from person\n"


def test_parquet_errors(store, fails, monkeypatch):
    parquet.write_table(pa.table({"id": [1, 2, 3], "name": ["a", "b", None]}), "p.parquet")
    said = fails("insert", store, "person", "p.parquet")
    assert said.startswith("p.parquet, row 3: person.name is NOT NULL")
    parquet.write_table(pa.table({"id": [1], "nam": ["a"]}), "p.parquet")
    assert "no column 'nam' (did you mean name?)" in fails("insert", store, "person", "p.parquet")
    nanoseconds = pa.array([1], pa.timestamp("ns"))
    parquet.write_table(pa.table({"id": [1], "name": ["a"], "seen": nanoseconds}), "p.parquet")
    assert "would lose data" in fails("insert", store, "person", "p.parquet")
    Path("p.parquet").write_bytes(b"PAR1 not really")
    assert "p.parquet cannot be read as Parquet" in fails("insert", store, "person", "p.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "everview[hub]" in fails("insert", store, "person", "p.parquet")


def test_columns_in_any_order_and_left_out(run, store, rows):
    run("insert", store, "visit", "-", "-f", "csv", stdin="place,id\nOslo,1\n")
    run("insert", store, "visit", "-", "-f", "csv", stdin="place\nRome\n")
    run("insert", store, "visit", "-", "-f", "json", stdin='{"id": 3}\n\n{}\n')
    found = rows("SELECT id, place FROM visit ORDER BY id, place")
    assert [tuple(row.values()) for row in found] == [(1, "Oslo"), (3, None), (None, "Rome"), (None, None)]


@pytest.mark.parametrize(
    "text", ["", "id,place\n", "id,place\r\n", "\n\n", "\ufeff", "\ufeffid,place\n"], ids=repr
)
def test_files_without_rows(run, store, text):
    Path("f.csv").write_text(text)
    assert run("insert", store, "visit", "f.csv") == "0 rows read, 0 appeared in visit\n"
    assert json.loads(run("status", store, "--json"))["commits"] == 0


def test_line_ends_blank_lines_and_a_byte_order_mark(run, store, rows):
    Path("f.csv").write_bytes('\ufeff\r\nid,place\r\n\r\n1,"a\r\nb"\r\n2,""\r\n'.encode())
    assert run("insert", store, "visit", "f.csv").startswith("2 rows read")
    assert rows("SELECT id, place FROM visit ORDER BY id") == [
        {"id": 1, "place": "a\r\nb"},
        {"id": 2, "place": ""},
    ]


def test_two_quotes_are_the_empty_text_only_alone(run, store, rows):
    lines = ["id,place", '1,"say ""hi"""', '2,"a,"",b"', '3,""', ',""', "4,", '6,""""', ""]
    text = "\n".join(lines)
    run("insert", store, "visit", "-", "-f", "csv", stdin=text)
    found = rows("SELECT id, place FROM visit ORDER BY id")
    assert [tuple(row.values()) for row in found] == [
        (1, 'say "hi"'), (2, 'a,",b'), (3, ""), (4, None), (6, '"'), (None, "")
    ]  # fmt: skip


def test_several_files_and_formats(run, store):
    Path("a.csv").write_text("id,place\n1,Oslo\n")
    Path("b.jsonl").write_text('{"id": 2, "place": "Rome"}\n{"id": 1, "place": "Oslo"}\n')
    told = json.loads(run("insert", store, "visit", "a.csv", "b.jsonl", "--json"))
    assert told == {"relation": "visit", "read": 3, "inserted": 2, "commits": 1}
    told = json.loads(run("delete", store, "visit", "b.jsonl", "--json"))
    assert told == {"relation": "visit", "read": 2, "deleted": 2, "commits": 1}


def test_views_follow(run, store):
    run("insert", store, "person", "-", "-f", "csv", stdin="id,name\n1,Ann\n")
    run("insert", store, "visit", "-", "-f", "csv", stdin="id,place\n1,Oslo\n")
    assert run("query", store, "SELECT * FROM seen") == "name  place\nAnn   Oslo\n"
    run("delete", store, "visit", "-", "-f", "csv", stdin="id,place\n1,Oslo\n")
    assert run("query", store, "SELECT * FROM seen") == "name  place\n"


def test_keyed_rows_are_deleted_by_key_in_the_keys_own_order(run, store, rows):
    run("insert", store, "link", "-", "-f", "csv", stdin="b,a\n1,2\n2,1\n")
    assert run("delete", store, "link", "-", "-f", "csv", stdin="a,b\n2,1\n").startswith("1 row read, 1 dis")
    assert rows("SELECT a, b FROM link") == [{"a": 1, "b": 2}]
    run("insert", store, "person", "-", "-f", "csv", stdin="id,name\n1,Ann\n2,Bob\n")
    run("delete", store, "person", "-", "-f", "csv", stdin="id\n1\n")
    run("delete", store, "person", "-", "-f", "json", stdin='{"id": 2, "name": "another"}')
    assert rows(ALL) == []


def test_a_bag_loses_one_copy_a_row(run, store, rows):
    run("insert", store, "tag", "-", "-f", "csv", stdin="word\na\na\na\n")
    run("delete", store, "tag", "-", "-f", "csv", stdin="word\na\n")
    assert rows("SELECT word FROM tag") == [{"word": "a"}] * 2


CSV_ERRORS = [
    ("id,name,height\n1,A,1\n2,B,tall\n", "f.csv, line 3: person.height cannot hold 'tall': expected DOUBLE"),
    ('id,name\n1,"a\n\nb"\n\n2,c\nx,d\n', "f.csv, line 7: person.id cannot hold 'x': expected BIGINT"),
    ("id,name\n1,A\n,B\n", "f.csv, line 3: person.id is NOT NULL"),
    ('id,name\n1,A\n"",B\n', "f.csv, line 3: person.id cannot hold '': expected BIGINT"),
    ("id,name\n1_0,A\n", "f.csv, line 2: person.id cannot hold '1_0': expected BIGINT"),
    ("id,name\n9223372036854775808,A\n", "f.csv, line 2: person.id cannot hold"),
    ("id,name,height\n1,A,1e400\n", "f.csv, line 2: person.height cannot hold '1e400': expected DOUBLE"),
    ("id,name,paid\n1,A,1.00\n2,B,1.234\n", "f.csv, line 3: person.paid cannot hold"),
    ("id,name,paid\n1,A,NaN\n", "f.csv, line 2: person.paid cannot hold 'NaN': expected DECIMAL(10,2)"),
    ("id,name,born\n1,A,2026-02-30\n", "f.csv, line 2: person.born cannot hold '2026-02-30': expected DATE"),
    ("id,name,born\n1,A,2026-02-03 12:00\n", "f.csv, line 2: person.born cannot hold '2026-02-03 12:00'"),
    ("id,name,seen\n1,A,noon\n", "f.csv, line 2: person.seen cannot hold 'noon': expected TIMESTAMP"),
    ("id,name,seen\n1,A,2026-01-31T12:30:00.1234567Z\n", "f.csv, line 2: person.seen cannot hold"),
    ("id,name,ok\n1,A,maybe\n", "f.csv, line 2: person.ok cannot hold 'maybe': expected BOOLEAN"),
    ("id,name,pic\n1,A,0\n", "f.csv, line 2: person.pic cannot hold '0': expected BLOB"),
    ("id,name\n1,A\n2\n", "f.csv, line 3: 1 field, but the header names 2 columns"),
    ("id,name\n1,A\n2,B,C\n", "f.csv, line 3: 3 fields, but the header names 2 columns"),
    ("id,nmae\n1,A\n", "f.csv, line 1: person has no column 'nmae' (did you mean name?)"),
    ("id,zzz\n1,A\n", "f.csv, line 1: person has no column 'zzz' (its columns are id, name, born"),
    ("id,name,id\n1,A,1\n", "f.csv, line 1: the header names id twice"),
    ('id,name\n1,"A"x\n', "f.csv, line 2: "),
    ('id,name\n1,"A\n', "f.csv, line 2: unexpected end of data"),
]


@pytest.mark.parametrize(("text", "said"), CSV_ERRORS, ids=[said[7:60] for _, said in CSV_ERRORS])
def test_a_bad_csv_row_is_named_and_nothing_is_applied(store, fails, rows, text, said):
    Path("f.csv").write_text(text)
    Path("good.csv").write_text("id,name\n77,Good\n")
    assert fails("insert", store, "person", "good.csv", "f.csv").startswith(said)
    assert rows(ALL) == []


JSON_ERRORS = [
    ('{"id": 1, "name": "A"}\n\n{"id": "2", "name": "B"}', "line 3: person.id cannot hold '2': expected BIG"),
    ('{"id": 1.5, "name": "A"}', "line 1: person.id cannot hold 1.5: expected BIGINT"),
    ('{"id": true, "name": "A"}', "line 1: person.id cannot hold True: expected BIGINT"),
    ('{"id": 1, "name": "A"}\n{"id": true, "name": "B"}', "line 2: person.id cannot hold True: expected BIG"),
    ('{"id": 1, "name": 2}', "line 1: person.name cannot hold 2: expected TEXT"),
    ('{"id": 1, "name": "A", "ok": 1}', "line 1: person.ok cannot hold 1: expected BOOLEAN"),
    ('{"id": 1, "name": "A", "height": "tall"}', "line 1: person.height cannot hold 'tall': expected DOUBLE"),
    ('{"id": 1, "name": "A", "paid": 1.234}', "line 1: person.paid cannot hold"),
    ('{"id": 1, "name": "A", "born": 5}', "line 1: person.born cannot hold 5: expected DATE"),
    ('{"id": 1, "name": "A", "height": NaN}', "line 1: this is not JSON: NaN"),
    ('{"id": 1, "name": "A"}\n{"id": 2', "line 2: this is not JSON: Expecting"),
    ('{"id": 1, "nam": "A"}', "line 1: person has no column 'nam' (did you mean name?)"),
    ('{"id": 1, "name": null}', "line 1: person.name is NOT NULL"),
    ('[{"id": 1, "name": "A"}]', "line 1: a row is a JSON object on a line of its own"),
    ('{"id": 1, "name": "\\ud800"}', "line 1: person.name cannot hold"),
]


@pytest.mark.parametrize(("text", "said"), JSON_ERRORS, ids=[said[:60] for _, said in JSON_ERRORS])
def test_a_bad_json_row_is_named_and_nothing_is_applied(store, fails, rows, text, said):
    line = fails("insert", store, "person", "-", "-f", "json", stdin=text)
    assert line.startswith(f"standard input, {said}")
    assert rows(ALL) == []


def test_json_numbers_are_exact_for_decimals_and_doubles(run, store, rows):
    line = '{"id": 1, "name": "A", "paid": 12345678.10, "height": 0.1}\n{"id": 2, "name": "B", "height": 3}\n'
    run("insert", store, "person", "-", "-f", "json", stdin=line)
    first, second = rows(ALL)
    assert (first["paid"], first["height"], second["height"]) == ("12345678.10", 0.1, 3.0)


def test_an_error_far_into_a_file_undoes_all_of_it(store, fails, rows):
    lines = [f"{i},p" for i in range(25_000)]
    lines[22_000] = "x,p"
    Path("f.csv").write_text("id,place\n" + "\n".join(lines))
    assert fails("insert", store, "visit", "f.csv").startswith("f.csv, line 22002: visit.id cannot hold 'x'")
    assert rows("SELECT count(*) AS n FROM visit") == [{"n": 0}]


def test_batches_commit_as_they_go(run, store, fails, rows):
    Path("f.csv").write_text("id,place\n" + "".join(f"{i},p\n" for i in range(7)) + "x,p\n")
    said = fails("insert", store, "visit", "f.csv", "--batch", 3)
    assert said.startswith("f.csv, line 9: visit.id cannot hold 'x'")
    assert said.endswith("; the 6 rows of earlier batches are in")
    assert rows("SELECT count(*) AS n FROM visit") == [{"n": 6}]
    Path("f.csv").write_text("id,place\n" + "".join(f"{i},p\n" for i in range(7)))
    told = json.loads(run("insert", store, "visit", "f.csv", "--batch", 3, "--json"))
    assert told == {"relation": "visit", "read": 7, "inserted": 1, "commits": 3}


def test_rows_of_another_owner_are_refused_by_line(run, fails, here):
    Path("p.sql").write_text("CREATE TABLE t (site TEXT, n BIGINT) WITH (owner = 'site')")
    run("init", "o.db", "-p", "p.sql", "-n", "me")
    said = fails("insert", "o.db", "t", "-", "-f", "csv", stdin="site,n\nme,1\nyou,2\n")
    assert said.startswith("standard input, line 3: t.site is 'you', and only that site writes")


def test_what_is_not_there(store, fails, here):
    Path("v.csv").write_text("id,place\n")
    Path("v.txt").write_text("id,place\n")
    Path("folder.csv").mkdir()
    Path("latin.csv").write_bytes(b"id,place\n1,\xe9\n")
    assert fails("insert", store, "visit", "no.csv") == (
        "no.csv does not exist; name a file of rows, or - for standard input"
    )
    assert fails("insert", store, "visit", "folder.csv") == (
        "folder.csv is no file; name a file of rows, or - for standard input"
    )
    assert fails("insert", store, "visit", "latin.csv") == "latin.csv is not UTF-8: it has a byte 0xe9"
    assert "say --format" in fails("insert", store, "visit", "v.txt")
    assert "say --format" in fails("insert", store, "visit", "-")
    assert fails("insert", store, "seen", "v.csv").startswith("seen is a view")
    assert "there are person, visit" in fails("insert", store, "nosuch", "v.csv")
    assert "everview init no.db" in fails("insert", "no.db", "visit", "v.csv")
    assert not Path("no.db").exists()


def test_not_a_store(fails, here):
    import sqlite3

    Path("v.csv").write_text("id,place\n")
    Path("text.db").write_text("hello, this is a text and no database at all" * 50)
    assert "text.db" in fails("insert", "text.db", "visit", "v.csv")
    other = sqlite3.connect("other.db")
    other.execute("CREATE TABLE visit (id, place)")
    other.close()
    assert "not an Everview store" in fails("insert", "other.db", "visit", "v.csv")


def test_the_library_reads_what_the_command_wrote(run, store, here):
    run("insert", store, "visit", "-", "-f", "csv", stdin="id,place\n1,Oslo\n")
    with ev.Site.open(here / store) as site:
        assert site.rows("visit") == [(1, "Oslo")]

"""What a newcomer can get wrong on the way through the tutorial: one line each, that says what to do."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tests.certificates import write_certificates
from typer.testing import CliRunner

from everview.cli.app import app

PROGRAM = """\
CREATE TABLE sectors (sector BIGINT PRIMARY KEY, team TEXT);
CREATE TABLE sightings (who TEXT NOT NULL, sector BIGINT NOT NULL, what TEXT NOT NULL);
CREATE MATERIALIZED VIEW alerts AS
    SELECT DISTINCT s.sector, s.what, t.team FROM sightings s JOIN sectors t ON s.sector = t.sector;
"""
OTHER = "CREATE TABLE sightings (who TEXT, sector BIGINT);\n"


@pytest.fixture
def rescue(here, run):
    """What Ann has after the first steps."""
    for name, text in {
        "rescue.sql": PROGRAM,
        "other.sql": OTHER,
        "typo.sql": PROGRAM.replace("DISTINCT", "DISTINC"),
        "name.sql": PROGRAM.replace("FROM sightings", "FROM sighting"),
        "seen.csv": "who,sector,what\nann,7,tent\n",
        "column.csv": "who,secter,what\nann,7,tent\n",
        "value.csv": "who,sector,what\nann,seven,tent\n",
        "null.csv": "who,sector,what\nann,7,\n",
    }.items():
        Path(name).write_text(text)
    run("init", "ann.db", "-p", "rescue.sql", "--name", "ann")
    return here


def misunderstood(*words):
    """A command that is not understood: status 1, one line, and where its help is."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 1, done.output
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert line.endswith(" --help`)")
    return line.removeprefix("error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check rescu.sql", "rescu.sql does not exist; did you mean rescue.sql?"),
        (
            "init new.db -p nowhere/x.sql",
            (
                "nowhere/x.sql does not exist, nor does the folder nowhere; "
                "name the file with the program's CREATE statements"
            ),
        ),
        (
            "init new.db -p typo.sql",
            (
                "typo.sql, line 4, column 21: syntax error at '.': this is not expected here "
                "(did you mean DISTINCT instead of DISTINC?)"
            ),
        ),
        (
            "init new.db -p name.sql",
            "name.sql, line 4, column 51: there is no relation or view sighting (did you mean sightings?)",
        ),
        (
            "init ann.db -p rescue.sql",
            "ann.db exists already; choose another path, or remove it first",
        ),
        (
            "init new.db -p rescue.sql --hosts alarms",
            "there is no relation or view alarms; there are sectors, sightings, alerts",
        ),
        ("insert ann.db sightings sen.csv", "sen.csv does not exist; did you mean seen.csv?"),
        (
            "insert ann.db sightings column.csv",
            "column.csv, line 1: sightings has no column 'secter' (did you mean sector?)",
        ),
        (
            "insert ann.db sightings value.csv",
            (
                "value.csv, line 2: sightings.sector cannot hold 'seven': "
                "expected BIGINT (a whole number of 64 bits)"
            ),
        ),
        ("insert ann.db sighting seen.csv", "there is no relation sighting; there are sectors, sightings"),
        (
            "insert ann.db alerts seen.csv",
            "alerts is a view; write to the relations it is made from",
        ),
        (
            "insert ann.db sightings rescue.sql",
            "the extension of rescue.sql is unknown: say --format csv, json or parquet",
        ),
        (
            "insert anne.db sightings seen.csv",
            "anne.db does not exist; `everview init anne.db --program FILE` creates a store",
        ),
        (
            "why ann.db alerts sector=7",
            "a row of alerts needs every column; say what=… team=… too, or what= for NULL",
        ),
        (
            "why ann.db alerts sector=7 what=tent tem=alpha",
            "alerts has no column tem; its columns are sector, what, team",
        ),
        (
            "why ann.db alerts 7",
            "'7' is no COLUMN=VALUE; alerts has the columns sector, what, team",
        ),
        (
            "explain ann.db alarms",
            "there is no relation or view alarms; there are sectors, sightings, alerts",
        ),
        (
            "sync --store ann.db nowhere/stick",
            "cannot sync with nowhere/stick: there is no folder nowhere to sync in; is it mounted?",
        ),
        ("sync --store ann.db rescue.sql", "rescue.sql is a file; sites share a folder"),
        (
            "sync --store ann.db 127.0.0.1:8440",
            (
                "127.0.0.1:8440 is an address without its beginning: say http://127.0.0.1:8440 or "
                "https://127.0.0.1:8440, or ./127.0.0.1:8440 for a folder"
            ),
        ),
        (
            "sync --store ann.db ftp://127.0.0.1:8440",
            "ftp://127.0.0.1:8440: peers are reached by http:// or https://, or in a folder",
        ),
        (
            "sync --store ann.db http://127.0.0.1:1",
            (
                "cannot sync with http://127.0.0.1:1: no connection ([Errno 111] Connection refused); "
                "see that it runs, at the address and port that it printed; try again later"
            ),
        ),
        (
            "serve --store ann.db --insecure --host 0.0.0.0",
            (
                "without tokens only this machine may reach the server, and 0.0.0.0 is reached by others; "
                "listen on 127.0.0.1, or give tokens"
            ),
        ),
        (
            "serve --store ann.db --tokens tokens.toml",
            (
                "cannot read the tokens in tokens.toml: No such file or directory; "
                "`everview token --site NAME >> tokens.toml` puts one there"
            ),
        ),
        (
            "backup ann.db seen.csv",
            "seen.csv exists already; choose another path, or remove it first",
        ),
        (
            "restore seen.csv new.db",
            (
                "seen.csv cannot be read: file is not a database: "
                "the file is damaged, or no backup of Everview's; name another"
            ),
        ),
        (
            "backup ann.db nowhere/monday.db",
            (
                "nowhere/monday.db cannot be written: unable to open database file: "
                "the path is not a file that can be opened and written to"
            ),
        ),
        (
            "restore monday.db new.db",
            "monday.db is no file; name one that `everview backup` has made",
        ),
    ],
)
def test_what_goes_wrong_is_one_line_with_a_next_step(rescue, fails, words, said):
    assert fails(*words.split()) == said


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "SELEC * FROM alerts",
            (
                "line 1, column 9: syntax error at 'FROM': something is missing after it "
                "(did you mean SELECT instead of SELEC?)"
            ),
        ),
        (
            "SELECT * FORM alerts",
            (
                "line 1, column 15: syntax error at 'alerts': this is not expected here "
                "(did you mean FROM instead of FORM?)"
            ),
        ),
        (
            "SELECT * FROM alert",
            "line 1, column 15: there is no relation or view alert (did you mean alerts?)",
        ),
        ("SELECT teem FROM alerts", "line 1, column 8: there is no column teem (did you mean team?)"),
        (
            "SELECT * FROM alerts WHERE team = 'alpha",
            "line 1, column 35: syntax error: what ' begins here is never closed",
        ),
        ("DELETE FROM sightings", "a query is a SELECT; `everview insert` and `everview delete` write"),
    ],
)
def test_a_typo_in_sql(rescue, fails, sql, said):
    assert fails("query", "ann.db", sql) == said


def test_check_points_at_the_mistake(rescue):
    done = CliRunner().invoke(app, ["check", "typo.sql"])
    assert done.exit_code == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout.splitlines()[1:] == [
        "  |                     ^",
        "hint: did you mean DISTINCT instead of DISTINC?",
    ]


def test_a_store_of_another_program(rescue, fails):
    told = fails("serve", "--store", "ann.db", "-p", "other.sql", "--insecure", "--port", "0")
    assert told.startswith("ann.db was made for another program (hash ")
    assert told.endswith("`everview migrate ann.db --program FILE` brings it over to a changed one")


def test_a_file_that_is_no_store(rescue, fails):
    told = fails("query", "rescue.sql", "SELECT 1 AS a")
    assert told == "rescue.sql is a text; name the file that `everview init` has made"
    Path("photo.db").write_bytes(b"\xff\xd8\xff\xe0" * 2000)
    told = fails("query", "photo.db", "SELECT 1 AS a")
    assert told.startswith("photo.db cannot be opened: ")
    assert "no SQLite file" in told
    with sqlite3.connect("music.db") as other:
        other.execute("CREATE TABLE songs (title TEXT)")
    other.close()
    assert fails("query", "music.db", "SELECT 1 AS a") == (
        "music.db is a database of something else, not an Everview store; choose another path"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("qery ann.db x", "No such command 'qery'. Did you mean 'query'? (see `everview --help`)"),
        ("query ann.db", "Missing argument 'SQL' (see `everview query --help`)"),
        (
            "insert ann.db sightings x.csv --fromat csv",
            "No such option: --fromat (Possible options: --format) (see",
        ),
        ("sync ann.db", "Missing option '--store' (see `everview sync --help`)"),
        ("serve --store ann.db", "Invalid value: say either --tokens FILE or --insecure (see"),
        (
            "serve --store ann.db --insecure --port 84400",
            "Invalid value for '--port': 84400 is not in the range",
        ),
        (
            "hub --store h -p rescue.sql --insecure --master spark",
            "Invalid value: 'spark' is no master of Spark's",
        ),
    ],
)
def test_a_command_that_is_not_understood_is_one_line_too(rescue, words, said):
    assert misunderstood(*words.split()).startswith(said)


@contextmanager
def serving(*words):
    """A server in a process of its own, and the address that it prints."""
    server = subprocess.Popen(
        [sys.executable, "-m", "everview", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stdout.readline()
        assert line.startswith("serving "), server.stderr.read()
        yield line.split()[-1]
    finally:
        server.kill()
        server.communicate()


def token(site):
    made = CliRunner().invoke(app, ["token", "--site", site])
    with Path("tokens.toml").open("a") as file:
        file.write(made.stdout)
    return made.stderr.split()[-1]


def test_tokens_that_do_not_fit(rescue, run, fails, monkeypatch):
    run("init", "bob.db", "-p", "rescue.sql", "--name", "bob")
    anns, bobs = token("ann"), token("bob")
    monkeypatch.delenv("EVERVIEW_TOKEN", raising=False)
    with serving(
        "--store", "base.db", "-p", "rescue.sql", "--name", "base", "--tokens", "tokens.toml"
    ) as base:

        def told(store="bob.db"):
            line = fails("sync", "--store", store, base)
            assert line.startswith(f"cannot sync with {base}: ")
            return line.removeprefix(f"cannot sync with {base}: ")

        assert told() == (
            "it needs a token; put the one that `everview token` printed for this site into EVERVIEW_TOKEN"
        )
        monkeypatch.setenv("EVERVIEW_TOKEN", "guessed-by-somebody")
        assert told() == (
            "it does not know this token; `everview token --site NAME` makes one, "
            "whose entry belongs into the file that the server reads"
        )
        monkeypatch.setenv("EVERVIEW_TOKEN", anns)
        assert told() == (
            "the token belongs to 'ann', and the site says it is 'bob'; "
            "use a token of 'bob', or a store made with --name ann"
        )
        monkeypatch.setenv("EVERVIEW_TOKEN", bobs)
        run("sync", "--store", "bob.db", base)


def test_a_peer_with_another_program(rescue, run, fails):
    run("init", "other.db", "-p", "other.sql", "--name", "other")
    with serving("--store", "ann.db", "--insecure") as ann:
        told = fails("sync", "--store", "other.db", ann)
        wrong = "the peer runs another program, in which sightings is another relation: set ("
        assert told.startswith(f"cannot sync with {ann}: {wrong}")
        assert told.endswith(
            "sites share what both declare alike, or one of them with more nullable columns at its end"
        )


def test_peers_that_do_not_fit(rescue, run, fails, here):
    run("init", "other.db", "-p", "other.sql", "--name", "other")
    with serving("--store", "ann.db", "--insecure") as ann:
        assert fails("sync", "--store", "ann.db", ann).startswith(
            f"cannot sync with {ann}: the peer is this same site, or a copy of its file that is open at the "
            "same time; name another"
        )
        port = ann.rpartition(":")[2]
        assert fails("sync", "--store", "other.db", f"https://127.0.0.1:{port}") == (
            f"cannot sync with https://127.0.0.1:{port}: it does not speak TLS; "
            "say http:// if it was started without --cert"
        )
        for command in (["serve", "--store", "other.db"], ["hub", "--store", "h", "-p", "rescue.sql"]):
            assert fails(*command, "--insecure", "--port", port) == (
                f"cannot listen on 127.0.0.1, port {port}: Address already in use; "
                "--port chooses another, and 0 any that is free"
            )
    write_certificates(here)
    with serving("--store", "ann.db", "--insecure", "--cert", "cert.pem", "--key", "key.pem") as ann:
        plain = ann.replace("https", "http")
        told = fails("sync", "--store", "other.db", plain)
        assert told.startswith(f"cannot sync with {plain}: the connection broke (")
        assert told.endswith("; if it was started with --cert, say https://; try again later")
        assert "its certificate is not trusted" in fails("sync", "--store", "other.db", ann)


class Silent(BaseHTTPRequestHandler):
    """Knows no method, and keeps no log."""

    def log_message(self, *_):
        pass


def test_a_port_where_something_else_answers(rescue, fails):
    other = HTTPServer(("127.0.0.1", 0), Silent)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{other.server_port}"
        assert fails("sync", "--store", "ann.db", address) == (
            f"cannot sync with {address}: it answers with status 501, as no Everview server does; "
            "see that the port is right"
        )
    finally:
        other.shutdown()
        other.server_close()


def test_a_hub_that_cannot_be_opened_is_told_before_spark_starts(rescue, fails, monkeypatch):
    from everview.hub.files import open_files
    from everview.hub.lease import Lock
    from everview.hub.record import Record, commit

    monkeypatch.setattr("everview.cli.hubs._session", None)
    words = ["hub", "--store", "h", "-p", "rescue.sql", "--insecure", "--port", "0"]
    files = open_files("h")
    held = Lock.take(files)
    told = fails(*words)
    assert "/h is open already, by process " in told
    assert told.endswith(": close that hub, or end its process")
    held.give_up()
    commit(files, Record(refresh=0, number=1, program="another", ids=True))
    assert fails(*words) == (
        "this store was made by another program: open it with that one, or bring it over to a changed one "
        "with `everview migrate FOLDER --program FILE`"
    )


def test_a_name_that_the_peer_has(rescue, run):
    """Names are labels, so it is no error; but it is said, and so is what to do."""
    run("init", "two.db", "-p", "rescue.sql", "--name", "ann")
    run("insert", "ann.db", "sightings", "seen.csv")
    with serving("--store", "ann.db", "--insecure") as address:
        done = CliRunner().invoke(app, ["sync", "--store", "two.db", address])
    assert done.exit_code == 0
    assert done.stderr.startswith(f"warning: {address} is called ann, too")
    assert "by `everview restore --name`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_site_that_was_put_back_is_not_told_of_itself(rescue, run):
    run("init", "bob.db", "-p", "rescue.sql", "--name", "bob")
    for store in ("ann.db", "bob.db", "ann.db", "bob.db"):
        run("sync", "--store", store, "stick")
    run("backup", "ann.db", "monday.db")
    run("restore", "monday.db", "ann.db", "--replace")
    for store in ("ann.db", "bob.db", "ann.db", "bob.db", "ann.db"):
        run("sync", "--store", store, "stick")  # which asserts that nothing is on standard error

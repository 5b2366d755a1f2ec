"""The command as a process of its own: exit status, streams, and how long it takes to answer."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from everview.cli import meter, patient, reading
from everview.cli.app import app
from everview.cli.chunks import Chunk
from everview.cli.sources import Format, Source

COMMANDS = [
    "init",
    "check",
    "insert",
    "delete",
    "close",
    "query",
    "why",
    "explain",
    "status",
    "conflicts",
    "sync",
    "serve",
]
COMMANDS += [
    "hub",
    "token",
    "backup",
    "restore",
    "migrate",
    "drop",
    "doctor",
    "repair",
    "give-up",
    "package",
    "simulate",
    "console",
    "bench",
]
DOCUMENT = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text()


def everview(*words, stdin=None, **env):
    return subprocess.run(
        [sys.executable, "-m", "everview", *words],
        input=stdin,
        capture_output=True,
        check=False,
        env={**os.environ, **env},
        timeout=60,
    )


def test_a_whole_story(here):
    assert everview("init", "s.db", "--program", "p.sql").returncode == 0
    rows = "id,place\n1,Żółć\n2,Oslo\n".encode()
    done = everview("insert", "s.db", "visit", "-", "--format", "csv", stdin=rows)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"2 rows read, 2 appeared in visit\n", b"")
    # A pipe from one store into another, in a locale that knows ASCII only.
    printed = everview("query", "s.db", "SELECT * FROM visit", "--json", PYTHONIOENCODING="ascii")
    everview("init", "t.db", "--program", "p.sql")
    everview("insert", "t.db", "visit", "-", "-f", "json", stdin=printed.stdout)
    again = everview("query", "t.db", "SELECT place FROM visit ORDER BY id", "--csv")
    assert again.stdout.decode() == "place\nŻółć\nOslo\n"
    why = everview("why", "t.db", "visit", "id=1", "place=Żółć", PYTHONIOENCODING="ascii")
    assert why.stdout.decode() == "t1\n  t1  visit(id=1, place=Żółć)\n"


def test_errors_are_one_line_and_status_1(here):
    done = everview("query", "no.db", "SELECT 1")
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"error: no.db does not exist")
    assert done.stderr.count(b"\n") == 1


def test_debug_shows_the_traceback(here):
    done = everview("query", "no.db", "SELECT 1", "--debug")
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"StoreError" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--nosuch"],
        ["nosuch"],
        ["query"],
        ["insert", "s.db", "visit", "f.csv", "--batch", "0"],
        ["insert", "s.db", "visit", "f.csv", "--format", "xml"],
    ],
    ids=" ".join,
)
def test_a_command_that_is_not_understood_is_one_line(here, words):
    done = everview(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")
    assert done.stderr.endswith(b" --help`)\n")
    assert done.stderr.count(b"\n") == 1


def test_without_a_word_there_is_help(here):
    done = everview()
    assert done.returncode == 0
    assert b"Usage: everview" in done.stdout


def test_a_defect_is_one_line_too(monkeypatch, here, fails):
    def broken(_path):
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr(reading, "open_store", broken)
    assert (
        fails("status", "s.db")
        == "this is a defect of Everview (ZeroDivisionError: oh no); --debug shows where"
    )


def test_an_interrupted_load_changes_nothing(here, store, rows):
    """The rows come through a pipe that stays open, so the transaction is open when the signal comes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "everview", "insert", store, "visit", "-", "-f", "csv"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that runs the tests in the background lets them ignore this signal, and so would the child.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - there is one thread
    )
    process.stdin.write(b"id,place\n" + b"1,Oslo\n" * 30_000)  # more than a chunk and a pipe hold: it reads
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert process.stderr.read() == b"interrupted\n"
    process.stdin.close()
    process.stderr.close()
    assert rows("SELECT * FROM visit") == []


def test_a_reader_that_stops_early_is_no_error_message(here):
    everview("init", "s.db", "--program", "p.sql")
    rows = "id,place\n" + "".join(f"{i},{'x' * 50}\n" for i in range(5000))
    everview("insert", "s.db", "visit", "-", "-f", "csv", stdin=rows.encode())
    process = subprocess.Popen(
        [sys.executable, "-m", "everview", "query", "s.db", "SELECT * FROM visit", "--csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"id,place\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=60)


def test_help_answers_without_loading_the_engine():
    script = (
        "import sys\nfrom everview.cli import main\nsys.argv = ['everview', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('sqlglot', 'sqlite3', 'pyarrow')\n"
        "       or m.startswith(('everview.engines', 'everview.language'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_is_quick():
    """CPU seconds, since the machine may be busy; the best of some runs."""

    def seconds():
        before = os.times()
        everview("--help")
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(5)) < 0.3


def test_version():
    from importlib.metadata import version

    assert CliRunner().invoke(app, ["--version"]).stdout == f"everview {version('everview')}\n"


def parameters():
    group = typer.main.get_command(app)
    for name, command in group.commands.items():
        for parameter in command.params:
            yield name, parameter


def test_the_commands_are_these():
    assert list(typer.main.get_command(app).commands) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_an_example_and_is_documented(command):
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert done.exit_code == 0
    assert f"Example: everview {command} " in done.stdout
    section = DOCUMENT.split(f"### `everview {command} ")[1].split("\n### ")[0].split("\n## ")[0]
    for name, parameter in parameters():
        if name == command and parameter.param_type_name == "option":
            where = DOCUMENT if "--debug" in parameter.opts or "--help" in parameter.opts else section
            for option in parameter.opts:
                assert f"`{option}" in where or f"{option} " in where, option
        elif name == command:
            assert parameter.make_metavar(None).strip("{}").rstrip(".…") in section.splitlines()[0]


def test_the_document_names_no_option_that_is_not_there():
    import re

    known = {option for _, parameter in parameters() for option in parameter.opts}
    known |= {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    known |= {"--help", "--py-files"}  # the last one is spark-submit's
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", DOCUMENT)) <= known


def test_the_documents_story_is_true(here):
    """The console lines of the document give what it shows, below each of them."""
    story = DOCUMENT.split("```console\n")[1].split("```")[0]
    program = "CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT NOT NULL, born DATE);\n"
    program += "CREATE TABLE visit (id BIGINT, place TEXT);\n"
    program += "CREATE MATERIALIZED VIEW seen AS "
    program += "SELECT DISTINCT name, place FROM person JOIN visit ON person.id = visit.id;\n"
    Path("rescue.sql").write_text(program)
    Path("people.csv").write_text("id,name,born\n1,Ann,1990-02-03\n2,Bob,\n")
    visits = [{"id": 1, "place": "Oslo"}, {"id": 1, "place": "Rome"}, {"id": 2, "place": "Oslo"}]
    Path("visits.jsonl").write_text("".join(json.dumps(visit) + "\n" for visit in visits))
    told = ""
    for line in [line for line in story.splitlines() if line.startswith("$ ")]:
        import shlex

        told += line + "\n" + CliRunner().invoke(app, shlex.split(line)[2:]).output
    assert told == story


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


def test_a_bar_appears_after_a_second_and_only_on_a_terminal(monkeypatch, here, capsys):
    clock = Clock()
    Path("f.csv").write_text("x" * 100)
    source = Source("f.csv", Format.CSV)
    chunk = Chunk([(1,)] * 1000, str, 50)
    for terminal in (True, False):
        monkeypatch.setattr(patient, "time", clock)
        clock.now = 0.0
        with meter.Meter([source], "inserting") as bar:
            monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
            clock.now = 0.9
            bar(source, chunk)
            assert bar._bar is None
            clock.now = 1.1
            bar(source, chunk)
            assert (bar._bar is not None) == terminal
            if bar._bar is not None:
                (task,) = bar._bar[0].tasks
                assert (task.completed, task.total, task.fields["rows"]) == (50, 100, "2,000")
    capsys.readouterr()


def test_loading_is_not_slow_a_row(run, store):
    """50,000 rows in CPU seconds that leave a factor of ten: a slow path a cell would take it."""
    Path("f.csv").write_text("id,place\n" + "".join(f"{i},p{i}\n" for i in range(50_000)))
    start = time.process_time()
    run("insert", store, "visit", "f.csv")
    assert time.process_time() - start < 5

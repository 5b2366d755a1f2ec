"""`everview sync`, `serve` and `token`, as processes that talk over loopback."""

import json
import logging
import signal
import sys
import time
import tomllib

import pytest
from tests.certificates import write_certificates
from tests.cli.processes import process, serving
from typer.testing import CliRunner

import everview as ev
from everview.cli import page_meter, patient, sync_meter
from everview.cli.app import app
from everview.cli.peers import print_replication
from everview.replication.transports.report import Progress
from everview.server.tokens import hash_of


def places(run, store):
    text = run("query", store, "SELECT place FROM visit ORDER BY place", "--csv")
    return text.split()[1:]


def test_a_folder(stores, run):
    first = run("sync", "--store", "a.db", "stick")
    assert first.startswith("stick: 0 rows received (0 B), 1 row sent (")
    second = json.loads(run("sync", "--store", "b.db", "stick", "--json"))
    assert second["peer"] == "stick"
    assert second["received_rows"] == 1
    assert set(second) == {
        "peer",
        "sent_rows",
        "received_rows",
        "sent_bytes",
        "received_bytes",
        "skipped_files",
        "skipped",
        "denied",
    }
    run("sync", "--store", "a.db", "stick")
    assert places(run, "a.db") == places(run, "b.db") == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_and_its_clean_end(stores, run, number):
    with serving("--store", "a.db", "--insecure") as (server, address):
        assert address.startswith("http://127.0.0.1:")
        assert server.stdout.readline() == f"console at {address}/console/\n"
        assert "1 row received" in run("sync", "--store", "b.db", address)
        server.send_signal(number)
        assert server.wait(20) == 0
        assert server.stderr.read() == ""
    assert places(run, "a.db") == places(run, "b.db") == ["a", "b"]


def test_a_server_creates_its_store(stores, run):
    with serving("--store", "new.db", "--program", "p.sql", "--name", "new", "--insecure") as (_, address):
        run("sync", "--store", "b.db", address)
    assert places(run, "new.db") == ["b"]
    assert json.loads(run("status", "new.db", "--json"))["name"] == "new"


def test_tokens_and_tls(stores, run, fails, here, monkeypatch):
    write_certificates(here)
    made = CliRunner().invoke(app, ["token", "--site", "b", "--read", "visit", "--write", "visit"])
    (here / "tokens.toml").write_text(made.stdout)
    (entry,) = tomllib.loads(made.stdout)["token"]
    token = made.stderr.split()[-1]
    assert entry == {"site": "b", "sha256": hash_of(token), "read": ["visit"], "write": ["visit"]}
    words = ["--store", "a.db", "--tokens", "tokens.toml", "--cert", "cert.pem", "--key", "key.pem"]
    with serving(*words) as (_, address):
        assert address.startswith("https://127.0.0.1:")
        assert "is not trusted" in fails("sync", "--store", "b.db", address)
        assert "needs a token" in fails("sync", "--store", "b.db", address, "--ca", "ca.pem")
        monkeypatch.setenv("EVERVIEW_TOKEN", token)
        run("sync", "--store", "b.db", address, "--ca", "ca.pem")
    assert places(run, "a.db") == places(run, "b.db") == ["a", "b"]


def test_token_as_json(run):
    found = json.loads(run("token", "--site", "x", "--json"))
    assert (found["site"], found["read"], found["write"]) == ("x", "*", "*")
    assert hash_of(found["token"]) == found["sha256"]


def test_serving_needs_tokens_or_a_word(stores, here):
    def said(*words):
        done = CliRunner().invoke(app, ["serve", "--store", "a.db", *words])
        return done.exit_code, " ".join(done.stderr.replace("│", " ").split())

    for words in ([], ["--insecure", "--tokens", "t.toml"]):
        status, text = said(*words)
        assert status == 1
        assert "either --tokens FILE or --insecure" in text
    status, text = said("--insecure", "--host", "0.0.0.0")
    assert status == 1
    assert "without tokens only this machine" in text
    (here / "t.toml").write_text("[[token]]\nsite = 'b'\ntoken = 'long-enough-token'\nread = ['nosuch']\n")
    assert "'nosuch', which is not in the program" in said("--tokens", "t.toml")[1]
    assert said("--insecure", "--every", "soon")[0] == 1


def test_one_peer_that_fails_keeps_no_other_from_being_synced_with(stores, run, here):
    run("sync", "--store", "a.db", "stick")
    words = ["sync", "--store", "b.db", "no/such/stick", "stick", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert "is it mounted" in done.stderr
    bad, good = map(json.loads, done.stdout.splitlines())
    assert bad["retry"] is True
    assert good["received_rows"] == 1


def eventually(condition, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.05)


def test_staying_in_sync(stores, run):
    """b is served; a is served and stays in sync with it; c watches a."""
    run("init", "c.db", "--program", "p.sql", "--name", "c")
    with (
        serving("--store", "b.db", "--insecure") as (_, b),
        serving("--store", "a.db", "--insecure", "--peer", b, "--every", "60s") as (_, a),
        process("sync", "--store", "c.db", a, "--watch", "--every", "60s", "--json") as watcher,
    ):
        eventually(lambda: places(run, "c.db") == ["a", "b"])
        run(
            "insert", "b.db", "visit", "-", "-f", "csv", stdin="id,place\n2,new\n"
        )  # another process than the server
        eventually(lambda: places(run, "c.db") == ["a", "b", "new"])
        run("insert", "c.db", "visit", "-", "-f", "csv", stdin="id,place\n3,back\n")
        eventually(lambda: places(run, "b.db") == ["a", "b", "back", "new"])
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(30) == 0
        reports = [json.loads(line) for line in watcher.stdout]
    assert sum(report["received_rows"] for report in reports) >= 3
    assert sum(report["sent_rows"] for report in reports) >= 1


def test_watching_a_peer_that_is_not_there_says_so_once(stores):
    with process("sync", "--store", "a.db", "http://127.0.0.1:9", "--watch", "--every", "100ms") as watcher:
        line = watcher.stderr.readline()
        assert line.startswith("trying again: cannot sync with http://127.0.0.1:9: no connection")
        assert not line.rstrip().endswith("later")
        time.sleep(1)
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(30) == 0
        assert watcher.stderr.read() == ""


def test_files_that_were_skipped_are_named(stores, run, here):
    run("sync", "--store", "a.db", "stick")
    (snapshot,) = [one for one in (here / "stick").rglob("*") if one.is_file() and one.stat().st_size > 100]
    snapshot.write_bytes(snapshot.read_bytes()[:-9])
    assert f"; 1 file skipped: {snapshot.parent.name}/{snapshot.name}\n" in run(
        "sync", "--store", "b.db", "stick"
    )


def test_status_tells_of_others(stores, run):
    alone = run("status", "a.db")
    assert not any(line.startswith(("peer", "site", "alarm", "refused")) for line in alone.splitlines())
    with serving("--store", "a.db", "--insecure") as (_, address):
        run("sync", "--store", "b.db", address)
    run("delete", "b.db", "visit", "-", "-f", "csv", stdin="id,place\n1,a\n")
    found = run("status", "b.db")
    assert f"peer      {address}  a (" in found
    (site,) = [line for line in found.splitlines() if line.startswith("site")]
    assert site.startswith("site      a (")
    assert site.endswith("  synced just now  rows seen of visit")
    assert "removals kept:      visit 1\n" in found
    state = json.loads(run("status", "b.db", "--json"))["replication"]
    (peer,), (site,) = state["peers"], state["sites"]
    assert (peer["address"], peer["name"], peer["synced_us"]) == (address, "a", site["synced_us"])
    assert (site["name"], site["names"], site["seen"]) == ("a", ["visit"], {"visit": 1})
    assert site["incarnation"] == peer["incarnation"] != state["incarnation"]
    assert state["alarms"] == state["refused"] == []


def test_status_tells_of_refused_rows(capsys):
    one = {
        "stream": "seen",
        "row": '{"site": "b"}',
        "why": "b has not written it",
        "writer": "a",
        "refused_by": "b",
    }
    nothing = {"peers": [], "sites": [], "alarms": [], "removals": {}, "staged_pages": 0}
    print_replication({**nothing, "refused": [one] * 5})
    line, *_, last = capsys.readouterr().out.splitlines()
    assert line == 'refused:            seen {"site": "b"}, written by a: b has not written it (refused by b)'
    assert last.endswith("and 2 more rows")


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_appears_after_a_second_and_only_on_a_terminal(monkeypatch, terminal):
    clock = Clock()
    monkeypatch.setattr(patient, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with sync_meter.SyncMeter() as meter:
        clock.now = 0.9
        meter(Progress("p", "receiving", 0, 10, 0, 100))
        assert meter._bar is None
        clock.now = 1.1
        meter(Progress("p", "receiving", 0, 20, 0, 200))
        assert (meter._bar is not None) == terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_of_a_copy_does_so_too(monkeypatch, terminal):
    clock = Clock()
    monkeypatch.setattr(patient, "time", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with page_meter.PageMeter("copying s.db") as meter:
        clock.now = 0.9
        meter(1, 10)
        assert meter._bar is None
        clock.now = 1.1
        meter(5, 10)
        assert (meter._bar is not None) == terminal
        if meter._bar is not None:
            (task,) = meter._bar[0].tasks
            assert (task.description, task.completed, task.total) == ("copying s.db", 5, 10)


def test_a_warning_is_said_once(stores, monkeypatch):
    """An exchange comes across the same thing page by page."""
    synced = ev.Site.sync

    def warned(site, *arguments, **options):
        for relation in ("visit", "visit", "person"):
            logging.getLogger("everview.replication").warning("rows of %s\nare ahead", relation)
        return synced(site, *arguments, **options)

    monkeypatch.setattr(ev.Site, "sync", warned)
    done = CliRunner().invoke(app, ["sync", "--store", "a.db", "stick", "other"])
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        "warning: rows of visit are ahead",
        "warning: rows of person are ahead",
    ]
    assert logging.getLogger("everview").handlers == []

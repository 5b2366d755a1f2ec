"""`everview token`, what servers say of tokens, and whom `sync` and `serve` send them to."""

import json
import signal
import time
import tomllib

import pytest
from tests.cli.processes import process, serving
from typer.testing import CliRunner

from everview.cli.app import app
from everview.language.program import Program
from everview.replication.rights.rights import ALL
from everview.server import Listener
from everview.site import Site


def made(*words):
    done = CliRunner().invoke(app, ["token", "--site", "sensor", *words])
    return done.exit_code, done.stdout, " ".join(done.stderr.split())


@pytest.mark.parametrize("by_program", [False, True])
@pytest.mark.parametrize(("read", "write"), [("per_place", "visit"), ("visit", "per_place")])
def test_a_relation_or_view_may_be_written_without_being_read(stores, by_program, read, write):
    words = ["--program", "p.sql"] if by_program else []
    status, out, _ = made("--read", read, "--write", write, *words)
    assert status == 0
    (entry,) = tomllib.loads(out)["token"]
    assert (entry["read"], entry["write"]) == ([read], [write])


def test_who_may_read_some_writes_nothing_unless_said():
    for words, read, write in (
        (["--read", "v"], ["v"], []),
        (["--write", "r"], "*", ["r"]),
        ([], "*", "*"),
        (["--metrics"], [], []),
        (["--metrics", "--read", "*"], "*", []),
    ):
        status, out, _ = made(*words)
        (entry,) = tomllib.loads(out)["token"]
        assert (status, entry["read"], entry["write"]) == (0, read, write)


def test_a_token_is_checked_by_the_program(stores):
    status, out, said = made("--read", "nosuch", "--program", "p.sql")
    assert (status, out) == (1, "")
    assert said == "error: nosuch is not in the program; it has link, per_place, person, seen, tag, visit"
    status, out, said = made("--read", "per_place", "--program", "p.sql")
    assert status == 0
    assert tomllib.loads(out)["token"][0]["read"] == ["per_place"]
    assert said.startswith(
        "warning: sensor may read per_place, but not visit, which per_place needs. A view stays empty "
        "without what it needs, unless that comes from elsewhere; "
        'to give it here, say read = ["per_place", "visit"]'
    )


def test_a_server_says_what_is_wrong_with_its_tokens(stores, here):
    def started(read, write):
        (here / "t.toml").write_text(
            f"[[token]]\nsite = 'b'\ntoken = 'long-enough-token'\nread = {read}\nwrite = {write}\n"
        )
        return process("serve", "--store", "a.db", "--port", "0", "--tokens", "t.toml")

    with started(["per_place"], ["nosuch"]) as server:
        assert server.wait(20) == 1
        assert "t.toml, token 1" in (said := server.stderr.read())
        assert "nosuch" in said
    with started(["per_place"], []) as server:
        assert server.stdout.readline().startswith("serving a.db")
        warned = server.stderr.readline()
        assert "t.toml, token 1: b may read per_place, but not visit, which per_place needs" in warned


# Whoever syncs is told what it was not allowed.


@pytest.fixture
def screen(stores, run, here):
    """A store that hosts a view, and a token to read nothing else."""
    run("init", "screen.db", "--program", "p.sql", "--name", "screen", "--hosts", "per_place")
    made = CliRunner().invoke(app, ["token", "--site", "screen", "--read", "per_place", "--json"])
    entry = json.loads(made.stdout)
    (here / "t.toml").write_text(
        f"[[token]]\nsite = 'screen'\nsha256 = '{entry['sha256']}'\nread = ['per_place']\n"
    )
    return entry["token"]


def test_a_sync_says_what_was_not_allowed(screen, run, monkeypatch):
    monkeypatch.setenv("EVERVIEW_TOKEN", screen)
    with serving("--store", "a.db", "--tokens", "t.toml") as (_, address):
        for _ in range(2):
            said = run("sync", "--store", "screen.db", address).splitlines()
            assert said[1:] == [f"not allowed at {address}: reading visit (needed for per_place)"]
            assert said[0].startswith(f"{address}: 0 rows received (")
        found = json.loads(run("sync", "--store", "screen.db", address, "--json"))
        assert found["denied"] == [{"right": "read", "name": "visit", "needed_for": ["per_place"]}]


def test_who_stays_in_sync_is_told_once(screen, run, here):
    words = ["--watch", "--every", "50ms"]
    with (
        serving("--store", "a.db", "--tokens", "t.toml") as (_, address),
        process("sync", "--store", "screen.db", address, *words, env={"EVERVIEW_TOKEN": screen}) as watcher,
    ):
        assert watcher.stdout.readline().startswith(f"{address}: 0 rows received (")
        line = f"not allowed at {address}: reading visit (needed for per_place)\n"
        assert watcher.stdout.readline() == line
        text = (here / "t.toml").read_text()
        (here / "t.toml").write_text(text.replace("['per_place']", "['per_place', 'visit']"))
        assert watcher.stdout.readline().startswith(f"{address}: 1 row received (")
        # That sync may have begun before the right was given, and been denied it at first: so one more, which
        # brings another row and has the right from its beginning.
        run("insert", "a.db", "visit", "-", "-f", "csv", stdin="id,place\n2,b\n")
        lines = [watcher.stdout.readline()]
        if lines[0].startswith(f"{address}: 0 rows received ("):
            lines.append(watcher.stdout.readline())
        assert lines[-1].startswith(f"{address}: 1 row received (")
        (here / "t.toml").write_text(text)
        assert watcher.stdout.readline().startswith(f"{address}: 0 rows received (")
        assert watcher.stdout.readline() == line
        watcher.send_signal(signal.SIGTERM)
        assert watcher.wait(30) == 0
        assert watcher.stdout.read() == ""


# A token goes to the server that made it, and to no other.


class Seen:
    """Lets everybody in, and remembers what came."""

    def __init__(self):
        self.tokens = set()

    def rights(self, authorization):
        self.tokens.add((authorization or "").removeprefix("Bearer "))
        return ALL


@pytest.fixture
def two(stores):
    """Two servers in this process, their addresses, and which tokens each was sent."""
    with Site.open("a.db") as one, Site.open(":memory:", Program.load("p.sql"), name="c") as other:
        first, second = Seen(), Seen()
        with Listener(one.replica, first) as here, Listener(other.replica, second) as there:
            yield here.address, there.address, first.tokens, second.tokens


def test_one_token_is_for_one_server(two, run, fails, monkeypatch):
    first, second, sent_first, sent_second = two
    monkeypatch.setenv("EVERVIEW_TOKEN", "the-token-of-the-first")
    said = fails("sync", "--store", "b.db", first, "stick", second)
    assert said == (
        f"EVERVIEW_TOKEN is one token, and would be sent to {first}, {second}; write a file of lines "
        "with an address and the token that it made, and name it by --peer-tokens"
    )
    assert said.count("the-token") == 0
    assert sent_first == sent_second == set()
    run("sync", "--store", "b.db", first, f"{first}/", "stick")
    assert sent_first == {"the-token-of-the-first"}
    monkeypatch.delenv("EVERVIEW_TOKEN")
    run("sync", "--store", "b.db", first, second)
    assert sent_second == {""}


def test_each_server_is_sent_its_own_token(two, run, here, monkeypatch):
    first, second, sent_first, sent_second = two
    monkeypatch.setenv("EVERVIEW_TOKEN", "not-sent-at-all")
    (here / "peers").write_text(f"# whose is whose\n\n{first}/ token-1\n  {second.upper()}\ttoken-2\n")
    run("sync", "--store", "b.db", first, second, "stick", "--peer-tokens", "peers")
    assert (sent_first, sent_second) == ({"token-1"}, {"token-2"})
    (here / "peers").write_text(f"{first} token-1\n{second}\n")
    run("sync", "--store", "b.db", second, "--peer-tokens", "peers")
    assert sent_second == {"token-2", ""}


def test_a_server_that_stays_in_sync_with_two_sends_each_its_own(two, here):
    first, second, sent_first, sent_second = two
    words = ["serve", "--store", "b.db", "--port", "0", "--insecure", "--peer", first, "--peer", second]
    with process(*words, env={"EVERVIEW_TOKEN": "one-for-both"}) as server:
        assert server.wait(20) == 1
        assert "EVERVIEW_TOKEN is one token" in server.stderr.read()
    assert sent_first == sent_second == set()
    (here / "peers").write_text(f"{first} token-1\n{second} token-2\n")
    with process(*words, "--peer-tokens", "peers", "--every", "100ms") as server:
        assert server.stdout.readline().startswith("serving b.db")
        until = time.monotonic() + 20
        while not (sent_first and sent_second):
            assert time.monotonic() < until
            time.sleep(0.05)
    assert (sent_first, sent_second) == ({"token-1"}, {"token-2"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://127.0.0.1:1 secret\n", "peers has no token for http://127.0.0.1:2; add a line"),
        ("secret http://127.0.0.1:2\n", "peers, line 1: a line is an address and its token"),
        ("http://127.0.0.1:2 secret more\n", "peers, line 1: a line is an address and its token"),
        ("http://127.0.0.1:2 secret\nhttp://127.0.0.1:2/ more\n", "peers, line 2: this address has a token"),
        ("http://127.0.0.1:port secret\n", "peers, line 1: that is no address"),
    ],
)
def test_a_file_of_tokens_that_is_wrong(stores, fails, here, text, said):
    (here / "peers").write_text(text)
    words = ["sync", "--store", "b.db", "http://127.0.0.1:2", "--peer-tokens", "peers"]
    told = fails(*words)
    assert said in told
    assert "secret" not in told
    (here / "peers").unlink()
    assert "cannot read the tokens in peers: No such file" in fails(*words)

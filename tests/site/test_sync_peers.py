"""`Site.sync`: sites, servers and folders, by name."""

from contextlib import closing

import httpx
import pytest
from tests.certificates import write_certificates

import everview as ev
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.report import Progress
from everview.server import Listener, Tokens
from everview.server.tokens import hash_of

PROGRAM = """
CREATE TABLE a (n BIGINT);
CREATE TABLE b (n BIGINT);
CREATE MATERIALIZED VIEW both_sums AS SELECT sum(n) AS s FROM a;
"""
TOKEN = "a-token-for-tests"


@pytest.fixture
def open_site():
    sites = []

    def call(name, text=PROGRAM):
        sites.append(ev.Site.open(":memory:", ev.Program.parse(text), name=name))
        return sites[-1]

    yield call
    for site in sites:
        site.close()


@pytest.fixture
def here(open_site):
    site = open_site("here")
    site.insert("a", [(1,)])
    return site


@pytest.fixture
def there(open_site):
    site = open_site("there")
    site.insert("a", [(2,)])
    return site


def agree(*sites):
    for name in ("a", "b", "both_sums"):
        assert len({tuple(site.rows(name)) for site in sites}) == 1
    return sites[0].rows("a")


def test_a_site(here, there):
    report = here.sync(there)
    assert isinstance(report, ev.SyncReport)
    assert (report.sent_rows, report.received_rows) == (1, 1)
    assert report.sent_bytes > 0
    assert report.received_bytes > 0
    assert agree(here, there) == [(1,), (2,)]
    again = here.sync(there)
    assert (again.sent_rows, again.received_rows) == (0, 0)


@pytest.mark.parametrize("named", [str, lambda path: path], ids=["text", "path"])
def test_a_folder(here, there, tmp_path, named):
    folder = named(tmp_path / "stick")
    here.sync(folder)
    there.sync(folder)
    here.sync(folder)
    assert agree(here, there) == [(1,), (2,)]


def test_a_server(here, there):
    with Listener(there.replica) as listener:
        assert here.sync(listener.address).received_rows == 1
        assert agree(here, there) == [(1,), (2,)]


def test_a_transport(here, there, tmp_path):
    for site in (here, there, here):
        site.sync(FolderTransport(tmp_path / "stick"))
    assert agree(here, there) == [(1,), (2,)]


def test_a_server_with_tls_and_a_token(here, there, tmp_path, monkeypatch):
    write_certificates(tmp_path)
    (tmp_path / "t").write_text(
        f"[[token]]\nsite = 'here'\nsha256 = '{hash_of(TOKEN)}'\nread = '*'\nwrite = '*'\n"
    )
    access = Tokens(tmp_path / "t", list(there.program.names()))
    keys = {"cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem"}
    with Listener(there.replica, access, **keys) as listener:
        with pytest.raises(ev.SyncError, match="needs a token"):
            here.sync(listener.address, ca=tmp_path / "ca.pem")
        with pytest.raises(ev.SyncError, match="not trusted"):
            here.sync(listener.address, token=TOKEN)
        assert here.rows("a") == [(1,)]
        here.sync(listener.address, token=TOKEN, ca=str(tmp_path / "ca.pem"))
        here.insert("a", [(3,)])
        monkeypatch.setenv("EVERVIEW_TOKEN", TOKEN)
        monkeypatch.setenv("EVERVIEW_CA", str(tmp_path / "ca.pem"))
        here.sync(listener.address)
    assert agree(here, there) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    ("read", "write"), [('["a"]', '["a"]'), ('"*"', '["a"]'), ('["a"]', '"*"'), ('"*"', "[]")]
)
def test_a_token_limits_what_is_read_and_written(here, there, tmp_path, read, write):
    here.insert("b", [(10,)])
    there.insert("b", [(20,)])
    text = f"[[token]]\nsite = 'here'\ntoken = '{TOKEN}'\nread = {read}\nwrite = {write}\n"
    (tmp_path / "t").write_text(text)
    with Listener(there.replica, Tokens(tmp_path / "t")) as listener:
        for _ in range(2):
            here.sync(listener.address, token=TOKEN)
        expected_here = {1} | {2} | ({10, 20} if read == '"*"' else {10})
        expected_there = {2, 20} | ({1} if write != "[]" else set()) | ({10} if write == '"*"' else set())
        found = lambda site: {n for name in ("a", "b") for (n,) in site.rows(name)}
        assert found(here) == expected_here
        assert found(there) == expected_there
        # A right that is given later brings what was withheld.
        (tmp_path / "t").write_text(text.replace(read, '"*"', 1).replace(f"write = {write}", 'write = "*"'))
        for _ in range(2):
            here.sync(listener.address, token=TOKEN)
        agree(here, there)
        assert found(here) == {1, 2, 10, 20}


def test_a_token_belongs_to_one_site(there, open_site, tmp_path):
    (tmp_path / "t").write_text(f"[[token]]\nsite = 'here'\ntoken = '{TOKEN}'\nread = '*'\n")
    with Listener(there.replica, Tokens(tmp_path / "t")) as listener:
        with pytest.raises(ev.SyncError, match="belongs to 'here'") as caught:
            open_site("thief").sync(listener.address, token=TOKEN)
        assert caught.value.peer == listener.address
        assert not caught.value.retry


def test_another_program_is_refused_by_name(here, open_site, tmp_path):
    other = open_site("other", "CREATE TABLE a (n TEXT);")
    with pytest.raises(ev.SyncError, match="another program"):
        here.sync(other)
    with Listener(other.replica) as listener:
        with pytest.raises(ev.SyncError, match="another program") as caught:
            here.sync(listener.address)
        assert (caught.value.peer, caught.value.retry) == (listener.address, False)
    other.insert("a", [("five",)])
    other.sync(tmp_path)
    assert here.sync(tmp_path).skipped_files >= 1
    assert here.rows("a") == [(1,)]


def test_within_a_transaction_it_raises(here, there, tmp_path):
    with pytest.raises(ev.StoreError, match="a transaction is open"), here.transaction():
        here.sync(there)
    with pytest.raises(ev.StoreError, match="a transaction is open"), there.transaction():
        here.sync(there)
    with pytest.raises(ev.StoreError, match="a transaction is open"), here.transaction():
        here.sync(tmp_path)


def test_with_itself_it_raises(here):
    with pytest.raises(ev.SyncError, match="this same site"):
        here.sync(here)


def test_a_server_that_goes_away_in_the_middle_is_gone_on_with(here, there):
    """The pages that had come are staged, and do not come again; nothing is seen of them before the end."""
    there.replica.page_cells = 30_000
    there.insert("a", [(n,) for n in range(1000, 61_000)])
    first = Listener(there.replica).start()
    port = int(first.address.rpartition(":")[2])

    told = []

    def stop(progress):
        told.append(progress)
        if len(told) == 3:  # greetings, and two pages
            first.stop()

    way = HttpTransport(first.address, attempts=1)
    with closing(way), pytest.raises(ev.SyncError) as caught:
        here.sync(way, progress=stop)
    assert caught.value.retry
    assert here.rows("a") == [(1,)]
    assert here.status()["replication"]["staged_pages"] >= 1
    there.insert("a", [(7,)])
    with Listener(there.replica, port=port):
        report = here.sync(first.address)
    assert 0 < report.received_rows < 60_002
    assert agree(here, there)[:3] == [(1,), (2,), (7,)]
    assert here.status()["replication"]["staged_pages"] == 0


def test_garbage_changes_nothing(here, there):
    before = there.status()
    message = here.replica.exchange("x").open()
    with Listener(there.replica) as listener:
        for body in (b"", b"garbage", message[:-1], message + b"x", message[:20] + b"!" + message[21:]):
            answer = httpx.post(listener.address + "/v1/exchange", content=body)
            assert answer.status_code == 400
            assert answer.json()["code"] == "message"
    assert there.status() == before


def test_progress(here, there):
    there.replica.page_cells = 30_000
    there.insert("a", [(n,) for n in range(50_000)])
    told = []
    report = here.sync(there, progress=told.append)
    assert all(isinstance(one, Progress) for one in told)
    rows = [one.received_rows for one in told]
    assert rows == sorted(rows)
    assert len({one.received_bytes for one in told}) > 2
    assert rows[-1] == report.received_rows == 50_000

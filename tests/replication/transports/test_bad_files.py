"""One bad file in a folder stops nobody: it is skipped and counted, and everybody else's are taken."""

import errno
import hashlib
import json
import os
import shutil
import signal
import socket
import time
import tracemalloc

import pytest
from tests.replication.fake import FakeReplica
from tests.replication.sites import World, assert_equal

from everview.errors import DataError, LimitError, StoreError, SyncError, WireError
from everview.replication.transports import folder, framed, outbox
from everview.replication.transports.folder import FolderTransport

BAD = "baddbadd"
CUT = "00000001-0-5.cut"


@pytest.fixture(autouse=True)
def _nothing_hangs():
    def hangs(_number, _frame):
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def stick(tmp_path):
    return tmp_path / "stick"


@pytest.fixture
def bad(stick):
    box = stick / BAD
    box.mkdir(parents=True)
    return box


def visit(replica, folder):
    return FolderTransport(folder).sync(replica)


def file(head, *messages, size=None):
    """The bytes of a file in which nothing is torn, whatever its header is."""
    data = framed.MAGIC + framed.LENGTH.pack(len(head) if size is None else size) + head
    data += b"".join(framed.LENGTH.pack(len(message)) + message for message in messages)
    data += framed.LENGTH.pack(framed.END)
    return data + hashlib.blake2b(data, digest_size=framed.DIGEST).digest()


def sparse(path):
    with path.open("wb") as made:
        made.write(framed.MAGIC + framed.LENGTH.pack(190_000_000))
        made.truncate(200_000_000)


def listening(path):
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(".", os.O_RDONLY)
        os.chdir(path.parent)  # the path of a socket has to be short
        made.bind(path.name)
        os.fchdir(here)
        os.close(here)


def unreadable(path):
    path.write_bytes(b"x" * 100)
    path.chmod(0)


KINDS = {
    "a pipe": os.mkfifo,
    "a folder": lambda path: path.mkdir(),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": listening,
    "unreadable": unreadable,
    "a sparse file with an endless header": sparse,
}

HEADERS = {
    "nested": b"[" * 200_000 + b"]" * 200_000,
    "nested within": b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "no object": b"[]",
    "no JSON": b"{",
    "no UTF-8": b'{"standing": "\xff", "seen": {"\xff": 1}}',
    "half a character": rb'{"standing": "\ud800", "seen": {"\ud800": 1}}',
    "too long": b" " * (5 << 20) + b"{}",
}

CUT_HEADERS = [{"readers": 5}, {"readers": [5]}, {"standing": {"a": 1}}, {"standing": 7}]

NOTES = [
    {"seen": 5},
    {"seen": {"ME": "5"}},
    {"seen": {"ME": 1.5}},
    {"seen": {"ME": True}},
    {"seen": {"ME": -1}},
    {"seen": {"ME": 10**12}},
    {"seen": {"ME": 10**300}},
    {"refused": {"ME": 5}},
    {"refused": {"ME": [10**300, ""]}},
    {"refused": {"ME": [1, 1]}},
    {"torn": {"ME": CUT}},
    {"unlisted": {"ME": [7]}},
]


def assert_all_is_taken_but_one(stick, a, b):
    a.insert(["a"])
    b.insert(["b"])
    for replica in (a, b, a, b):
        assert visit(replica, stick).skipped_files == 1
    assert a.all_rows() == b.all_rows() == ["a", "b"]


@pytest.mark.parametrize("name", [CUT, "request"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_to_read(stick, bad, kind, name):
    KINDS[kind](bad / name)
    tracemalloc.start()
    try:
        assert_all_is_taken_but_one(stick, FakeReplica("a"), FakeReplica("b"))
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", [CUT, "request"])
@pytest.mark.parametrize("header", HEADERS)
def test_headers_that_cannot_be_read(stick, bad, header, name):
    a, b = FakeReplica("a"), FakeReplica("b")
    (bad / name).write_bytes(file(HEADERS[header], b.request()))
    assert_all_is_taken_but_one(stick, a, b)


@pytest.mark.parametrize("header", CUT_HEADERS, ids=str)
def test_cuts_with_headers_of_other_types(stick, bad, header):
    a, b, other = FakeReplica("a"), FakeReplica("b"), FakeReplica("other")
    other.insert(["other"])
    (bad / CUT).write_bytes(file(json.dumps(header).encode(), *other.batch(0)))
    assert_all_is_taken_but_one(stick, a, b)


@pytest.mark.parametrize("note", NOTES, ids=lambda note: str(note)[:40])
def test_requests_with_headers_of_other_types(stick, bad, note):
    a, b = FakeReplica("a"), FakeReplica("b")
    head = json.dumps(note).replace("ME", a.incarnation).encode()
    (bad / "request").write_bytes(file(head, b.request()))
    assert_all_is_taken_but_one(stick, a, b)


@pytest.mark.parametrize("name", [CUT, "request"])
def test_a_message_that_is_longer_than_any(stick, bad, name, monkeypatch):
    a, b = FakeReplica("a"), FakeReplica("b")
    monkeypatch.setattr(framed, "LARGEST_MESSAGE", 10_000, raising=False)
    long = json.loads(b.request()) | {"more": "x" * 10_000, "members": [], "page": b.page(0, 0)}
    (bad / name).write_bytes(file(b"{}", json.dumps(long).encode()))
    assert_all_is_taken_but_one(stick, a, b)


def test_a_request_of_many_messages(stick, bad):
    a, b = FakeReplica("a"), FakeReplica("b")
    (bad / "request").write_bytes(file(b"{}", *[b.request()] * 3))
    assert_all_is_taken_but_one(stick, a, b)


@pytest.mark.parametrize("name", [CUT, "request"])
def test_who_may_not_read_one_file_reads_the_others(stick, bad, name, monkeypatch):
    """As by its mode, which does not hold for who runs the tests as root."""
    (bad / name).write_bytes(file(b"{}", b""))
    whole = outbox.verify

    def refused(path, *arguments):
        if path == bad / name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return whole(path, *arguments)

    for module in (outbox, folder):
        monkeypatch.setattr(module, "verify", refused)
    assert_all_is_taken_but_one(stick, FakeReplica("a"), FakeReplica("b"))


def test_who_may_not_read_a_subfolder_reads_the_others(stick, bad, monkeypatch):
    listed = outbox.Path.iterdir

    def refused(path):
        if path == bad:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(outbox.Path, "iterdir", refused)
    assert_all_is_taken_but_one(stick, FakeReplica("a"), FakeReplica("b"))


@pytest.mark.parametrize(
    "error",
    [
        WireError("no message", where="frame"),
        DataError("no row"),
        LimitError("too much", limit=1),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("name", [CUT, "request"])
def test_whatever_the_site_says_of_one_file(stick, bad, name, error):
    class Picky(FakeReplica):
        def take(self, messages):
            messages = list(messages)
            if b"bad" in messages:
                raise error
            return super().take(messages)

        def cursor_of(self, data):
            if data == b"bad":
                raise error
            return super().cursor_of(data)

    (bad / name).write_bytes(file(b"{}", b"bad"))
    assert_all_is_taken_but_one(stick, Picky("a"), Picky("b"))


def test_trouble_of_the_store_itself_is_told(stick):
    class Full(FakeReplica):
        def take(self, messages):
            raise StoreError("the disk is full", path="a.db")

    a = FakeReplica("a")
    a.insert(["1"])
    visit(a, stick)
    with pytest.raises(StoreError, match="the disk is full"):
        visit(Full("b"), stick)


# What others say of our files


@pytest.mark.parametrize("serial", [2**32 + 1, 10**11, 10**12 - 1, 10**12, 10**300], ids=lambda n: f"{n:.0e}")
@pytest.mark.parametrize("claim", ["seen", "refused", "unlisted"])
def test_no_claim_makes_names_that_nobody_reads(stick, bad, serial, claim):
    a, b = FakeReplica("a"), FakeReplica("b")
    said = {"seen": serial, "refused": [serial, ""], "unlisted": [f"{serial}-0-1.cut"]}[claim]
    (bad / "request").write_bytes(file(json.dumps({claim: {a.incarnation: said}}).encode(), b.request()))
    for i in range(3):
        a.insert([f"{i}"])
        visit(a, stick)
        visit(b, stick)
    assert b.all_rows() == ["0", "1", "2"]
    names = [path.name for path in (stick / a.incarnation).glob("*.cut")]
    assert all(int(name.split("-")[0]) < time.time() + 10 for name in names)
    assert len(names) == 3  # nothing was written anew


def test_complaints_are_bounded(stick, bad, monkeypatch):
    monkeypatch.setattr(folder, "MOST_COMPLAINTS", 10, raising=False)
    for serial in range(25):
        (bad / f"{serial:08d}-0-5.cut").write_bytes(b"torn")
    a = FakeReplica("a")
    assert visit(a, stick).skipped_files == 25
    note, _ = outbox.Box(stick, a.incarnation).request()
    assert len(note.torn[BAD]) == 10


def test_a_header_that_nobody_would_read_is_not_written(stick, monkeypatch):
    a, b = FakeReplica("a"), FakeReplica("b")
    b.insert(["b"])
    visit(b, stick)
    monkeypatch.setattr(framed, "LARGEST_HEADER", 70)  # nobody's name has room in it
    with pytest.raises(LimitError, match="remove the subfolders"):
        visit(a, stick)
    assert not list(stick.rglob(f"{framed.TEMPORARY}*"))


def test_who_is_gone_is_forgotten(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    b.insert(["b"])
    for replica in (b, a):
        visit(replica, stick)
    own = outbox.Box(stick, a.incarnation)
    assert list(own.request()[0].seen) == [b.incarnation]
    shutil.rmtree(stick / b.incarnation)
    visit(a, stick)
    assert not own.request()[0].seen
    b.insert(["again"])
    for replica in (b, a):
        visit(replica, stick)
    assert a.all_rows() == ["again", "b"]


# In the site's own subfolder, where nobody else ought to write


@pytest.mark.parametrize("name", [CUT, "999999999999-0-5.cut", "request", "99999999-0-999.cut"])
@pytest.mark.parametrize("kind", [*KINDS, "another's"])
def test_bad_files_in_the_own_subfolder(stick, kind, name):
    a, b = FakeReplica("a"), FakeReplica("b")
    own = stick / a.incarnation
    own.mkdir(parents=True)
    if kind == "another's":
        (own / name).write_bytes(file(b'{"standing": 1}', b"bad"))
    else:
        KINDS[kind](own / name)
    for i in range(3):
        a.insert([f"{i}"])
        b.insert([f"b{i}"])
        for replica in (a, b, a):
            visit(replica, stick)
        assert a.all_rows() == b.all_rows()


def test_the_last_of_all_serials_is_read_too(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    visit(a, stick)
    (stick / a.incarnation / "999999999999-0-0.cut").write_bytes(file(b"{}", *a.batch(0)))
    for i in range(3):
        a.insert([f"{i}"])
        visit(a, stick)
        visit(b, stick)
    assert b.all_rows() == ["0", "1", "2"]


# Waiting, and what fails as a whole


def test_news_are_seen_behind_a_subfolder_that_cannot_be_read(stick, bad, monkeypatch):
    (bad / "loop").symlink_to("loop")
    listed = outbox.Path.iterdir

    def bad_first(path):
        return iter(sorted(listed(path), key=lambda found: found.name != BAD))

    monkeypatch.setattr(outbox.Path, "iterdir", bad_first)
    a, b = FakeReplica("a"), FakeReplica("b")
    b.insert(["b"])
    transport = FolderTransport(stick)
    transport.sync(a)
    visit(b, stick)
    assert transport.wait(0.1)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_who_may_not_write_is_told_what_to_do(stick, monkeypatch, number):
    def refused(*_arguments):
        raise OSError(number, os.strerror(number), "request")

    monkeypatch.setattr(framed.os, "fsync", refused)
    with pytest.raises(SyncError, match="writable for this user") as caught:
        visit(FakeReplica(), stick)
    assert not caught.value.retry
    assert "try again" not in str(caught.value)


def test_a_file_in_the_place_of_the_own_subfolder(stick):
    a = FakeReplica("a")
    stick.mkdir()
    (stick / a.incarnation).write_text("")
    with pytest.raises(SyncError, match=f"{a.incarnation}.*remove it") as caught:
        visit(a, stick)
    assert not caught.value.retry


# Real sites


@pytest.mark.parametrize("name", [CUT, "request"])
@pytest.mark.parametrize("kind", ["a pipe", "a link to itself", "a sparse file with an endless header"])
def test_real_sites_sync_past_it(stick, bad, kind, name):
    a, b = World().sites(2)
    a.insert("r", [(1, "x")])
    b.insert("r", [(2, "x")])
    KINDS[kind](bad / name)
    for site in (a, b, a, b):
        assert site.sync(stick).skipped_files == 1
    assert assert_equal(a, b)["r"] == [(1, "x"), (2, "x")]


@pytest.mark.parametrize("serial", [10**12 - 1, 10**300], ids=lambda n: f"{n:.0e}")
def test_real_sites_sync_past_claims(stick, bad, serial):
    a, b = World().sites(2)
    head = json.dumps({"seen": {a.status()["incarnation"]: serial}}).encode()
    (bad / "request").write_bytes(file(head, b.replica.request()))
    for number in range(3):
        a.insert("r", [(number, "x")])
        for site in (a, b, a):
            site.sync(stick)
    assert len(assert_equal(a, b)["r"]) == 3

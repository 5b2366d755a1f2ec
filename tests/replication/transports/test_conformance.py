"""Every transport keeps the promises of `transports/base.py`."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.certificates import write_certificates
from tests.fake_replica import PAGE, FakeReplica

from everview.errors import SyncError
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.memory import MemoryTransport
from everview.replication.transports.report import SyncReport
from everview.server import Listener
from everview.testing import transports
from everview.testing.transports import Link, check_transport


class FakeParty:
    def __init__(self, program):
        self.replica = FakeReplica(program=program)

    def write(self, numbers):
        self.replica.insert([str(number) for number in numbers])

    def read(self):
        return {int(row) for row in self.replica.rows}

    def close(self):
        pass


@contextmanager
def memory(_first, second):
    yield Link(MemoryTransport(second, "the other"))


@contextmanager
def folder(_first, _second):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "shared"
        yield Link(FolderTransport(path), FolderTransport(path))


@contextmanager
def http(_first, second):
    with Listener(second) as listener:
        yield Link(HttpTransport(listener.address))


@contextmanager
def https(_first, second):
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        write_certificates(here)
        with Listener(second, cert=here / "cert.pem", key=here / "key.pem") as listener:
            yield Link(HttpTransport(listener.address, ca=here / "ca.pem"))


@pytest.mark.parametrize("link", [memory, folder, http, https], ids=lambda link: link.__name__)
def test_transports_keep_their_promises(link):
    check_transport(link)


@pytest.fixture
def _few(monkeypatch):
    monkeypatch.setattr(transports, "SEVERAL_PAGES", 10 * PAGE)


@pytest.mark.usefixtures("_few")
@pytest.mark.parametrize("link", [memory, http], ids=lambda link: link.__name__)
def test_transports_ask_nothing_else_of_a_replica(link):
    """The replica of these tests has only what transports may ask for; a folder asks for a store's files."""
    check_transport(link, FakeParty)


class Broken:
    """A transport that breaks a promise."""

    def __init__(self, inner, fault):
        self.inner, self.fault, self.peer = inner, fault, inner.peer
        self.calls = 0

    def sync(self, replica, *, on_progress=None):
        self.calls += 1
        match self.fault:
            case "does nothing":
                return SyncReport()
            case "forgets to tell":
                return self.inner.sync(replica)
            case "works once" if self.calls > 1:
                return SyncReport()
            case "hides errors":
                try:
                    return self.inner.sync(replica, on_progress=on_progress)
                except SyncError:
                    return SyncReport()
        return self.inner.sync(replica, on_progress=on_progress)

    def wait(self, timeout):
        return self.fault == "always has news" or self.inner.wait(timeout)

    def close(self):
        self.inner.close()


@pytest.mark.parametrize(
    "fault", ["does nothing", "forgets to tell", "works once", "hides errors", "always has news"]
)
@pytest.mark.usefixtures("_few")
def test_the_suite_finds_transports_that_break_a_promise(fault):
    @contextmanager
    def link(_first, second):
        yield Link(Broken(MemoryTransport(second, "the other"), fault))

    with pytest.raises(AssertionError, match="a transport promises"):
        check_transport(link, FakeParty)

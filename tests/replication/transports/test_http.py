"""The client: what it tries again, what it gives up on, and how it says so."""

import socket
import ssl
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from tests.certificates import write_certificates
from tests.fake_replica import FakeReplica

from everview.errors import SyncError
from everview.replication.transports import http
from everview.replication.transports.http import HttpTransport
from everview.replication.transports.reach import reach
from everview.server import Listener


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(http, "FIRST_DELAY", 0.01)


@contextmanager
def scripted(replica, script):
    """A server that, before it answers, does what the script says for each request, one step each."""
    steps = iter(script)
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            step = next(steps, "answer")
            asked.append(step)
            if isinstance(step, tuple):
                status, headers, said = step
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
                return
            answer = replica.answer(body, None)
            if step == "lose the answer":  # the work is done, and the client does not hear of it
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if step == "cut the answer":
                self.wfile.write(answer[: len(answer) // 2])
                self.close_connection = True
                return
            if step == "be slow":
                time.sleep(0.6)
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def pair():
    here, there = FakeReplica("here"), FakeReplica("there")
    here.insert([f"h{i}" for i in range(450)])
    there.insert([f"t{i}" for i in range(450)])
    return here, there


TROUBLE = [
    "lose the answer",
    "cut the answer",
    (503, {}, b""),
    (429, {"Retry-After": "0.05"}, b""),
    (502, {}, b"<html>bad gateway</html>"),
    (500, {}, b'{"error": "oh"}'),
]


@pytest.mark.parametrize("trouble", TROUBLE, ids=str)
def test_trouble_on_the_way_is_tried_again(trouble):
    here, there = pair()
    script = ["answer", trouble, "answer", trouble, trouble, "answer", trouble]
    with scripted(there, script) as (address, asked), closing(HttpTransport(address)) as way:
        way.sync(here)
        assert asked[: len(script)] == script
    assert here.all_rows() == there.all_rows()
    assert len(here.rows) == 900


def test_a_server_that_asks_to_wait_is_heeded():
    here, there = pair()
    script = [(429, {"Retry-After": "0.5"}, b"")]
    with scripted(there, script) as (address, _), closing(HttpTransport(address)) as way:
        started = time.monotonic()
        way.sync(here)
        assert time.monotonic() - started >= 0.5


def test_trouble_that_stays_is_an_error_that_says_try_again():
    here, there = pair()
    with scripted(there, [(503, {}, b'{"error": "too\\nbusy"}')] * 3) as (address, asked):
        with closing(HttpTransport(address, attempts=3)) as way, pytest.raises(SyncError) as caught:
            way.sync(here)
        assert len(asked) == 3
    assert str(caught.value) == f"cannot sync with {address}: too busy; try again later"
    assert (caught.value.peer, caught.value.retry) == (address, True)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((400, {}, b'{"error": "no message"}'), "no message"),
        ((401, {}, b'{"error": "needs a token"}'), "needs a token"),
        ((413, {}, b""), "status 413"),
        ((404, {}, b"<html>"), "no Everview server"),
        ((302, {"Location": "http://127.0.0.1:1/"}, b""), "redirects elsewhere"),
        ((403, {}, b'{"error": ["x"]}'), "status 403"),
    ],
)
def test_what_does_not_pass_is_not_tried_again(answer, said):
    here, there = pair()
    with scripted(there, [answer]) as (address, asked):
        with closing(HttpTransport(address)) as way, pytest.raises(SyncError, match=said) as caught:
            way.sync(here)
        assert len(asked) == 1
    assert not caught.value.retry


def test_nobody_listens():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with closing(HttpTransport(address, attempts=2)) as way:
            with pytest.raises(SyncError, match="no connection") as caught:
                way.sync(FakeReplica())
            assert (caught.value.peer, caught.value.retry) == (address, True)


def test_an_answer_that_does_not_come_in_time():
    here, there = pair()
    timeout = httpx.Timeout(0.2)
    with scripted(there, ["be slow"] * 2) as (address, _):
        way = HttpTransport(address, attempts=2, timeout=timeout)
        with closing(way), pytest.raises(SyncError, match="not answer in time") as caught:
            way.sync(here)
    assert caught.value.retry


def test_an_answer_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(http, "LARGEST_ANSWER", 1000)
    here, there = pair()
    with (
        scripted(there, [(200, {}, bytes(5000))]) as (address, _),
        closing(HttpTransport(address)) as way,
        pytest.raises(SyncError, match="at once") as caught,
    ):
        way.sync(here)
    assert not caught.value.retry


def test_an_answer_that_is_no_message():
    here, there = pair()
    with (
        scripted(there, [(200, {}, b"hello")]) as (address, _),
        closing(HttpTransport(address)) as way,
        pytest.raises(SyncError),
    ):
        way.sync(here)
    assert len(here.rows) == 450


def test_a_server_that_dies_in_the_middle_is_gone_on_with():
    """What was staged before is not sent again."""
    here, there = FakeReplica("here"), FakeReplica("there")
    there.insert([f"t{i}" for i in range(1000)])
    first = Listener(there).start()
    port = int(first.address.rpartition(":")[2])
    seen = []

    def kill(progress):
        seen.append(progress)
        if len(seen) == 12:
            first.stop()

    way = HttpTransport(first.address, attempts=2)
    with closing(way):
        with pytest.raises(SyncError) as caught:
            way.sync(here, on_progress=kill)
        assert caught.value.retry
        assert here.rows == {}
        staged = sum(map(len, here.staged.values()))
        assert 0 < staged < 1000
        before = seen[-1].received_bytes
        with Listener(there, port=port):
            report = way.sync(here)
    assert report.received_rows == 1000
    whole = len(there.message(page={**there.page(0, 0), "rows": there.all_rows()}))
    assert report.received_bytes < whole - before // 2


# TLS


@pytest.fixture
def certificates(tmp_path):
    write_certificates(tmp_path)
    return tmp_path


@pytest.fixture
def secure(certificates):
    there = FakeReplica("there")
    there.insert(["t"])
    with Listener(there, cert=certificates / "cert.pem", key=certificates / "key.pem") as listener:
        yield listener.address


def test_tls_with_a_given_authority(secure, certificates):
    assert secure.startswith("https://127.0.0.1:")
    with closing(HttpTransport(secure, ca=certificates / "ca.pem")) as way:
        assert way.sync(FakeReplica()).received_rows == 1
    with closing(HttpTransport(secure.replace("127.0.0.1", "localhost"), ca=certificates / "ca.pem")) as way:
        assert way.sync(FakeReplica()).received_rows == 1


def test_tls_authority_from_the_environment(secure, certificates, monkeypatch):
    monkeypatch.setenv("EVERVIEW_CA", str(certificates / "ca.pem"))
    with closing(reach(secure)) as way:
        assert way.sync(FakeReplica()).received_rows == 1


def test_a_stranger_is_not_trusted(secure, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write_certificates(other)
    for ca in (None, other / "ca.pem"):
        started = time.monotonic()
        with closing(HttpTransport(secure, ca=ca)) as way, pytest.raises(SyncError) as caught:
            way.sync(FakeReplica())
        assert "its certificate is not trusted" in str(caught.value)
        assert not caught.value.retry
        assert time.monotonic() - started < 5


def test_a_certificate_for_another_name_is_not_trusted(secure, certificates):
    address = secure.replace("127.0.0.1", "127.0.0.2")
    way = HttpTransport(address, ca=certificates / "ca.pem", attempts=1)
    with closing(way), pytest.raises(SyncError):
        way.sync(FakeReplica())


def test_plain_http_to_a_tls_port_and_old_tls(secure):
    with closing(HttpTransport(secure.replace("https", "http"), attempts=1)) as way, pytest.raises(SyncError):
        way.sync(FakeReplica())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    port = int(secure.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain)


def test_an_authority_that_cannot_be_read(tmp_path):
    with pytest.raises(SyncError, match="cannot read the authority's certificate"):
        HttpTransport("https://127.0.0.1:1", ca=tmp_path / "none.pem")
    (tmp_path / "x.pem").write_text("x")
    with pytest.raises(SyncError, match="cannot read the authority's certificate"):
        HttpTransport("https://127.0.0.1:1", ca=tmp_path / "x.pem")


# Names of peers


@pytest.mark.parametrize(
    ("peer", "said"),
    [
        ("", "no peer"),
        ("ftp://host/", "http:// or https://"),
        ("http://", "no address"),
        ("http://host:nan", "no address"),
        ("http://user:secret@host:1", "give the token apart"),
        ("https://host:1/?token=secret", "give the token apart"),
    ],
)
def test_names_that_lead_nowhere(peer, said):
    with pytest.raises(SyncError, match=said) as caught:
        reach(peer)
    assert "secret" not in str(caught.value)


def test_a_token_that_would_break_a_header():
    with pytest.raises(SyncError, match="printable ASCII"):
        HttpTransport("http://127.0.0.1:1", token="a\r\nX: y")


def test_an_address_may_have_a_path():
    """Behind a proxy that serves several."""
    here, there = pair()
    asked = []
    with scripted(there, []) as (address, _), closing(HttpTransport(address + "/rescue/")) as way:
        way._client.event_hooks = {"request": [lambda request: asked.append(request.url.path)]}
        way.sync(here)
    assert set(asked) == {"/rescue/v1/exchange"}


def test_a_path_that_leads_nowhere_is_named():
    here, there = pair()
    answer = (404, {}, b'{"error": "there is nothing here"}')
    with (
        scripted(there, [answer]) as (address, _),
        closing(HttpTransport(address + "/v1/")) as way,
        pytest.raises(SyncError) as caught,
    ):
        way.sync(here)
    assert str(caught.value).endswith(f"there is nothing at /v1/; say {address}, as it printed")

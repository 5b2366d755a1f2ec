"""The server over real sockets: what it answers, what it refuses, and what it bears."""

import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from types import SimpleNamespace

import httpx
import pytest
from tests.fake_replica import FakeReplica

from everview.errors import DataError, StoreError, SyncError
from everview.replication.rights.rights import ALL, Rights
from everview.replication.transports.http import HttpTransport
from everview.server import Listener, SiteService, Tokens
from everview.server.app import Limits
from everview.server.hubs import HubService
from everview.server.metrics import render
from everview.server.tokens import hash_of, make_token

HELLO = json.dumps({"site": "x", "program": "p", "ask": [0, 0]}).encode()
READER, WRITER, IDLE = "reader-reader-reader", "writer-writer-writer", "idle-idle-idle-idle"
FILE = f"""
[[token]]
site = "r"
token = "{READER}"
read = ["s"]

[[token]]
site = "w"
sha256 = "{hash_of(WRITER)}"
read = "*"
write = "*"

[[token]]
site = "i"
token = "{IDLE}"
"""


@pytest.fixture
def replica():
    found = FakeReplica("served")
    found.insert(["row"])
    return found


@pytest.fixture
def serve(replica):
    started = []

    def start(access=None, **options):
        listener = Listener(replica, access, **options).start()
        started.append(listener)
        return listener.address

    yield start
    for listener in started:
        listener.stop()


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens.toml"
    path.write_text(FILE)
    return path


def refused(response, status, code):
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert "\n" not in response.text
    assert "Traceback" not in response.text
    body = response.json()
    assert body["code"] == code
    return body["error"]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_an_exchange_is_a_post(serve, replica):
    answer = httpx.post(serve() + "/v1/exchange", content=HELLO)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/vnd.everview"
    assert answer.json()["page"]["rows"] == ["row"]
    assert replica.asked == [ALL]


def test_health(serve, replica):
    found = httpx.get(serve() + "/v1/health").json()
    assert found == {"status": "ok", "incarnation": replica.incarnation, "head": 1}


@pytest.mark.parametrize("body", [b"", b"garbage", b"\x00" * 1000, b"[]", b"{}"])
def test_garbage_is_a_400(serve, replica, body):
    refused(httpx.post(serve() + "/v1/exchange", content=body), 400, "message")
    assert replica.asked == []


def test_what_is_not_there(serve):
    address = serve()
    refused(httpx.get(address + "/"), 404, "address")
    refused(httpx.get(address + "/v1/exchange"), 405, "method")
    refused(httpx.get(address + "/v1/changes?after=x"), 400, "parameter")
    refused(httpx.get(address + "/v1/changes?timeout=nan"), 400, "parameter")


# Tokens


def test_every_address_needs_a_token(serve, tokens):
    address = serve(Tokens(tokens))
    for call in (
        lambda headers: httpx.post(address + "/v1/exchange", content=HELLO, headers=headers),
        lambda headers: httpx.get(address + "/v1/changes?timeout=0", headers=headers),
        lambda headers: httpx.get(address + "/v1/health", headers=headers),
    ):
        for wrong in (
            {},
            bearer("wrong"),
            {"Authorization": "Bearer"},
            {"Authorization": f"Basic {WRITER}"},
            bearer(hash_of(WRITER)),
        ):
            answer = call(wrong)
            refused(answer, 401, "token")
            assert answer.headers["www-authenticate"] == "Bearer"
        refused(call(bearer(IDLE)), 403, "rights")
        assert call(bearer(WRITER)).status_code == 200


def test_rights_reach_the_replica(serve, replica, tokens):
    address = serve(Tokens(tokens, ["s"]))
    for token in (READER, WRITER):
        httpx.post(address + "/v1/exchange", content=HELLO, headers=bearer(token))
    assert replica.asked == [Rights("r", frozenset({"s"}), frozenset()), Rights("w", None, None)]


def test_a_token_is_withdrawn_at_once(serve, tokens):
    address = serve(Tokens(tokens))
    ask = lambda: httpx.get(address + "/v1/health", headers=bearer(WRITER)).status_code
    assert ask() == 200
    tokens.write_text(FILE.replace(hash_of(WRITER), "0" * 64))
    assert ask() == 401
    tokens.write_text("not [ toml")  # a file that cannot be read changes nothing
    assert ask() == 401
    tokens.write_text(FILE)
    assert ask() == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "is not TOML"),
        ("[token]\nsite='a'", "tables, one for each"),
        ("[[tokens]]\nsite='a'", "'tokens' is unknown"),
        ("[[token]]\nsha256='00'", "belongs to a site"),
        ("[[token]]\nsite='a'", "either the token or its sha256"),
        ("[[token]]\nsite='a'\nsha256='zz'", "64 hexadecimal digits"),
        ("[[token]]\nsite='a'\ntoken='short'", "at least 16 characters"),
        (f"[[token]]\nsite='a'\ntoken='{READER}'\nread='all'", 'read is "*" or a list'),
        (f"[[token]]\nsite='a'\ntoken='{READER}'\nwrite=['nosuch']", "'nosuch', which is not in the program"),
        (f"[[token]]\nsite='a'\ntoken='{READER}'\nreed='*'", "'reed' is unknown"),
        (f"[[token]]\nsite='a'\ntoken='{READER}'\n" * 2, "the same token"),
    ],
)
def test_a_tokens_file_that_is_wrong(tokens, text, said):
    tokens.write_text(text)
    with pytest.raises(DataError) as caught:
        Tokens(tokens, ["s"])
    assert said in str(caught.value)
    assert str(tokens) in str(caught.value)


def test_a_tokens_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        Tokens(tmp_path / "none")


def test_tokens_are_made_to_be_used(tmp_path):
    token, digest = make_token()
    (tmp_path / "t").write_text(f"[[token]]\nsite = 'a'\nsha256 = '{digest.upper()}'\nread = '*'\n")
    assert Tokens(tmp_path / "t").rights(f"bearer {token}") == Rights("a", None, frozenset())


def test_without_tokens_only_loopback(replica):
    for host in ("0.0.0.0", "::", socket.gethostname() + ".invalid"):
        with pytest.raises(SyncError, match="without tokens only this machine"):
            Listener(replica, host=host)


@pytest.fixture(params=["site", "hub"])
def service(request, replica):
    if request.param == "site":
        return SiteService(replica)
    return HubService(SimpleNamespace(replica=replica), "1 second", lambda: None)


ASKED = ("/v1/changes?after=-1", "/v1/health", "/v1/metrics")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8440", "Sec-Fetch-Site": "same-origin"},  # its name leads here
        {"Host": "localhost.evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "10.0.0.1:8440"},
        {"Host": "[::1"},
        {"Host": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # of another port of this machine
    ],
)
def test_without_tokens_no_page_of_another_site_is_answered(serve, service, replica, headers):
    address = serve(service=service)
    with httpx.Client(base_url=address, headers=headers) as page:
        for path in ASKED:
            refused(page.get(path), 403, "host")
        refused(page.post("/v1/exchange", content=HELLO), 403, "host")
        assert (page.get("/v1/live").status_code, page.get("/v1/live").content) == (204, b"")
    assert not replica.asked
    counted = render([service.refusals.family()])
    assert 'everview_refusals_total{code="host"} 4' in counted


@pytest.mark.parametrize(
    "headers",
    [
        *({"Host": host} for host in ("localhost", "LOCALHOST:1", "127.0.0.2:8440", "[::1]", "[::1]:8440")),
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},  # typed in
    ],
)
def test_without_tokens_this_machine_is_answered(serve, headers):
    with httpx.Client(base_url=serve(), headers=headers) as local:
        for path in ASKED:
            assert local.get(path).status_code == 200
        assert local.post("/v1/exchange", content=HELLO).status_code == 200


def test_with_tokens_any_name_and_page_is_answered(serve, tokens):
    evil = bearer(WRITER) | {"Host": "base.example", "Sec-Fetch-Site": "cross-site"}
    assert httpx.get(serve(Tokens(tokens)) + "/v1/health", headers=evil).status_code == 200


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_without_tokens_our_own_client_is_answered(serve, replica, name):
    way = HttpTransport(serve().replace("127.0.0.1", name))
    with closing(way):
        way.sync(FakeReplica("x"))
        assert way.wait(1)
    assert replica.asked


def test_another_name_of_this_machine_is_printed_as_its_number(serve, monkeypatch):
    """For by that name nobody is answered."""
    real = socket.getaddrinfo
    found = lambda host, *more, **options: real("127.0.0.1" if host == "box" else host, *more, **options)
    monkeypatch.setattr("socket.getaddrinfo", found)
    address = serve(host="box")
    assert address.startswith("http://127.0.0.1:")
    assert httpx.get(address + "/v1/health").status_code == 200


# Limits


def test_oversized_messages_are_refused_before_they_are_read(serve, replica):
    address = serve(limits=Limits(body_bytes=1000))
    assert "at most 1,000 bytes" in refused(
        httpx.post(address + "/v1/exchange", content=bytes(1001)), 413, "size"
    )

    def drip():
        for _ in range(200):
            yield bytes(100)

    with suppress(httpx.WriteError):  # the server may hang up while it is still being sent to
        refused(httpx.post(address + "/v1/exchange", content=drip()), 413, "size")
    assert httpx.post(address + "/v1/exchange", content=HELLO).status_code == 200
    assert len(replica.asked) == 1


def raw(address):
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def test_a_client_that_says_nothing_is_hung_up_on(serve):
    address = serve(limits=Limits(header_seconds=0.2))
    with raw(address) as silent, raw(address) as slow:
        slow.sendall(b"POST /v1/exchange HTTP/1.1\r\nHost: localhost\r\n")
        assert silent.recv(100) == b""
        assert slow.recv(100) == b""
    assert httpx.get(address + "/v1/health").status_code == 200


def test_a_client_that_was_quick_and_becomes_slow_is_hung_up_on(serve):
    address = serve(limits=Limits(header_seconds=0.3))
    with raw(address) as one:
        one.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in one.recv(10_000).splitlines()[0]
        one.sendall(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n")
        started = time.monotonic()
        while one.recv(10_000):
            pass
        assert time.monotonic() - started < 5


def test_a_long_poll_is_not_hung_up_on(serve):
    address = serve(limits=Limits(header_seconds=0.1))
    assert httpx.get(address + "/v1/changes?after=1&timeout=0.6").json()["head"] == 1


def test_a_client_that_stops_in_a_message_is_refused(serve):
    address = serve(limits=Limits(body_pause_seconds=0.2))
    with raw(address) as slow:
        slow.sendall(b"POST /v1/exchange HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc")
        answer = b"".join(iter(lambda: slow.recv(10_000), b"")).decode()
    assert " 408 " in answer.splitlines()[0]
    assert '"code":"slow"' in answer


def test_garbage_instead_of_http(serve):
    address = serve()
    with raw(address) as rude:
        rude.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert b" 400 " in rude.recv(1000).splitlines()[0]
    assert httpx.get(address + "/v1/health").status_code == 200


def test_slow_readers_do_not_keep_others_waiting(serve, replica):
    """They get their answers and do not read them."""
    replica.insert([f"{i:06} {'x' * 500}" for i in range(90)])
    address = serve()
    post = b"POST /v1/exchange HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (
        len(HELLO),
        HELLO,
    )
    slow = [raw(address) for _ in range(20)]
    try:
        for one in slow:
            one.sendall(post * 3)
        started = time.monotonic()
        assert httpx.post(address + "/v1/exchange", content=HELLO).status_code == 200
        assert time.monotonic() - started < 5
    finally:
        for one in slow:
            one.close()


def test_too_many_exchanges_at_once_are_told_to_come_again(serve, replica, monkeypatch):
    gate, inside = threading.Event(), []

    def answer(data, rights):
        inside.append(1)
        gate.wait(10)
        return b"done"

    monkeypatch.setattr(replica, "respond", answer)
    address = serve(limits=Limits(answering=2, waiting=1))
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(httpx.post, address + "/v1/exchange", content=HELLO) for _ in range(6)]
        until = time.monotonic() + 10
        while sum(call.done() for call in calls) < 3 and time.monotonic() < until:
            time.sleep(0.01)
        assert httpx.get(address + "/v1/health").status_code == 200  # the loop is free
        assert len(inside) == 2
        gate.set()
        answers = [call.result() for call in calls]
    busy = [answer for answer in answers if answer.status_code == 503]
    assert len(busy) == 3
    for answer in busy:
        refused(answer, 503, "busy")
        assert answer.headers["retry-after"] == "1"


def test_a_store_in_trouble_is_a_503_and_a_defect_a_500(serve, replica, monkeypatch, caplog):
    address = serve()
    for error, status, code in [
        (StoreError("disk\nfull"), 503, "store"),
        (ZeroDivisionError("oh"), 500, "defect"),
    ]:

        def broken(data, rights, error=error):
            raise error

        monkeypatch.setattr(replica, "respond", broken)
        said = refused(httpx.post(address + "/v1/exchange", content=HELLO), status, code)
        assert "oh" not in said


# News


def test_a_poll_answers_when_there_is_a_commit(serve, replica):
    address = serve()
    ask = lambda after, timeout: httpx.get(
        f"{address}/v1/changes", params={"after": after, "timeout": timeout}, timeout=20
    ).json()["head"]
    assert ask(-1, 10) == 1  # a client that knows nothing hears at once
    assert ask(99, 10) == 1  # and one that knows of commits which are not there any more
    started = time.monotonic()
    assert ask(1, 0.2) == 1
    assert time.monotonic() - started >= 0.2
    with ThreadPoolExecutor(50) as pool:
        polls = [pool.submit(ask, 1, 15) for _ in range(50)]
        time.sleep(0.5)
        assert not any(poll.done() for poll in polls)
        replica.insert(["news"])
        assert {poll.result(10) for poll in polls} == {2}


def test_events(serve, replica):
    address = serve()
    with httpx.stream(
        "GET", address + "/v1/changes", params={"after": 0}, headers={"Accept": "text/event-stream"}
    ) as events:
        lines = events.iter_lines()
        seen = []
        for line in lines:
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: "))["head"])
                if len(seen) == 3:
                    break
                replica.insert([f"more {len(seen)}"])
    assert seen == [1, 2, 3]


def test_stopping_sends_those_home_who_wait(replica):
    listener = Listener(replica).start()
    ask = lambda: httpx.get(listener.address + "/v1/changes?after=1", timeout=60).json()
    with ThreadPoolExecutor(1) as pool:
        poll = pool.submit(ask)
        while not listener._app.state.heads._turn._waiters:
            time.sleep(0.01)
        started = time.monotonic()
        listener.stop()
        assert poll.result(10)["head"] == 1
        assert time.monotonic() - started < 4
    with pytest.raises(httpx.ConnectError):
        httpx.get(listener.address + "/v1/health")


# Addresses and certificates


def test_a_port_that_is_taken(serve, replica):
    port = int(serve().rpartition(":")[2])
    with pytest.raises(SyncError, match=f"cannot listen on 127.0.0.1, port {port}"):
        Listener(replica, port=port)


def test_certificates_that_cannot_be_used(replica, tmp_path):
    with pytest.raises(SyncError, match="both the certificate and its key"):
        Listener(replica, cert=tmp_path / "cert.pem")
    with pytest.raises(SyncError, match="No such file"):
        Listener(replica, cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    (tmp_path / "cert.pem").write_text("x")
    (tmp_path / "key.pem").write_text("x")
    with pytest.raises(SyncError, match="cannot use the certificate"):
        Listener(replica, cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")


def test_a_transport_carries_its_token(serve, replica, tokens):
    address = serve(Tokens(tokens))
    other = FakeReplica("other")
    with closing(HttpTransport(address, token=WRITER)) as way:
        assert way.sync(other).received_rows == 1
    for token, said in ((None, "needs a token"), ("wrong", "does not know this token")):
        with (
            closing(HttpTransport(address, token=token)) as way,
            pytest.raises(SyncError, match=said) as caught,
        ):
            way.sync(other)
        assert (caught.value.peer, caught.value.retry) == (address, False)

"""Metrics, health and pressure: what a server tells of itself, to whom, and when it takes no more."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace

import httpx
import pytest
from tests.fake_replica import FakeReplica
from tests.server.test_app import HELLO, bearer, refused

import everview as ev
from everview.errors import StoreError, SyncError
from everview.replication.transports import http
from everview.replication.transports.http import HttpTransport
from everview.server import Listener, Service, SiteService, Tokens
from everview.server.app import Limits
from everview.server.metrics import Counter, Histogram, gauge, render

LINE = re.compile(r'([a-z_:]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')


def parsed(text):
    """Names and labels → numbers, by the format's own rules."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, labels, value = LINE.fullmatch(line).groups()
            found[name + ("{" + labels + "}" if labels else "")] = float(value)
    return found


def test_the_text_is_what_prometheus_reads():
    counter = Counter("c_total", "Things\nwith \\ in them.")
    counter.add(path='a"b\\c\n')
    counter.add(2, path="d")
    seconds = Histogram("s", "Seconds.", (0.5, 1.0))
    for value in (0.5, 0.6, 7):
        seconds.observe(value)
    assert render([counter.family(), seconds.family(), gauge("g", "Now.", (1.5, {}), (-2, {"x": "y"}))]) == (
        "# HELP c_total Things\\nwith \\\\ in them.\n"
        "# TYPE c_total counter\n"
        'c_total{path="a\\"b\\\\c\\n"} 1\n'
        'c_total{path="d"} 2\n'
        "# HELP s Seconds.\n"
        "# TYPE s histogram\n"
        's_bucket{le="0.5"} 1\n'
        's_bucket{le="1"} 2\n'
        's_bucket{le="+Inf"} 3\n'
        "s_sum 8.1\n"
        "s_count 3\n"
        "# HELP g Now.\n"
        "# TYPE g gauge\n"
        "g 1.5\n"
        'g{x="y"} -2\n'
    )


PROGRAM = ev.Program.parse("CREATE TABLE visit (id BIGINT, place TEXT);")


def test_a_site_tells_how_far_each_device_is(tmp_path):
    with (
        ev.Site.open(":memory:", PROGRAM, name="base") as base,
        ev.Site.open(":memory:", PROGRAM, name="drone") as drone,
        Listener(base.replica, service=SiteService(base.replica)) as listener,
    ):
        drone.sync(listener.address)
        drone.sync(listener.address)
        lag = f'everview_device_lag_commits{{device="drone",incarnation="{drone.replica.incarnation}"}}'
        assert parsed(httpx.get(listener.address + "/v1/metrics").text)[lag] == 0
        for number in range(3):
            base.insert("visit", [(number, "x")])
        answer = httpx.get(listener.address + "/v1/metrics")
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        found = parsed(answer.text)
        assert found[lag] == 3
        assert found["everview_commits"] == base.replica.head
        exchanges = found['everview_requests_total{path="/v1/exchange",status="200"}']
        assert exchanges == found['everview_request_seconds_count{path="/v1/exchange"}'] >= 2
        httpx.post(listener.address + "/v1/exchange", content=b"garbage")
        httpx.get(listener.address + "/made/up")
        found = parsed(httpx.get(listener.address + "/v1/metrics").text)
        assert found['everview_refusals_total{code="message"}'] == 1
        assert found['everview_requests_total{path="other",status="404"}'] == 1


def test_answers_that_refuse_a_message_are_counted(tmp_path):
    """With status 200, as any answer: a token of one site that another uses."""
    path = tmp_path / "tokens.toml"
    path.write_text(f'[[token]]\nsite = "b"\ntoken = "{"b" * 16}"\nread = "*"\nmetrics = true\n')
    with (
        ev.Site.open(":memory:", PROGRAM, name="base") as base,
        ev.Site.open(":memory:", PROGRAM, name="c") as other,
        Listener(base.replica, Tokens(path), service=SiteService(base.replica)) as listener,
    ):

        def counted():
            answer = httpx.get(listener.address + "/v1/metrics", headers=bearer("b" * 16))
            return {name: n for name, n in parsed(answer.text).items() if "refusals" in name}

        assert counted() == {"everview_refusals_total": 0}
        for _ in range(2):
            with pytest.raises(SyncError, match="belongs to 'b'"):
                other.sync(listener.address, token="b" * 16)
        httpx.get(listener.address + "/v1/health")
        assert counted() == {
            'everview_refusals_total{code="refused"}': 2,
            'everview_refusals_total{code="token"}': 1,
        }


def test_only_who_may_watch_reads_metrics(tmp_path):
    class Failing(Service):
        def health(self):
            return False, {"refresh": 7}, {"error": "the disk is full"}

    path = tmp_path / "tokens.toml"
    entries = {"device": 'read = "*"', "watcher": "metrics = true", "nobody": ""}
    path.write_text("".join(f'[[token]]\nsite = "{n}"\ntoken = "{n * 4}"\n{e}\n' for n, e in entries.items()))
    with Listener(FakeReplica(), Tokens(path), service=Failing()) as listener:

        def get(place, site):
            return httpx.get(f"{listener.address}/v1/{place}", headers=bearer(site * 4))

        assert get("metrics", "watcher").status_code == 200
        assert "may not read the metrics" in refused(get("metrics", "device"), 403, "rights")
        refused(get("metrics", "nobody"), 403, "rights")
        refused(get("metrics", "stranger"), 401, "token")
        refused(get("changes", "watcher"), 403, "rights")
        assert get("health", "watcher").status_code == 503
        assert get("health", "watcher").json()["error"] == "the disk is full"
        told = get("health", "device").json()
        assert (told["status"], told["refresh"], "error" in told) == ("failing", 7, False)
        refused(get("health", "nobody"), 403, "rights")
        alive = httpx.get(listener.address + "/v1/live")  # without a token, and without a word
        assert (alive.status_code, alive.content) == (204, b"")
    for wrong in ('metrics = "yes"', "metrics = 1"):
        path.write_text(f'[[token]]\nsite = "x"\ntoken = "{"x" * 16}"\n{wrong}\n')
        with pytest.raises(ev.DataError, match="metrics is true or false"):
            Tokens(path)


class Pressed(Service):
    """One that can take nothing before it was asked so many times."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def pressure(self):
        self.times -= 1
        return 0.001 if self.times >= 0 else None


def test_rows_wait_while_too_many_do_and_questions_are_answered(monkeypatch):
    pauses = []
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=pauses.append))  # other threads sleep too
    with (
        ev.Site.open(":memory:", PROGRAM, name="base") as base,
        ev.Site.open(":memory:", PROGRAM, name="drone") as drone,
    ):
        base.insert("visit", [(1, "base")])
        service = Pressed(10_000)
        with Listener(base.replica, service=service) as listener:
            assert drone.sync(listener.address).received_rows == 1
            assert pauses == []  # it had nothing to give
            drone.insert("visit", [(2, "drone")])
            with pytest.raises(
                SyncError, match="too many rows wait to be taken in; try again later"
            ) as caught:
                drone.sync(listener.address)
            assert caught.value.retry
            asked = [pause for pause in pauses if 1.0 <= pause <= 1.5]
            assert 40 <= len(asked) <= 60  # a minute of waiting, and not all devices at the same time
            assert len(set(asked)) > len(asked) / 2
            assert base.rows("visit") == [(1, "base")]
            service.times = 8
            assert drone.sync(listener.address).sent_rows == 1
            assert base.rows("visit") == [(1, "base"), (2, "drone")]
            assert httpx.get(listener.address + "/v1/health").status_code == 200


def test_a_server_that_says_when_to_come_again_is_waited_for_with_an_end(monkeypatch):
    pauses = []
    monkeypatch.setattr(http, "time", SimpleNamespace(sleep=pauses.append))  # other threads sleep too
    with (
        Listener(FakeReplica(), limits=Limits(answering=0, waiting=0)) as listener,
        closing(HttpTransport(listener.address)) as way,
        pytest.raises(SyncError, match="too many"),
    ):
        way.sync(FakeReplica())
    assert sum(pauses) < 2 * http.PATIENCE


def test_messages_that_are_held_have_a_bound(monkeypatch):
    """Each is within its own limit; together they are refused before they are in memory."""
    replica, gate = FakeReplica(), threading.Event()
    monkeypatch.setattr(replica, "respond", lambda data, rights: b"x" if gate.wait(20) else b"")
    large = json.dumps({"site": "x", "program": "p", "pad": "x" * 100_000}).encode()
    with Listener(replica, limits=Limits(held_bytes=250_000)) as listener:
        with ThreadPoolExecutor(6) as pool:
            calls = [
                pool.submit(httpx.post, listener.address + "/v1/exchange", content=large) for _ in range(6)
            ]
            while sum(call.done() for call in calls) < 4:
                gate.wait(0.01)
            small = pool.submit(httpx.post, listener.address + "/v1/exchange", content=HELLO)
            gate.set()
            answers = [call.result() for call in calls]
            assert small.result().status_code == 200
        assert sorted(answer.status_code for answer in answers) == [200, 200, 503, 503, 503, 503]
        for answer in answers:
            if answer.status_code == 503:
                refused(answer, 503, "busy")
        assert httpx.post(listener.address + "/v1/exchange", content=large).status_code == 200


def test_a_store_in_trouble_is_a_503_for_who_watches_too(monkeypatch):
    class Troubled(Service):
        def families(self):
            raise StoreError("somebody writes for long")

    with Listener(FakeReplica(), service=Troubled()) as listener:
        answer = httpx.get(listener.address + "/v1/metrics")
        assert refused(answer, 503, "store") == "somebody writes for long"


PUBLISHING = ev.Program.parse("""
    CREATE TABLE visit (id BIGINT, place TEXT);
    CREATE MATERIALIZED VIEW totals WITH (authority = 'base') AS
        SELECT place, count(*) AS n FROM visit GROUP BY place;
""")

"""What the page is told, and who is told what."""

import datetime as dt
import json
import threading
import time
from collections import Counter

import pytest
from tests.console.conftest import ALL, SOME, WATCH

from everview import Program, Site
from everview.console import SiteSubject
from everview.errors import LimitError

READS = ["about", "tables", "rows", "plan", "sites", "refreshes", "simulation", "live"]
ASKS = ["why", "without", "insert", "delete"]


def test_about(serve):
    found = serve()().ok("about")
    assert (found["kind"], found["name"], found["unreadable"]) == ("site", "post", 0)
    tables = {table["name"]: table for table in found["tables"]}
    assert list(tables) == [
        "sighting",
        "sector",
        "path",
        "secret",
        "note",
        "alert",
        "busy",
        "named",
        "open_path",
        "reach",
        "leak",
    ]
    assert tables["sector"]["key"] == ["sector"]
    assert tables["note"]["semantics"] == "bag"
    assert tables["alert"]["columns"][0] == {"name": "sector", "type": "BIGINT", "nullable": False}
    assert tables["alert"]["reads"] == ["sector", "sighting"]
    assert not any(table["writable"] for table in found["tables"])


def test_rows_are_texts_each_once_with_how_often(serve, site):
    ask = serve()()
    site.insert("sighting", [(None, 2**62, "")])
    found = ask.ok("rows", name="sighting")
    assert found["total"] == found["different"] == 4
    assert found["rows"][-1] == {"cells": [None, str(2**62), ""], "whole": True, "often": 1}
    notes = ask.ok("rows", name="note")
    assert [(row["cells"], row["often"]) for row in notes["rows"]] == [
        (["<script>alert(1)</script>"], 1),
        (["x"], 2),
    ]
    assert (notes["total"], notes["different"]) == (3, 2)


def test_pages_of_rows(serve, site):
    ask = serve()()
    site.insert("path", [(10, n) for n in range(250)])
    pages = [ask.ok("rows", name="path", offset=offset, limit=100)["rows"] for offset in (0, 100, 200, 300)]
    assert [len(page) for page in pages] == [100, 100, 53, 0]
    assert [tuple(row["cells"]) for page in pages for row in page] == [
        (str(a), str(b)) for a, b in site.rows("path")
    ]
    assert ask.get("rows", name="path", offset="x").status_code == 400
    assert len(ask.ok("rows", name="path", limit=10**9)["rows"]) == 253


def test_more_rows_than_are_sorted(serve, site, monkeypatch):
    monkeypatch.setattr("everview.engines.sqlite.inspecting.SORTED", 100)
    site.insert("path", [(10, n) for n in range(250)])
    found = serve()().ok("rows", name="path", limit=10)
    assert (found["ordered"], found["total"], len(found["rows"])) == (False, 253, 10)


def test_a_long_value_is_cut_and_cannot_be_asked_about(serve, site):
    site.insert("secret", [("x" * 5000,)])
    (row,) = [row for row in serve()().ok("rows", name="secret")["rows"] if row["cells"][0].startswith("xx")]
    assert (len(row["cells"][0]), row["whole"]) == (2000, False)


def test_counts(serve):
    found = serve()().ok("tables")["counts"]
    wanted = {"sighting": 3, "note": 3, "busy": 2, "reach": 3}
    assert {name: found[name] for name in wanted} == {
        name: {"rows": rows, "exact": True} for name, rows in wanted.items()
    }


def test_why(serve, site):
    site.insert("sighting", [("d3", 1, "tent")])
    found = serve()().told("why", name="alert", row=["1", "Ridge"])
    assert found["there"]
    assert found["text"] == "t1·t2 + t1·t3 + t1·t4"
    assert len(found["monomials"]) == 3
    first = found["tuples"][0]
    assert (first["relation"], first["row"], first["origin"], first["whole"]) == (
        "sector",
        ["1", "Ridge"],
        "post",
        True,
    )


def test_why_of_a_row_that_is_not_there(serve):
    found = serve()().told("why", name="alert", row=["9", "Nowhere"])
    assert (found["there"], found["tuples"], found["monomials"]) == (False, [], [])


def test_a_proof_goes_down_to_base_rows_through_views(serve):
    found = serve()().told("why", name="reach", row=["1", "3"])
    labels = {tuple(one["row"]): one["label"] for one in found["tuples"]}
    assert labels.keys() == {("1", "2"), ("2", "3")}
    leaves = [step for step in found["proof"] if step["leaf"]]
    assert [step["relation"] for step in leaves] == ["open_path", "open_path"]
    assert sorted(step["stands_on"] for step in leaves) == sorted([[label] for label in labels.values()])
    assert found["proof"][0]["premises"]


def test_what_would_vanish_is_what_vanishes(serve, site):
    ask = serve()()
    found = ask.told("without", relation="sighting", row=["d1", "1", "tent"])
    turns = {turn["name"]: turn for turn in found["turns"]}
    assert turns.keys() == {"sighting", "busy", "named", "leak"}  # alert has another reason
    bags = lambda: {
        view: Counter(tuple(map(str, row)) for row in site.rows(view)) for view in site.program.views
    }
    before = bags()
    assert site.delete("sighting", [("d1", 1, "tent")]) == 1
    for view, after in bags().items():
        told = Counter({tuple(one["cells"]): one["weight"] for one in turns.get(view, {"rows": []})["rows"]})
        after.subtract(before[view])
        assert told == Counter({row: weight for row, weight in after.items() if weight}), view
    assert ask.told("without", relation="sighting", row=["d2", "1", "tent"])["turns"][1]["name"] == "alert"


def test_a_base_row_that_is_elsewhere(serve, site):
    """A site that hosts the view alone knows what its derivations say, and no more."""
    with Site.open(":memory:", site.program, name="screen", hosts={"alert", "named"}) as screen:
        screen.sync(site)
        screen.sync(site)
        ask = serve(subject=SiteSubject(screen))()
        assert [table["name"] for table in ask.ok("about")["tables"]] == ["alert", "named"]
        found = ask.told("why", name="alert", row=["1", "Ridge"])
        of = {"name": "alert", "row": ["1", "Ridge"]}
        by = {one["relation"]: one for one in found["tuples"]}
        assert not by["sighting"]["whole"]
        asked = lambda one: ask.post(
            "without", relation=one["relation"], row=one["row"], whole=False, id=one["id"], of=of
        )
        assert asked(by["sector"]).json()["vanishes"] is True
        assert asked(by["sighting"]).json()["vanishes"] is False  # there are two
        refused = ask.post(
            "without",
            relation="sighting",
            row=["d1", "1", "tent"],
            id="",
            of={"name": "named", "row": ["Ridge", "2"]},
        )
        assert (refused.status_code, refused.json()["code"]) == (409, "elsewhere")
        boxes = ask.ok("plan", name="named")["boxes"]
        assert (boxes[-1]["title"], boxes[-1]["detail"]) == ("sector, sighting", "comes from other sites")


def test_whether_all_base_rows_are_needed_is_said_where_it_is_known(serve):
    ask = serve()()
    assert ask.told("why", name="sector", row=["1", "Ridge"])["needed"]
    assert ask.told("why", name="alert", row=["1", "Ridge"])["needed"]
    assert not ask.told("why", name="busy", row=["1", "2"])["needed"]  # a group: the others stay one


def test_rows_that_everview_keeps_are_told_apart(serve):
    """How far windows are closed: a row stands on it, and nobody deletes it."""
    program = Program.parse("""
        CREATE TABLE seen (drone TEXT NOT NULL, at TIMESTAMP NOT NULL)
            WITH (owner = 'drone', event_time = 'at', sources = 'd');
        CREATE MATERIALIZED VIEW by_hour AS
            SELECT tumble(at, INTERVAL '1 hour') AS hour, count(*) AS n, window_final() AS final
            FROM seen GROUP BY tumble(at, INTERVAL '1 hour');
        CREATE MATERIALIZED VIEW told WITH (authority = 'hub') AS SELECT drone FROM seen;
    """)
    noon = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
    with Site.open(":memory:", program, name="d") as drone:
        drone.insert("seen", [("d", noon)])
        drone.close_windows(noon + dt.timedelta(hours=1))
        ask = serve(subject=SiteSubject(drone))()
        found = ask.told("why", name="by_hour", row=["2026-06-01T12:00:00Z", "1", "true"])
        assert {one["relation"]: one["system"] for one in found["tuples"]} == {
            "seen": False,
            "everview_progress": True,
        }
        about = {table["name"]: table for table in ask.ok("about")["tables"]}
        assert about["by_hour"]["reads"] == ["seen"]
        published = ask.ok("plan", name="told")["boxes"][-1]
        assert (published["title"], published["detail"]) == ("told", "published by hub")


def test_what_outgrew_a_limit_is_told_as_that(serve, site, monkeypatch):
    def refuse(*_):
        raise LimitError("there are more than 20,000 rows; ask elsewhere", limit=20_000)

    subject = SiteSubject(site)
    monkeypatch.setattr(subject, "without", refuse)
    refused = serve(subject=subject)().post("without", relation="sighting", row=["d1", "1", "tent"])
    assert (refused.status_code, refused.json()["code"]) == (422, "limit")
    assert refused.json()["error"] == "there are more than 20,000 rows; ask elsewhere"


def test_a_plan_with_what_the_last_commit_did(serve, site):
    ask = serve()()
    first = ask.ok("plan", name="alert")
    assert first["change"] is None
    assert all(box["appeared"] is None for box in first["boxes"])
    assert "On a commit" in first["words"]
    site.insert("sighting", [("d4", 2, "tent"), ("d4", 2, "tree")])
    found = ask.ok("plan", name="alert")
    assert found["change"] == site.status()["commits"]
    counts = {box["title"]: (box["appeared"], box["disappeared"]) for box in found["boxes"]}
    assert counts == {
        "alert": (1, 0),
        "distinct": (1, 0),
        "project": (1, 0),
        "inner join": (1, 0),
        "filter": (1, 0),
        "sighting": (2, 0),
        "sector": (0, 0),
    }
    ids = {box["id"] for box in found["boxes"]}
    assert all(set(box["reads"]) <= ids for box in found["boxes"])
    assert ask.get("plan", name="sector").status_code == 400


def test_a_plan_of_every_view(serve, site):
    ask = serve()()
    for view in site.program.views:
        assert ask.ok("plan", name=view)["boxes"][0]["title"] == view


def test_the_map_and_whether_any_site_differs(serve, site):
    ask = serve()()
    alone = ask.ok("sites")
    assert (alone["self"]["name"], alone["sites"], alone["alarms"]) == ("post", [], [])
    with (
        Site.open(":memory:", site.program, name="drone") as drone,
        Site.open(":memory:", site.program, name="far") as far,
    ):
        far.insert("path", [(7, 8)])
        drone.insert("sighting", [("d9", 9, "x")])
        drone.sync(far)
        site.sync(drone)
        found = ask.ok("sites")
        by = {one["name"]: one for one in found["sites"]}
        assert by["drone"]["names"] == ["sighting"]
        assert (by["drone"]["link"]["dialled"], by["drone"]["lag"]) == (True, None)
        assert abs(found["now_us"] - by["drone"]["heard_us"]) < 60e6
        assert (by["far"]["names"], by["far"]["link"], by["far"]["heard_us"]) == (["path"], None, 0)
        drone.sync(site)
        drone.sync(site)
        site.insert("path", [(9, 8)])
        (seen,) = [one for one in ask.ok("sites")["sites"] if one["name"] == "drone"]
        assert seen["lag"] == 1


def test_an_alarm_is_on_the_map_for_who_may_read_the_relation(serve, site):
    with Site.open(":memory:", site.program, name="drone") as drone:
        drone.sync(site)
        table = site.replica.shares["secret"].table.name
        connection = site._store.writer.connection
        connection.execute(f"UPDATE {table} SET c0 = 'other'")
        connection.execute("UPDATE everview_partitions SET summed = 0")
        drone.insert("secret", [("more",)])
        site.sync(drone)
        ask = serve(tokens=True)
        (alarm,) = ask(ALL).ok("sites")["alarms"]
        assert (alarm["relation"], alarm["peer"]) == ("secret", "drone")
        assert ask(SOME).ok("sites")["alarms"] == []


def test_a_site_has_no_refreshes_and_no_run(serve):
    assert serve()().ok("refreshes") == {"refreshes": None}
    assert serve()().ok("simulation") == {"run": None}


def test_news_are_waited_for(serve, site):
    ask = serve()()
    mark = ask.ok("live", after="")["mark"]
    threading.Timer(0.3, lambda: site.insert("path", [(5, 6)])).start()
    began = time.monotonic()
    found = ask.ok("live", after=mark)
    assert found["mark"] != mark
    assert 0.2 < time.monotonic() - began < 5


# Tokens


def test_every_address_needs_a_token(serve):
    ask = serve(tokens=True)
    for one in (ask(), ask("wrong-wrong-wrong-wrong")):
        for path in READS:
            assert one.get(path).status_code == 401
        for path in ASKS:
            assert one.post(path).status_code == 401
    for path in READS:
        assert ask(WATCH).get(path, name="alert").status_code == 403, path  # metrics, and no data
        assert ask(ALL).get(path, name="alert").status_code == 200


def test_a_token_sees_what_it_may_read(serve, site):
    ask = serve(tokens=True)(SOME)
    about = ask.ok("about")
    assert [table["name"] for table in about["tables"]] == ["sighting", "sector", "alert", "leak"]
    assert (about["unreadable"], about["token_of"], about["watches"]) == (7, "guest", False)
    assert set(ask.ok("tables")["counts"]) == {"sighting", "sector", "alert", "leak"}
    for name in ("secret", "busy", "nothing"):
        refused = [
            ask.get("rows", name=name),
            ask.get("plan", name=name),
            ask.post("why", name=name, row=["x"]),
        ]
        assert {answer.status_code for answer in refused} == {404}
        assert {answer.json()["code"] for answer in refused} == {"name"}
    assert ask.post("without", relation="secret", row=["sesame"]).status_code == 404
    assert ask.get("plan", name="leak").status_code == 403  # it would tell of what it reads
    assert ask.get("plan", name="alert").status_code == 200


def test_why_tells_nothing_of_what_may_not_be_read(serve):
    found = serve(tokens=True)(SOME).told("why", name="leak", row=["2", "sesame"])
    assert [one.get("hidden", False) for one in found["tuples"]] == [True, False]
    text = json.dumps([one for one in found["tuples"] if one.get("hidden")])
    assert "sesame" not in text
    assert "secret" not in text


def test_without_tells_nothing_of_what_may_not_be_read(serve):
    found = serve(tokens=True)(SOME).told("without", relation="sighting", row=["d2", "2", "tree"])
    assert {turn["name"] for turn in found["turns"]} == {"sighting", "leak"}  # and neither busy nor named


def test_the_map_tells_a_guest_no_addresses(serve, site):
    with Site.open(":memory:", site.program, name="drone") as drone:
        drone.insert("sighting", [("d9", 9, "x")])
        drone.insert("path", [(7, 8)])
        site.sync(drone)
        ask = serve(tokens=True)
        (mine,) = ask(SOME).ok("sites")["sites"]
        assert mine["link"]["address"] == ""
        assert mine["names"] == ["sighting"]
        (seen,) = ask(ALL).ok("sites")["sites"]
        assert seen["link"]["address"]


# Writing


def test_read_only_unless_said(serve, site):
    ask = serve()()
    refused = ask.post("insert", relation="path", row=["8", "9"])
    assert (refused.status_code, refused.json()["code"]) == (403, "read_only")
    assert "--allow-write" in refused.json()["error"]
    assert ask.post("delete", relation="path", row=["1", "2"]).status_code == 403
    assert (1, 2) in site.rows("path")


def test_rows_are_written_where_that_is_allowed(serve, site):
    ask = serve(writes=True)()
    assert ask.told("insert", relation="path", row=["8", None])["done"] == "inserted"
    assert ask.told("insert", relation="path", row=["8", None])["done"] == "it was there already"
    assert (8, None) in site.rows("path")
    assert ask.told("delete", relation="sector", row=["1", "Ridge"])["done"] == "deleted"
    assert site.rows("alert") == []
    for row, said in (
        (["x", "1"], "path.a cannot be 'x'"),
        (["1"], "a list of 2 texts"),
        ([1, 2], "as a text"),
    ):
        refused = ask.post("insert", relation="path", row=row)
        assert refused.status_code == 422
        assert said in refused.json()["error"]
    refused = ask.post("insert", relation="sighting", row=["d", None, None])
    assert (refused.status_code, refused.json()["code"]) == (422, "data")


def test_a_token_writes_what_it_may(serve):
    ask = serve(tokens=True, writes=True)(SOME)
    writable = [table["name"] for table in ask.ok("about")["tables"] if table["writable"]]
    assert writable == ["sighting"]
    assert ask.told("insert", relation="sighting", row=["d", "1", None])["done"] == "inserted"
    assert ask.post("insert", relation="sector", row=["9", "x"]).status_code == 403
    assert ask.post("insert", relation="secret", row=["x"]).status_code == 404


# Other pages


def test_other_pages_cannot_ask(serve):
    """A page from elsewhere that this browser shows: by its name for our address, or across origins."""
    client = serve(writes=True)().client
    body = json.dumps({"relation": "path", "row": ["1", "1"]})
    send = lambda **headers: client.post("/v1/console/insert", content=body, headers=headers)
    assert send(**{"Content-Type": "text/plain"}).status_code == 415
    assert send(**{"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert send(**{"Content-Type": "application/json", "Host": "evil.example"}).status_code == 403
    read = client.get("/v1/console/rows?name=path", headers={"Host": "evil.example:80"})
    assert (read.status_code, read.json()["code"]) == (403, "host")
    for host in ("localhost:1", "localhost", "127.0.0.2", "[::1]", "[::1]:8440"):
        assert client.get("/v1/console/about", headers={"Host": host}).status_code == 200, host
    for host in ("localhost.evil.example", "127.0.0.1.evil.example", "[::1", "10.0.0.1", "0.0.0.0:80"):
        assert client.get("/v1/console/about", headers={"Host": host}).status_code == 403, host
    preflight = client.options("/v1/console/insert", headers={"Origin": "http://evil.example"})
    assert preflight.status_code == 405
    assert not any(name.startswith("access-control") for name in preflight.headers)


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[]", b"3", b'{"name": 3}', b'{"name": "alert"}', b"[" * 5000]
)
def test_nonsense_is_refused(serve, body):
    client = serve()().client
    answer = client.post("/v1/console/why", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 404, 422)
    assert answer.json()["error"]


def test_a_body_that_is_too_long(serve):
    client = serve()().client
    answer = client.post(
        "/v1/console/why", content=b" " * (2 << 20), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "size")

"""The console's view of a hub: rows, operators, what would vanish, refreshes; as of the last refresh."""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest

from everview import Hub, Program, Site
from everview.console.hubs import HubSubject
from everview.errors import LimitError
from everview.hub import inspecting
from everview.server.hubs import HubService

PROGRAM = """
    CREATE TABLE sighting (drone TEXT, sector BIGINT);
    CREATE TABLE sector (sector BIGINT PRIMARY KEY, name TEXT);
    CREATE TABLE own (site TEXT, x BIGINT) WITH (owner = 'site');
    CREATE MATERIALIZED VIEW alert AS
        SELECT DISTINCT s.sector, t.name FROM sighting s JOIN sector t ON s.sector = t.sector
        WHERE drone <> 'x';
    CREATE MATERIALIZED VIEW busy AS SELECT sector, count(*) AS n FROM sighting GROUP BY sector;
"""


@pytest.fixture
def shown(spark, tmp_path):
    with Hub.open(tmp_path / "hub", Program.parse(PROGRAM), spark=spark) as hub:
        service = HubService(hub, "1 second", lambda: None)

        def refresh():
            service._refreshed(hub.refresh())

        yield hub, HubSubject(hub, service), refresh


def test_a_hub_is_shown(shown, monkeypatch):
    hub, subject, refresh = shown
    assert subject.picture("alert").change is None
    assert subject.refreshes()["refreshes"] == []
    hub.insert("sector", [(1, "Ridge"), (2, "Mill")])
    hub.insert("sighting", [("a", 1), ("b", 1), ("x", 2)])
    refresh()
    assert subject.count("busy") == (2, True)
    found = subject.rows("busy", 0, 1)
    assert (found.rows, found.total, found.ordered) == ([((1, 2), 1)], 2, True)
    assert {witness.relation for witness in subject.why("alert", (1, "Ridge")).tuples()} == {
        "sighting",
        "sector",
    }

    hub.insert("sighting", [("c", 2), ("x", 1)])
    refresh()
    picture = subject.picture("alert")
    counts = {box.title: (box.appeared, box.disappeared) for box in picture.boxes}
    assert picture.change == hub.refreshed == 2
    assert counts == {
        "alert": (1, 0),
        "distinct": (1, 0),
        "inner join": (1, 0),
        "sighting": (2, 0),
        "sector": (0, 0),
    }
    (last, first) = subject.refreshes()["refreshes"]
    assert (last["refresh"], first["refresh"]) == (2, 1)
    assert last["stages"]["compute"] > 0
    assert last["changes"]["sighting"] == {"appeared": 2, "disappeared": 0}
    assert subject.explain("sector") == "sector is a keyed relation: sites and the hub write to it."

    # What would vanish is what vanishes, with the next refresh.
    names = subject.hosted()
    before = {name: Counter(hub.rows(name)) for name in names}
    turns = subject.without("sighting", ("c", 2), names)
    assert subject.without("sighting", ("c", 2), names) == turns  # from the same copy
    hub.delete("sighting", [("c", 2)])
    refresh()
    for name in names:
        change = Counter(hub.rows(name))
        change.subtract(before[name])
        told = dict(turns[name].rows) if name in turns else {}
        assert told == {row: weight for row, weight in change.items() if weight}, name
    assert set(turns) == {"sighting", "busy", "alert"}

    monkeypatch.setattr(inspecting, "TRIED", 3)
    hub.insert("sighting", [("d", n) for n in range(5)])
    refresh()
    with pytest.raises(LimitError, match=r"more than 3 rows together, .* \(`everview serve`\)"):
        subject.without("sighting", ("a", 1), names)

    # Of many rows, some, by Spark; and counts by what was written.
    monkeypatch.setattr(inspecting, "COUNTED", 2)
    monkeypatch.setattr(hub._store, "driver_rows", 2)
    monkeypatch.setattr(inspecting, "SHOWN", 3)
    hub.insert("sighting", [("e", 1)])
    refresh()
    some = subject.rows("sighting", 0, 100)
    assert (len(some.rows), some.ordered) == (3, False)
    assert {row for row, _ in some.rows} <= set(hub.rows("sighting"))
    assert not subject.count("sighting")[1]


def test_a_hub_in_a_notebook(spark, tmp_path, monkeypatch):
    program = Program.parse(
        'CREATE TABLE r ("<i>" BIGINT); CREATE MATERIALIZED VIEW v AS SELECT "<i>" AS n FROM r;'
    )
    hub = Hub.open(tmp_path / "hub", program, spark=spark, name="<cloud>")
    assert repr(hub) == f"<Hub '<cloud>' at {hub._store.files.uri('')}>"

    def shown():
        html = hub._repr_html_()
        assert not re.search("<i>|<cloud>", html)
        found = ET.fromstring(f"<div>{html}</div>")
        rows = [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]
        return found.find("p/strong").text, rows, found.find("p/small").text

    heading, rows, note = shown()
    assert heading == f"<cloud> at {hub._store.files.uri('')}"
    assert rows == [
        ["", "name", "rows", "columns"],
        ["relation", "r", "0", "<i> BIGINT"],
        ["view", "v", "0", "n BIGINT"],
    ]
    assert note == "no refresh yet"
    hub.insert("r", [(n,) for n in range(1200)])
    hub.insert("r", [(1,)])
    assert shown()[2] == "no refresh yet; 2 writes wait"
    hub.refresh()
    _, (_, relation, view), note = shown()
    assert (relation[2], view[2]) == ("1,200", "1,200")
    assert re.fullmatch(r"refresh 1, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", note)
    with Site.open(":memory:", program, name="site") as site:
        site.sync(hub)
        site.insert("r", [(-1,)])
        site.sync(hub)
        assert shown()[2] == f"{note}; 1 row of sites waits"
        site.insert("r", [(n,) for n in range(-1100, -1)])
        site.sync(hub)
        assert shown()[2] == f"{note}; at least 1,000 rows of sites wait"
    monkeypatch.setattr(inspecting, "COUNTED", 2)
    hub.inspection._counts.clear()
    assert shown()[1][1][2] == "≈ 1,200"
    hub.close()
    assert shown()[1:] == ([], "closed")

"""On a hub, too, a window is final when every source has closed it and all of its events are there."""

import datetime as dt

import pytest
from tests.replication.window_histories import PROGRAM, START, VIEWS

from everview import DataError, Hub, Site


def minute(count):
    return START + dt.timedelta(minutes=count)


def shown(peer):
    return {view: peer.rows(view) for view in VIEWS}


def test_windows_become_final_on_a_hub_when_the_last_source_has_closed_them(spark, tmp_path):
    relay_hosts = {"alarm"}
    with (
        Hub.open(tmp_path / "hub", PROGRAM, spark=spark) as hub,
        Site.open(":memory:", PROGRAM, name="a") as a,
        Site.open(":memory:", PROGRAM, name="b") as b,
        Site.open(":memory:", PROGRAM, name="relay", hosts=relay_hosts) as relay,
    ):
        a.insert("reading", [("a", minute(3), 1), ("a", minute(12), 2)])
        b.insert("reading", [("b", minute(4), 4)])
        a.insert("alarm", [("a", minute(5), 1), ("a", minute(5), 1)])
        a.close_windows(minute(10))
        a.sync(hub)
        hub.refresh()
        assert [row[-1] for row in hub.rows("tumbling")] == [False, False]

        b.close_windows(minute(20))
        b.sync(relay)
        relay.sync(hub)  # the marker without the events
        hub.refresh()
        assert [row[-1] for row in hub.rows("tumbling")] == [False, False]

        b.sync(hub)
        a.sync(hub)
        hub.refresh()
        a.sync(hub)
        assert [row[1:] for row in hub.rows("tumbling")] == [(2, 5, True), (1, 2, False)]
        assert shown(hub) == shown(a)

        assert a.insert("reading", [("a", minute(9), 100), ("a", minute(19), 8)]) == 1  # one is too late
        a.close_windows(minute(60))
        b.close_windows(minute(60))
        for _ in range(2):
            a.sync(hub)
            b.sync(hub)
            hub.refresh()
        assert [row[1:] for row in hub.rows("tumbling")] == [(2, 5, True), (2, 10, True)]
        assert shown(hub) == shown(a) == shown(b)
        assert hub.rows("everview_late_reading") == [("a", minute(9), 100, "insert")]
        with pytest.raises(DataError, match="its events enter at the sites of its sources"):
            hub.insert("reading", [("hub", minute(70), 1)])
        with pytest.raises(DataError, match="kept by Everview"):
            hub.insert("everview_progress", [("a", "reading", minute(70))])

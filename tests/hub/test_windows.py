"""On a hub, too, a window is final when every source has closed it and all of its events are there."""

import datetime as dt
import shutil

import pytest
from tests.engines.sqlite.windows.worlds import PROGRAM, START, VIEWS

from everview import DataError, Hub, Program, Site, StoreError


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
        with pytest.raises(DataError, match="has the sources a, b, and this site is 'hub'"):
            hub.insert("reading", [("hub", minute(70), 1)])
        with pytest.raises(DataError, match="kept by Everview"):
            hub.insert("everview_progress", [("a", "reading", minute(70))])


OWN = Program.parse("""
CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, n BIGINT)
    WITH (owner = 'source', event_time = 'at', sources = 'hub, a');
CREATE TABLE beat (source TEXT NOT NULL, at TIMESTAMP NOT NULL)
    WITH (owner = 'source', event_time = 'at', sources = 'hub', lateness = '1 minute', semantics = 'bag');
CREATE MATERIALIZED VIEW readings AS SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS c,
    sum(n) AS s, window_final() AS final FROM reading GROUP BY tumble(at, INTERVAL '10 minutes');
CREATE MATERIALIZED VIEW beats AS SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS c,
    window_final() AS final FROM beat GROUP BY tumble(at, INTERVAL '10 minutes');
""")


def test_a_hub_is_a_source_that_closes_its_own_windows(spark, tmp_path):
    with (
        Hub.open(tmp_path / "hub", OWN, spark=spark) as hub,
        Site.open(":memory:", OWN, name="a") as a,
    ):
        assert hub.insert("reading", [("hub", minute(3), 1), ("hub", minute(12), 2)]) == 2
        rows = [("hub", minute(1)), ("hub", minute(1)), ("hub", minute(8))]
        assert hub.insert("beat", spark.createDataFrame(rows, "source STRING, at TIMESTAMP")) == 3
        hub.refresh()
        assert [row[1:] for row in hub.rows("readings")] == [(1, 1, False), (1, 2, False)]
        assert [row[1:] for row in hub.rows("beats")] == [(3, False)]
        assert hub.close_windows(minute(10), ["reading"]) == 1
        assert hub.close_windows(minute(10), ["reading"]) == 0
        a.insert("reading", [("a", minute(4), 4)])
        a.close_windows(minute(10))
        a.sync(hub)
        hub.refresh()
        assert [row[1:] for row in hub.rows("readings")] == [(2, 5, True), (1, 2, False)]
        assert a.rows("readings") == hub.rows("readings")
        # By its own watermark, in the commit that writes the row; what is too late goes aside.
        assert hub.insert("beat", [("hub", minute(11))]) == 1
        assert hub.insert("beat", [("hub", minute(9)), ("hub", minute(10))]) == 1
        assert hub.insert("reading", [("hub", minute(9), 100)]) == 0
        assert hub.delete("reading", [("hub", minute(3), 1)]) == 0
        hub.refresh()
        a.sync(hub)
        assert [row[1:] for row in hub.rows("beats")] == [(3, True), (2, False)]
        assert [row[1:] for row in hub.rows("readings")] == [(2, 5, True), (1, 2, False)]
        assert len(hub.rows("everview_late_reading")) == 2
        late = [("hub", minute(9), "insert")]
        assert hub.rows("everview_late_beat") == a.rows("everview_late_beat") == late
        assert (a.rows("beats"), a.rows("readings")) == (hub.rows("beats"), hub.rows("readings"))
        with pytest.raises(DataError, match="is 'a', and only that site"):
            hub.insert("reading", [("a", minute(30), 1)])


def test_a_hub_whose_gate_was_put_back_writes_nothing_until_it_is_in_charge(spark, tmp_path):
    gate, kept = tmp_path / "hub" / "gate", tmp_path / "kept"
    with Site.open(":memory:", OWN, name="a") as a:
        with Hub.open(tmp_path / "hub", OWN, spark=spark) as hub:
            hub.insert("reading", [("hub", minute(3), 1)])
            hub.refresh()
            a.sync(hub)
        shutil.copytree(gate, kept)
        with Hub.open(tmp_path / "hub", OWN, spark=spark) as hub:
            assert hub.insert("reading", [("hub", minute(4), 2)]) == 1
            hub.close_windows(minute(10))
            a.close_windows(minute(10), ["reading"])
            a.sync(hub)
            hub.refresh()
            final = hub.rows("readings")
        assert [row[1:] for row in final] == [(2, 3, True)]
        assert a.rows("readings") == final
        shutil.rmtree(gate)
        with (
            Hub.open(tmp_path / "hub", OWN, spark=spark) as hub,
            pytest.raises(StoreError, match="only its gate knows which windows it has closed"),
        ):
            hub.rebuild_gate()
        shutil.copytree(kept, gate)
        with Hub.open(tmp_path / "hub", OWN, spark=spark) as hub:
            with pytest.raises(StoreError, match="does not go with the last refresh"):
                hub.insert("reading", [("hub", minute(5), 7)])
            hub.adopt_gate()
            with pytest.raises(StoreError, match="may have forgotten which windows it closed"):
                hub.insert("reading", [("hub", minute(5), 7)])
            for _ in range(6):
                hub.take_charge()
                a.sync(hub)
            assert hub.take_charge(), hub.replica.closing.charge.reason()
            assert hub.insert("reading", [("hub", minute(5), 7), ("hub", minute(15), 8)]) == 1
            hub.refresh()
            a.sync(hub)
            assert [row[1:] for row in hub.rows("readings")] == [(2, 3, True), (1, 8, False)]
            assert a.rows("readings") == hub.rows("readings")

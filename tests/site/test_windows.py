"""Windows that close for certain, on devices: the door, watermarks, restores and copies."""

import datetime as dt
import shutil

import pytest
from tests.replication.sites import World, talk

from everview import DataError, Program, Site, StoreError

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
PROGRAM = Program.parse("""
    CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value BIGINT)
        WITH (owner = 'source', event_time = 'at', sources = 'a, b');
    CREATE TABLE ticks (source TEXT NOT NULL, at TIMESTAMP NOT NULL)
        WITH (owner = 'source', event_time = 'at', sources = 'a', lateness = '5 minutes');
    CREATE TABLE note (text TEXT);
    CREATE MATERIALIZED VIEW v AS
        SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS n, sum(value) AS total,
               window_final() AS final
        FROM reading GROUP BY 1;
    CREATE MATERIALIZED VIEW certain AS SELECT w, n FROM v WHERE final;
    CREATE MATERIALIZED VIEW told WITH (authority = 'r') AS SELECT w, n FROM v WHERE final;
    CREATE MATERIALIZED VIEW ticking AS
        SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS n FROM ticks GROUP BY 1
        HAVING window_final();
    CREATE MATERIALIZED VIEW hopping AS
        SELECT hop(at, INTERVAL '10 minutes', INTERVAL '20 minutes') AS w, count(*) AS n,
               window_final() AS final
        FROM ticks GROUP BY 1;
""")


def minute(count):
    return START + dt.timedelta(minutes=count)


def seen(site):
    return [(int((w - START).total_seconds() // 60), n, final) for w, n, _, final in site.rows("v")]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def sites(world):
    found = [world.site(name, program=PROGRAM) for name in ("a", "b", "r")]
    yield found
    for site in found:
        site.close()


def test_a_window_is_final_when_every_source_has_closed_it_and_not_before(sites):
    a, b, r = sites
    a.insert("reading", [("a", minute(1), 1), ("a", minute(11), 2)])
    b.insert("reading", [("b", minute(2), 3)])
    assert a.close_windows(minute(10)) == 2
    assert a.close_windows(minute(10)) == 0
    talk(*sites)
    assert seen(r) == [(0, 2, False), (10, 1, False)]
    assert b.close_windows(minute(19)) == 1
    assert seen(b) == [(0, 2, True), (10, 1, False)]
    talk(*sites)
    assert seen(a) == seen(b) == seen(r) == [(0, 2, True), (10, 1, False)]
    assert r.rows("certain") == [(minute(0), 2)]
    assert a.rows("told") == [(minute(0), 2)]


def test_a_window_that_has_not_ended_when_the_sources_closed_stays_provisional(sites):
    a, b, _ = sites
    a.insert("reading", [("a", minute(1), 1)])
    a.close_windows(minute(10) - dt.timedelta(microseconds=1))
    b.close_windows(minute(60))
    talk(a, b)
    assert seen(a) == [(0, 1, False)]
    a.close_windows(minute(10))
    assert seen(a) == [(0, 1, True)]


def test_a_marker_that_comes_without_its_events_does_not_count(world, sites):
    a, b, r = sites
    relay = world.site("relay", program=PROGRAM, hosts={"ticks"})
    b.close_windows(minute(60))
    talk(b, r)
    a.insert("reading", [("a", minute(1), 1)])
    a.sync(r)
    a.insert("reading", [("a", minute(2), 2)])
    a.close_windows(minute(60), ["reading"])
    a.sync(relay)
    relay.sync(r)
    assert ("a", "reading", minute(60)) in [row[:3] for row in r.rows("everview_closed")]
    assert seen(r) == [(0, 1, False)]
    a.sync(r)
    assert seen(r) == [(0, 2, True)]


def test_markers_that_always_run_ahead_of_their_events_count_one_after_the_other(world, sites):
    a, b, r = sites
    relay = world.site("relay", program=PROGRAM, hosts={"ticks"})
    b.close_windows(minute(600))
    talk(a, b, r, relay)
    final = []
    for step in range(1, 6):
        a.insert("reading", [("a", minute(10 * step - 5), step)])
        a.close_windows(minute(10 * step), ["reading"])
        a.sync(relay)
        relay.sync(r)  # the marker, without its events
        final.append(sum(f for *_, f in seen(r)))
        a.sync(r)
    assert final == [0, 1, 2, 3, 4]


def test_a_hopping_window_is_final_when_all_of_it_is_closed(sites):
    a = sites[0]
    a.insert("ticks", [("a", minute(6))])
    a.close_windows(minute(10), ["ticks"])
    shown = [(minute(-10), 1, True), (minute(0), 1, False)]
    assert a.rows("hopping") == shown
    a.close_windows(minute(19), ["ticks"])
    assert a.rows("hopping") == shown
    a.close_windows(minute(20), ["ticks"])
    assert a.rows("hopping") == [(minute(-10), 1, True), (minute(0), 1, True)]


def test_what_comes_too_late_goes_aside_and_the_call_says_so(sites, caplog):
    a, b, r = sites
    a.insert("reading", [("a", minute(1), 1)])
    a.close_windows(minute(10))
    b.close_windows(minute(10))
    assert a.insert("reading", [("a", minute(9), 2), ("a", minute(10), 3)]) == 1
    assert a.delete("reading", [("a", minute(1), 1)]) == 0
    assert a.execute("DELETE FROM reading WHERE value = 1") == 0
    assert a.execute("INSERT INTO reading VALUES ('a', '2026-01-01 00:03:00', 9)") == 0
    assert "a has closed its windows" in caplog.text
    assert a.rows("reading") == [("a", minute(1), 1), ("a", minute(10), 3)]
    late = [
        ("a", minute(1), 1, "delete"),
        ("a", minute(1), 1, "delete"),
        ("a", minute(3), 9, "insert"),
        ("a", minute(9), 2, "insert"),
    ]
    assert a.rows("everview_late_reading") == late
    windows = a.status()["replication"]["windows"]
    assert windows["relations"]["reading"]["late_rows"] == 4
    assert windows["relations"]["reading"]["sources"]["a"]["closed"] == minute(10).isoformat()
    talk(*sites)
    assert r.rows("everview_late_reading") == late
    assert r.status()["replication"]["windows"]["relations"]["reading"]["late_rows"] == 0
    assert seen(r) == [(0, 1, True), (10, 1, False)]


def test_a_row_of_an_open_window_may_be_deleted_and_none_is_updated(sites):
    a = sites[0]
    a.insert("reading", [("a", minute(1), 1), ("a", minute(11), 2)])
    a.close_windows(minute(10))
    assert a.delete("reading", [("a", minute(11), 2)]) == 1
    with pytest.raises(DataError, match="events, which are not updated"):
        a.execute("UPDATE reading SET value = 5")


def test_a_source_closes_by_its_own_watermark_in_the_commit_that_writes(sites):
    a, _, r = sites
    a.insert("ticks", [("a", minute(1)), ("a", minute(9))])
    assert a.rows("ticking") == []
    a.insert("ticks", [("a", minute(16)), ("a", minute(5))])  # the watermark moves when all are in
    assert a.rows("ticking") == [(minute(0), 3)]
    assert a.insert("ticks", [("a", minute(3)), ("a", minute(12))]) == 1
    a.sync(r)
    assert r.rows("ticking") == [(minute(0), 3)]
    assert len(r.rows("everview_late_ticks")) == 1


@pytest.mark.parametrize(
    ("moment", "size", "begins"),
    [
        ("2026-01-01 00:19:59.999999", "10 minutes", "2026-01-01 00:10:00"),
        ("2026-01-01 00:20:00", "10 minutes", "2026-01-01 00:20:00"),
        ("1969-12-31 23:59:59", "10 minutes", "1969-12-31 23:50:00"),
        ("1970-01-08 00:00:00", "1 week", "1970-01-08 00:00:00"),
        ("1970-01-07 23:00:00", "1 week", "1970-01-01 00:00:00"),
        ("2026-01-01 00:00:01", "7 seconds", "2026-01-01 00:00:00"),
    ],
)
def test_a_window_begins_where_counting_from_1970_says(sites, moment, size, begins):
    sql = f"SELECT tumble(TIMESTAMP '{moment}', INTERVAL '{size}') = TIMESTAMP '{begins}' AS same"
    assert sites[0].query(sql) == [{"same": True}]


def test_a_window_that_begins_before_the_calendar_fails(sites):
    with pytest.raises(DataError, match="out of range"):
        sites[0].query("SELECT tumble(TIMESTAMP '0001-01-01', INTERVAL '9999 days') AS w")


def test_a_transaction_that_fails_closes_nothing(sites):
    a = sites[0]

    def fail():
        with a.transaction():
            a.insert("reading", [("a", minute(1), 1)])
            a.close_windows(minute(10))
            assert a.insert("reading", [("a", minute(2), 1)]) == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert a.insert("reading", [("a", minute(2), 1)]) == 1
    assert a.rows("everview_closed") == a.rows("everview_late_reading") == []


def test_a_watch_hears_when_a_window_becomes_final(sites):
    a, b, r = sites
    heard = []
    r.watch("certain", heard.extend)
    a.insert("reading", [("a", minute(1), 1)])
    talk(*sites)
    a.close_windows(minute(10))
    b.close_windows(minute(10))
    assert heard == []
    talk(*sites)
    assert heard == [((minute(0), 1), 1)]


def test_only_declared_sources_write_and_close(sites):
    r = sites[2]
    with pytest.raises(DataError, match="has the sources a, b, and this site is 'r'"):
        r.insert("reading", [("r", minute(1), 1)])
    with pytest.raises(DataError, match="'r' is a source of no windowed relation"):
        r.close_windows(minute(1))
    with pytest.raises(DataError, match="has the sources a, b"):
        r.close_windows(minute(1), ["reading"])
    a = sites[0]
    with pytest.raises(DataError, match="note is not a windowed relation"):
        a.close_windows(minute(1), ["note"])
    with pytest.raises(DataError, match="close at a datetime"):
        a.close_windows("2026-01-01")
    for system in ("everview_closed", "everview_progress"):
        with pytest.raises(DataError, match="kept by Everview"):
            a.insert(system, [("a", "reading", minute(60), "{}")])
        with pytest.raises(DataError, match="kept by Everview"):
            a.execute(f"DELETE FROM {system}")
    plain = Site.open(":memory:", Program.parse("CREATE TABLE r (a BIGINT)"))
    with plain, pytest.raises(DataError, match="hosts no windowed relation"):
        plain.close_windows(minute(1))


def test_a_view_that_tells_what_is_final_needs_its_events(world):
    for view in ("v", "certain"):
        with pytest.raises(DataError, match="host reading as well"):
            world.site("x", program=PROGRAM, hosts={view})
    with world.site("x", program=PROGRAM, hosts={"told"}) as site:
        assert site.rows("told") == []
    with world.site("x", program=PROGRAM, hosts={"v", "reading"}) as site:
        assert "everview_closed" in site.status()["relations"]


def test_it_is_all_there_again_when_a_site_is_opened_again(world, tmp_path):
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a, world.site("b", program=PROGRAM) as b:
        a.insert("reading", [("a", minute(1), 1)])
        a.close_windows(minute(10))
        b.close_windows(minute(10))
        talk(a, b)
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        assert seen(a) == [(0, 1, True)]
        assert a.insert("reading", [("a", minute(1), 2)]) == 0


# Restores and copies.


def restored(world, tmp_path, *, beside):
    """Source a closes a window, and is put back to before that; r has seen it closed."""
    file, r = tmp_path / "a.db", world.site("r", program=PROGRAM)
    b = world.site("b", program=PROGRAM)
    b.close_windows(minute(100))
    with world.site("a", file, program=PROGRAM) as a:
        a.insert("reading", [("a", minute(1), 1)])
        talk(a, b, r)
    for end in ("", "-shown"):
        shutil.copyfile(f"{file}{end}", f"{tmp_path / 'kept'}{end}")
    with world.site("a", file, program=PROGRAM) as a:
        a.insert("reading", [("a", minute(2), 2)])
        a.close_windows(minute(10))
        a.sync(r)
    assert seen(r) == [(0, 2, True)]
    for end in ("", "-shown") if beside else ("",):
        shutil.copyfile(f"{tmp_path / 'kept'}{end}", f"{file}{end}")
    return world.site("a", file, program=PROGRAM), b, r


def test_a_restored_source_writes_nothing_until_it_knows_what_it_has_closed(world, tmp_path):
    a, b, r = restored(world, tmp_path, beside=False)
    with pytest.raises(StoreError, match="restored or copied, and may have forgotten"):
        a.insert("reading", [("a", minute(3), 3)])
    with pytest.raises(StoreError, match=r"call site.take_charge\(\)"):
        a.close_windows(minute(20))
    assert not a.status()["replication"]["windows"]["in_charge"]
    assert not a.take_charge()
    for _ in range(2):
        a.sync(b)  # which has not heard of what a closed
    with pytest.raises(StoreError, match="it waits for r to hear"):
        a.insert("reading", [("a", minute(3), 3)])
    talk(a, b, r)
    assert a.take_charge()
    assert a.insert("reading", [("a", minute(3), 3)]) == 0
    assert a.insert("reading", [("a", minute(13), 4)]) == 1
    a.close_windows(minute(20))
    talk(a, b, r)
    assert seen(a) == seen(b) == seen(r) == [(0, 2, True), (10, 1, True)]


def test_a_marker_whose_events_were_lost_is_made_anew(world, tmp_path):
    b, r = (world.site(name, program=PROGRAM) for name in "br")
    relay = world.site("relay", program=PROGRAM, hosts={"ticks"})
    b.close_windows(minute(100))
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        a.insert("reading", [("a", minute(1), 1)])
        talk(a, b, r, relay)
    shutil.copyfile(tmp_path / "a.db", tmp_path / "kept")
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        a.insert("reading", [("a", minute(2), 2)])
        a.close_windows(minute(10))
        a.sync(relay)  # the marker gets out, the event does not
    shutil.copyfile(tmp_path / "kept", tmp_path / "a.db")
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        a.take_charge()
        talk(a, b, r, relay)
        assert seen(r) == [(0, 1, False)]
        assert a.take_charge()
        talk(a, b, r, relay)
        assert seen(a) == seen(r) == [(0, 1, True)]


def test_what_a_source_wrote_in_an_old_state_unnoticed_goes_aside(world, tmp_path):
    a, b, r = restored(world, tmp_path, beside=True)
    assert a.insert("reading", [("a", minute(3), 3)]) == 1  # it does not know better
    a.insert("ticks", [("a", minute(3))])
    a.close_windows(minute(50), ["reading"])
    assert seen(a) == [(0, 2, True)]
    a.sync(r)  # which knows it from later on
    talk(a, b, r)
    assert a.rows("everview_late_reading") == [("a", minute(3), 3, "insert")]
    assert a.rows("everview_late_ticks") == [("a", minute(3), "insert")]
    closed = [("a", "reading", minute(10)), ("a", "ticks", minute(10)), ("b", "reading", minute(100))]
    assert a.rows("everview_progress") == r.rows("everview_progress") == closed
    assert seen(r) == seen(b) == [(0, 2, True)]
    assert [row for row in a.rows("reading") if row[2] == 3] == []
    a.take_charge()
    talk(a, b, r)
    assert a.take_charge()
    assert a.insert("reading", [("a", minute(3), 3), ("a", minute(11), 5)]) == 1
    talk(a, b, r)
    assert seen(r) == [(0, 2, True), (10, 1, False)]


def test_a_copy_takes_over_and_the_original_steps_down(world, tmp_path):
    b, r = (world.site(name, program=PROGRAM) for name in "br")
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        a.insert("reading", [("a", minute(1), 1)])
        talk(a, b, r)
    shutil.copyfile(tmp_path / "a.db", tmp_path / "copy.db")
    a = world.site("a", tmp_path / "a.db", program=PROGRAM)
    copy = world.site("a", tmp_path / "copy.db", program=PROGRAM)
    assert a.insert("reading", [("a", minute(2), 2)]) == 1
    assert not copy.take_charge()
    talk(copy, b, r)
    with pytest.raises(StoreError, match="it waits for a to hear"):
        copy.insert("reading", [("a", minute(3), 3)])
    a.close_windows(minute(10))  # it has not heard of the copy
    talk(a, r)
    with pytest.raises(StoreError, match="another store writes as 'a' by now"):
        a.insert("reading", [("a", minute(11), 4)])
    talk(copy, r)
    talk(a, b, r, copy)
    assert copy.take_charge()
    assert copy.insert("reading", [("a", minute(3), 3), ("a", minute(12), 3)]) == 1
    b.close_windows(minute(60))
    copy.close_windows(minute(60))
    talk(a, b, r, copy)
    assert seen(a) == seen(b) == seen(r) == seen(copy) == [(0, 2, True), (10, 1, True)]


def test_a_copy_that_is_alone_may_say_so(world, tmp_path):
    with world.site("a", tmp_path / "a.db", program=PROGRAM) as a:
        a.insert("reading", [("a", minute(1), 1)])
    shutil.copyfile(tmp_path / "a.db", tmp_path / "copy.db")
    with world.site("a", tmp_path / "copy.db", program=PROGRAM) as copy:
        assert not copy.take_charge()
        assert copy.take_charge(alone=True)
        assert copy.insert("reading", [("a", minute(2), 2)]) == 1


def test_two_devices_that_go_by_one_name_leave_windows_provisional(world, caplog):
    one, other = (world.site("a", program=PROGRAM) for _ in range(2))
    b, r = (world.site(name, program=PROGRAM) for name in "br")
    b.close_windows(minute(100))
    one.insert("reading", [("a", minute(1), 1)])
    other.insert("reading", [("a", minute(2), 2)])
    one.sync(r)
    other.sync(r)
    b.sync(r)
    one.close_windows(minute(10))
    one.sync(r)
    assert seen(r) == [(0, 2, False)]
    assert "are two devices called so?" in caplog.text


def test_an_event_of_another_device_of_that_name_does_not_change_what_is_final(world):
    one, other = (world.site("a", program=PROGRAM) for _ in range(2))
    b, r = (world.site(name, program=PROGRAM) for name in "br")
    b.close_windows(minute(100))
    one.insert("reading", [("a", minute(1), 1)])
    one.close_windows(minute(10))
    talk(one, b, r)
    assert seen(r) == [(0, 1, True)]
    other.insert("reading", [("a", minute(2), 2), ("a", minute(12), 2)])
    other.sync(r)
    assert seen(r) == [(0, 1, True), (10, 1, False)]
    assert [one["row"] for one in r.status()["replication"]["refused"]] == [
        '{"source": "a", "at": 1767225720000000, "value": 2}'
    ]

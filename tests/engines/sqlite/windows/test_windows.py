"""Windows on rows under dots: what is final never changes, whatever is lost, late, put back or copied."""

import datetime as dt
import shutil

import pytest
from tests.engines.sqlite.windows.worlds import World, check_digests, opened_as, run_history

from everview import DataError, Program, StoreError

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
PROGRAM = Program.parse("""
    CREATE TABLE reading (source TEXT NOT NULL, at TIMESTAMP NOT NULL, value BIGINT)
        WITH (owner = 'source', event_time = 'at', sources = 'a, b');
    CREATE TABLE ticks (source TEXT NOT NULL, at TIMESTAMP NOT NULL)
        WITH (owner = 'source', event_time = 'at', sources = 'a', lateness = '5 minutes', semantics = 'bag');
    CREATE MATERIALIZED VIEW v AS
        SELECT tumble(at, INTERVAL '10 minutes') AS w, count(*) AS n, window_final() AS final
        FROM reading GROUP BY 1;
""")


def minute(count):
    return START + dt.timedelta(minutes=count)


def seen(site):
    return [(int((w - START).total_seconds() // 60), n, final) for w, n, final in site.rows("v")]


@pytest.fixture
def open_site(tmp_path):
    world, opened = World(1), []

    def opens(name, path=None, hosts=None):
        path = ":memory:" if path is None else tmp_path / path
        opened.append(opened_as(name, path, program=PROGRAM, hosts=hosts, world=world))
        return opened[-1]

    yield opens
    for site in opened:
        site.close()


def talk(*sites, rounds=3):
    for _ in range(rounds):
        for one in sites:
            for other in sites:
                if one is not other:
                    one.sync(other)
    check_digests(*sites)


@pytest.mark.parametrize("seed", range(6))
def test_a_final_row_never_changes_and_everything_becomes_final(tmp_path, seed):
    history = run_history(tmp_path, seed)
    assert any(history.final.values())


def test_a_marker_that_comes_without_its_events_does_not_count_and_one_after_the_other_does(open_site):
    a, b, r, relay = (open_site(*one) for one in (("a",), ("b",), ("r",), ("relay", None, {"ticks"})))
    b.close_windows(minute(600))
    talk(a, b, r, relay)
    for step in range(1, 4):
        a.insert("reading", [("a", minute(10 * step - 5), step)])
        a.close_windows(minute(10 * step), ["reading"])
        a.sync(relay)
        relay.sync(r)  # the marker, without its events
        assert ("a", "reading", minute(10 * step)) in [row[:3] for row in r.rows("everview_closed")]
        assert seen(r) == [(10 * n, 1, True) for n in range(step - 1)]
        a.sync(r)
        assert seen(r) == [(10 * n, 1, True) for n in range(step)]


def put_back(open_site, tmp_path, *, beside, others=("b", "r")):
    """Source a closes a window, and is put back to before that; r has seen it closed."""
    b, r = (open_site(name) for name in others)
    b.close_windows(minute(100))
    a = open_site("a", "a.db")
    a.insert("reading", [("a", minute(1), 1)])
    talk(a, b, r)
    a.close()
    for end in ("", "-shown"):
        shutil.copyfile(tmp_path / f"a.db{end}", tmp_path / f"kept{end}")
    a = open_site("a", "a.db")
    a.insert("reading", [("a", minute(2), 2)])
    a.close_windows(minute(10))
    a.sync(r)
    a.close()
    assert seen(r) == [(0, 2, True)]
    for end in ("", "-shown") if beside else ("",):
        shutil.copyfile(tmp_path / f"kept{end}", tmp_path / f"a.db{end}")
    return open_site("a", "a.db"), b, r


def test_a_source_that_was_put_back_writes_nothing_until_it_knows_what_it_has_closed(open_site, tmp_path):
    a, b, r = put_back(open_site, tmp_path, beside=False)
    with pytest.raises(StoreError, match=r"may have forgotten .* call site.take_charge\(\)"):
        a.insert("reading", [("a", minute(3), 3)])
    assert not a.take_charge()
    a.sync(b)  # which has not heard of what a closed
    a.sync(b)
    with pytest.raises(StoreError, match="it waits for r to hear"):
        a.insert("reading", [("a", minute(3), 3)])
    talk(a, b, r)
    assert a.take_charge()
    assert a.insert("reading", [("a", minute(3), 3)]) == 0
    assert a.insert("reading", [("a", minute(13), 4)]) == 1
    a.close_windows(minute(20))
    talk(a, b, r)
    assert seen(a) == seen(b) == seen(r) == [(0, 2, True), (10, 1, True)]


def test_who_has_heard_of_a_source_is_believed_only_where_one_has_all_that_it_had(open_site, tmp_path):
    """r hears by a relay that has none of the events, and its answer comes back by it."""
    a, b, r = put_back(open_site, tmp_path, beside=False)
    relay = open_site("relay", hosts={"ticks"})
    a.take_charge()
    a.sync(b)
    for other in (a, r, a, r, a):
        other.sync(relay)
    a.sync(b)
    with pytest.raises(StoreError, match="it waits for r to hear"):
        a.insert("reading", [("a", minute(3), 3)])
    a.sync(r)
    assert a.take_charge()
    assert seen(a) == seen(r) == [(0, 2, True)]


def test_a_participant_that_is_gone_is_given_up_and_takes_part_again_when_it_comes_back(open_site, tmp_path):
    a, b, r = put_back(open_site, tmp_path, beside=False)
    gone = open_site("gone")
    gone.sync(b)
    a.take_charge()
    talk(a, b, r)
    with pytest.raises(StoreError, match="it waits for gone to hear"):
        a.insert("reading", [("a", minute(13), 3)])
    with pytest.raises(DataError, match="is none of the other stores"):
        a.give_up("nobody")
    a.give_up("gone")
    assert a.take_charge()
    talk(a, b, r, gone)
    assert len(a.rows("everview_participants")) == 4


def test_what_a_source_wrote_in_an_old_state_unnoticed_goes_aside(open_site, tmp_path):
    a, b, r = put_back(open_site, tmp_path, beside=True)
    assert a.insert("reading", [("a", minute(3), 3)]) == 1  # it does not know better
    a.insert("ticks", [("a", minute(3))])
    a.close_windows(minute(50), ["reading"])
    a.sync(r)  # which knows it from later on
    talk(a, b, r)
    for site in (a, r):
        assert site.rows("everview_late_reading") == [("a", minute(3), 3, "insert")]
    assert a.rows("everview_late_ticks") == [("a", minute(3), "insert")]
    assert a.rows("everview_progress") == r.rows("everview_progress")
    assert seen(r) == seen(b) == seen(a) == [(0, 2, True)]
    a.take_charge()
    talk(a, b, r)
    assert a.take_charge()
    assert a.insert("reading", [("a", minute(3), 3), ("a", minute(11), 5)]) == 1
    talk(a, b, r)
    assert seen(r) == [(0, 2, True), (10, 1, False)]


@pytest.mark.parametrize("heard", [False, True])
def test_a_copy_takes_over_and_what_the_original_wrote_without_knowing_goes_aside(open_site, tmp_path, heard):
    b, r = open_site("b"), open_site("r")
    b.close_windows(minute(100))
    a = open_site("a", "a.db")
    a.insert("reading", [("a", minute(1), 1)])
    talk(a, b, r)
    a.close()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "copy.db")
    a, copy = open_site("a", "a.db"), open_site("a", "copy.db")
    if heard:
        copy.take_charge()
        talk(copy, b, r)
        with pytest.raises(StoreError, match="it waits for a to hear"):
            copy.insert("reading", [("a", minute(3), 3)])
    else:  # somebody says that the original is gone
        assert copy.take_charge(alone=True)
        copy.close_windows(minute(10))
        talk(copy, b, r)
        assert seen(r) == [(0, 1, True)]
    a.insert("reading", [("a", minute(2), 2)])
    other = open_site("r")  # who is told of the event, and has not heard of the copy
    a.sync(other)
    other.sync(r)
    r.sync(a)
    with pytest.raises(StoreError, match="another store writes as 'a' by now"):
        a.insert("reading", [("a", minute(11), 4)])
    talk(a, b, r, copy)
    assert copy.take_charge()
    copy.close_windows(minute(20))
    talk(a, b, r, copy)
    assert seen(a) == seen(b) == seen(r) == seen(copy) == [(0, 2 if heard else 1, True)]
    for site in (other, r):
        refused = [one["why"] for one in site.status()["replication"]["refused"]]
        assert refused == ([] if heard else ["its window was closed without it"])
    assert [row[2] for row in r.rows("everview_late_reading")] == ([] if heard else [2])


def test_what_an_original_has_told_nobody_goes_aside_when_it_hears_of_its_copy(open_site, tmp_path):
    b, r = open_site("b"), open_site("r")
    b.close_windows(minute(100))
    open_site("a", "a.db").close()
    shutil.copyfile(tmp_path / "a.db", tmp_path / "copy.db")
    a, copy = open_site("a", "a.db"), open_site("a", "copy.db")
    copy.take_charge(alone=True)
    copy.insert("reading", [("a", minute(1), 1)])
    copy.close_windows(minute(10))
    copy.sync(r)
    a.insert("reading", [("a", minute(2), 2), ("a", minute(12), 2)])
    a.sync(r)
    talk(a, b, r, copy)
    assert seen(a) == seen(r) == [(0, 1, True), (10, 1, False)]
    assert r.rows("everview_late_reading") == [("a", minute(2), 2, "insert")]
    copy.close_windows(minute(20))
    talk(a, b, r, copy)
    assert seen(a) == seen(r) == [(0, 1, True), (10, 1, True)]


def test_two_devices_that_go_by_one_name_leave_windows_provisional_or_are_refused(open_site, caplog):
    one, other, b, r = (open_site(name) for name in ("a", "a", "b", "r"))
    b.close_windows(minute(100))
    one.insert("reading", [("a", minute(1), 1)])
    other.insert("reading", [("a", minute(2), 2)])
    for site in (one, other, b):
        site.sync(r)
    one.close_windows(minute(10))
    one.sync(r)
    assert seen(r) == [(0, 2, False)]
    assert "are two devices called so?" in caplog.text
    r2 = open_site("r")
    one.close_windows(minute(20))  # it knows of the other's event by now
    talk(one, b, r2)
    assert seen(r2) == [(0, 2, True)]
    other.insert("reading", [("a", minute(3), 3), ("a", minute(33), 3)])
    other.sync(r2)
    assert seen(r2) == [(0, 2, True), (30, 1, False)]
    refused = r2.status()["replication"]["refused"]
    assert [one["why"] for one in refused] == ["its window was closed without it"]

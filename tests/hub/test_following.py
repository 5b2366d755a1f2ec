"""The stream of changes: each refresh's change once and in order, from any beginning, through any crash."""

from __future__ import annotations

import random

import pytest
from tests.hub.changing import PROGRAM, counted, differs
from tests.hub.following import Follower, everything, read
from tests.hub.quick import quickly

from everview.errors import DataError, StoreError
from everview.hub import Hub, following
from everview.hub import reading as reading_module
from everview.hub.consumers import FOLDER as CONSUMERS
from everview.hub.record import refreshes
from everview.hub.source import EverviewSource

STEPS = 12


def wanted(states, first, *, whole):
    """The changes from a refresh on; the first is `whole` if it tells all that was there."""
    found = {first: dict(states[first])} if whole else {}
    for at in range(first + whole, len(states)):
        found[at] = differs(states[at - 1], states[at])
    return {at: change for at, change in found.items() if change}


@pytest.mark.parametrize("name", [*PROGRAM.names()])
def test_every_refresh_is_told_once_through_limits_and_crashes(past, name, monkeypatch):
    monkeypatch.setattr(reading_module, "TASK_ROWS", 4)
    monkeypatch.setattr(following, "TASK_ROWS", 4)
    folder, states = past.folder, past.states
    rng = random.Random(name)
    for options in ({}, {"maxRefreshesPerTrigger": "2"}, {"maxRowsPerTrigger": "3"}):
        follower = Follower(folder, name, startingRefresh="1", **options)
        follower.run(lambda: rng.choice([None, "logged", "read", "told"]))
        assert follower.changes() == wanted(states[name], 1, whole=True)
        if options:
            assert len(follower.batches) > 2


def test_a_stream_begins_with_a_snapshot_or_where_it_is_told_to(past):
    folder, states = past.folder, past.states
    told = states["keyed"]
    assert everything(Follower(folder, "keyed")).changes() == {STEPS: dict(told[STEPS])}
    assert everything(Follower(folder, "keyed", startingRefresh="latest")).changes() == {}
    fifth = everything(Follower(folder, "keyed", startingRefresh="5"))
    assert fifth.changes() == wanted(told, 5, whole=False)
    earliest = everything(Follower(folder, "keyed", startingRefresh="earliest"))
    assert earliest.changes() == wanted(told, 1, whole=True)
    with pytest.raises(DataError, match="startingRefresh is 'soon'"):
        Follower(folder, "keyed", startingRefresh="soon").start()
    with pytest.raises(DataError, match=f"refresh 998 .* is not there: 1 to {STEPS} are"):
        Follower(folder, "keyed", startingRefresh="999").start()


def test_a_batch_has_no_more_than_its_limit_and_available_now_goes_no_further(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        quickly(hub)
        hub.insert("keyed", [(k, "a") for k in range(400)])
        hub.refresh()
        follower = Follower(tmp_path, "keyed", maxRowsPerTrigger="100")
        follower.reader.prepareForTriggerAvailableNow()
        hub.insert("keyed", [(0, "b")])
        hub.refresh()
        follower.run()
        assert [*follower.changes()] == [1]
        assert len(follower.batches) >= 4
        assert max(map(len, follower.batches)) < 150
        follower.begin()
        follower.run()
        assert follower.changes()[2] == {"(0, 'a')": -1, "(0, 'b')": 1}
        for options in ({"maxRowsPerTrigger": "0"}, {"maxRefreshesPerTrigger": "few"}):
            with pytest.raises(DataError, match="a number from 1 on"):
                Follower(tmp_path, "keyed", **options)


def test_what_a_stream_has_not_read_is_kept_until_it_is_given_up(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark, retain_refreshes=1) as hub:
        quickly(hub)
        files = hub._store.files

        def refreshed(at):
            hub.insert("keyed", [(at, "a")])
            hub.refresh()
            hub.vacuum()
            return len(refreshes(files))

        refreshed(1)
        slow, quick = Follower(tmp_path, "keyed", consumer="slow"), Follower(tmp_path, "keyed")
        for follower in (slow, quick):
            follower.run()
        careless = Follower(tmp_path, "keyed", consumer="").run()
        assert [name.rpartition("-")[0] for name in files.list(CONSUMERS)] == ["slow", "stream"]
        assert [refreshed(at) for at in (2, 3, 4)] == [2, 3, 4]
        quick.run()
        assert refreshed(5) == 5
        slow.begin()
        slow.run()
        # What both have read goes, but for the refresh that they go on from.
        assert refreshed(6) <= 3
        assert [*slow.changes()] == [1, 2, 3, 4, 5]
        with pytest.raises(StoreError, match="Start it anew, with another checkpoint: it begins with a snap"):
            careless.run()
        # A week without a sign, for one of them.
        quick.run()
        (note,) = (tmp_path / CONSUMERS).glob("slow-*/*")
        refresh, _, signed = note.stem.partition("-")
        note.rename(note.with_name(f"{refresh}-{int(signed) - 8 * 86_400_000_000:016}.json"))
        assert refreshed(7) == 2
        assert [name.rpartition("-")[0] for name in files.list(CONSUMERS)] == ["stream"]
        quick.run()
        assert [*quick.changes()] == [*range(1, 8)]
        with pytest.raises(StoreError, match="refresh 5 of"):
            slow.run()
    with pytest.raises(DataError, match="consumer_days"):
        Hub.open(tmp_path, PROGRAM, spark=spark, consumer_days=-1)
    with pytest.raises(DataError, match="letters, digits"):
        Follower(tmp_path, "keyed", consumer="../elsewhere")


def test_a_live_stream_gives_a_sign_though_there_is_nothing_to_read(past, monkeypatch):
    folder = past.folder
    follower = Follower(folder, "plain", consumer="idle").run()
    (before,) = (folder / CONSUMERS).glob("idle-*/*")
    assert not follower.step()
    assert before.exists()
    monkeypatch.setattr(following.consumers, "SIGN_US", 0)
    assert not follower.step()
    (after,) = (folder / CONSUMERS).glob("idle-*/*")
    assert after.name > before.name
    assert after.name.partition("-")[0] == before.name.partition("-")[0]


def test_a_snapshot_has_the_rows_of_its_refresh_as_often_as_they_occur(past, monkeypatch):
    monkeypatch.setattr(reading_module, "TASK_ROWS", 4)
    folder, states = past.folder, past.states
    tasks = 0
    for name in PROGRAM.names():
        for at in (3, STEPS):
            source = EverviewSource({"path": str(folder), "name": name, "refresh": str(at)})
            reader = source.reader(source.schema())
            partitions = reader.partitions()
            rows = read(reader, partitions)
            assert counted(row[:-2] for row in rows) == states[name][at]
            assert {row[-2:] for row in rows} <= {(1, at)}
            tasks = max(tasks, len(partitions))
    assert tasks > 1


def test_a_reader_shows_the_columns_that_it_is_asked_for(past):
    folder, states = past.folder, past.states
    source = EverviewSource({"store": str(folder), "name": "plain", "columns": "b, _commit"})
    reader = source.reader(source.schema())
    rows = read(reader, reader.partitions())
    assert len(rows) == sum(states["plain"][STEPS].values())
    assert {(len(row), row[1]) for row in rows} == {(2, STEPS)}
    wrong = {
        "has no column 'z'": {"columns": "z"},
        "refresh 99 .* is not there": {"refresh": "99"},
        "give the number of a refresh": {"refresh": "soon"},
        "there is no relation or view nothing": {"name": "nothing"},
        "say which relation or view": {"name": ""},
        "say which store": {"store": ""},
    }
    for message, options in wrong.items():
        with pytest.raises(DataError, match=message):
            EverviewSource({"store": str(folder), "name": "plain", **options}).schema()
    with pytest.raises(StoreError, match="there is no hub at"):
        EverviewSource({"store": str(folder / "elsewhere"), "name": "plain"}).schema()


def test_what_was_asked_for_before_the_first_refresh_stays_empty_and_a_stream_begins_with_it(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        source = EverviewSource({"store": str(tmp_path), "name": "keyed"})
        schema = source.schema()
        follower = Follower(tmp_path, "keyed")
        assert not follower.step()
        quickly(hub).insert("keyed", [(1, "a")])
        hub.refresh()
        reader = source.reader(schema)
        assert read(reader, reader.partitions()) == []
        assert follower.run().changes() == {1: {"(1, 'a')": 1}}


def test_readers_leave_the_store_as_it_is(past):
    folder = past.folder

    def seen():
        return {
            path: path.stat().st_mtime_ns
            for path in folder.rglob("*")
            if path.is_file() and CONSUMERS not in path.parts
        }

    before = seen()
    everything(Follower(folder, "met"))
    source = EverviewSource({"store": str(folder), "name": "met"})
    reader = source.reader(source.schema())
    read(reader, reader.partitions())
    assert seen() == before

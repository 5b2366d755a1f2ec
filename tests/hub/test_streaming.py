"""A hub that runs: what arrives is in the views, once, whatever happens to checkpoint and inbox."""

import logging
import random
import shutil
import threading
import time

import msgspec
import pytest
from tests.hub import streams
from tests.hub.streams import PROGRAM, check, is_in, killed, opened, until, write

from everview.errors import DataError, StoreError
from everview.hub import Hub, register, running
from everview.hub import store as store_module
from everview.hub.files import LocalFiles
from everview.hub.record import commit, latest, refreshes
from everview.hub.refresh import Refreshing
from everview.hub.streaming import check_trigger, inbox_source
from everview.language.program import Program

NOW = "0 seconds"


@pytest.fixture
def hub(spark, tmp_path):
    with opened(tmp_path, spark) as hub:
        yield hub


@pytest.mark.parametrize("text", ["1 second", "0 seconds", "250 milliseconds", "2 MINUTES", " 1 hour "])
def test_triggers(text):
    assert check_trigger(text) == text.strip()


@pytest.mark.parametrize(
    "text", ["", "1", "second", "-1 seconds", "1.5 seconds", "1 second ago", "2 years", 1]
)
def test_what_is_no_trigger(text):
    with pytest.raises(DataError, match="such as '1 second'"):
        check_trigger(text)


def records(hub):
    return refreshes(hub._store.files)


def test_a_run(hub, spark):
    """All in the life of one hub, for each start takes its time."""
    with pytest.raises(DataError, match="the trigger is 'soon'"):
        hub.run("soon")
    run = hub.run(NOW)
    until(lambda: run.last_report, run)
    assert run.last_report.refresh == 1
    # While nothing arrives nothing is done.
    before = records(hub)
    assert not run.wait(0.5)
    assert records(hub) == before
    # What arrives is in; others may do all they do otherwise.
    for number in range(3):
        write(hub, number)
    until(lambda: is_in(hub), run)
    check(hub, range(3))
    assert hub.table("b").count() == 3
    hub.publish()
    hub.vacuum()
    write(hub, 3)
    hub.refresh()
    check(hub, range(4))
    assert run.is_active
    with pytest.raises(StoreError, match="is running already: stop that run first"):
        hub.run()
    run.stop()
    run.stop()
    assert not run.is_active
    assert run.wait(0)
    # Now it is as it was before.
    write(hub, 4)
    check(hub, range(4))
    with hub.run(NOW) as again:
        until(lambda: is_in(hub), again)
    check(hub, range(5))
    assert not again.is_active
    left = hub.run(NOW)
    write(hub, 5)
    hub.close()
    assert left.wait(0)
    with pytest.raises(StoreError, match="closed"):
        hub.run()


def test_random_writes_while_it_runs(hub):
    """From several threads, DataFrames too; with reads, publications and refreshes in between."""
    numbers = iter(range(1000))
    done = []

    def writes(seed):
        rng = random.Random(seed)
        for _ in range(12):
            number = next(numbers)
            hub.insert("b", [(number, number % streams.KEYS)])
            if rng.random() < 0.2:
                hub.insert("b", hub._store.spark.sql(f"SELECT -{number}L AS n, 0L AS a"))
                done.append(-number)
            done.append(number)

    with hub.run("50 milliseconds") as run:
        threads = [threading.Thread(target=writes, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        rng = random.Random(7)
        while any(thread.is_alive() for thread in threads):
            rng.choice([hub.refresh, hub.vacuum, lambda: hub.rows("per_a")])()
        for thread in threads:
            thread.join()
        until(lambda: is_in(hub), run)
    found = sorted(n for n, _ in hub.rows("b"))
    assert found == sorted(done)
    assert sum(c for _, c, _ in hub.rows("per_a")) == len(done)


class TestCheckpoints:
    """The record wins. One store goes through all of it, since each opening takes its time."""

    def test_lost_stale_ahead_damaged_or_of_another_program(self, spark, tmp_path):
        store, old, copy = tmp_path / "store", tmp_path / "old", tmp_path / "copy"
        self.go_on(spark, store, range(2))
        shutil.copytree(store / "stream", old)
        self.go_on(spark, store, range(2, 4))

        shutil.rmtree(store / "stream")
        self.go_on(spark, store, range(4, 6))

        shutil.rmtree(store / "stream")
        old.rename(store / "stream")
        self.go_on(spark, store, range(6, 8))

        for log in ("offsets", "commits"):
            last(store, log).write_bytes(b"")
        self.go_on(spark, store, range(8, 10))

        kept = contents(store / "stream")
        other = Program.parse("CREATE TABLE b (n BIGINT)")
        with pytest.raises(StoreError, match="made by another program"):
            Hub.open(store, other, spark=spark)
        assert contents(store / "stream") == kept

        with opened(store, spark) as hub:
            for number in range(10, 12):
                write(hub, number)
        shutil.copytree(store, copy)
        with opened(store, spark) as hub, hub.run(NOW) as run:
            until(lambda: is_in(hub) and is_committed(store), run)
        # The store goes back to before these writes were in. The checkpoint, which has them, does not.
        shutil.rmtree(copy / "stream")
        (store / "stream").rename(copy / "stream")
        with opened(copy, spark) as hub, hub.run(NOW) as run:
            until(lambda: is_in(hub), run)
            check(hub, range(12))

    def go_on(self, spark, store, numbers):
        """Run the hub by two writes, one of which lies there before."""
        first, second = numbers
        with opened(store, spark) as hub:
            write(hub, first)
            with hub.run(NOW) as run:
                until(lambda: is_in(hub), run)
                check(hub, range(second))
                write(hub, second)
                until(lambda: is_in(hub) and is_committed(store), run)
            check(hub, range(second + 1))

    def test_lost_while_it_runs(self, hub, tmp_path):
        inbox = tmp_path / "inbox"
        with hub.run(NOW) as run:
            with hub._store.turn:
                write(hub, 0)
                shutil.copytree(inbox, tmp_path / "copy")
            until(lambda: is_in(hub), run)
            (tmp_path / "stream").rename(tmp_path / "elsewhere")
            for number in range(1, 3):
                write(hub, number)
                until(lambda: is_in(hub), run)
            # Writes that are in lie there again: the stream sees them, and the record has them.
            for folder in (tmp_path / "copy").iterdir():
                folder.rename(inbox / folder.name)
            write(hub, 3)
            until(lambda: is_in(hub) and not list(inbox.iterdir()), run)
        check(hub, range(4))


def last(store, log):
    """The last file of a log of the checkpoint."""
    return max((store / "stream" / log).glob("[0-9]*"), key=lambda path: int(path.name))


def is_committed(store):
    """Whether the checkpoint has the end of the last batch too."""
    return last(store, "commits").name == last(store, "offsets").name


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_removed_from_the_inbox_by_hand(hub, tmp_path):
    with hub.run(NOW) as run:
        until(lambda: run.last_report, run)
        with hub._store.turn:
            folders = []
            for number in range(4):
                before = {*(tmp_path / "inbox").glob("*")}
                hub.insert("b", [(number, 0)])
                folders += {*(tmp_path / "inbox").glob("*")} - before
            (folders[0] / "part-0.parquet").unlink()
            (folders[1] / "_arrival.json").unlink()
            shutil.rmtree(folders[2])
        until(lambda: len(run.rejected) == 3 and hub._store.record.arrived == 4, run)
        reasons = {rejected.name: rejected.reason for rejected in run.rejected}
        assert reasons == {
            folders[0].name: "part-0.parquet is missing",
            folders[1].name: "its mark was removed after it was written",
            folders[2].name: "its folder was removed from the inbox before a refresh",
        }
        for name, reason in reasons.items():
            assert (tmp_path / "rejected" / name / "reason.txt").read_text() == f"{reason}\n"
        assert (tmp_path / "rejected" / folders[1].name / "part-0.parquet").exists()
        hub.insert("b", [(9, 0)])
        until(lambda: is_in(hub), run)
        assert len(run.rejected) == 3
    assert hub.rows("b") == [(3, 0), (9, 0)]


def test_a_write_that_fails_does_not_keep_back_those_behind_it(hub, monkeypatch):
    """A slow write has a smaller number than a quick one, so that one waits; then the slow one fails."""
    mark, reached, fail = hub._store.inbox._mark, threading.Event(), threading.Event()

    def slow(arrival, rows):
        monkeypatch.setattr(hub._store.inbox, "_mark", mark)
        reached.set()
        fail.wait(streams.PATIENCE)
        raise StoreError("the disk is full")

    def fails():
        with pytest.raises(StoreError, match="the disk is full"):
            hub.insert("b", [(1, 0)])

    monkeypatch.setattr(hub._store.inbox, "_mark", slow)
    with hub.run(NOW) as run:
        until(lambda: run.last_report, run)
        writer = threading.Thread(target=fails)
        writer.start()
        assert reached.wait(streams.PATIENCE)
        hub.insert("b", [(2, 0)])
        # The batch of this write has come, and cannot take it in.
        until(run._working.locked, run)
        assert not run.wait(0.3)
        assert hub.rows("b") == []
        fail.set()
        writer.join()
        until(lambda: hub.rows("b") == [(2, 0)], run)


class TestFailures:
    @pytest.fixture(autouse=True)
    def quickly_again(self, monkeypatch):
        monkeypatch.setattr(running, "_WAITS", (0.01, 0.01, 0.01))

    def test_tried_again_and_given_up(self, hub, monkeypatch, caplog):
        left = [2]

        def fails(files, record):
            if left[0]:
                left[0] -= 1
                raise OSError("no space left")
            commit(files, record)

        monkeypatch.setattr(store_module, "commit", fails)
        run = hub.run(NOW)
        write(hub, 0)
        until(lambda: is_in(hub), run)
        assert left == [0]
        assert [record.levelname for record in caplog.records].count("WARNING") == 2
        assert "hub failed and is tried again: no space left" in caplog.text
        left[0] = 4
        write(hub, 1)
        with pytest.raises(OSError, match="no space left"):
            run.wait()
        assert left == [0]
        assert not run.is_active
        assert isinstance(run.error, OSError)
        with pytest.raises(OSError, match="no space left"):
            run.stop()
        assert "hub no longer runs: no space left" in caplog.text
        # Nothing is lost.
        with hub.run(NOW) as again:
            until(lambda: is_in(hub), again)
        check(hub, range(2))

    def test_a_stream_that_fails_is_started_again(self, hub, caplog):
        run = hub.run(NOW)
        until(lambda: run.last_report, run)
        run._query.stop()
        write(hub, 0)
        until(lambda: is_in(hub), run)
        assert "the stream of hub's inbox is started again: it was stopped" in caplog.text
        run.stop()
        check(hub, range(1))

    def test_a_store_that_another_has_taken_over(self, hub, caplog):
        run = hub.run(NOW)
        until(lambda: run.last_report, run)
        with hub._store.turn:
            write(hub, 0)
            record = latest(hub._store.files, PROGRAM.hash)
            taken = msgspec.structs.replace(record, number=record.number + 1, epoch=record.epoch + 1)
            commit(hub._store.files, taken)
        with pytest.raises(StoreError, match="another hub has taken this store over"):
            run.wait(streams.PATIENCE)
        assert not [record for record in caplog.records if record.levelno == logging.WARNING]


def test_stopping_waits_for_the_refresh_under_way(hub, monkeypatch):
    """Spark would cancel its jobs."""
    refresh, context = Refreshing.run, hub._store.spark.sparkContext

    def slow(self, arrivals):
        context.parallelize([0.5], 1).foreach(time.sleep)
        return refresh(self, arrivals)

    run = hub.run(NOW)
    until(lambda: run.last_report, run)
    monkeypatch.setattr(Refreshing, "run", slow)
    hub.insert("b", [(0, 0)])
    until(context.statusTracker().getActiveJobsIds, run)
    run.stop()
    assert hub.rows("b") == [(0, 0)]


def test_a_run_takes_in_what_another_stream_has_written(hub, spark, tmp_path):
    source = tmp_path / "source"
    spark.range(3).selectExpr("id AS n", "0L AS a").write.parquet(str(source))
    frame = spark.readStream.schema("n BIGINT, a BIGINT").parquet(str(source))
    with pytest.raises(DataError, match=r'writeStream.format\("everview"\).option\("name", "b"\)'):
        hub.insert("b", frame)
    with pytest.raises(DataError, match=r'option\("delete", "true"\)'):
        hub.delete("b", frame)
    register(spark)
    writer = frame.writeStream.format("everview").option("name", "b").trigger(availableNow=True)
    with hub.run(NOW) as run:
        until(lambda: run.last_report, run)
        query = writer.option("checkpointLocation", str(tmp_path / "theirs")).start(str(tmp_path))
        query.awaitTermination()
        until(lambda: hub.rows("b"), run)
    assert hub.rows("b") == [(0, 0), (1, 0), (2, 0)]


def test_the_source_lists_what_lies_there(hub, tmp_path):
    """Its rows are the whole writes up to the end of a batch; offsets of another run are never equal."""
    source = inbox_source(LocalFiles(tmp_path))({"run": "r"})
    reader = source.streamReader(None)
    start = reader.initialOffset()
    assert reader.latestOffset(start, None) == {"run": "r", "number": 0, "gate": 0, "offered": ""}
    for number in range(2):
        hub.insert("b", [(number, 0)])
    (tmp_path / "inbox" / "000000000009-unmarked").mkdir()
    (tmp_path / "inbox" / "mine").mkdir()
    assert reader.latestOffset(start, None) == {"run": "r", "number": 2, "gate": 0, "offered": ""}
    (partition,) = reader.partitions(start, {"run": "r", "number": 1})
    ((number, name),) = reader.read(partition)
    assert number == 1
    assert (tmp_path / "inbox" / name).is_dir()


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_killed_while_it_runs(spark, tmp_path):
    """Every acknowledged write is in once; the one that was under way may be in, or its first half."""
    rng = random.Random(5)
    written = killed(tmp_path, 0, refreshes=rng.randrange(1, 4), seconds=rng.uniform(0, 0.3))
    with opened(tmp_path, spark) as hub:
        with hub.run(NOW) as run:
            until(lambda: run.last_report and is_in(hub), run)
        there = len(hub.rows("b"))
        assert there in (written, written + 1)
        # Its second part may be missing: a write that is repeated for the set changes nothing.
        if there > written:
            hub.delete("b", [(written, written % streams.KEYS)])
        write(hub, written)
        with hub.run(NOW) as run:
            until(lambda: is_in(hub), run)
        check(hub, range(written + 1))

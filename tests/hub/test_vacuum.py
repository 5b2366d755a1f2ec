"""A vacuum removes what nobody can ask for any more, and nothing else."""

from __future__ import annotations

import functools
import os
import threading
import time

import deltalake
import pytest
from tests.hub.quick import quickly

from everview.errors import StoreError
from everview.hub import Hub, VacuumReport
from everview.hub.files import LocalFiles
from everview.hub.publish import folder_of
from everview.hub.record import Record, commit, refreshes
from everview.hub.retention import Retention
from everview.hub.runs import Part, Run
from everview.hub.vacuum import GRACE, vacuum
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE u (k BIGINT);
CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM u;
""")


@pytest.fixture
def open_hub(spark, tmp_path):
    def open_(**options):
        return quickly(Hub.open(tmp_path, PROGRAM, spark=spark, **options))

    return open_


def run(number):
    return f"runs/{number:032x}.arrow"


class TestFilesAlone:
    """Records by hand, each naming two files: one of its own, and one that all share."""

    @pytest.fixture
    def files(self, tmp_path):
        files = LocalFiles(tmp_path)
        files.create(run(0), b"shared")
        for number in range(1, 6):
            files.create(run(number), bytes(number))
            runs = tuple(Run(1, (Part(path, 0, 1, 1, 0, 0),)) for path in (run(0), run(number)))
            made = time.time_ns() // 1000 - (6 - number) * 86_400_000_000
            commit(
                files, Record(number=number, refresh=number, program="p", made_us=made, tables={"t": runs})
            )
        return files

    def test_what_is_retained_stays(self, files):
        assert vacuum(files, Retention(refreshes=3)) == VacuumReport(records=2, files=2, bytes=3)
        assert refreshes(files) == [3, 4, 5]
        assert [entry.path for entry in files.find("runs")] == [run(0), run(3), run(4), run(5)]
        assert vacuum(files, Retention(refreshes=3)) == VacuumReport()

    def test_by_age(self, files):
        vacuum(files, Retention(days=2.5))
        assert refreshes(files) == [4, 5]

    def test_the_latest_stays_however_old(self, files):
        vacuum(files, Retention(days=0))
        assert refreshes(files) == [5]
        assert [entry.path for entry in files.find("runs")] == [run(0), run(5)]

    def test_records_go_before_files(self, files, monkeypatch):
        monkeypatch.setattr(files, "remove_file", Crash(files.remove_file, after=2))
        with pytest.raises(KeyboardInterrupt):
            vacuum(files, Retention(refreshes=3))
        assert refreshes(files) == [3, 4, 5]
        assert len(files.find("runs")) == 6
        monkeypatch.undo()
        assert vacuum(files, Retention(refreshes=3), grace=0).files == 2

    def test_orphans_go_when_they_are_old(self, files, tmp_path):
        old, young, draft = run(7), run(8), f"runs/.{9:032x}"
        for path in (old, young, draft):
            files.create(path, b"x")
        past = time.time() - GRACE - 60
        for path in (old, draft):
            os.utime(tmp_path / path, (past, past))
        vacuum(files, Retention())
        assert [entry.path for entry in files.find("runs")] == [
            run(number) for number in (0, 1, 2, 3, 4, 5, 8)
        ]
        vacuum(files, Retention(), grace=0)
        assert run(8) not in [entry.path for entry in files.find("runs")]

    def test_what_is_not_ours_stays(self, files):
        for path in ("runs/2024/events.out", "runs/mine.arrow", "published/t/notes/a", "other/x"):
            files.create(path, b"x")
        vacuum(files, Retention(), grace=0)
        assert {entry.path for entry in files.find("")} >= {
            "runs/2024/events.out",
            "runs/mine.arrow",
            "published/t/notes/a",
            "other/x",
        }

    def test_a_damaged_record_that_is_retained_stops_it(self, files, tmp_path):
        (tmp_path / "refreshes" / "000000000004.json").write_bytes(b"{")
        with pytest.raises(StoreError, match="damaged"):
            vacuum(files, Retention(refreshes=3), grace=0)
        assert len(files.find("runs")) == 6
        assert refreshes(files) == [1, 2, 3, 4, 5]


class Crash:
    """A function that works a few times."""

    def __init__(self, function, after):
        self.function, self.left = function, after

    def __call__(self, *arguments):
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return self.function(*arguments)


def arrows(folder):
    return {path.name for path in (folder / "runs").iterdir()}


def versions(folder, name):
    """The versions of a published table that can still be read, with their rows."""
    found = {}
    for version in range(deltalake.DeltaTable(folder / folder_of(name)).version() + 1):
        try:
            table = deltalake.DeltaTable(folder / folder_of(name), version=version).to_pyarrow_table()
        except FileNotFoundError:
            continue
        found[version] = sorted(row["k"] for row in table.to_pylist())
    return found


class TestHubs:
    def test_retained_refreshes_and_what_was_published_of_them_stay_readable(self, open_hub, tmp_path):
        with open_hub(retain_refreshes=2) as hub:
            seen = {}
            for step in range(4):
                hub.insert("u", [(step,)])
                number = hub.refresh().refresh
                hub.publish()
                seen[number] = hub.rows("u"), hub.rows("n")
            assert versions(tmp_path, "u") == {0: [0], 1: [0, 1], 2: [0, 1, 2], 3: [0, 1, 2, 3]}
            report = hub.vacuum()
            assert report.records == 5  # two publications, two refreshes and the opening
            assert report.bytes > 0
            assert refreshes(hub._store.files) == [4, 5]
            for number in (3, 4):
                assert (hub.rows("u", at=number), hub.rows("n", at=number)) == seen[number]
            assert versions(tmp_path, "u") == {2: [0, 1, 2], 3: [0, 1, 2, 3]}
            assert hub.publish().written == ()
            assert hub.vacuum() == VacuumReport()
        with open_hub(retain_refreshes=2) as again:  # now the youngest file is not spared either
            assert versions(tmp_path, "u") == {2: [0, 1, 2], 3: [0, 1, 2, 3]}
            assert again.rows("u", at=3) == seen[3][0]

    def test_a_table_that_has_not_changed_for_long_stays_published(self, open_hub, tmp_path):
        with open_hub(retain_refreshes=1) as hub:
            hub.insert("u", [(1,)])
            hub.refresh()
            hub.publish()
            for _ in range(3):  # refreshes that change nothing
                hub.insert("u", [(1,)])
                hub.refresh()
            hub.vacuum()
            assert versions(tmp_path, "u") == {0: [1]}
            assert hub.publish().written == ()
            hub.vacuum()
            assert versions(tmp_path, "u") == {0: [1]}

    def test_opening_removes_what_a_crash_left(self, open_hub, tmp_path, monkeypatch):
        hub = open_hub()
        hub.insert("u", [(1,)])
        hub.refresh()
        hub.publish()
        hub.insert("u", [(2,)])
        named = arrows(tmp_path)
        monkeypatch.setattr("everview.hub.store.commit", Crash(None, after=0))
        with pytest.raises(KeyboardInterrupt):
            hub.refresh()
        monkeypatch.undo()
        hub.close()
        assert len(arrows(tmp_path)) == len(named) + 1
        (tmp_path / "inbox" / "000000000009-abcdabcd").mkdir()
        with open_hub() as again:
            assert arrows(tmp_path) == named
            (folder,) = (tmp_path / "inbox").iterdir()
            assert folder.name.startswith("000000000002-")
            again.refresh()
            assert again.rows("u") == [(1,), (2,)]
            monkeypatch.setattr("everview.hub.publish.commit", Crash(None, after=0))
            with pytest.raises(KeyboardInterrupt):
                again.publish()
            monkeypatch.undo()
        folders = tmp_path / folder_of("u")
        assert len(list(folders.glob("*-*"))) == 2
        with open_hub() as third:
            assert len(list(folders.glob("*-*"))) == 1
            third.publish()
        assert versions(tmp_path, "u") == {0: [1], 1: [1, 2]}

    def test_it_waits_for_a_refresh_under_way(self, open_hub, tmp_path, monkeypatch):
        with open_hub(retain_refreshes=1) as hub:
            monkeypatch.setattr("everview.hub.store.vacuum", functools.partial(vacuum, grace=0))
            hub.insert("u", [(1,)])
            written, go_on = threading.Event(), threading.Event()

            def slow(files, record):
                written.set()
                assert go_on.wait(20)
                commit(files, record)

            monkeypatch.setattr("everview.hub.store.commit", slow)
            refreshing = threading.Thread(target=hub.refresh)
            vacuuming = threading.Thread(target=hub.vacuum)
            refreshing.start()
            assert written.wait(20)
            vacuuming.start()
            vacuuming.join(0.3)
            go_on.set()
            refreshing.join()
            vacuuming.join()
            assert hub.rows("u") == [(1,)]
            assert arrows(tmp_path)

    def test_it_comes_by_itself(self, open_hub, monkeypatch):
        monkeypatch.setattr("everview.hub.hub.EVERY", 3)
        with open_hub(retain_refreshes=2) as hub:
            for step, wanted in enumerate([[1, 2], [1, 2, 3], [3, 4], [3, 4, 5]]):
                hub.insert("u", [(step,)])
                hub.refresh()
                assert refreshes(hub._store.files) == wanted
            assert hub.rows("n") == [(4,)]

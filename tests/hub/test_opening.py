"""Opening a store: a new epoch, and nothing left of what a crash interrupted."""

import os
from pathlib import Path

from tests.hub.quick import quickly

from everview.hub import Hub
from everview.hub.files import LocalFiles
from everview.hub.opening import begin_epoch, recover
from everview.hub.record import Record, commit, latest, refreshes
from everview.hub.retention import Retention
from everview.hub.runs import Part, Run
from everview.hub.vacuum import vacuum
from everview.language.program import Program

PROGRAM = Program.parse("CREATE TABLE t (k BIGINT)")
DRAFT = "." + "0" * 32


def test_every_opening_is_an_epoch_and_a_record(spark, tmp_path):
    for epoch in (1, 2, 3):
        with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
            quickly(hub).insert("t", [(epoch,)])
            assert hub.refresh().refresh == epoch
    files = LocalFiles(tmp_path)
    # Records 1, 3 and 5 are of openings; that of the last refresh before each is not needed beside it.
    assert refreshes(files) == [3, 5, 6]
    found = latest(files, PROGRAM.hash)
    assert (found.number, found.refresh, found.epoch, found.arrived) == (6, 3, 3, 3)


def test_what_no_record_names_is_removed_and_the_rest_stays(tmp_path):
    files = LocalFiles(tmp_path)
    run, other = f"runs/{1:032x}.arrow", f"runs/{2:032x}.arrow"
    named = Part(run, 0, 1, 1, 0, 0)
    commit(files, Record(number=1, refresh=1, program="p", arrived=2, tables={"t": (Run(1, (named,)),)}))
    stays = [run, "inbox/000000000003-a/_arrival.json", "inbox/by hand/x", "runs/.mine"]
    goes = [other, "inbox/000000000002-a/_arrival.json", "inbox/000000000004-a/part-0.parquet"]
    for path in (*stays, *goes, f"runs/{DRAFT}", f"refreshes/{DRAFT}"):
        files.create(path, b"")
    record = begin_epoch(files, "p")
    recover(files, record)
    vacuum(files, Retention(), grace=0)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {*stays, "refreshes/000000000002.json"}
    assert {path.name for path in (tmp_path / "inbox").iterdir()} == {"000000000003-a", "by hand"}


class Power:
    """What would be there after a loss of power: the files and names that the system was told to write."""

    def __init__(self, root, monkeypatch):
        self.root, self.lasting = root, set()
        monkeypatch.setattr(os, "fsync", self.write_out)

    def write_out(self, opened):
        path = Path(f"/proc/self/fd/{opened}").readlink()
        if path.is_dir():
            folder = path.stat().st_ino
            self.lasting |= {(folder, entry.stat().st_ino) for entry in path.iterdir()}
        else:
            self.lasting.add(path.stat().st_ino)

    def keeps(self, path):
        if path == self.root:
            return True
        folder, own = path.parent.stat().st_ino, path.stat().st_ino
        written = path.is_dir() or own in self.lasting
        return written and (folder, own) in self.lasting and self.keeps(path.parent)


def test_created_files_outlast_a_loss_of_power(tmp_path, monkeypatch):
    power = Power(tmp_path, monkeypatch)
    files = LocalFiles(tmp_path)
    files.create("a/b/c", b"1")
    assert power.keeps(tmp_path / "a/b/c")
    files.copy("a/b/c", "d/e/c")
    assert power.keeps(tmp_path / "d/e/c")
    (tmp_path / "x/y").mkdir(parents=True)
    (tmp_path / "x/y/z").write_bytes(b"1")
    assert not power.keeps(tmp_path / "x/y/z")
    files.settle("x")
    assert power.keeps(tmp_path / "x/y/z")


def test_what_spark_has_written_lasts_before_the_write_is_marked(spark, tmp_path, monkeypatch):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        power = Power(tmp_path, monkeypatch)
        mark = hub._store.inbox._mark

        def checked(arrival, rows):
            written = list((tmp_path / arrival.folder).glob("*.parquet"))
            assert written
            assert all(power.keeps(path) for path in written)
            assert sorted(arrival.parts) == sorted(path.name for path in written)
            mark(arrival, rows)

        monkeypatch.setattr(hub._store.inbox, "_mark", checked)
        (tmp_path / "inbox").mkdir()
        assert hub.insert("t", spark.range(3).withColumnRenamed("id", "k")) == 3
        assert hub.insert("t", spark.range(0).withColumnRenamed("id", "k")) == 0
        assert len(list((tmp_path / "inbox").iterdir())) == 1

"""Folders: sticks that are carried about, files that are lost, torn, doubled or foreign."""

import random
import shutil
import time
from pathlib import Path

import pytest
from tests.replication.fake import FakeReplica

from everview.errors import SyncError
from everview.replication.arriving import Applied, Outcome
from everview.replication.transports import folder, framed, outbox
from everview.replication.transports.folder import FolderTransport
from everview.replication.transports.framed import TornFileError, read_frames, read_header, verify


@pytest.fixture
def stick(tmp_path):
    return tmp_path / "stick"


def visit(replica, folder):
    return FolderTransport(folder).sync(replica)


def cuts(folder, replica):
    return sorted((folder / replica.incarnation).glob("*.cut"))


def rows(*replicas):
    (found,) = {tuple(replica.all_rows()) for replica in replicas}
    return list(found)


def test_three_visits_give_both_everything(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["a1", "a2"])
    b.insert(["b1"])
    visit(a, stick)
    assert visit(b, stick).received_rows == 2
    assert visit(a, stick).received_rows == 1
    assert rows(a, b) == ["a1", "a2", "b1"]


def test_nothing_is_written_again_but_the_request(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["a1"])
    for _ in range(2):
        visit(a, stick)
        visit(b, stick)
    before = {path: path.stat().st_mtime_ns for path in stick.rglob("*.cut")}
    for _ in range(3):
        for replica in (a, b):
            report = visit(replica, stick)
            assert (report.sent_rows, report.received_rows, report.skipped_files) == (0, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in stick.rglob("*.cut")} == before


def test_increments_carry_only_what_is_new(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert([f"old {i:05}" for i in range(1000)])
    for replica in (a, b, a, b):
        visit(replica, stick)
    a.insert(["new"])
    assert visit(a, stick).sent_rows == 1
    report = visit(b, stick)
    assert report.received_rows == 1
    assert report.received_bytes < 1000


def test_a_newcomer_finds_everything_without_asking(stick):
    a = FakeReplica("a")
    for i in range(5):
        a.insert([f"row {i}"])
        visit(a, stick)
    b = FakeReplica("b")
    visit(b, stick)
    assert rows(a, b) == [f"row {i}" for i in range(5)]


def test_a_strict_newcomer_waits_until_it_is_listed(stick):
    a, b = FakeReplica("a"), FakeReplica("b", strict=True)
    a.insert(["a1"])
    visit(a, stick)
    assert visit(b, stick).received_rows == 0
    visit(a, stick)
    assert visit(b, stick).received_rows == 1


def test_many_increments_become_one_whole_cut(stick, monkeypatch):
    monkeypatch.setattr(outbox, "LIGHT", 500)
    a, b = FakeReplica("a"), FakeReplica("b")
    most = 0
    for i in range(200):
        a.insert([f"row {i:04}"])
        visit(a, stick)
        visit(b, stick)
        assert len(b.rows) == i + 1
        most = max(most, sum(path.stat().st_size for path in cuts(stick, a)))
    whole = sum(len(message) for message in a.batch(0))
    assert most < 4 * whole
    assert len(cuts(stick, a)) < 60


def test_a_lost_file_is_written_again(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["1"])
    for replica in (a, b, a, b):
        visit(replica, stick)
    a.insert(["2"])
    visit(a, stick)
    cuts(stick, a)[-1].unlink()
    a.insert(["3"])
    visit(a, stick)
    visit(b, stick)
    assert rows(a, b) == ["1", "2", "3"]


def test_a_lost_file_in_the_middle_is_filled_in(stick):
    """The increment behind the gap is there, but cannot be applied before the lost one."""
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["1"])
    for replica in (a, b, a, b):
        visit(replica, stick)
    for row in ("2", "3"):
        a.insert([row])
        visit(a, stick)
    cuts(stick, a)[-2].unlink()
    visit(b, stick)
    assert b.all_rows() == ["1"]
    visit(a, stick)
    visit(b, stick)
    assert rows(a, b) == ["1", "2", "3"]


@pytest.mark.parametrize("where", ["cut off", "changed", "emptied", "header"])
def test_a_torn_file_is_skipped_counted_and_written_again(stick, where):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert([f"row {i}" for i in range(500)])
    visit(a, stick)
    (path,) = cuts(stick, a)
    data = bytearray(path.read_bytes())
    if where == "changed":
        data[len(data) // 2] ^= 1
    elif where == "header":
        data[20] ^= 0x80
    path.write_bytes({"cut off": data[: len(data) // 2], "emptied": b""}.get(where, data))
    assert visit(b, stick).skipped_files == 1
    assert b.all_rows() == []
    visit(a, stick)
    assert visit(b, stick).skipped_files == 0
    assert len(rows(a, b)) == 500


def test_doubled_and_foreign_files_do_no_harm(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["1"])
    for replica in (a, b, a, b):
        visit(replica, stick)
    a.insert(["2"])
    visit(a, stick)
    box = stick / a.incarnation
    whole, *_ = cuts(stick, a)
    shutil.copy(whole, box / "00000099-0-1.cut")  # doubled, under a name of ours
    shutil.copy(whole, box / "00000001-0-1 (1).cut")
    (box / "photo.jpg").write_bytes(b"\xff\xd8")
    (stick / "holiday").mkdir()
    (stick / "holiday" / "photo.jpg").write_bytes(b"\xff\xd8")
    (stick / "notes.txt").write_text("milk")
    report = visit(b, stick)
    assert (report.received_rows, report.skipped_files) == (1, 3)
    assert rows(a, b) == ["1", "2"]


def test_half_written_files_are_not_seen(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert(["1"])
    visit(a, stick)
    (stick / a.incarnation / f"{framed.TEMPORARY}0011").write_bytes(b"everview fi")
    report = visit(b, stick)
    assert (report.received_rows, report.skipped_files) == (1, 0)


def test_a_request_that_is_garbage_is_counted(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    visit(a, stick)
    (stick / a.incarnation / "request").write_bytes(b"what")
    assert visit(b, stick).skipped_files == 1


def test_a_writer_that_dies_leaves_nothing_half_written(stick):
    a, b = FakeReplica("a"), FakeReplica("b")
    a.insert([f"{i}" for i in range(1000)])

    class Death(BaseException):
        pass

    def die(progress):
        if progress.sent_rows >= 300:
            raise Death

    with pytest.raises(Death):
        FolderTransport(stick).sync(a, on_progress=die)
    assert cuts(stick, a) == []
    assert not list(stick.rglob(f"{framed.TEMPORARY}*"))
    visit(a, stick)
    visit(b, stick)
    assert len(rows(a, b)) == 1000


@pytest.mark.parametrize("seed", range(20))
def test_files_lost_and_torn_at_random_delay_but_never_lose(tmp_path, seed):
    rng = random.Random(seed)
    stick = tmp_path / "stick"
    sites = [FakeReplica(str(i), strict=i > 0 and rng.random() < 0.5) for i in range(3)]
    written = set()
    for step in range(60):
        site = rng.choice(sites)
        if rng.random() < 0.6:
            row = f"{step} {site.name}"
            site.insert([row])
            written.add(row)
        visit(site, stick)
        files = sorted(path for path in stick.rglob("*") if path.is_file())
        if files and rng.random() < 0.3:
            victim = rng.choice(files)
            if rng.random() < 0.5:
                victim.unlink()
            else:
                victim.write_bytes(victim.read_bytes()[: rng.randrange(victim.stat().st_size + 1)])
    for _ in range(4):
        for site in sites:
            visit(site, stick)
    assert rows(*sites) == sorted(written)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SyncError, match="is it mounted") as caught:
        visit(FakeReplica(), tmp_path / "no" / "stick")
    assert caught.value.retry
    (tmp_path / "file").write_text("")
    with pytest.raises(SyncError, match="is a file") as caught:
        visit(FakeReplica(), tmp_path / "file")
    assert not caught.value.retry
    assert caught.value.peer == str(tmp_path / "file")


def test_a_full_disk_is_an_error_that_names_the_folder(stick, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device", "a.cut")

    monkeypatch.setattr(framed.os, "fsync", full)
    with pytest.raises(SyncError, match="No space left") as caught:
        visit(FakeReplica(), stick)
    assert (caught.value.peer, caught.value.retry) == (str(stick), True)
    assert not [path for path in stick.rglob("*") if path.is_file()]


def test_framed_files_are_whole_or_recognised(tmp_path):
    messages = [b"", b"one", bytes(100_000)]
    path, size = framed.write_framed(tmp_path, lambda: "f", {"k": [1]}, messages)
    assert verify(path, dict) == ({"k": [1]}, path.stat().st_size)
    assert size == path.stat().st_size
    assert list(read_frames(path)) == messages
    assert read_header(path, dict) == {"k": [1]}
    data = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        bad = bytearray(data)
        if rng.random() < 0.5:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        else:
            bad = bad[: rng.randrange(len(bad))]
        path.write_bytes(bad)
        with pytest.raises(TornFileError):
            verify(path, dict)
        try:
            read_header(path, dict)
            list(read_frames(path))
        except TornFileError:
            pass


def test_who_must_be_listed_gets_one_whole_cut_whatever_it_complains_of():
    def cut(name, readers=("r",)):
        serial, since, head = map(int, name.removesuffix(".cut").split("-"))
        return outbox.CutFile(Path(name), serial, since, head, 10, frozenset(readers))

    def planned(cuts, complaint):
        return outbox.plan(cuts, 7, "", {"r": 5}, {"r": [complaint]})

    before = [cut("1-0-5.cut"), cut("2-5-7.cut")]
    found = planned(before, "2-5-7.cut")
    assert (found.since, found.replaces) == (0, tuple(before))
    after = [cut("3-0-7.cut")]
    assert planned(after, "2-5-7.cut") is None  # the new one is the answer
    assert planned(after, "3-0-7.cut") is None  # it lists the reader; another would say the same
    assert planned([cut("3-0-7.cut", readers=())], "3-0-7.cut").since == 0


@pytest.mark.parametrize("clock", [None, 1000])
def test_what_is_written_after_everything_was_lost_is_not_taken_for_what_was_refused(
    stick, monkeypatch, clock
):
    if clock is not None:  # a clock that stands still, or was set back
        monkeypatch.setattr(folder.time, "time", lambda: clock)
    a, b = FakeReplica("a", program="other"), FakeReplica("b")
    a.insert(["1"])
    monkeypatch.setattr(b, "take", lambda _messages: Applied(Outcome.REFUSED))
    visit(a, stick)
    visit(b, stick)
    monkeypatch.undo()
    if clock is not None:
        monkeypatch.setattr(folder.time, "time", lambda: clock)
    else:
        time.sleep(1.1)
    for path in cuts(stick, a):
        path.unlink()
    a.program = "p"
    visit(a, stick)
    assert visit(b, stick).received_rows == 1


def test_another_standing_is_told_at_once():
    cuts = [outbox.CutFile(Path("1-0-5.cut"), 1, 0, 5, 10, frozenset(), "waits")]
    assert outbox.plan(cuts, 5, "waits", {}, {}) is None
    assert outbox.plan(cuts, 5, "joined", {}, {}).since == 0

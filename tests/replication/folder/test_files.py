"""Files in a folder: who writes what, what a newcomer finds, and what a bad file costs."""

import os
import shutil
import tracemalloc

import pytest
from tests.replication.folder.stores import assert_equal, files, newcomer, opened, visit, write

from everview.errors import SyncError
from everview.language.program import Program
from everview.replication.transports.folder import files as cut_files
from everview.replication.transports.folder import framed
from everview.replication.transports.folder import transport as folders
from everview.replication.transports.folder.files import Files
from everview.replication.transports.folder.framed import Frames, write_framed
from everview.replication.transports.folder.transport import FolderTransport


@pytest.fixture
def stick(tmp_path):
    return tmp_path / "stick"


@pytest.fixture
def a():
    return opened("a")


@pytest.fixture
def b():
    return opened("b")


def test_what_is_in_the_folder_is_written_once(stick, a, b):
    """A site that only reads writes nothing; one that writes leaves out what is there."""
    write(a, *range(2000))
    visit(stick, a, b)
    assert not (stick / b.replica.incarnation).exists()
    write(b, 5000)
    visit(stick, b)
    assert sum(path.stat().st_size for path in files(stick, b)) < 1000
    assert_equal(newcomer(stick), b)


def test_a_file_fits_a_site_that_has_what_it_requires_from_elsewhere(stick, a, b):
    write(a, 1)
    visit(stick, a)
    b.sync(a)
    write(a, 2)
    visit(stick, a)
    snapshot, more = files(stick, a)
    snapshot.unlink()
    assert visit(stick, b)[0].received_bytes == more.stat().st_size
    assert_equal(a, b, newcomer(stick))  # b has put back what the newcomer lacks


def test_small_files_become_one(stick, a, b, monkeypatch):
    monkeypatch.setattr(folders, "MANY", 4)
    way = FolderTransport(stick)
    for number in range(40):
        write(a, number)
        way.sync(a.replica)
        assert visit(stick, b)[0].received_rows == 4  # it reads the small file
        assert len(files(stick)) <= 16
    assert {path.suffix for path in files(stick)} == {".all", ".more"}
    assert_equal(a, b, newcomer(stick))


def test_one_file_in_place_of_many_relies_on_snapshots_alone(stick, a, b, monkeypatch):
    """For a may put its own small files away."""
    monkeypatch.setattr(folders, "MANY", 3)
    write(a, *range(500))
    visit(stick, a)
    write(a, 1000)
    visit(stick, a, b)
    for number in range(2000, 2006):
        write(b, number)
        visit(stick, b)
    files(stick, a)[1].unlink()
    assert any(path.suffix == ".all" for path in files(stick, b))
    assert_equal(newcomer(stick), b)


def test_a_store_that_went_back_takes_another_name(stick, tmp_path, b):
    path = tmp_path / "a.db"
    a = opened("a", path)
    write(a, 1)
    a.close()
    old, a = path.read_bytes(), opened("a", path)
    write(a, 2)
    visit(stick, a, b)
    a.close()
    path.with_name("a.db-shown").unlink()  # so that opening does not notice
    with path.open("r+b") as file:  # the same inode
        file.truncate()
        file.write(old)
    a = opened("a", path)
    before = a.replica.incarnation
    write(a, 3)
    visit(stick, a, b, a, b)
    assert a.replica.incarnation != before
    assert assert_equal(a, b) == [1, 2, 3]


# Bad files


def change(path, how):
    data = bytearray(path.read_bytes())
    path.unlink()
    if how.startswith("changed"):
        data[-1 if how.endswith("end") else len(data) // 2] ^= 1
    match how:
        case "a folder":
            path.mkdir()
        case "a pipe":
            os.mkfifo(path)
        case "a link to itself":
            path.symlink_to(path.name)
        case _:
            path.write_bytes({"cut off": data[: len(data) // 2], "emptied": b""}.get(how, data))


HOW = ["cut off", "changed", "changed at its end", "emptied", "a folder", "a pipe", "a link to itself"]


@pytest.mark.parametrize("how", HOW)
def test_a_bad_file_is_named_and_written_again(stick, a, b, how):
    write(a, *range(200))
    visit(stick, a)
    (path,) = files(stick, a)
    change(path, how)
    (report,) = visit(stick, b)
    assert (report.skipped, report.skipped_files) == ((f"{path.parent.name}/{path.name}",), 1)
    assert b.rows("s") == []
    visit(stick, a, b)
    assert len(assert_equal(a, b)) == 200


def test_foreign_files_are_named_and_left_alone(stick, a, b):
    other = opened("o", program=Program.parse("CREATE TABLE s (z TEXT);"))
    other.insert("s", [("z",)])
    write(a, 1)
    visit(stick, a)
    photo = stick / a.replica.incarnation / "photo.jpg"
    photo.write_bytes(b"\xff\xd8")
    (stick / "notes.txt").write_text("milk")
    shutil.copytree(photo.parent, stick / ("0" * 16))  # its files name another writer
    visit(stick, other)
    assert len(visit(stick, b)[0].skipped) == 4
    assert assert_equal(a, b) == [1]
    visit(stick, a)
    assert photo.exists()


LIES = ["no pages", "twice", "another's pages", "older pages", "no summary", "a page too few", "a page twice"]


@pytest.mark.parametrize("how", LIES)
def test_whole_files_that_lie_change_nothing(stick, a, b, how, monkeypatch):
    monkeypatch.setattr(cut_files, "PAGE_CELLS", 200)
    write(b, 7)
    theirs = [piece.data for piece in Files(b.replica).write({})]
    b = opened("b")
    write(a, *range(100))
    older = [piece.data for piece in Files(a.replica).write({})]
    write(a, 1000)
    visit(stick, a)
    (path,) = files(stick, a)
    frames = Frames(path)
    said = [frames[number] for number in range(len(frames))]
    assert len(said) > 4
    lies = [said[-1:], [*said[:-1], *said], [*theirs[:-1], said[-1]], [*older[:-1], said[-1]], said[:-1]]
    told = dict(zip(LIES, [*lies, [*said[:-2], said[-1]], [said[0], *said]], strict=True))
    for messages, is_right in ((told[how], False), (said, True)):
        path.unlink()
        write_framed(path.parent, lambda: path.name, {}, messages)
        (report,) = visit(stick, b)
        assert len(report.skipped) == (not is_right)
        assert bool(b.rows("s")) is bool(Files(b.replica).seen()) is is_right
    assert_equal(a, b)


def test_trouble_of_the_folder_is_told(stick, a, tmp_path, monkeypatch):
    write(a, 1)
    with pytest.raises(SyncError, match="is it mounted"):
        visit(tmp_path / "no" / "stick", a)

    def full(*_arguments):
        raise OSError(28, "No space left on device", "a.all")

    monkeypatch.setattr(framed.os, "fsync", full)
    with pytest.raises(SyncError, match="No space left") as caught:
        visit(stick, a)
    assert (caught.value.peer, caught.value.retry, files(stick)) == (str(stick), True, [])


def test_one_page_is_in_memory(stick, a, b, monkeypatch):
    monkeypatch.setattr(cut_files, "PAGE_CELLS", 20_000)
    a.insert("s", [(number, os.urandom(40).hex()) for number in range(60_000)])
    visit(stick, a)
    tracemalloc.start()
    visit(stick, b)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 3 * files(stick, a)[0].stat().st_size  # some times a page, of more than ten
    assert_equal(a, b)

"""What cannot be read is set aside, with its reason, and the rest goes on."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.hub.quick import quickly

from everview.errors import StoreError
from everview.hub import Hub
from everview.language.program import Program

PROGRAM = Program.parse("""
CREATE TABLE t (k BIGINT NOT NULL, name TEXT);
CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t;
""")
GOOD = [(1, "good")]


class KilledError(BaseException):
    pass


@pytest.fixture
def hub(spark, tmp_path):
    with Hub.open(tmp_path, PROGRAM, spark=spark) as hub:
        yield quickly(hub)


def write_bad(hub, tmp_path):
    """A write to be damaged, between two that are not."""
    before = {*(tmp_path / "inbox").glob("*")}
    hub.insert("t", [(2, "bad"), (3, "bad")])
    (folder,) = {*(tmp_path / "inbox").glob("*")} - before
    hub.insert("t", GOOD)
    (file,) = folder.glob("*.parquet")
    return folder, file


def check_set_aside(hub, tmp_path, reason):
    report = hub.refresh()
    (rejected,) = report.rejected
    assert reason in rejected.reason
    assert (tmp_path / "rejected" / rejected.name / "reason.txt").read_text() == f"{rejected.reason}\n"
    assert hub.rows("t") == GOOD
    assert hub.rows("v") == [(1,)]
    assert hub.refresh().rejected == ()
    assert not list((tmp_path / "inbox").iterdir())


def truncated(folder, file):
    file.write_bytes(file.read_bytes()[:-20])


def emptied(folder, file):
    file.write_bytes(b"")


def missing(folder, file):
    file.unlink()


def garbled(folder, file):
    """The first page, behind the magic and its header."""
    content = bytearray(file.read_bytes())
    content[30:34] = bytes(byte ^ 255 for byte in content[30:34])
    file.write_bytes(content)


def wrong_names(folder, file):
    pq.write_table(pa.table({"k": [2, 3], "name": ["a", "b"]}), file)


def wrong_types(folder, file):
    pq.write_table(pa.table({"c0": ["2", "3"], "c1": ["a", "b"]}), file)


def fewer_rows(folder, file):
    pq.write_table(pa.table({"c0": [2], "c1": ["a"]}), file)


def nulls(folder, file):
    pq.write_table(pa.table({"c0": [2, None], "c1": ["a", "b"]}), file)


def not_utf8(folder, file):
    text = pa.array([b"a", b"\xff"]).view(pa.string())
    pq.write_table(pa.table({"c0": [2, 3], "c1": text}), file)


def bad_mark(folder, file):
    (folder / "_arrival.json").write_bytes(b"{")


def unknown_relation(folder, file):
    mark = folder / "_arrival.json"
    mark.write_text(mark.read_text().replace('"t"', '"x"'))


def other_number(folder, file):
    folder.rename(folder.with_name("000000000077-copied"))


def other_name(folder, file):
    folder.rename(folder.with_name("mine"))


CASES = {
    truncated: "is damaged",
    emptied: "is damaged",
    missing: "part-0.parquet is missing",
    garbled: "is damaged",
    wrong_names: "does not have the columns of t: expected c0 int64, c1 string; found k int64, name string",
    wrong_types: "expected c0 int64",
    fewer_rows: "1 rows, but 2 were written",
    nulls: "NULLs in t.k, which is NOT NULL",
    not_utf8: "is damaged",
    bad_mark: "its mark is damaged",
    unknown_relation: "no relation x",
    other_number: "marked as write 1",
    other_name: "no folder of a write",
}


@pytest.mark.parametrize("damage", CASES, ids=lambda damage: damage.__name__)
def test_set_aside(hub, tmp_path, damage):
    damage(*write_bad(hub, tmp_path))
    check_set_aside(hub, tmp_path, CASES[damage])


def test_a_file_that_is_no_folder_and_a_name_that_was_there_before(hub, tmp_path):
    for name in ("mine", "mine-2"):
        (tmp_path / "inbox").mkdir(exist_ok=True)
        (tmp_path / "inbox" / "mine").write_text("x")
        (rejected,) = hub.refresh().rejected
        assert rejected.name == name
        assert (tmp_path / "rejected" / name / "mine").read_text() == "x"


def test_an_empty_folder(hub, tmp_path):
    (tmp_path / "inbox" / "mine").mkdir(parents=True)
    (rejected,) = hub.refresh().rejected
    assert [path.name for path in (tmp_path / "rejected" / rejected.name).iterdir()] == ["reason.txt"]
    assert hub.refresh().rejected == ()


@pytest.mark.parametrize("copied", range(4))
def test_ended_while_it_is_set_aside(hub, spark, tmp_path, monkeypatch, copied):
    """Nothing is renamed: before all is copied the next one goes on, and after that there is no write."""
    folder, _ = write_bad(hub, tmp_path)
    (folder / "part-0.parquet").write_bytes(b"damaged")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    files = hub._store.files
    steps = iter(range(copied))

    def ending(function):
        def passed(*arguments):
            if next(steps, None) is None:
                raise KilledError
            return function(*arguments)

        return passed

    with monkeypatch.context() as patch:
        for name in ("copy", "remove_file", "remove"):
            patch.setattr(files, name, ending(getattr(files, name)))
        with pytest.raises(KilledError):
            hub.refresh()
    hub.close()
    with Hub.open(tmp_path, PROGRAM, spark=spark) as again:
        rejected = quickly(again).refresh().rejected
        assert again.rows("t") == GOOD
    # When only its removal had not begun, it is set aside once more.
    again = {0: [folder.name], 1: [folder.name], 2: [f"{folder.name}-2"], 3: []}
    assert [found.name for found in rejected] == again[copied]
    for place in (tmp_path / "rejected").iterdir():
        kept = {path.name: path.read_bytes() for path in place.iterdir()}
        assert kept.pop("reason.txt")
        assert kept == before
    assert not list((tmp_path / "inbox").iterdir())


@pytest.mark.parametrize("by_executors", [False, True])
def test_what_an_attempt_that_was_given_up_left_is_no_part_of_a_write(hub, spark, tmp_path, by_executors):
    if by_executors:
        hub._store.driver_rows = 0
    hub.insert("t", spark.sql("SELECT 5L AS k, 'x' AS name"))
    (folder,) = (tmp_path / "inbox").iterdir()
    pq.write_table(pa.table({"c0": [6], "c1": ["late"]}), folder / "part-00001-late.parquet")
    assert hub.refresh().rejected == ()
    assert hub.rows("t") == [(5, "x")]


class TestManyRows:
    """By the executors, who are given what the driver has not read."""

    @pytest.fixture
    def hub(self, hub):
        hub._store.driver_rows = 2
        return hub

    def test_a_damaged_page_fails_the_refresh_and_is_set_aside_by_the_next(self, hub, tmp_path):
        folder, file = write_bad(hub, tmp_path)
        garbled(folder, file)
        record = hub._store.record
        with pytest.raises(
            StoreError, match=rf"nothing was refreshed.*{folder.name}: {file.name} is damaged"
        ):
            hub.refresh()
        assert hub._store.record == record
        assert hub.rows("t") == []
        check_set_aside(hub, tmp_path, "is damaged")

    def test_a_file_that_spark_alone_refuses(self, hub, spark, tmp_path):
        """Spark keeps checksums beside the files that it writes."""
        hub.insert("t", spark.sql("SELECT 5L AS k, 'x' AS name"))
        (checksum,) = (tmp_path / "inbox").glob("*/.*.parquet.crc")
        content = bytearray(checksum.read_bytes())
        content[-1] ^= 255
        checksum.write_bytes(content)
        hub.insert("t", GOOD)
        with pytest.raises(StoreError, match="Spark cannot read it"):
            hub.refresh()
        check_set_aside(hub, tmp_path, "Spark cannot read it")

    def test_footers_are_looked_at_and_parquet_alone_is_read(self, hub, tmp_path):
        truncated(*write_bad(hub, tmp_path))
        for folder in (tmp_path / "inbox").iterdir():
            (folder / "notes.txt").write_text("by hand")
        check_set_aside(hub, tmp_path, "is damaged")


def test_twice_in_pieces_and_out_of_order(hub, spark, tmp_path):
    """A write is its number and its rows; how often, in how many pieces and when it comes does not count."""
    hub.insert("t", [(k, "a") for k in range(6)])
    hub.delete("t", [(1, "a"), (2, "a"), (9, "z")])
    hub.insert("t", [(2, "a"), (7, "b")])
    other = tmp_path / "other"
    for folder in sorted((tmp_path / "inbox").iterdir(), reverse=True):
        for copy in ("zz", "aa"):
            shutil.copytree(folder, other / "inbox" / f"{folder.name}{copy}")
        rows = pq.read_table(next(folder.glob("*.parquet")))
        for number in range(rows.num_rows):
            piece = other / "inbox" / f"{folder.name}{number}"
            piece.mkdir()
            pq.write_table(rows.slice(number, 1), piece / "part-0.parquet")
            mark = (folder / "_arrival.json").read_text()
            (piece / "_arrival.json").write_text(mark.replace(f'"rows":{rows.num_rows}', '"rows":1'))
    hub.refresh()
    with Hub.open(other, PROGRAM, spark=spark) as again:
        report = quickly(again).refresh()
        assert report.rejected == ()
        for name in ("t", "v"):
            assert again.rows(name) == hub.rows(name)
        assert len(again.rows("t")) == 6

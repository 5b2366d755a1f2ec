"""Sources give the same messages under the same offsets, from any point on, as often as they are asked."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest
from tests.streams.windows.sites import PROGRAM

import everview as ev
from everview import windowed
from everview.algebra.lattices import Max, MergeMap

WITH_ROWS = ev.Program.parse("CREATE TABLE r (a BIGINT, b TEXT);" + windowed.RELATIONS)
GROUP = windowed.Group("g", MergeMap(Max()), {"p"})


def read(source, offset=0, limit=100):
    return list(asyncio.run(source.read(offset, limit)))


def every_way(source, whole):
    """Read from every offset, by every step."""
    for offset, _ in [*whole, (whole[-1][0] + 1, None)]:
        expected = [pair for pair in whole if pair[0] >= offset]
        for limit in (1, 2, 100):
            found = read(source, offset, limit)
            assert found == expected[: len(found)]
            assert len(found) <= limit
            assert found or not expected


def test_json_lines_are_numbered_and_blank_ones_left_out(tmp_path):
    path = tmp_path / "messages.jsonl"
    path.write_text('{"a": 1}\n\n[2]\n\n\n"ü"\n3')
    source = windowed.JsonLines(path)
    whole = [(0, {"a": 1}), (2, [2]), (5, "ü"), (6, 3)]
    assert read(source) == whole
    every_way(source, whole)
    assert read(source, 7) == read(source, 99) == []


def test_a_line_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "messages.jsonl"
    path.write_text("1\n{no\n")
    with pytest.raises(ev.DataError, match="line 2 is no JSON"):
        read(windowed.JsonLines(path))
    with pytest.raises(ev.StoreError, match="cannot be read"):
        read(windowed.JsonLines(tmp_path / "nowhere"))


def test_a_file_that_is_followed_is_waited_for_line_by_line(tmp_path):
    path = tmp_path / "messages.jsonl"
    path.write_text("1\n2")

    async def follow():
        source = windowed.JsonLines(path, follow=True)
        assert list(await source.read(0, 9)) == [(0, 1)]
        more = asyncio.create_task(source.read(1, 9))
        await asyncio.sleep(0)
        with path.open("a") as file:
            file.write("3\n")
        return list(await more)

    assert asyncio.run(follow()) == [(1, 23)]


def test_parquet_rows_are_dicts_numbered_over_all_row_groups(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "messages.parquet"
    table = arrow.table({"a": list(range(10)), "b": [str(n) for n in range(10)]})
    parquet.write_table(table, path, row_group_size=4)
    source = windowed.ParquetRows(path)
    whole = [(n, {"a": n, "b": str(n)}) for n in range(10)]
    for offset in range(11):
        found = read(source, offset, 3)
        assert found == whole[offset : offset + len(found)]
        assert len(found) > 0 or offset == 10
    assert read(windowed.ParquetRows(path, columns=["b"]), 9) == [(9, {"b": "9"})]
    with pytest.raises(ev.StoreError, match="cannot be read"):
        read(windowed.ParquetRows(tmp_path / "nowhere"))


def test_without_pyarrow_parquet_says_what_to_install():
    script = (
        "import sys; sys.modules['pyarrow'] = None; from everview import windowed; windowed.ParquetRows('x')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "MissingDependencyError: reading Parquet needs pyarrow: pip install pyarrow" in done.stderr


def test_changes_of_a_relation_come_in_the_order_of_commits(tmp_path):
    with ev.Site.open(":memory:", WITH_ROWS, name="s") as site:
        site.insert("r", [(1, "old")])
        source = windowed.Changes(site, "r", "me", snapshot=True)
        site.insert("r", [(2, "new")])
        site.delete("r", [(1, "old")])
        whole = read(source)
        assert [message for _, message in whole] == [((1, "old"), 1), ((2, "new"), 1), ((1, "old"), -1)]
        assert whole[0][1].row == (1, "old")
        assert read(source, whole[1][0]) == whole[1:]

        async def wait():
            later = asyncio.create_task(source.read(whole[-1][0] + 1, 9))
            await asyncio.sleep(0)
            threading.Thread(target=site.insert, args=("r", [(3, "later")])).start()
            return await later

        (last,) = asyncio.run(wait())
        assert last[1] == windowed.RowChange((3, "later"), 1)
        source.release(last[0])
        assert read(source, last[0]) == [last]
        with pytest.raises(ev.StoreError, match="were released"):
            read(source, 0)


def test_replicated_messages_are_kept_before_they_are_given_and_then_come_from_the_site():
    asked = []

    class Once(windowed.Listed):
        """A stream that cannot be read twice."""

        async def read(self, offset, limit):
            assert offset not in asked
            asked.append(offset)
            return await super().read(offset, min(limit, 2))

    with (
        ev.Site.open(":memory:", PROGRAM, name="s") as site,
        ev.Site.open(":memory:", PROGRAM, name="t") as peer,
    ):
        source = windowed.Replicated(
            site, GROUP, "p", Once([{"n": 0}, (1, "x"), windowed.RowChange((2,), 1)])
        )
        assert read(source) == [(0, {"n": 0}), (1, (1, "x"))]
        peer.sync(site)
        assert read(source, 2) == [(2, windowed.RowChange((2,), 1))]
        assert read(source, 3) == []
        taken = windowed.Replicated(peer, GROUP, "p")
        assert (
            read(taken) == read(source)[:2]
        )  # the third has not come yet, and nothing says that it is the end

        async def wait():
            later = asyncio.create_task(taken.read(2, 9))
            await asyncio.sleep(0)
            await asyncio.to_thread(peer.sync, site)
            return list(await later)

        assert asyncio.run(wait()) == [(2, windowed.RowChange((2,), 1))]
        assert read(taken, 3) == []
        taken.release(2)
        assert read(taken, 2) == [(2, windowed.RowChange((2,), 1))]
        assert len(peer.rows("windowed_messages")) == 2  # the last, and the end


def test_a_message_that_has_not_come_is_missed_and_not_skipped():
    class Sparse(windowed.Listed):
        async def read(self, offset, limit):
            return [(at, at) for at in (3, 7, 8, 20) if at >= offset][:limit]

    with ev.Site.open(":memory:", PROGRAM, name="s") as site:
        source = windowed.Replicated(site, GROUP, "p", Sparse([]))
        whole = [(3, 3), (7, 7), (8, 8), (20, 20)]
        assert read(source, 0, 5) == whole[:2]
        assert read(source, 8, 20) == whole[2:]
        every_way(windowed.Replicated(site, GROUP, "p", Sparse([])), whole)
        site.execute("DELETE FROM windowed_messages WHERE message = 7")
        assert read(windowed.Replicated(site, GROUP, "p"), 0) == [(3, 3)]
        assert read(windowed.Replicated(site, GROUP, "p"), 8) == [(8, 8), (20, 20)]


def test_two_messages_in_one_place_are_not_taken_for_one():
    with ev.Site.open(":memory:", PROGRAM, name="s") as site:
        for text in "ab":
            source = windowed.Replicated(site, GROUP, "p", windowed.Listed([text]))
            source._keep(0, [(0, text)])
        with pytest.raises(ev.NonDeterminismError, match="two different messages at 0"):
            read(source)


def test_processors_read_files_and_relations(tmp_path):
    """North's visits are lines of a file, south's rows of a relation; a run that is broken off goes on."""
    path = tmp_path / "north.jsonl"
    path.write_text("".join(json.dumps({"visitors": n}) + "\n" for n in (1, 2, 3)))
    group = windowed.Group("visits", ev.crdt.Counter, {"north", "south"})

    async def north(ctx, message):
        ctx.state.add(message["visitors"])
        ctx.next_window()

    async def south(ctx, change):
        ctx.state.add(change.row[0])
        ctx.emit(change.row[1])
        ctx.next_window()

    async def until_closed(site, window):
        runner = windowed.Runner(
            site,
            group,
            {
                "north": windowed.Processor(north, windowed.JsonLines(path, follow=True)),
                "south": windowed.Processor(south, windowed.Changes(site, "r", "south")),
            },
        )
        task = asyncio.create_task(runner.run())
        windows = windowed.Windows(site, group)
        while windows.closed < window:
            assert not task.done()
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    with ev.Site.open(tmp_path / "s.db", WITH_ROWS, name="s") as site:
        windowed.Changes(site, "r", "south")
        site.insert("r", [(10, "x")])
        site.insert("r", [(20, "y")])
        asyncio.run(until_closed(site, 1))
    with ev.Site.open(tmp_path / "s.db", name="s") as site:
        site.insert("r", [(30, "z")])
        asyncio.run(until_closed(site, 2))
        windows = windowed.Windows(site, group)
        assert [windows.value(w).value for w in range(3)] == [11, 33, 66]
        assert [one.value for one in windows.outputs()] == ["x", "y", "z"]


# A file that is not what it was


def written(path, numbers):
    path.write_text("".join(f"{number}\n" for number in numbers))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: written(path, range(2)),
        lambda path: written(path, [0, 1, 7, 3, 4]),
        lambda path: written(path, [10, 11, 12, 13]),
        lambda path: path.write_text(""),
        lambda path: path.write_text("0\n1\n2"),
    ],
    ids=["shorter", "other line", "other file", "empty", "cut line"],
)
def test_lines_that_change_while_they_are_read_are_told(tmp_path, change):
    path = tmp_path / "messages.jsonl"
    written(path, range(6))
    source = windowed.JsonLines(path)
    assert read(source, 0, 3) == [(0, 0), (1, 1), (2, 2)]
    assert read(source, 3, 1) == [(3, 3)]
    written(path, range(9))  # it grew
    assert read(source, 4, 1) == [(4, 4)]
    assert read(source, 0, 3) == [(0, 0), (1, 1), (2, 2)]
    change(path)
    with pytest.raises(ev.StoreError, match="was changed under a processor: line 3 is not there any more"):
        read(source, 3)


def test_a_line_without_its_end_that_goes_on_is_another(tmp_path):
    path = tmp_path / "messages.jsonl"
    path.write_text("1\n2")
    source = windowed.JsonLines(path)
    assert read(source) == [(0, 1), (1, 2)]
    path.write_text("1\n23\n")
    with pytest.raises(ev.StoreError, match="line 2 is not there any more as it was read"):
        read(source, 2)


async def each_in_a_window(ctx, number):
    ctx.update({"p": number if isinstance(number, int) else number["n"]})
    ctx.emit(number)
    if number in (5, {"n": 5}):
        raise OSError("unplugged")
    ctx.next_window()


def run_once(site, processors):
    asyncio.run(windowed.Runner(site, GROUP, processors, attempts=1).run())


def parquet_written(path, numbers):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"n": list(numbers)}), path, row_group_size=2)


@pytest.mark.parametrize("kind", ["lines", "parquet", "replicated"])
@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([0, 1, 2, 3, 4, 6, 7, 8], None),
        ([0, 1, 2], "it has 3 lines, and 5 were read of it"),
        ([0, 1, 2, 3, 14, 6, 7], "not those that were read"),
        ([], "it has 0 lines, and 5 were read of it"),
    ],
)
def test_a_processor_does_not_go_on_in_a_file_that_is_not_what_it_was(tmp_path, kind, numbers, said):
    write = parquet_written if kind == "parquet" else written
    path = tmp_path / "messages"
    with ev.Site.open(tmp_path / "site.db", PROGRAM, name="s") as site:

        def processors():
            source = windowed.ParquetRows(path) if kind == "parquet" else windowed.JsonLines(path)
            if kind == "replicated":
                source = windowed.Replicated(site, GROUP, "p", source)
            return {"p": windowed.Processor(each_in_a_window, source)}

        write(path, range(8))
        with pytest.raises(OSError, match="unplugged"):
            run_once(site, processors())
        write(path, numbers)
        if said is None and kind != "replicated":  # which has kept the message that fails
            windowed.run(site, GROUP, processors())
            assert windowed.Windows(site, GROUP).value(7) == {"p": 8}
        elif said is not None:
            with pytest.raises(ev.StoreError, match="row 5" if kind == "parquet" else said):
                run_once(site, processors())
            assert len(windowed.Windows(site, GROUP).outputs()) <= 6


def test_a_parquet_file_that_is_replaced_while_it_is_read_is_told(tmp_path):
    path = tmp_path / "messages.parquet"
    parquet_written(path, range(8))
    source = windowed.ParquetRows(path)
    assert read(source, 0, 2) == [(0, {"n": 0}), (1, {"n": 1})]
    parquet_written(path, range(9))  # with one more row at the end
    assert read(source, 2, 2) == [(2, {"n": 2}), (3, {"n": 3})]
    parquet_written(path, [0, 1, 2, 4, 5, 6])
    with pytest.raises(ev.StoreError, match="row 4 is another one than was read"):
        read(source, 4)

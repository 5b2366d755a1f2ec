"""Pipelines on Spark: the same descriptions and results, in tasks, by Spark's functions, by the driver."""

import random
from collections import Counter
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.streams.tweets import chunks, recount, results, rng_of, standing, titan, tweets

from everview import DataError, StoreError, crdt, streams
from everview.hub.files import LocalFiles, open_files
from everview.streams.pipelines.encoding import encode
from everview.streams.pipelines.spark import job
from everview.streams.pipelines.spark.sets import HASH, SetPart, batch_of

SOURCE = streams.source("tweets")


def frame(spark, events):
    return spark.createDataFrame([(e["id"], e["text"]) for e in events], "id BIGINT, text STRING")


def by_id(events):
    return sorted(events, key=lambda event: event["id"])


def test_titans_computations_on_spark_are_a_recounts_also_after_a_restart(spark, tmp_path):
    rng = rng_of(1)
    events = tweets(rng, 120)
    parts = [events[:50], events[50:51], events[51:90], events[90:]]
    came = []
    for number, part in enumerate(parts, 1):
        with streams.open_hub(tmp_path / "p", titan(sets=3, maps=2), spark=spark) as hub:
            rows = frame(spark, part)
            assert hub.push("tweets", rows, producer="p", number=number)
            assert not hub.push("tweets", rows, producer="p", number=number)
            came += part
            assert results(hub) == recount(came)
            assert by_id(hub.read("tweet_set")) == by_id(standing(came))
            with pytest.raises(DataError, match="push DataFrames of the same columns"):
                hub.push("tweets", part)


def test_what_is_much_is_merged_by_tasks_with_the_same_results(spark, tmp_path):
    rng = rng_of(2)
    events = tweets(rng, 80)
    with (
        mock.patch.object(job, "SMALL", 0),
        streams.open_hub(tmp_path / "p", titan(sets=2, maps=3), spark=spark) as hub,
    ):
        for part in (events[:30], events[30:]):
            hub.push("tweets", frame(spark, part))
        assert hub._driver.large
        assert results(hub) == recount(events)


def test_functions_of_python_run_in_tasks(spark, tmp_path):
    rng = rng_of(3)
    events = tweets(rng, 60)
    pipeline = titan(sets=2, maps=2, function=lambda tweet: tweet["text"].split())
    long = SOURCE.filter(lambda tweet: len(tweet["text"]) > 10).count("long")
    with streams.open_hub(tmp_path / "p", pipeline.with_stages(long), spark=spark) as hub:
        hub.push("tweets", frame(spark, events))
        hub.push("tweets", events)  # such a set keeps elements, of rows and of events alike
        assert results(hub) == recount(events)
        assert hub.read("long") == 2 * sum(len(event["text"]) > 10 for event in events)


SPACES = "a\tb\u00a0c\u2003\u3000d  e \x1c f\n"


@pytest.mark.parametrize(
    "stage",
    [
        SOURCE.flat_map(streams.words("text")).map_of("it", partitions=3),
        SOURCE.map_of("it", key="text", partitions=2),
        SOURCE.map_of("it", key="id", partitions=2),
        SOURCE.flat_map(streams.words("text")).count("it"),
        SOURCE.count("it"),
        SOURCE.map("id").aggregate("it", crdt.DistinctCount),
        SOURCE.aggregate("it", lambda s: crdt.Quantiles(s, ranks=(0, 1)), value="size"),
    ],
    ids=["words", "texts", "numbers", "total", "rows", "distinct", "quantiles"],
)
def test_what_spark_aggregates_by_itself_is_what_a_device_has(spark, tmp_path, stage):
    rows = [(1, SPACES, 0.5), (2, "é a a", 1.5), (2, None, -2.0), (3, "", 4.0)]
    events = [dict(zip(("id", "text", "size"), row, strict=True)) for row in rows]
    given = spark.createDataFrame(rows, "id BIGINT, text STRING, size DOUBLE")
    with (
        streams.open_hub(tmp_path / "p", streams.Pipeline(stage), spark=spark) as hub,
        streams.open_device(":memory:", streams.Pipeline(stage)) as device,
        mock.patch("everview.streams.pipelines.spark.job.source_task") as by_python,
    ):
        hub.push("tweets", given)
        device.push("tweets", events)
        assert hub.read("it") == device.read("it")
        assert not by_python.called


def test_spark_puts_keys_into_the_partitions_that_python_does(spark):
    from pyspark.sql.types import LongType, StringType

    from everview.streams.pipelines.spark.native import part_sql

    parts = streams.by_key(7)
    texts = ["", "rose", "größe", "\U0001f600", "a b", None, *(f"w{n}" for n in range(40))]
    numbers = [0, -1, 7, 2**63 - 1, -(2**63), None, *range(100, 140)]
    for keys, kind, name in ((texts, StringType(), "STRING"), (numbers, LongType(), "BIGINT")):
        given = spark.createDataFrame([(key,) for key in keys], f"e {name}")
        found = [row.part for row in given.selectExpr(f"{part_sql('e', kind, parts)} AS part").collect()]
        assert found == [parts.of_key(key) for key in keys]


def test_a_stream_is_taken_in_once_though_it_is_stopped_and_started(spark, tmp_path):
    (tmp_path / "in").mkdir()
    rng = rng_of(4)
    events = tweets(rng, 40)
    with streams.open_hub(tmp_path / "p", titan(sets=2), spark=spark) as hub:
        for number, part in enumerate((events[:20], events[20:])):
            lines = "".join(f'{{"id": {e["id"]}, "text": "{e["text"]}"}}\n' for e in part)
            (tmp_path / "in" / f"{number}.json").write_text(lines)
            stream = spark.readStream.schema("id BIGINT, text STRING").json(str(tmp_path / "in"))
            query = hub.run("tweets", stream, checkpoint=tmp_path / "checkpoint")
            query.processAllAvailable()
            query.stop()
        assert results(hub) == recount(events)


def test_changes_of_a_relation_come_in_with_their_weights(spark, tmp_path):
    total = streams.source("sales").map_of("sums", crdt.Sum, key="shop", value="amount")
    count = streams.source("sales").map_of("n", key="shop")
    with streams.open_hub(tmp_path / "p", streams.Pipeline(total, count), spark=spark) as hub:
        schema = "shop STRING, amount BIGINT, _weight BIGINT, _commit BIGINT"
        hub.push("sales", spark.createDataFrame([("a", 3, 1, 1), ("a", 4, 2, 1), ("b", 5, 1, 1)], schema))
        assert (hub.read("sums"), hub.read("n")) == ({"a": 11, "b": 5}, {"a": 3, "b": 1})
        hub.push("sales", spark.createDataFrame([("a", 4, -1, 2), ("b", 5, -1, 2)], schema))
        assert (hub.read("sums"), hub.read("n")) == ({"a": 7}, {"a": 2})


# The driver's own part, for which no job is needed


def kept(tmp_path, spark, *stages, **options):
    return streams.open_hub(tmp_path / "p", streams.Pipeline(*stages), spark=spark, **options)


def test_every_aggregate_of_a_set_is_that_of_a_device(spark, tmp_path):
    tweet_set = SOURCE.set("tweet_set", key="id", partitions=2)
    sizes = tweet_set.map("text").map(len)
    words = tweet_set.flat_map(streams.words("text"))
    counts = words.map_of("counts", partitions=2)
    stages = [
        sizes.aggregate("sum", crdt.Sum),
        sizes.aggregate("average", lambda s: crdt.Average(s, of=int)),
        sizes.aggregate("maximum", crdt.Maximum),
        sizes.aggregate("set", crdt.Set),
        words.map_of("longest", crdt.Maximum, key=lambda word: word[-1], value=len, partitions=2),
        counts.filter(lambda pair: pair[1] > 1).count("frequent"),
        counts.map(lambda pair: pair[1]).aggregate("most", crdt.Maximum),
        counts.top_n("top", 3),
    ]
    rng = rng_of(5)
    events = tweets(rng, 40, vocabulary=12, conflicts=0.4)
    with kept(tmp_path, spark, *stages) as hub, streams.open_device(":memory:", hub.pipeline) as device:
        for part in chunks(rng, events):
            hub.push("tweets", part)
            device.push("tweets", part)
            for stage in hub.pipeline.stages[1:]:
                assert hub.read(stage.name) == device.read(stage.name), stage.name


def test_triggers_subscribers_and_computations_that_come_later(spark, tmp_path):
    now = [0.0]
    words = SOURCE.set("tweet_set", key="id").flat_map(streams.words("text"))
    total = words.count("total", trigger=streams.every(10))
    counts = words.map_of("counts", trigger=streams.when(lambda waiting: waiting.count >= 3))
    top = counts.top_n("top", 1)
    with kept(tmp_path, spark, total, top, clock=lambda: now[0]) as hub:
        told = []
        hub.subscribe("top", told.append)
        hub.subscribe("tweet_set", told.append)
        hub.push("tweets", [{"id": 1, "text": "a b"}])
        assert (hub.read("total"), hub.waiting("total"), hub.waiting("counts")) == (0, 2, {"a": 1, "b": 1})
        assert (hub.read("counts"), hub.read("top")) == ({}, ())
    with kept(tmp_path, spark, total, top, clock=lambda: now[0]) as hub:
        hub.subscribe("top", told.append)
        hub.push("tweets", [{"id": 2, "text": "b"}])
        assert (hub.read("counts"), hub.read("top")) == ({"a": 1, "b": 2}, (("b", 2),))
        now[0] = 11
        hub.tick()
        assert (hub.read("total"), hub.waiting("total")) == (3, 0)
        assert [(u.stage, u.value, len(u.changes)) for u in told] == [
            ("tweet_set", None, 1),
            ("top", (("b", 2),), 1),
        ]
        hub.attach(words.map(len).aggregate("longest", crdt.Maximum), counts.top_n("second", 2))
        assert (hub.read("longest"), hub.read("second")) == (1, (("b", 2), ("a", 1)))
        hub.push("tweets", [{"id": 3, "text": "long longer longest"}])
        assert hub.read("longest") == 7
    with pytest.raises(StoreError, match="is kept as map of Count"):
        kept(tmp_path, spark, words.map_of("counts", partitions=2))


def test_deltas_of_devices_are_merged_on_the_hub_once(spark, tmp_path):
    pipeline = titan(sets=2, maps=2)
    rng = rng_of(6)
    events = tweets(rng, 30)
    with streams.open_hub(tmp_path / "p", pipeline, spark=spark) as hub:
        for part in (0, 1):
            with streams.open_device(":memory:", pipeline, hollow=True, owns={"tweet_set": [part]}) as device:
                device.push("tweets", events)
                for delta in device.deltas() * 2:
                    hub.merge(delta)
        assert results(hub) == recount(events)
        with pytest.raises(DataError, match="no map and no aggregate"):
            hub.merge(streams.StageDelta("top_words", "x", 1, b""))


class Crash(BaseException):
    """The driver dies here."""


class Fragile(LocalFiles):
    """Files whose process dies at one of the next files that it makes, before or after it is made."""

    left = None

    def create(self, path, content):
        if Fragile.left is None:
            return super().create(path, content)
        Fragile.left -= 1
        if Fragile.left == -1:
            raise Crash
        done = super().create(path, content)
        if Fragile.left == -2:
            raise Crash
        return done


def test_a_driver_that_dies_between_any_two_files_leaves_whole_batches(spark, tmp_path):
    crashes = 0
    for seed in range(12):
        rng = rng_of(seed)
        files = Fragile(tmp_path / str(seed))
        events = tweets(rng, rng.randint(1, 20), vocabulary=8)
        with mock.patch("everview.streams.pipelines.spark.runner.open_files", return_value=files):
            pipeline = titan(sets=rng.randint(1, 3), maps=rng.randint(1, 3))
            hub = streams.open_hub("x", pipeline, spark=spark)
            came = []
            for number, part in enumerate(chunks(rng, events), 1):
                came += part
                while True:
                    Fragile.left = rng.randint(0, 8) if rng.random() < 0.5 else None
                    try:
                        hub.push("tweets", part, producer="p", number=number)
                        break
                    except Crash:
                        crashes += 1
                        Fragile.left = None
                        hub._lease.give_up()
                        hub = streams.open_hub("x", pipeline, spark=spark)
                Fragile.left = None
                assert results(hub) == recount(came), seed
            hub.close()
    assert crashes > 10


def test_old_records_and_what_only_they_name_are_removed(spark, tmp_path):
    with kept(tmp_path, spark, *titan(sets=2, maps=2).stages) as hub:
        rng = rng_of(7)
        events = tweets(rng, 120)
        for number in range(0, len(events), 4):
            hub.push("tweets", events[number : number + 4])
        assert results(hub) == recount(events)
        records = list((tmp_path / "p" / "records").iterdir())
        assert len(records) <= 13
        named = hub._state.named()
    with kept(tmp_path, spark, *titan(sets=2, maps=2).stages) as hub:
        assert results(hub) == recount(events)
        there = {f"state/{path.name}" for path in (tmp_path / "p" / "state").iterdir()}
        assert named <= there
        assert len(there) <= len(named) + 12


def test_a_second_driver_is_refused_and_a_closed_one_too(spark, tmp_path):
    hub = kept(tmp_path, spark, SOURCE.count("n"))
    with pytest.raises(StoreError, match="is open already"):
        kept(tmp_path, spark, SOURCE.count("n"))
    with pytest.raises(DataError, match="there is no source 'x'"):
        hub.push("x", [])
    with pytest.raises(DataError, match="or neither"):
        hub.push("tweets", [], producer="p")
    hub.close()
    with pytest.raises(StoreError, match="has been closed"):
        hub.push("tweets", [])


def test_what_cannot_be_taken_out_of_a_stage_on_a_source_is_refused(spark, tmp_path):
    stage = SOURCE.map("id").aggregate("greatest", crdt.Maximum)
    with kept(tmp_path, spark, stage) as hub:
        rows = spark.createDataFrame([(3, 1, 1), (3, -1, 2)], "id BIGINT, _weight BIGINT, _commit BIGINT")
        with pytest.raises(DataError, match="cannot be taken out of greatest"):
            hub.push("tweets", rows)
        assert hub.read("greatest") is None


def test_the_example_counts_the_same_on_a_device_on_several_and_on_spark(spark, capsys):
    from examples import titan_figure_2

    titan_figure_2.main()
    found = [line[14:] for line in capsys.readouterr().out.splitlines() if " words, [" in line]
    assert len(found) == 4
    assert len({*found}) == 1


# A partition of a set


@pytest.mark.parametrize("seed", range(8))
def test_a_sets_partition_has_one_element_a_key_though_hashes_collide(tmp_path, seed):
    rng = random.Random(seed)
    files = open_files(tmp_path)
    runs, came, standing_now = [], [], Counter()
    for _ in range(20):
        rows = [(rng.randrange(12), rng.choice(["x", "y", "z", None])) for _ in range(rng.randint(1, 6))]
        part = SetPart(files, "s", 0, runs, "id")
        table = pa.table(
            {
                HASH: np.array([key % 3 for key, _ in rows], dtype=np.int64),
                "id": pa.array([key for key, _ in rows], pa.int64()),
                "text": pa.array([text for _, text in rows], pa.string()),
            }
        )
        admitted, gone = part.admit(table)
        runs = part.runs
        standing_now.update(encode(e) for e in batch_of(admitted).elements())
        standing_now.subtract(encode(e) for e in gone)
        came += [{"id": key, "text": text} for key, text in rows]
        expected = Counter(encode(event) for event in standing(came))
        assert +standing_now == expected
        found = [e for batch in part.contents() for e in batch.elements()]
        assert Counter(map(encode, found)) == expected
    assert len(runs) < 20


# Files of JSON lines


def test_files_of_json_lines_are_taken_in_once_whatever_range_a_line_begins_in(spark, tmp_path):
    from everview.streams.pipelines.spark import json_files

    rng = rng_of(8)
    events = tweets(rng, 60)
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f'{{"id": {e["id"]}, "more": [1], "text": "{e["text"]}"}}' for e in events]
    (folder / "a.json").write_text("\n".join(lines[:30]))  # a last line without its end
    (folder / "_temporary").write_text("nonsense")
    with mock.patch.object(json_files, "RANGE", 97):
        with streams.open_hub(tmp_path / "p", titan(sets=2, maps=2), spark=spark) as hub:
            assert hub.read_json_files("tweets", folder, "id BIGINT, text STRING") == 1
            assert results(hub) == recount(events[:30])
        (folder / "b.json").write_text("\n".join(lines[30:]) + "\n")
        with streams.open_hub(tmp_path / "p", titan(sets=2, maps=2), spark=spark) as hub:
            assert hub.read_json_files("tweets", folder, "id BIGINT, text STRING", most=1) == 1
            assert hub.read_json_files("tweets", folder, "id BIGINT, text STRING") == 0
            assert results(hub) == recount(events)
            more = [{"id": 100, "text": "x y"}, *events[:5]]
            hub.push(
                "tweets", frame(spark, more)
            )  # rows of DataFrames are found among them, and they among those
            assert results(hub) == recount([*events, *more])
            (folder / "c.json").write_text('{"id": 100, "text": "x y"}\n{"id": 101, "text": "z"}\n')
            hub.read_json_files("tweets", folder, "id BIGINT, text STRING")
            assert results(hub) == recount([*events, *more, {"id": 101, "text": "z"}])


@pytest.mark.parametrize("width", [1, 2, 3, 5, 100])
def test_every_line_is_in_the_range_that_it_begins_in(width):
    import io

    from everview.streams.pipelines.spark.json_files import _lines

    for content in (b"a\nbb\n\nccc\n", b"a\nbb\nlast", b"\n", b"one line"):
        parts = [
            _lines(io.BytesIO(content), start, min(start + width, len(content)))
            for start in range(0, len(content), width)
        ]
        assert b"".join(parts) == content

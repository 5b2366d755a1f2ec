"""Pipelines are checked when they are built."""

import subprocess
import sys

import pytest

from everview import DataError, ProgramError, crdt, streams
from everview.streams.pipelines import pipeline as pipelines
from everview.streams.pipelines.keys import key_order, load_key, store_key

WORDS = streams.source("tweets").set("tweet_set", key="id").flat_map(streams.words("text"))


def test_a_top_n_that_is_fed_by_a_partitioning_that_scatters_keys_is_refused():
    scattered = streams.source("s").map_of("occurrences", partitions=streams.by_element(4, len))
    with pytest.raises(ProgramError, match=r"top-N stage top .* scatters keys over partitions") as told:
        streams.Pipeline(scattered.top_n("top", 3))
    assert "by_key" in told.value.hint


def test_any_other_stage_that_is_fed_by_such_a_map_is_refused_too():
    scattered = streams.source("s").map_of("occurrences", partitions=streams.by_element(4, len))
    with pytest.raises(ProgramError, match="it would see parts of values"):
        streams.Pipeline(scattered.count("n"))


def test_a_map_that_scatters_its_keys_may_be_read_and_one_partition_scatters_nothing():
    streams.Pipeline(streams.source("s").map_of("m", partitions=streams.by_element(4, len)))
    streams.Pipeline(streams.source("s").map_of("m", partitions=streams.by_element(1, len)).top_n("top", 3))
    streams.Pipeline(streams.source("s").map_of("m", partitions=streams.by_key(4, len)).top_n("top", 3))


def test_a_set_that_is_partitioned_by_element_is_refused():
    with pytest.raises(ProgramError, match="two elements with one key could be in two partitions"):
        streams.source("s").set("t", key="id", partitions=streams.by_element(2, len))


def test_computations_share_the_stages_that_they_are_built_on():
    built = streams.Pipeline(WORDS.count("total"), WORDS.map_of("occurrences").top_n("top", 3))
    assert [stage.name for stage in built.stages] == ["tweet_set", "total", "occurrences", "top"]
    assert built.sources == ("tweets",)
    assert [stage.name for stage in built.fed_by("tweet_set")] == ["total", "occurrences"]


def test_two_stages_of_one_name_are_refused_and_a_stage_that_is_named_as_a_source_too():
    with pytest.raises(ProgramError, match="two different stages are called n"):
        streams.Pipeline(WORDS.count("n"), streams.source("other").count("n"))
    with pytest.raises(ProgramError, match="a source and a stage are both called n"):
        streams.Pipeline(streams.source("n").count("n"))


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: streams.source("no name"), ProgramError),
        (lambda: WORDS.count("1st"), ProgramError),
        (lambda: WORDS.aggregate("n", "Counter"), DataError),
        (lambda: WORDS.aggregate("n", lambda name: 3), DataError),
        (lambda: WORDS.map(3), DataError),
        (lambda: WORDS.count("n", trigger="often"), DataError),
        (lambda: WORDS.map_of("m", partitions=0), DataError),
        (lambda: streams.by_key(2, "length"), DataError),
        (lambda: streams.every(0), DataError),
        (lambda: streams.when(True), DataError),
        (lambda: WORDS.map_of("m", crdt.Maximum).top_n("t", 3), ProgramError),
        (lambda: WORDS.map_of("m").top_n("t", 0), DataError),
        (lambda: streams.Pipeline(WORDS), DataError),
        (lambda: streams.Pipeline(WORDS.count("n")).stage("m"), DataError),
    ],
)
def test_what_cannot_be_is_refused_by_name(build, error):
    with pytest.raises(error):
        build()


def test_descriptions_are_frozen():
    built = streams.Pipeline(WORDS.count("n"))
    with pytest.raises(AttributeError):
        built.stages = ()
    with pytest.raises(AttributeError):
        built.stages[0].name = "other"


def test_a_stages_signature_is_the_same_in_every_process():
    stage = WORDS.aggregate("s", lambda name: crdt.Set(name, key=lambda word: word[0]))
    assert "0x" not in pipelines.signature(stage)


# Keys

GOLDEN = {
    "": 453955339,
    "rose": 3274127082,
    "größe": 2168602605,
    7: 1297835806,
    -1: 3383980904,
    (1, "a"): 550373582,
}


def test_a_keys_hash_is_written_down():
    assert {key: streams.stable_hash(key) for key in GOLDEN} == GOLDEN


def test_a_keys_hash_is_the_same_in_another_process():
    hashes = f"{{k: streams.stable_hash(k) for k in {list(GOLDEN)!r}}}"
    script = f"from everview import streams; print({hashes} == {GOLDEN!r})"
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        )
        assert done.stdout.strip() == "True"


def test_keys_that_are_equal_in_python_are_one_key():
    assert store_key(True) == store_key(1) == store_key(1.0) == 1
    assert streams.stable_hash(True) == streams.stable_hash(1.0) == streams.stable_hash(1)
    assert type(load_key(store_key(0.5))) is float


def test_keys_are_ordered_as_sqlite_orders_them():
    import sqlite3

    keys = [3, -2, "b", "a", "é", "\U0001f600", "", 0.5, (1, "x"), b"z", None, 2**70]
    run = sqlite3.connect(":memory:")
    run.execute("CREATE TABLE t (key)")
    run.executemany("INSERT INTO t VALUES (?)", [(store_key(key),) for key in keys])
    found = [load_key(key) for (key,) in run.execute("SELECT key FROM t ORDER BY key")]
    assert found == sorted(keys, key=key_order)
    run.close()


def test_partitions_cover_all_numbers_below_their_count_and_no_other():
    parts = {streams.by_key(4).of_key(f"w{number}") for number in range(200)}
    assert parts == {0, 1, 2, 3}
    assert streams.by_key(4, len).of_key("abcdef") == 2
    assert streams.by_key(3, lambda key: -1).of_key("a") == 2


@pytest.mark.parametrize(
    "text",
    ["a\tb c\nd\x0be\x0cf\rg", "a\x1cb\x1dc\x1ed\x1fe", "a\u00a0b\u2003c\x85d", "  a  b ", "", None, "é b"],
)
def test_words_of_columns_are_those_of_python(text):
    import pyarrow as pa

    from everview.streams.pipelines.batch import Batch

    for column in (
        pa.array([text, "x y"]),
        pa.chunked_array([pa.array([text], pa.string()), pa.array(["p q"])]),
    ):
        found = streams.words("text").of_batch(Batch(columns={"text": column}))
        assert found.elements() == [word for one in column.to_pylist() if one for word in one.split()]

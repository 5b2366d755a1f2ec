"""Hollow replicas, and devices that keep some partitions: what each gives away is counted once."""

import pytest
from tests.streams.stages import SET, SOURCE, event, opened
from tests.streams.tweets import titan

from everview import DataError, ProgramError, crdt, streams


def test_a_hollow_replica_gives_its_part_away_and_keeps_nothing_of_the_whole(tmp_path):
    pipeline = titan()
    with (
        streams.open_device(tmp_path / "worker.db", pipeline, hollow=True) as worker,
        streams.open_device(":memory:", pipeline) as primary,
    ):
        worker.push("tweets", [event(1, "a a b")])
        deltas = worker.deltas()
        assert [delta.stage for delta in deltas] == ["occurrences", "total_words"]
        assert worker.deltas() == deltas  # the same, under the same dots, until they are acknowledged
        assert [primary.merge(delta) for delta in deltas] == [True, True]
        assert [primary.merge(delta) for delta in deltas] == [False, False]
        assert primary.read("top_words") == (("a", 2), ("b", 1))
        for delta in deltas:
            worker.acknowledge(delta)
        assert worker.deltas() == []
        worker.push("tweets", [event(2, "b")])
        for delta in worker.deltas():
            primary.merge(delta)
        assert primary.read("occurrences") == {"a": 2, "b": 2}
        with pytest.raises(DataError, match="hollow replica, and others merge"):
            worker.read("top_words")
        with pytest.raises(DataError, match="takes in no deltas"):
            worker.merge(deltas[0])
        with pytest.raises(DataError, match="only a hollow replica sends deltas"):
            primary.deltas()


def test_a_value_that_is_replaced_in_a_hollow_map_is_right_also_if_deltas_come_in_another_order():
    sums = SOURCE.set("s", key="id").map_of("sums", crdt.Sum, key="who", value="amount")
    with opened(sums, hollow=True) as worker, opened(sums) as primary:
        worker.push("tweets", [{"amount": 5, "id": 1, "who": "a"}])
        first = worker.deltas()
        worker.push("tweets", [{"amount": 7, "id": 1, "who": "a"}])
        second = [delta for delta in worker.deltas() if delta not in first]
        for delta in (*second, *first):
            primary.merge(delta)
        assert primary.read("sums") == {"a": 7}


def test_a_delta_of_a_device_with_other_partitions_lands_where_its_keys_belong():
    few, many = titan(maps=1), titan(maps=7)
    with (
        streams.open_device(":memory:", few, hollow=True) as worker,
        streams.open_device(":memory:", many) as primary,
    ):
        worker.push("tweets", [event(number, f"w{number} w{number}") for number in range(9)])
        for delta in worker.deltas():
            primary.merge(delta)
        primary.push("tweets", [event(number, f"w{number}") for number in range(9)])
        assert primary.read("top_words") == tuple((f"w{number}", 3) for number in range(5))


def test_what_cannot_be_taken_out_again_cannot_be_hollow():
    stage = SET.map("id").aggregate("greatest", crdt.Maximum)
    with pytest.raises(ProgramError, match="greatest cannot be hollow"):
        opened(stage, hollow=True)
    opened(SOURCE.map("id").aggregate("greatest", crdt.Maximum), hollow=True).close()


def test_a_device_keeps_the_partitions_that_it_owns():
    pipeline = streams.Pipeline(SOURCE.set("s", key="id", partitions=2).count("n"))
    ids = [0, 1, 2, 3, 4, 5, 6, 7]
    found = []
    for part in (0, 1):
        with streams.open_device(":memory:", pipeline, owns={"s": [part]}) as device:
            device.push("tweets", [{"id": number} for number in ids])
            found.append([tweet["id"] for tweet in device.read("s")])
    assert sorted([*found[0], *found[1]]) == ids
    assert all(found)
    for owns in ({"s": [2]}, {"n": [0]}, {"x": [0]}):
        with pytest.raises(DataError):
            streams.open_device(":memory:", pipeline, owns=owns)

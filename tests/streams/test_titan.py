"""Titan's two computations: the results of a plain recount, whatever the partitions, schedule and crashes."""

import json
import os
import signal
import subprocess
import sys
import time
from unittest import mock

import pytest
from tests.streams.tweets import chunks, recount, results, rng_of, standing, titan, tweets, verses
from tests.streams.worlds import alone, apart

from everview import streams
from everview.streams.pipelines import pipeline as pipelines


@pytest.mark.parametrize("sets", [1, 2, 7])
@pytest.mark.parametrize("maps", [1, 3, 8])
def test_the_results_are_a_recounts_for_any_number_of_partitions(sets, maps):
    rng = rng_of(sets * 10 + maps)
    events = tweets(rng, 200)
    with streams.open_device(":memory:", titan(sets=sets, maps=maps)) as device:
        came = []
        for chunk in chunks(rng, events):
            device.push("tweets", chunk)
            came += chunk
            assert results(device) == recount(came)
        found = device.read("tweet_set")
        assert sorted(found, key=lambda event: event["id"]) == sorted(
            standing(events), key=lambda event: event["id"]
        )


def test_the_results_are_a_recounts_for_any_schedule_with_crashes_between_any_two_steps(tmp_path):
    assert sum(alone(seed, tmp_path) for seed in range(40)) > 20


def test_hollow_replicas_count_once_whatever_is_lost_repeated_late_or_cut_off(tmp_path):
    assert sum(apart(seed, tmp_path) for seed in range(20)) > 20


def test_a_word_that_is_scattered_over_partitions_makes_the_top_n_wrong():
    """The rule that is checked when a pipeline is built is needed: without the check the answer is wrong."""
    # Each of 16 partitions has a word of its own twice, and the most frequent word of all once.
    events = [
        {"id": 16 * place + part, "text": text}
        for part in range(16)
        for place, text in enumerate(("common", f"local{part}", f"local{part}"))
    ]
    words = (
        streams.source("tweets").set("tweet_set", key="id").map(lambda tweet: (tweet["id"], tweet["text"]))
    )

    def ranked(partitions):
        return words.map_of("occurrences", key=lambda pair: pair[1], partitions=partitions).top_n(
            "top_words", 1
        )

    expected = (("common", 16),)
    assert recount(events, 1)[2] == expected
    right = streams.open_device(":memory:", streams.Pipeline(ranked(8)))
    right.push("tweets", events)
    assert right.read("top_words") == expected
    with mock.patch.object(pipelines, "check_partitions"):
        scattered = streams.Pipeline(ranked(streams.by_element(16, lambda pair: pair[0])))
    wrong = streams.open_device(":memory:", scattered)
    wrong.push("tweets", events)
    assert wrong.read("top_words") != expected
    assert wrong.read("occurrences") == right.read("occurrences")  # a read merges the parts


def test_a_book_is_counted_as_a_recount_counts_it():
    book = verses()
    rng = rng_of(1)
    events = [*book, *rng.choices(book, k=len(book) // 5)]
    with streams.open_device(":memory:", titan(sets=4, maps=3)) as device:
        device.push("tweets", events)
        assert results(device) == recount(events)
        assert device.read("total_words") > 500_000


KILLED = """
import sys
from tests.streams.tweets import titan
from everview import streams
from everview.streams.pipelines.device import json_lines
json_lines.PIECE = 20_000
with streams.open_device(sys.argv[1], titan(sets=3, maps=2)) as device:
    print("open", flush=True)
    device.read_json_lines("tweets", sys.argv[2])
"""


def test_a_process_that_is_killed_while_it_reads_a_file_goes_on_where_its_last_commit_ended(tmp_path):
    rng = rng_of(3)
    events = tweets(rng, 4_000)
    path, store = tmp_path / "tweets.jsonl", tmp_path / "store.db"
    path.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", KILLED, str(store), str(path)]
    kills = 0
    while True:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout.readline() == "open\n"
        if kills == 3:
            process.communicate()
            assert process.returncode == 0
            break
        time.sleep(rng.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += 1
    with streams.open_device(store, titan(sets=3, maps=2)) as device:
        assert results(device) == recount(events)
        assert device.read_json_lines("tweets", path) == 0

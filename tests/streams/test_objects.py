"""A pipeline on Spark whose state, and whose files of events, are in an object store."""

import json

from tests.hub.s3 import bucket
from tests.streams.tweets import recount, results, rng_of, titan, tweets

from everview import streams

FAULTS = ("slow down", "cut", "lose", "unsure")


def test_a_pipeline_in_an_object_store_whose_requests_fail_now_and_then(spark, tmp_path):
    events = tweets(rng_of(5), 60)
    parts = [events[:20], events[20:21], events[21:50], events[50:]]
    with bucket(tmp_path / "s3", page=3) as s3:
        for number, part in enumerate(parts):
            lines = "".join(json.dumps(event) + "\n" for event in part)
            s3.path(f"in/{number}.json").parent.mkdir(exist_ok=True)
            s3.path(f"in/{number}.json").write_text(lines)
            with streams.open_hub(
                s3.uri("p"), titan(sets=2, maps=2), spark=spark, options=s3.options("p")
            ) as hub:
                for kind in FAULTS:
                    s3.fail(kind, times=10**6, chance=0.03)
                taken = hub.read_json_files(
                    "tweets", s3.uri("in"), "id BIGINT, text STRING", options=s3.options("in")
                )
                assert taken == 1
                assert results(hub) == recount([event for some in parts[: number + 1] for event in some])
                s3.heal()

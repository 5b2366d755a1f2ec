"""Tweets for `wordcount`: JSON files, words by Zipf's law, seeded, a tenth of the tweets twice."""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

WORDS = 20_000
LENGTH = 10
"""How many different words there are, and how many a tweet has."""

SCHEMA = "id BIGINT, text STRING"


@dataclass(frozen=True, slots=True)
class Tweets:
    """Files of tweets, and what is in them."""

    folder: Path
    files: int
    count: int
    total: int
    top: tuple[tuple[str, int], ...]


def write_tweets(folder: Path, files: int, each: int, n: int) -> Tweets:
    """Write so many files of so many lines, each file with some tweets of files before."""
    rng = random.Random(2013)
    words = [f"w{rank:05d}" for rank in range(WORDS)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(WORDS)))
    folder.mkdir()
    counts: Counter[str] = Counter()
    written: list[str] = []
    fresh = 0
    for number in range(files):
        lines = []
        repeats = each // 10
        drawn = rng.choices(words, cum_weights=weights, k=(each - repeats) * LENGTH)
        for place in range(0, len(drawn), LENGTH):
            text = " ".join(drawn[place : place + LENGTH])
            lines.append(json.dumps({"id": fresh, "text": text}))
            fresh += 1
        counts.update(drawn)
        lines += rng.choices([*written, *lines], k=repeats)
        written += rng.sample(lines, min(len(lines), 1000))
        rng.shuffle(lines)
        (folder / f"tweets-{number:04d}.json").write_text("\n".join(lines) + "\n")
    top = heapq.nsmallest(n, counts.items(), key=lambda item: (-item[1], item[0]))
    return Tweets(folder, files, files * each, sum(counts.values()), tuple(top))


def write_words(path: Path, count: int) -> dict[str, int]:
    """Write lines of one word each, and return how often each is there."""
    rng = random.Random(2013)
    words = [f"w{rank:05d}" for rank in range(WORDS)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(WORDS)))
    drawn = rng.choices(words, cum_weights=weights, k=count)
    with path.open("w") as file:
        file.writelines(f'{{"word":"{word}"}}\n' for word in drawn)
    return dict(Counter(drawn))

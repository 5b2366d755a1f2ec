"""A word count in Pathway, by a Python that has it: `python wordcount_pathway.py LINES [STORE]`.

It prints the seconds that the run took, imports aside, and how many words there were. With STORE its state
outlives the process.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

import pathway as pw


class Line(pw.Schema):  # type: ignore[misc]
    """A line of the file."""

    word: str


def main(lines: str, store: str | None) -> None:
    out = Path(lines).with_suffix(".csv")
    start = time.perf_counter()
    read = pw.io.jsonlines.read(lines, schema=Line, mode="static", name="lines" if store else None)
    counted = read.groupby(read.word).reduce(read.word, n=pw.reducers.count())
    pw.io.csv.write(counted, str(out))
    backend = pw.persistence.Backend.filesystem(store) if store else None
    config = pw.persistence.Config(backend) if backend is not None else None
    pw.run(monitoring_level=pw.MonitoringLevel.NONE, persistence_config=config)
    seconds = time.perf_counter() - start
    with out.open() as file:
        words = sum(int(row["n"]) * int(row["diff"]) for row in csv.DictReader(file))
    print(json.dumps({"seconds": seconds, "words": words}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)

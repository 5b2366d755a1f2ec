"""Streams' π_BC(R1) kept by a site, against counting; see `streams`."""

from __future__ import annotations

from benchmarks import streams
from benchmarks.harness import Result


def run(*, quick: bool) -> Result:
    """Measure inserts and deletes, 10k to 100k."""
    return streams.run("projection", quick=quick)

"""What every benchmark shares: its result, and how it is printed."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Result:
    """A benchmark's parameters, its figures, and the rows of the table for people."""

    benchmark: str
    parameters: Mapping[str, object]
    figures: Mapping[str, float]
    rows: Sequence[tuple[str, str]] = field(default_factory=list)

    def print(self) -> None:
        """Print the table, then one line of JSON, the last line."""
        table = Table(title=self.benchmark, title_justify="left")
        table.add_column("what")
        table.add_column("measured", justify="right")
        for row in self.rows or [(name, f"{value:.4g}") for name, value in self.figures.items()]:
            table.add_row(*row)
        Console().print(table)
        print(json.dumps({"benchmark": self.benchmark, **self.parameters, "figures": dict(self.figures)}))


def interleaved(contenders: Mapping[str, Callable[[], object]], *, repeats: int) -> dict[str, float]:
    """Return the median seconds of each contender, run in turn so that noise falls on all alike."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            times[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in times.items()}

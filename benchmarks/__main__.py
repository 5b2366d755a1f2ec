"""Run benchmarks: `python -m benchmarks [NAME …] [--quick]`."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys

import benchmarks

_NOT_A_BENCHMARK = {
    "__main__",
    "counting",
    "devices",
    "exchange_cost",
    "harness",
    "hub_data",
    "hub_first_sync",
    "hub_latency",
    "hub_process",
    "large_shapes",
    "located_bytes",
    "order_lines",
    "plot",
    "recursion_spark",
    "simulated",
    "streams",
    "triggers",
    "wire_ratio",
    "wordcount_data",
    "wordcount_pathway",
    "wordcount_plain",
}


def names() -> list[str]:
    """Return the names of all benchmarks: the modules of this package."""
    return sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _NOT_A_BENCHMARK)


def main() -> int:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="*", help=f"one or more of: {', '.join(names())} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute each")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.name if name not in names()]
    if unknown:
        parser.exit(2, f"error: no benchmark {unknown[0]!r}; there are: {', '.join(names())}\n")
    for name in arguments.name or names():
        importlib.import_module(f"benchmarks.{name}").run(quick=arguments.quick).print()
    return 0


if __name__ == "__main__":
    sys.exit(main())

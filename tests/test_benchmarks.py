"""Every benchmark runs, small, and closes with the promised line."""

import json
import subprocess
import sys

import pytest
from benchmarks.__main__ import names

STREAMS = {"insert_time_ratio", "delete_time_ratio", "extra_bytes_per_tuple", "rows_per_second"}
STREAMS |= {"derived_insert_time_ratio", "derived_delete_time_ratio", "derived_extra_bytes_per_tuple"}
FIGURES = {
    "aggregate_bytes": {"bytes_ratio"},
    "sync": {
        "merged_rows_per_second",
        "wire_ratio",
        "first_sync_1m_seconds",
        "empty_sync_growth_100k_to_1m",
    },
    "hub_fanout": {"requests_per_second", "p99_ms", "refresh_slowdown"},
    "hub_ingest": {"rows_per_second", "plain_spark_speed_ratio"},
    "hub_scaling": {"cores_speedup", "rows_growth_1m_to_30m", "refresh_500_over_first", "peak_rss_mb"},
    "hub_refresh": {
        "speedup_1k",
        "speedup_10k",
        "speedup_100k",
        "speedup_1m",
        "p95_over_p50_1k",
        "growth_1m_to_10m",
        "growth_after_all",
        "jobs_1k",
    },
    "join": STREAMS,
    "large_commits": {"worst_growth", "worst_ratio", "path_growth", "path_ratio", "tpch_q21_ratio"},
    "projection": STREAMS,
    "recursion": {
        "update_speedup_median",
        "closure_sqlite_ratio",
        "closure_spark_seconds_per_iteration",
        "generation_spark_seconds_per_iteration",
        "located_bytes_ratio",
    },
    "provenance": {"product_seconds", "result_monomials", "pairwise_speedup"},
    "windows_failure": {"healthy_throughput_min"},
    "windows_scaling": {"efficiency_min", "baseline_efficiency"},
    "wordcount": {"total_speed_ratio", "topn_speed_ratio", "device_pathway_speed_ratio"},
    "small_commits": {"p50_us", "p99_us", "trigger_ratio", "growth_100k_to_1m"},
}


TOGETHER = (
    ("hub_refresh", "hub_ingest", "wordcount", "recursion", "hub_scaling"),
    ("hub_fanout",),
    ("aggregate_bytes", "join", "large_commits", "projection", "provenance", "small_commits", "sync"),
    ("windows_failure", "windows_scaling"),
)
"""They share a process, and so a Spark: that takes longer to start than to run any of them."""


def test_all_benchmarks_are_run():
    assert sorted(name for some in TOGETHER for name in some) == names()


@pytest.mark.parametrize("asked", TOGETHER, ids=" ".join)
def test_a_quick_run_prints_a_table_and_one_line_of_json(asked):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *asked, "--quick"], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    assert lines[-1].startswith("{")
    assert [one["benchmark"] for one in told] == list(asked)
    for one in told:
        assert set(one["figures"]) >= FIGURES[one["benchmark"]]
        assert all(isinstance(figure, int | float) for figure in one["figures"].values())


def test_an_unknown_benchmark_is_refused_by_name():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no benchmark 'nonsense'; there are: " in done.stderr


def test_a_row_on_the_wire_costs_little_more_than_the_row():
    """Batches of 1,000 rows, whole messages, against the compressed rows alone."""
    from benchmarks.wire_ratio import SHAPES, wire_ratio

    ratios = wire_ratio()
    assert len(ratios.by_shape) == 2 * len(SHAPES)
    assert ratios.worst <= 1.3, ratios

"""Random programs: a site that hosts some views, and one that reads from it, show what the holder shows."""

from __future__ import annotations

import random
from collections import Counter

from tests.engines.sqlite.derived.hosts import Host

from everview.planner.exchange import Way
from everview.testing.fuzz import generate_case

MOST = 400
"""Rows of a view beyond which a case is not worth the wait."""


def test_views_of_random_programs_are_fed_from_elsewhere():
    ways, came = Counter(), 0
    for seed in range(0, 80, 2):
        case, rng = generate_case(seed), random.Random(seed)
        hosts = {name for name in case.program.names() if rng.random() < 0.4} & {*case.program.views}
        if not hosts:
            continue
        holder = Host(case.program, "holder")
        host = Host(case.program, "host", hosts, cells=rng.choice([1_000_000, 60]))
        far = Host(case.program, "far", hosts)
        holder.replica.page_cells = rng.choice([1_000_000, 60])
        ways.update(kept.way for kept in host.store.engine.exchange.views.values())
        for number, statement in enumerate(case.history):
            for write in statement:
                if write.rows:
                    holder.write(write.action, write.relation, write.rows)
            if number % 3 and number < len(case.history) - 1:
                continue  # some commits travel together
            if any(len(holder.rows(name)) > MOST for name in hosts):
                break
            came += host.read(holder).received_rows
            far.read(host)
            for name in hosts:
                assert host.rows(name) == holder.rows(name), (seed, number, name)
                assert far.rows(name) == holder.rows(name), (seed, number, name)
    assert ways[Way.RECEIVED] >= 2
    assert ways[Way.CUT] > 15
    assert came > 500

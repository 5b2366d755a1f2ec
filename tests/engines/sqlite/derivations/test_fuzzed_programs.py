"""Random programs: a site that hosts only some views shows what the one that feeds it shows."""

from __future__ import annotations

import random

from tests.engines.sqlite.derivations.peers import Peer

from everview.engines.sqlite.engine import Engine
from everview.planner.exchange import Way
from everview.testing.fuzz import generate_case

MOST = 400
"""Rows of a view beyond which a case is not worth the wait."""


def test_views_of_random_programs_are_fed_from_elsewhere():
    ways, arrived = dict.fromkeys(Way, 0), 0
    for seed in range(0, 80, 2):
        case, rng = generate_case(seed), random.Random(seed)
        hosts = {name for name in case.program.names() if rng.random() < 0.4} & {*case.program.views}
        if not hosts:
            continue
        feeder, reader = Peer(Engine(case.program), 1), Peer(Engine(case.program, frozenset(hosts)), 2)
        feeder.index()
        for name in hosts:
            reader.follow(name)
        for kept in reader.engine.exchange.views.values():
            ways[kept.way] += 1
        since, stamp = 0, 0
        for number, statement in enumerate(case.history):
            for write in statement:
                stamp += 1
                if write.rows:
                    feeder.write(write.action, write.relation, write.rows, stamp=stamp)
            if number % 3 and number < len(case.history) - 1:
                continue  # some commits travel together
            if any(sum(feeder.rows(name).values()) > MOST for name in hosts):
                break
            for stream in reader.engine.streams:
                arrived += reader.take(feeder.cut(stream, since, limit=rng.choice([2, 50])))
            since = feeder.version
            for name in hosts:
                assert reader.stored_rows(name) == feeder.stored_rows(name), (seed, number, name)
        reader.check_told()
    assert ways[Way.RECEIVED] >= 2
    assert ways[Way.CUT] > 15
    assert ways[Way.LOCAL] >= 2
    assert arrived > 500

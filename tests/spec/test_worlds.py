"""Random worlds of every kind go right; with a rule left out, some world goes wrong."""

import pytest
from spec.replication.rules import Rule, without
from spec.replication.worlds.registry import WORLDS

RUNS = 300

# A kind of world that notices each rule, and the first seed at which it does.
NOTICED = {
    Rule.COVERED: ("relations", 0),
    Rule.REQUIRED: ("folders", 0),
    Rule.NUMBERED: ("relations", 0),
    Rule.PASSED_ON: ("relations", 0),
    Rule.LAGGING: ("pages", 0),
    Rule.GAP: ("pages", 0),
    Rule.RENEWED: ("relations", 0),
    Rule.STAMPED: ("pages", 0),
    Rule.KEPT: ("pages", 0),
    Rule.TOGETHER: ("pages", 0),
    Rule.ORIGINAL: ("pages", 0),
    Rule.APPLIED: ("pages", 0),
    Rule.DROPPED: ("pages", 0),
    Rule.OWN_CURSORS: ("partitions", 0),
    Rule.FORGOTTEN: ("partitions", 0),
    Rule.ENDED: ("losses", 0),
    Rule.VOUCHED: ("losses", 0),
    Rule.RENAMED: ("rewinds", 340),
    Rule.TAGGED: ("rewinds", 0),
    Rule.INCLUDED: ("relations", 0),
    Rule.RESTORED: ("refusals", 0),
    Rule.UPDATES: ("refusals", 0),
    Rule.UNCHANGED: ("refusals", 0),
    Rule.EPOCHS: ("publications", 0),
}

# Rules that short histories show best.
TOLD = {Rule.MARKED}


@pytest.mark.parametrize("kind", WORLDS)
def test_worlds_go_right(kind):
    for seed in range(RUNS):
        assert WORLDS[kind](seed).run() == [], f"{kind}, seed {seed}"


@pytest.mark.parametrize("rule", NOTICED, ids=lambda rule: rule.name)
def test_a_rule_that_is_left_out_is_noticed(rule):
    kind, first = NOTICED[rule]
    with without(rule):
        assert any(goes_wrong(kind, seed) for seed in range(first, first + 400))


def test_every_rule_is_left_out_somewhere():
    assert NOTICED.keys() | TOLD == set(Rule)


def goes_wrong(kind, seed):
    try:
        return WORLDS[kind](seed).run()
    except Exception:  # noqa: BLE001 - without a rule anything may happen
        return True

"""Random Datalog programs: a hub's recursion, without Spark and files, is what the reference says."""

from tests.hub.test_recursing import store

from everview.testing.fuzz.datalog import check_rules, rule_case

PARALLEL = True


def case(seed):
    check_rules(rule_case(seed), store)

"""Random Datalog programs and histories: recursive views are what the reference says, all the time."""

from everview.testing.fuzz import SiteStore
from everview.testing.fuzz.datalog import check_rules, rule_case

PARALLEL = True


def case(seed):
    check_rules(rule_case(seed, statements=14, histories=4))
    if seed % 10 == 0:
        check_rules(rule_case(seed, histories=4), SiteStore)

"""A fuzzer of views: random programs, random histories, and the check that every view is its query.

`generate_case(seed)` makes a program and a history, `check_case` runs them on a store and compares every
relation and view with the naive reference after every statement, `minimise` makes a failing case small,
`write_case` and `parse_case` turn it into a readable file and back, `Coverage` counts what was reached.
"""

from everview.testing.fuzz.case import Case, generate_case, parse_case, write_case
from everview.testing.fuzz.check import Checked, Difference, check_case
from everview.testing.fuzz.coverage import CONSTRUCTS, Coverage
from everview.testing.fuzz.minimise import failure, minimise
from everview.testing.fuzz.site_store import SiteStore
from everview.testing.fuzz.stores import ANEW, BY_CHANGE, BY_SIZE, EngineStore, Store

__all__ = [
    "ANEW",
    "BY_CHANGE",
    "BY_SIZE",
    "CONSTRUCTS",
    "Case",
    "Checked",
    "Coverage",
    "Difference",
    "EngineStore",
    "SiteStore",
    "Store",
    "check_case",
    "failure",
    "generate_case",
    "minimise",
    "parse_case",
    "write_case",
]

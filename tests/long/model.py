"""The model of replication: 20 runs of each sort a case; six of eight add a complete search."""

from tests.model.copies import run_copies
from tests.model.driver import STORM, run
from tests.model.published import run_published
from tests.model.quotient import KeyedQuotient, SetQuotient
from tests.model.quotient_add_wins import AddWinsQuotient
from tests.model.quotient_bag import BagQuotient, check_tables

SEARCHES = (
    ("set", lambda: len(SetQuotient(4).run())),
    ("keyed", lambda: len(KeyedQuotient(4, looks=False).run())),
    ("keyed, with the onlooker", lambda: len(KeyedQuotient(4).run())),
    ("bag", lambda: BagQuotient(4).run()),
    ("tables of a bag", lambda: check_tables(4)),
    ("add-wins, any two insertions", lambda: len(AddWinsQuotient(4, tracked=2).run())),
)


def case(seed):
    for each in range(20 * seed, 20 * (seed + 1)):
        run(each % STORM)
        run(STORM + each)
        run_copies(each)
        run_published(each)
    if seed % 8 < len(SEARCHES):
        name, search = SEARCHES[seed % 8]
        print(f"{name}: {search():,} states")  # noqa: T201

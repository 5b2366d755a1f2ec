"""What a deletion would do, against deleting; what commits do to operators, against the reference."""

from tests.engines.sqlite.test_tallies import test_counts_are_those_of_the_reference as counts
from tests.engines.sqlite.test_trials import test_a_trial_tells_what_deleting_does as trial

PARALLEL = True


def case(seed):
    trial(seed)
    counts(seed)

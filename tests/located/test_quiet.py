"""Reports in rounds: when places may report, and what two rounds prove."""

from everview.located.quiet import Report, Rounds


def rounds(*reports):
    return Rounds.of("012", (Report(*report) for report in reports))


def test_nobody_reports_before_it_has_the_last_round():
    assert rounds().due("0", asked=False) is None
    assert rounds().due("0", asked=True) == 1
    first = [("0", 1, 1, 0, 0)]
    assert rounds(*first).due("1", asked=False) == 1
    assert rounds(*first).due("0", asked=True) is None
    first += [("1", 1, 0, 1, 0), ("2", 1, 0, 0, 0)]
    assert rounds(*first).due("0", asked=False) is None
    assert rounds(*first).due("0", asked=True) == 2
    assert rounds(*first, ("0", 2, 1, 0, 0)).due("1", asked=False) == 2
    assert rounds(*first[:2], ("0", 2, 1, 0, 0)).due("1", asked=False) is None, "it has not heard of 2 yet"


QUIET = (("0", 1, 0), ("1", 0, 1), ("2", 0, 0))


def both(said, before=None):
    last = before or said
    return rounds(*((p, 1, *rest, 0) for p, *rest in last), *((p, 2, *rest, 0) for p, *rest in said))


def test_two_equal_rounds_in_which_all_was_consumed_are_quiet():
    assert both(QUIET).quiet()
    assert not both(QUIET).quiet(after=1), "the first of them was over when it was asked"
    assert not rounds(*((p, 1, *rest, 0) for p, *rest in QUIET)).quiet(), "one round"


def test_an_update_that_overtakes_a_round_is_noticed():
    """Place 1 reports, consumes, and sends to 0 and 2; 0 consumes and reports: the sums are the same."""
    overtaken = (("0", 1, 1), ("1", 0, 0), ("2", 0, 0))
    before = (("0", 1, 0), ("1", 0, 0), ("2", 0, 0))
    assert sum(sent for _, sent, _ in overtaken) == sum(consumed for _, _, consumed in overtaken)
    assert not both(overtaken, before).quiet()


def test_what_is_under_way_or_waits_is_not_quiet():
    assert not both((("0", 2, 0), ("1", 0, 1), ("2", 0, 0))).quiet()
    waiting = [
        (place, number, sent, consumed, place == "2") for place, sent, consumed in QUIET for number in (1, 2)
    ]
    assert not rounds(*waiting).quiet()


def test_later_rounds_count():
    later = [(p, 2, *rest, 0) for p, *rest in QUIET] + [(p, 3, *rest, 0) for p, *rest in QUIET]
    assert rounds(*later).quiet()
    assert rounds(*later, ("0", 4, 5, 5, 0)).quiet(), "a round that is not complete says nothing yet"

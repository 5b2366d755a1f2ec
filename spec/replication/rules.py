"""The rules that carry weight, each of which can be left out.

The text of the specification names a rule where it applies it: `holds(Rule.GAP)`.
The tests leave out one rule after the other, and the worlds must notice every time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum


class Rule(Enum):
    """What each rule says; `without` leaves it out."""

    COVERED = "a row that the vector covers is not taken again"
    REQUIRED = "a cut is taken only by a reader that has seen what the cut presumes"
    NUMBERED = "a commit that only removes rows uses up a number"
    PASSED_ON = "a removal of a row that was never held is logged too"
    LAGGING = "a reader that has not seen what the log forgot gets the dots of all live rows"
    GAP = "after a part with live dots the log has a gap"
    RENEWED = "a copied or restored store takes a new incarnation"
    STAMPED = "the stamp of a written column exceeds the stamp that it replaces"
    KEPT = "a column whose value does not change keeps its stamp"
    TOGETHER = "the pages of a transfer are applied in one commit"
    ORIGINAL = "removals are told since the cursor at which the transfer began"
    APPLIED = "what a reader has staged does not count as seen when the log is judged"
    DROPPED = "a staged row that the last page calls gone is dropped"
    OWN_CURSORS = "the cursors of a relation are forgotten with its vector"
    FORGOTTEN = "a store that drops a relation that it wrote takes a new incarnation"
    ENDED = "a view that has seen more of a lost store than any holder of its input starts empty"
    VOUCHED = "a holder of an input vouches for all that it has of a lost store"
    RENAMED = "numbers written since the opening become numbers of the new incarnation"
    TAGGED = "a cursor with an unknown tag shows that a store went back"
    INCLUDED = "a relation is repaired only from a peer that has seen all that the reader has"
    RESTORED = "a refused write gives back the rows that it removed"
    UPDATES = "to update a key takes the rights to insert and to delete"
    UNCHANGED = "rows that come back keep their length and stamp"
    MARKED = "an epoch has a row of its own, even if it has no others"
    EPOCHS = "an epoch belongs to one incarnation"


_left_out: set[Rule] = set()


def holds(rule: Rule) -> bool:
    """Whether the rule is in force."""
    return rule not in _left_out


@contextmanager
def without(rule: Rule) -> Iterator[None]:
    """Leave the rule out for a while."""
    _left_out.add(rule)
    try:
        yield
    finally:
        _left_out.discard(rule)

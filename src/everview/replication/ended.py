"""Views of stores that are over: what only a view has heard of, nobody has the rows of any more.

A store that is put back from a backup, or given up, may have told its last commits to nobody but a view. No
relation has them then, and the view would show them for ever. So of incarnations that are *over* a view keeps
no more than there is. It is *settled* when somebody who holds its relations has as much of all of them as it
has itself, or a view that is settled has. If it has more, it joins anew. It does so as a new incarnation, for
others know that the old one had all that. `tests/model/ended.py` is the specification.

Whether a view is settled travels in the map of gossip that has floors by stream: there is one of 1 where it
is not. To have nothing of those who are over is not to be settled: it says nothing of what others have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum

import msgspec

from everview.engines.sqlite.streams import wholes_of
from everview.replication.gossip import Tidings
from everview.replication.membership import Membership
from everview.replication.messages import Gossip
from everview.replication.state import Told


class Verdict(Enum):
    """What is to become of a cut of a view."""

    TAKE = "take"
    REFUSE = "refuse"
    """The sender may have more than there is, and would bring it here."""
    RENEW = "renew"
    """This site has more than there is: it joins anew."""


def unsettled(membership: Membership) -> list[str]:
    """The received views that are not settled, where anybody is over."""
    state = membership.state
    if not state.expired:
        return []
    return [view for view in membership.wanted if not membership.is_base(view) and view not in state.settled]


def with_unsettled(gossip: Gossip, membership: Membership) -> Gossip:
    """Return gossip that also tells which views are not settled."""
    told = dict.fromkeys(unsettled(membership), 1)
    return msgspec.structs.replace(gossip, floors={**gossip.floors, **told}) if told else gossip


def weigh(
    membership: Membership, view: str, theirs: Callable[[str], Told], *, evident: bool, joins: bool
) -> Verdict:
    """Whether a cut may be taken of a view, whose sender has this; `evident` if that is all there is.

    Who joins by it has what the sender has, and nothing else.
    """
    if joins or not membership.state.expired:
        return Verdict.TAKE
    settled, pairs = view in membership.state.settled, list(_both(membership, view, theirs))
    if evident:
        has_more = not settled and any(mine > told for _, mine, told in pairs)
        return Verdict.RENEW if has_more else Verdict.TAKE
    brings_more = any(mine < told for _, mine, told in pairs)
    return Verdict.REFUSE if brings_more else Verdict.TAKE


def is_evident(
    membership: Membership,
    view: str,
    theirs: Callable[[str], Told],
    gossip: Gossip,
    tidings: Tidings,
    sender: str,
) -> bool:
    """Whether a sender has of those who are over what there is: it holds the relations, or is settled."""
    inputs = membership.wanted[view]
    if tidings.known.get(sender, {}).keys().isdisjoint(wholes_of(view, inputs)):
        return True
    if gossip.floors.get(view, 0):
        return False
    over = {writer for writer, _, told in _both(membership, view, theirs) if told}
    if not over:
        return True
    return over <= {site for (site, _, _), (length, _) in tidings.members.items() if length % 2 == 0}


def _both(membership: Membership, view: str, theirs: Callable[[str], Told]) -> Iterator[tuple[str, int, int]]:
    """Of those who are over: who it is, the last commit that is here of it, and the sender's last one."""
    expired = membership.state.expired
    for whole in wholes_of(view, membership.wanted[view]):
        mine, told = membership.own(whole).vector, theirs(whole).vector
        for writer in (mine.keys() | told.keys()) & expired.keys():
            yield writer, mine.get(writer, 0), told.get(writer, 0)

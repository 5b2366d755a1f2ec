"""Rows of a stranger: a copied or restored store has brought them to a group that their writer is not in.

The writer may be in another group, where the deaths of these rows were forgotten without asking anyone here.
Whoever has such rows has a vector that covers a writer, and no word of the writer itself. It joins anew when
it meets who knows the writer; `tests/model/strangers.py` is the specification.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from everview.replication.membership import Membership, covers, groups_of
from everview.replication.state import Told

Tells = Mapping[str, Mapping[str, Told]]
"""Incarnation → whole → what it has, as a message tells it."""


def strangers(membership: Membership, relation: str) -> set[str]:
    """Writers of whom rows came by a copy, while they themselves are in another group, or were."""
    waits = membership.state.provisional.get(relation)
    ours = {membership.state.joined.get(relation) if waits is None else waits.group}
    written = {writer for writer, commit in membership.own(relation).vector.items() if commit}
    unknown = membership.unknown(relation, written)
    return {writer for writer in unknown if not groups_of(membership, writer, relation) <= ours}


def compare(
    membership: Membership, relation: str, told: Tells, sender: str, groups: Collection[str]
) -> tuple[bool, bool]:
    """Whether we have to join anew from a sender, and it from us; `groups` are the sender's.

    What was forgotten of a bag comes first: nobody can be asked for it any more. And where each has to come
    to the other, who has forgotten pairs that the other may have half of stays.
    """
    ours, gone = membership.own(relation).vector, cancelled_of(told, sender, relation)
    lacks = _lacks(ours, _groups(membership, relation), gone)
    if lacks != outlives(membership, relation, told, sender, groups):
        return lacks, not lacks
    behind = is_behind(membership, relation, told, sender)
    ahead = is_ahead(membership, relation, told, sender, groups)
    if behind and ahead:
        halves = _halves(ours, gone)
        forgotten = membership.state.cancelled.get(relation, {})
        if halves != _halves(_vector(told, sender, relation), forgotten):
            return halves, not halves
    return behind, ahead


def _halves(vector: Mapping[str, int], cancelled: Mapping[str, Mapping[str, int]]) -> bool:
    """Whether pairs of a bag were forgotten of which this vector may cover one half, and not the other."""
    return any(
        not covers(vector, gone) and any(vector.get(writer, 0) for writer in gone)
        for gone in cancelled.values()
    )


def is_behind(membership: Membership, relation: str, told: Tells, sender: str) -> bool:
    """Whether a sender has more of one of our strangers, or knows it: what it has forgotten of it is dead."""
    ours, theirs = membership.own(relation).vector, _vector(told, sender, relation)
    return _lacks(ours, _groups(membership, relation), cancelled_of(told, sender, relation)) or any(
        theirs.get(writer, 0) > ours[writer]
        or (relation in told.get(writer, ()) and writer not in membership.state.expired)
        for writer in strangers(membership, relation)
    )


def is_ahead(
    membership: Membership, relation: str, told: Tells, sender: str, groups: Collection[str]
) -> bool:
    """Whether a sender has as a stranger's the rows of one whom we know: it is the sender that joins anew.

    `groups` are the sender's: its own, and those that it has absorbed.
    """
    if outlives(membership, relation, told, sender, groups):
        return True
    state, own = membership.state, next(iter(groups), "")
    untold = _untold(told, sender, relation)  # mostly there are none, and then there is no more to look at
    return bool(untold) and (
        any(
            relation in state.known.get(writer, ())
            and writer not in state.expired
            and not groups_of(membership, writer, relation) <= {own}
            for writer in untold
        )
        or precedes(membership, relation, told, sender, groups)
    )


def precedes(
    membership: Membership, relation: str, told: Tells, sender: str, groups: Collection[str]
) -> bool:
    """Whether we have more of a writer of one of our groups than a sender, to whose groups it is a stranger.

    That says it also of one that was given up, as who joins in its place.
    """
    ours, mine = membership.own(relation).vector, _groups(membership, relation)
    theirs = _vector(told, sender, relation)
    return any(
        0 < theirs[writer] < ours.get(writer, 0)
        and not mine.isdisjoint(found := groups_of(membership, writer, relation))
        and found.isdisjoint(groups)
        for writer in _untold(told, sender, relation)
    )


def comes_first(
    membership: Membership, relation: str, told: Tells, sender: str, groups: Collection[str]
) -> bool:
    """Whether a site in no group lets a sender come to it, and not the other way round."""
    ours, gone = membership.own(relation).vector, cancelled_of(told, sender, relation)
    if outlives(membership, relation, told, sender, groups):
        return not _lacks(ours, _groups(membership, relation), gone)
    behind = is_behind(membership, relation, told, sender)
    return not behind and precedes(membership, relation, told, sender, groups)


def outlives(
    membership: Membership, relation: str, told: Tells, sender: str, groups: Collection[str]
) -> bool:
    """Whether a sender, of groups that we were in, has not seen all that was forgotten there of a bag.

    Rows of it would come back. That is so only where all who had seen it were put back from backups: in a
    group everyone is asked.
    """
    return _lacks(_vector(told, sender, relation), groups, membership.state.cancelled.get(relation, {}))


def _lacks(
    vector: Mapping[str, int], groups: Collection[str | None], cancelled: Mapping[str, Mapping[str, int]]
) -> bool:
    """Whether one of these groups has forgotten pairs of a bag that the vector does not cover."""
    return any(group in groups and not covers(vector, gone) for group, gone in cancelled.items())


def cancelled_of(told: Tells, sender: str, relation: str) -> dict[str, Mapping[str, int]]:
    """What a sender tells that was forgotten of a bag, by group (`State.cancelled`)."""
    mark = cancelled(relation, "")
    return {
        whole.removeprefix(mark): one.vector
        for whole, one in told.get(sender, {}).items()
        if whole.startswith(mark)
    }


def cancelled(relation: str, group: str) -> str:
    """The whole as which a site tells what was forgotten of a bag in a group."""
    return f"{relation}!{group}"


def settled(membership: Membership, relation: str, vector: Mapping[str, int]) -> dict[str, int]:
    """The part of a vector whose writers have been in our group, or in one that came to it.

    With a stranger's rows of a bag another group may cancel others than we: their sums would differ.
    """
    state = membership.state
    ours = {state.joined.get(relation), *state.absorbed.get(relation, ())}
    return {w: n for w, n in vector.items() if not ours.isdisjoint(groups_of(membership, w, relation))}


def _groups(membership: Membership, relation: str) -> set[str | None]:
    """The groups that we are in, and have been."""
    state = membership.state
    return {state.joined.get(relation), state.former.get(relation), *state.absorbed.get(relation, ())}


def _untold(told: Tells, sender: str, relation: str) -> list[str]:
    """Writers of whom a sender has rows, and of whom it says nothing."""
    found = told.get
    return [w for w, n in _vector(told, sender, relation).items() if n and relation not in found(w, ())]


def _vector(told: Tells, sender: str, relation: str) -> Mapping[str, int]:
    found = told.get(sender, {}).get(relation)
    return {} if found is None else found.vector

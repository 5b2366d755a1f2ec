"""Rows of a stranger: a copied or restored store has brought them to a group that their writer is not in.

The writer may be in another group, where the deaths of these rows were forgotten without asking anyone here.
Whoever has such rows has a vector that covers a writer, and no word of the writer itself. It joins anew when
it meets who knows the writer.
"""

from everview.algebra.lattices import VersionVector


def strangers(site, relation):
    """Writers of whom rows came by a copy, while they themselves are in another group, or were."""
    if "strangers" in site.shortcuts:
        return set()
    return {
        inc
        for inc, _ in site.own(relation)[0].items()
        if (inc, relation) not in site.known and site.is_elsewhere(inc, relation, site.groups.get(relation))
    }


def compare(site, relation, told, sender):
    """Whether we have to join anew from a sender, and it from us.

    What was forgotten of a bag comes first: nobody can be asked for it any more. And where each has to come
    to the other, who has forgotten pairs that the other may have half of stays.
    """
    lacks = _lacks(site, relation, site.own(relation)[0], _groups(site, relation), told.cancelled)
    if lacks != outlives(site, relation, told, sender):
        return lacks, not lacks
    behind, ahead = is_behind(site, relation, told, sender), is_ahead(site, relation, told, sender)
    if behind and ahead and relation == "B" and "names decide" not in site.shortcuts:
        halves = _halves(site.own(relation)[0], told.cancelled)
        if halves != _halves(_vector(relation, told, sender), site.cancelled):
            return halves, not halves
    return behind, ahead


def is_behind(site, relation, told, sender):
    """Whether a sender has more of one of our strangers, or knows it: what it has forgotten of it is dead."""
    ours, theirs = site.own(relation)[0], _vector(relation, told, sender)
    return _lacks(site, relation, ours, _groups(site, relation), told.cancelled) or any(
        theirs[inc] > ours[inc] or ((inc, relation) in told.known and inc not in site.expired_at)
        for inc in strangers(site, relation)
    )


def is_ahead(site, relation, told, sender):
    """Whether a sender has as a stranger's the rows of one whom we know: it is the sender that joins anew."""
    if "strangers" in site.shortcuts:
        return False
    return (
        outlives(site, relation, told, sender)
        or precedes(site, relation, told, sender)
        or any(
            (inc, relation) not in told.known
            and (inc, relation) in site.known
            and inc not in site.expired_at
            and site.is_elsewhere(inc, relation, told.groups.get(relation))
            for inc, _ in _vector(relation, told, sender).items()
        )
    )


def together(words):
    """Whether one of two sites has to join anew from the other, and the other from it: for all relations.

    A transaction writes to several of them: were it seen by two ways, one relation at a time, it would be
    seen in part. The bag's word comes first: of the others it does not matter who comes, they are buried.
    """
    said = [words["B"]] if any(words.get("B", ())) else list(words.values())
    return any(behind for behind, _ in said), any(ahead for _, ahead in said)


def comes_first(site, relation, told, sender):
    """Whether a site in no group lets a sender come to it, and not the other way round."""
    if outlives(site, relation, told, sender):
        return not _lacks(site, relation, site.own(relation)[0], _groups(site, relation), told.cancelled)
    return precedes(site, relation, told, sender) and not is_behind(site, relation, told, sender)


def outlives(site, relation, told, sender):
    """Whether a sender of a group that we were in has not seen all that was forgotten there of a bag.

    Its rows would come back. That is so only where all who had seen it were put back from backups: in a group
    everyone is asked.
    """
    groups = {told.groups.get(relation), *told.absorbed.get(relation, ())}
    return _lacks(site, relation, _vector(relation, told, sender), groups, site.cancelled)


def _lacks(site, relation, vector, groups, cancelled):
    """Whether one of these groups has forgotten pairs of a bag that the vector does not cover."""
    return (
        relation == "B"
        and "who was asked" not in site.shortcuts
        and any(group in groups and not forgotten <= vector for group, forgotten in cancelled.items())
    )


def _halves(vector, cancelled):
    """Whether pairs of a bag were forgotten of which this vector may cover one half, and not the other."""
    return any(
        not gone <= vector and any(vector[inc] for inc, _ in gone.items()) for gone in cancelled.values()
    )


def precedes(site, relation, told, sender):
    """Whether we have more of a writer of one of our groups than a sender, to whose groups it is a stranger.

    That says it also of one that was given up, as who joins in its place.
    """
    ours, mine = site.own(relation)[0], _groups(site, relation)
    groups = {told.groups.get(relation), *told.absorbed.get(relation, ())}
    return "strangers" not in site.shortcuts and any(
        0 < commit < ours[inc]
        and (inc, relation) not in told.known
        and not mine.isdisjoint(found := site.groups_of(inc, relation))
        and found.isdisjoint(groups)
        for inc, commit in _vector(relation, told, sender).items()
    )


def _groups(site, relation):
    """The groups that we are in, and have been."""
    return {site.groups.get(relation), site.former.get(relation), *site.absorbed.get(relation, ())}


def _vector(relation, told, sender):
    return told.known.get((sender, relation), (VersionVector.EMPTY, None))[0]

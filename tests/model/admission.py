"""Which cuts are taken: cursors and tags, the whole for who joins, a sponsor's batches for its guest."""

from tests.model.strangers import comes_first
from tests.model.views import VIEWS

START = (0, 0)


def cursor(site, inc, stream):
    if "one cursor" in site.shortcuts:
        return site.cursors.get((inc, None), START)
    return site.cursors.get((inc, stream), START)


def join(site, stream, page):
    """Joined, if the batch lists us; else provisional, until one does."""
    group = page.groups.get(stream)
    site.groups[stream] = group
    site.former.pop(stream, None)
    site.absorbed.get(stream, set()).discard(group)
    site.bound.discard(stream)
    if listed(site, stream, page):
        site.joined.add(stream)
        site.provisional.pop(stream, None)
        site.lifted.pop(stream, None)
        site.sponsors[site.inc, stream, group] = page.sender
        site.collected_at[stream] = site.head
    else:
        site.provisional[stream] = (page.sender, covered_by(stream, page))
        site.world.count("provisional")


def listed(site, stream, page):
    if "unlisted join" in site.shortcuts:
        return True
    return page.members.get((site.inc, stream, page.groups.get(stream)), 0) % 2 == 1


def covered_by(stream, page):
    """Relation → the vector of the sender's snapshot."""
    relations = VIEWS[stream].inputs if stream in VIEWS else [stream]
    return {
        r: (page.known.get((page.sender, (stream, r))) or page.known[page.sender, r])[0] for r in relations
    }


def wanted(site, page):
    """The streams of a cut that may be applied now; none if any of them may not.

    `from` must not lie ahead of the cursor, the tag at the cursor must be the one remembered, and the cut
    must reach the cursor: one that ends there has no rows for us, but vectors may have grown since.
    """
    streams, news = [], False
    for stream, start in page.froms.items():
        if stream not in site.bases and stream not in site.received:
            continue
        if (page.sender_name, stream) in site.denied and "drop and advance" not in site.shortcuts:
            continue
        head, tag = cursor(site, page.sender, stream)
        strange = "no tags" not in site.shortcuts and page.tags.get(head) != tag
        if (start > head or strange) and "no gap check" not in site.shortcuts:
            return []
        if stream in page.provisional and not may_sponsor(site, stream, page):
            return []
        if stream == "B" and stream not in site.joined and comes_first(site, stream, page, page.sender):
            for relation in [stream] if "one by one" in site.shortcuts else page.froms:
                site.found(relation)  # for the sender to come to, with all that both hold
            return []
        loose = {"one cursor", "no gap check"} & site.shortcuts
        if stream not in site.joined and not loose and not may_join(site, stream, page):
            return []
        news |= page.upto >= head
        streams.append(stream)
    return streams if news else []


def may_join(site, stream, page):
    """A stream that is not joined needs the whole, from 0, of a joined sender; or goes on from the sponsor,
    if that has forgotten nothing since.

    The whole must not be older than what the reader has from another sponsor, which may have forgotten
    since: then the old snapshot would bring back what is dead. Who has left its group must be listed.
    """
    sponsor, covered = site.provisional.get(stream, (None, {}))
    if stream in page.provisional or not site.may_return(stream, page):
        return False
    left = stream in site.former and stream not in site.bound and "wait in line" not in site.shortcuts
    if left and not listed(site, stream, page):
        return False  # others may wait for it, where it was
    if page.sender == sponsor:
        head, _ = cursor(site, page.sender, stream)
        kept = page.collected_at[stream] <= head or "sponsor forgets" in site.shortcuts
        return page.froms[stream] == 0 or kept
    if page.froms[stream] > 0:
        return False
    theirs = covered_by(stream, page)
    return "older whole" in site.shortcuts or all(v <= theirs[r] for r, v in covered.items())


def may_sponsor(site, stream, page):
    """A provisional site's batch is for its sponsor, if that has forgotten nothing since it was read."""
    sponsor, head, tag = page.provisional[stream]
    if "provisional to all" in site.shortcuts:
        return stream in site.joined
    if sponsor != site.inc or stream not in site.joined or site.tags.get(head) != tag:
        return False
    return site.forgotten_at(stream) <= head or "sponsor takes anyway" in site.shortcuts

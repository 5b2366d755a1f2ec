"""Sync: requests, pages, cuts. A reader asks from its cursors; a cut is stored whole, in one commit.

A request names the sender's incarnation and shows the reader's cursors, with tags. The answer is pages, each
read in a snapshot of its own, in the order of versions; the cut ends with a page that reaches the head of
its snapshot. Rows that grew meanwhile come again in a later page, so the staged whole is the state at that
head. A batch that nobody asked for (a file in a folder) is a cut of one page.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.model.admission import START, cursor, join, listed, wanted
from tests.model.ended import RENEW, TAKE
from tests.model.joining import merge
from tests.model.strangers import strangers
from tests.model.views import VIEWS

from everview.algebra.lattices import VersionVector


@dataclass
class Request:
    reader: str
    sender: str
    streams: list
    cursors: dict
    members: dict
    sponsors: dict
    cut: int
    after: int
    end: int | None
    vectors: dict
    known: dict
    agreed: dict
    groups: dict
    """Stream → group, of what the reader has joined; for the rest it asks to be listed."""
    absorbed: dict
    floors: dict
    cancelled: dict
    read: tuple
    """How far the reader has ever read the sender, also in a group that it has left."""


@dataclass
class Page:
    """Rows of versions (after, upto] of every common stream; the last page also tells all the rest."""

    sender: str
    sender_name: str
    cut: int
    after: int
    upto: int
    done: bool
    froms: dict
    tags: dict
    rows: list
    members: dict
    sponsors: dict
    known: dict
    agreed: dict
    floors: dict
    cancelled: dict
    seen: dict
    cursors: dict
    groups: dict
    absorbed: dict
    collected_at: dict
    wants: list
    hosts: list
    provisional: dict
    ended: set
    settled: set
    end: int = 0
    staged: Any = field(default=None)


def copied(seen):
    return {name: frozenset(events) for name, events in seen.items()}


def request(site, sender):
    """Ask for all that is hosted here, from the cursors, or for the next page of a cut that has begun.

    A stream that the sender may not write here is not asked for: its cursor and vector stay, and it starts
    where they are when the right is given.
    """
    stage = site.stages.get(sender.inc)
    if stage is None:
        streams = [
            s
            for s in [*site.bases, *site.received]
            if (sender.name, s) not in site.denied or "drop and advance" in site.shortcuts
        ]
        stage = site.stages[sender.inc] = {
            "cut": site.world.rng.getrandbits(40),
            "after": 0,
            "rows": [],
            "streams": streams,
            "end": None,
            "cursors": {s: cursor(site, sender.inc, s) if s in site.joined else START for s in streams},
        }
    own = {what: site.own(what)[0] for what in site.wholes()}
    return Request(
        site.inc,
        sender.inc,
        stage["streams"],
        stage["cursors"],
        dict(site.members),
        dict(site.sponsors),
        stage["cut"],
        stage["after"],
        stage["end"],
        own,
        dict(site.known),
        dict(site.agreed),
        {s: group for s, group in site.groups.items() if s in site.joined},
        {s: set(names) for s, names in site.absorbed.items() if s in site.joined},
        dict(site.floors),
        dict(site.cancelled),
        cursor(site, sender.inc, None),
    )


def serve(site, asked, limit):
    """Answer a request, or nothing. Before anything is sent, both look whether they know each other."""
    if asked.sender == site.inc and "no tags" not in site.shortcuts:
        for head, tag in [*asked.cursors.values(), asked.read]:
            if site.tags.get(head) != tag:
                site.rewound()
                return None
    site.meet(asked.members, asked.sponsors)
    if asked.sender != site.inc:
        return None
    expired = asked.reader in site.expired_at  # it gets no rows, but hears why
    if not expired and "no gossip" not in site.shortcuts:
        for stream, group in asked.groups.items():
            if stream in site.joined and site.groups[stream] == group:
                site.absorb(stream, asked)
        site.believe(asked.known, asked.agreed)  # who is only read for would never tell what it has
    apart = meet_groups(site, asked, expired)
    froms = {
        s: asked.cursors[s][0] for s in asked.streams if serves(site, s) and s not in apart and not expired
    }
    page = read(site, froms, asked.after, limit, asked)
    page.cut = asked.cut
    if "torn pages" in site.shortcuts:
        page.end = asked.end or site.head
        page.rows = [row for row in page.rows if row[2].version <= page.end]
        page.done = page.done or page.upto >= page.end
        page.upto = min(page.upto, page.end)
    return page if froms or apart or expired else None


def meet_groups(site, asked, expired):
    """Found, leave and list, as the reader's groups ask for; return the streams that it has in others.

    Nobody follows one that was given up: it is in no group any more, and only hears of that now.
    """
    if not expired:
        site.settle(asked.groups, asked, asked.reader)
    wants = [] if expired else [s for s in asked.streams if s not in asked.groups]
    for stream in wants:
        site.found(stream)
    if "unlisted join" not in site.shortcuts:
        site.enlist(asked.reader, [*wants, *site.coming(asked.streams, asked.groups, asked, asked.reader)])
    if {"one group", "adopt the name"} & site.shortcuts:
        return set()
    return {s for s in asked.groups if s in asked.streams and site.group(s) not in (None, asked.groups[s])}


def serves(site, stream):
    """A joined site serves what it holds, and the views that it computes."""
    inputs = [stream] if stream in site.tables and stream not in site.circuits else []
    if stream in site.circuits:
        inputs = VIEWS[stream].inputs
    early = "send before joining" in site.shortcuts
    return bool(inputs) and (early or site.joined.issuperset(inputs))


def push(site, start):
    """A batch (start, head] of everything, for whoever finds it; it also says what is still to be joined.

    What is provisional is written too, for the sponsor.
    """
    streams = [s for s in [*site.bases, *site.received, *site.circuits] if serves(site, s)]
    streams += [s for s in site.provisional if s not in site.circuits]
    return read(site, dict.fromkeys(streams, start), 0, None, None)


def read(site, froms, after, limit, asked):
    """Rows of versions above each stream's `from` and `after`, at most about `limit`, in one snapshot."""
    found = []
    for stream, start in froms.items():
        for key, row in site.tables[stream].items():
            new = row.version > max(start, after)
            if "vectors for views" in site.shortcuts and asked and key[0] == "d":
                new = not covered_derivation(site, stream, key, asked)
            if "own rows only" in site.shortcuts and row.origin and row.origin[0] != site.inc:
                new = False
            if new:
                found.append((stream, key, row))
    found.sort(key=lambda item: item[2].version)
    done, upto = True, site.head
    if limit is not None and len(found) > limit:
        upto = found[limit - 1][2].version
        done = found[-1][2].version <= upto
        upto = site.head if done else upto
        found = [item for item in found if item[2].version <= upto]
    if asked is not None:
        found = [(stream, key, row) for stream, key, row in found if not has(asked, stream, row)]
    site.told_at = max(site.told_at, upto)
    return Page(
        site.inc,
        site.name,
        0,
        after,
        upto,
        done,
        froms,
        dict(site.tags),
        found,
        dict(site.members),
        dict(site.sponsors),
        dict(site.known),
        dict(site.agreed),
        dict(site.floors),
        dict(site.cancelled),
        copied(site.seen),
        dict(site.cursors),
        {s: group for s in {*site.hosts, *site.circuits} if (group := site.group(s)) is not None},
        {s: set(names) for s, names in site.absorbed.items() if s in site.groups},
        {s: site.forgotten_at(s) for s in froms},
        [s for s in [*site.bases, *site.received] if s not in site.joined],
        [*site.bases, *site.received],
        {s: (sponsor, *cursor(site, sponsor, s)) for s, (sponsor, _) in site.provisional.items()},
        set(site.expired_at),
        set(site.settled),
    )


def has(asked, stream, row):
    """Whether a reader that is a member has a row, whoever it got it from: then it is left out."""
    member = stream in asked.groups and stream in asked.vectors
    return member and row.origin is not None and asked.vectors[stream].covers(*row.origin)


def covered_derivation(site, stream, key, asked):
    """✗ Whether the reader's vector covers the origins of all the ids."""
    for id_ in key[3]:
        for other, row in site.tables[stream].items():
            if other[0] == "l" and other[1] == id_[0] and id_[1:] in (other[2], (other[2],), other[2][:1]):
                vector = asked.vectors.get((stream, id_[0]), VersionVector())
                if not vector.covers(*row.origin):
                    return False
    return True


def receive(site, page):
    """Stage a page; at the last one apply the cut. Returns how many rows grew, or None if it was no use."""
    if page.cut == 0:
        return apply(site, page, page.rows)
    stage = site.stages.get(page.sender)
    if stage is None or (stage["cut"], stage["after"]) != (page.cut, page.after):
        return None
    stage["rows"] += page.rows
    stage["after"], stage["end"] = page.upto, page.end
    if "pages at once" in site.shortcuts and not page.done:
        return apply(site, page, page.rows, partial=True)
    if not page.done:
        return None
    del site.stages[page.sender]
    return apply(site, page, stage["rows"])


def apply(site, page, rows, *, partial=False):
    """One commit: rows, floors, vectors, cursors; all of the cut, or nothing of it."""
    site.meet(page.members, page.sponsors)
    if page.sender in site.expired_at or page.sender == site.inc:
        return None
    if "no tags" not in site.shortcuts and knows_another_us(site, page):
        site.rewound()
        return None
    site.enlist(page.sender, [*page.wants, *site.coming(page.hosts, page.groups, page, page.sender)])
    listing = (
        None if page.cut else [s for s, start in page.froms.items() if start == 0 and listed(site, s, page)]
    )
    groups = {s: g for s, g in page.groups.items() if s not in page.provisional}
    joined = set(site.joined)
    if site.settle(groups, page, page.sender, listing):
        return None
    if page.cut and not joined <= site.joined and "a member's page" not in site.shortcuts:
        return None  # it was for a member, and is not the whole: who has left asks again
    streams = wanted(site, page)
    if not streams:
        return None
    views = {view: site.is_evident(view, page) for view in streams if view in site.received}
    weighed = {site.weigh(view, page) for view in views}
    if RENEW in weighed:
        site.begin_anew()
    if weighed - {TAKE}:
        return None
    site.settled -= {view for view in views if view not in site.joined}
    site.begin()
    grown = 0
    lost = "cursor first" in site.shortcuts and site.world.crash_now(site)
    for stream in streams:
        arrived = {key: row for s, key, row in rows if s == stream}
        if "drop and advance" in site.shortcuts and (page.sender_name, stream) in site.denied:
            arrived = {}
        grown += 0 if lost else merge(site, stream, arrived, page)
    if partial:
        site.end()
        return grown
    if "floor stays" not in site.shortcuts:
        for relation, floor in page.floors.items():
            if floor is not None and (page.sender_name, relation) not in site.denied:
                site.raise_floor(relation, floor)
    apart = {relation: strangers(site, relation) for relation in site.bases if relation in site.joined}
    for stream in streams:
        for relation in [stream] if stream in site.kinds else VIEWS[stream].inputs:
            theirs = page.known.get((page.sender, (stream, relation))) or page.known[page.sender, relation]
            what = relation if stream in site.kinds else (stream, relation)
            vector, reading = site.own(what)
            site.known[site.inc, what] = (vector | theirs[0], reading)
        if stream in site.kinds:
            site.seen[stream] |= page.seen[stream]
        site.absorb(stream, page)
        if stream == "B" and (stream not in site.joined or "told to newcomers" not in site.shortcuts):
            site.cancel(page.cancelled)
        if stream not in site.joined:
            join(site, stream, page)
        head = (page.end or page.upto, page.tags[page.end or page.upto])
        site.cursors[page.sender, stream] = max(site.cursors.get((page.sender, stream), START), head)
        site.cursors[page.sender, None] = max(site.cursors.get((page.sender, None), START), head)
    site.settled |= {view for view, evident in views.items() if evident}
    site.believe(page.known, page.agreed, apart)
    site.end()
    return grown


def knows_another_us(site, page):
    """Whether the sender has a cursor on this incarnation, or commits of it, that are not known here."""
    head, tag = page.cursors.get((site.inc, None), START)
    if site.tags.get(head) != tag:
        return True
    return any(v[site.inc] > site.head for (inc, _), (v, _) in page.known.items() if inc == page.sender)

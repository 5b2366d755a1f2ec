"""Sync: requests, pages, cuts. A reader asks from its cursors; a cut is stored whole, in one commit.

A request names the sender's incarnation and shows the reader's cursors, with tags. The answer is pages, each
read in a snapshot of its own, in the order of versions; the cut ends with a page that reaches the head of
its snapshot. Rows that grew meanwhile come again in a later page, so the staged whole is the state at that
head. A batch that nobody asked for (a file in a folder) is a cut of one page.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.model.relations import Pen, Row
from tests.model.views import VIEWS, live_ids

from everview.algebra.clock import Stamp
from everview.algebra.lattices import VersionVector

START = (0, 0)


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
    floors: dict
    seen: dict
    cursors: dict
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
            "cursors": {s: cursor(site, sender.inc, s) for s in streams},
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
    )


def cursor(site, inc, stream):
    if "one cursor" in site.shortcuts:
        return site.cursors.get((inc, None), START)
    return site.cursors.get((inc, stream), START)


def serve(site, asked, limit):
    """Answer a request, or nothing. Before anything is sent, both look whether they know each other."""
    if asked.sender == site.inc and "no tags" not in site.shortcuts:
        for head, tag in asked.cursors.values():
            if site.tags.get(head) != tag:
                site.rewound()
                return None
    if "unlisted join" not in site.shortcuts:
        site.meet(asked.members, asked.sponsors)
    if asked.sender != site.inc:
        return None
    expired = asked.reader in site.expired_at  # it gets no rows, but hears why
    froms = {s: asked.cursors[s][0] for s in asked.streams if serves(site, s) and not expired}
    page = read(site, froms, asked.after, limit, asked)
    page.cut = asked.cut
    if "torn pages" in site.shortcuts:
        page.end = asked.end or site.head
        page.rows = [row for row in page.rows if row[2].version <= page.end]
        page.done = page.done or page.upto >= page.end
        page.upto = min(page.upto, page.end)
    return page if froms or expired else None


def serves(site, stream):
    """A joined site serves what it holds, and the views that it computes."""
    inputs = [stream] if stream in site.tables and stream not in site.circuits else []
    if stream in site.circuits:
        inputs = VIEWS[stream].inputs
    early = "send before joining" in site.shortcuts
    return bool(inputs) and (early or site.joined.issuperset(inputs))


def push(site, start):
    """A batch (start, head] of everything, for whoever finds it."""
    streams = [s for s in [*site.bases, *site.received, *site.circuits] if serves(site, s)]
    return read(site, dict.fromkeys(streams, start), 0, None, None) if streams else None


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
        dict(site.floors),
        copied(site.seen),
        dict(site.cursors),
    )


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
    streams = wanted(site, page)
    if not streams:
        return None
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
            if floor is not None:
                site.raise_floor(relation, floor)
    for stream in streams:
        for relation in [stream] if stream in site.kinds else VIEWS[stream].inputs:
            theirs = page.known.get((page.sender, (stream, relation))) or page.known[page.sender, relation]
            what = relation if stream in site.kinds else (stream, relation)
            vector, reading = site.own(what)
            site.known[site.inc, what] = (vector | theirs[0], reading)
        if stream in site.kinds:
            site.seen[stream] |= page.seen[stream]
        if stream not in site.joined:
            site.joined.add(stream)
            site.sponsors[site.inc, stream] = page.sender
        head = (page.end or page.upto, page.tags[page.end or page.upto])
        site.cursors[page.sender, stream] = max(site.cursors.get((page.sender, stream), START), head)
        site.cursors[page.sender, None] = max(site.cursors.get((page.sender, None), START), head)
    site.believe(page.known)
    site.end()
    return grown


def knows_another_us(site, page):
    """Whether the sender has a cursor on this incarnation, or commits of it, that are not known here."""
    head, tag = page.cursors.get((site.inc, None), START)
    if site.tags.get(head) != tag:
        return True
    return any(v[site.inc] > site.head for (inc, _), (v, _) in page.known.items() if inc == page.sender)


def wanted(site, page):
    """The streams of a cut that may be applied now; none if any of them may not.

    `from` must not lie ahead of the cursor, the tag at the cursor must be the one remembered, and the cut
    must reach the cursor: one that ends there has no rows for us, but vectors may have grown since. A stream
    that is not joined yet needs the whole, from 0, of a site that lists the reader.
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
        if stream not in site.joined and not {"one cursor", "no gap check"} & site.shortcuts:
            listed = page.members.get((site.inc, stream), 0) % 2 or "unlisted join" in site.shortcuts
            if start > 0 or not listed:
                return []
        news |= page.upto >= head
        streams.append(stream)
    return streams if news else []


def merge(site, stream, arrived, page):
    """Join what arrived. A row that is not held though its origin is covered was collected here.

    On joining (and returning), the sender's snapshot decides, both ways: what it holds is taken, also what
    was collected here, for of a bag the two may have dropped different pairs; what it covers and does not
    hold was collected there and goes; what it does not cover is unseen, and is lifted above the floor.
    """
    table, grown = site.tables[stream], 0
    returning = stream not in site.joined and not {"one cursor", "no gap check"} & site.shortcuts
    if returning:
        unseen = forget_collected(site, stream, arrived, page)
    if "drop the dead" in site.shortcuts and stream in site.received:
        arrived = {k: r for k, r in arrived.items() if k[0] == "l"} | alive_on_arrival(site, stream, arrived)
    for key, row in arrived.items():
        held = table.get(key)
        if held is None:
            collected = not returning and row.origin and is_covered(site, stream, key, row.origin)
            if collected and "accept covered" not in site.shortcuts:
                continue
            table[key] = Row(row.value, site.head, row.origin)
            grown += 1
            continue
        value = joined(site, stream, key, held.value, row.value)
        if value != held.value:
            table[key] = Row(value, site.head, row.origin)
            grown += 1
        elif "echo" in site.shortcuts:
            table[key] = held._replace(version=site.head)
            grown += 1
    if returning and stream in site.kinds and "no lift" not in site.shortcuts:
        lift(site, stream, unseen - arrived.keys(), page)
    if "delta only" in site.shortcuts and stream in site.received:
        live = live_ids(site.kinds, table, site.valued)
        site.shown |= {k: all(i in live for i in k[3]) for k in arrived if k[0] == "d"}
    return grown


def is_covered(site, stream, key, origin):
    what = stream if stream in site.kinds else (stream, key[1])
    return site.own(what)[0].covers(*origin)


def joined(site, stream, key, mine, theirs):
    if stream in site.kinds:
        return site.kinds[stream].join(mine, theirs)
    return mine if key[0] == "d" else site.kinds[key[1]].join(mine, theirs)


def alive_on_arrival(site, stream, arrived):
    """✗ The derivations that are live by what is known here and what came with them."""
    known = dict(site.tables[stream])
    for key, row in arrived.items():
        if key[0] == "l" and (
            key not in known or joined(site, stream, key, known[key].value, row.value) == row.value
        ):
            known[key] = row
    live = live_ids(site.kinds, known, site.valued)
    return {k: r for k, r in arrived.items() if k[0] == "d" and all(i in live for i in k[3])}


def forget_collected(site, stream, arrived, page):
    """Drop what the snapshot covers and does not hold; return the keys that it does not cover."""
    table, unseen = site.tables[stream], set()
    for key, row in list(table.items()):
        if key in arrived or row.origin is None:
            continue
        relation = stream if stream in site.kinds else key[1]
        theirs = page.known.get((page.sender, (stream, relation))) or page.known[page.sender, relation]
        if not theirs[0].covers(*row.origin):
            unseen.add(key)
        elif "merge on return" not in site.shortcuts:
            del table[key]
    return unseen


def lift(site, relation, unseen, page):
    """The returning site's unseen rows, above the floor of the snapshot: a write of its own."""
    floor, table = page.floors[relation], site.tables[relation]
    for key in sorted(unseen, key=repr) if relation == "K" else ():
        if isinstance(key[1], Stamp) and superseded(site, key):
            del table[key]  # or it would live where what supersedes it has been collected
            unseen.discard(key)
    if floor is None or "floor stays" in site.shortcuts:
        return
    site.raise_floor(relation, floor)
    site.observe()
    stamps = []

    def stamp():
        if not stamps:
            stamps.append(site.clock.stamp())
        return stamps[0]

    pen = Pen((site.inc, site.head), stamp, floor, site.valued, site.shortcuts)
    for key in sorted(unseen, key=repr):
        growth = site.kinds[relation].lift(table, key, floor, pen)
        if relation == "K" and growth:
            del table[key]
        for lifted, value in growth.items():
            table[lifted] = Row(value, site.head, (site.inc, site.head))
            row = value if relation == "K" else key
            site.world.history.record(
                site, relation, "insert", row, stamps[0] if stamps else None, floor if relation == "R" else 0
            )


def superseded(site, key):
    return any(k == key[0] and s > key[1] and site.valued(s) for k, s in site.tables["K"])

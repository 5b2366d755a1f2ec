"""Storing what arrived: the join of rows, and the snapshot that decides when a site joins or returns."""

from tests.model.owners import admitted, may_tell, owners_dot
from tests.model.relations import Pen, Row
from tests.model.views import VIEWS, live_ids

from everview.algebra.clock import Stamp
from everview.algebra.lattices import VersionVector


def merge(site, stream, arrived, page):
    """Join what arrived. A row that is not held though its origin is covered was collected here.

    On joining (and returning), the sender's snapshot decides, both ways: what it holds is taken, also what
    was collected here, for of a bag the two may have dropped different pairs; what it covers and does not
    hold was collected there and goes; what it does not cover is unseen, and is lifted above the floor.
    """
    table, grown, forgotten = site.tables[stream], 0, []
    held_any, floor = bool(table), site.floors.get(stream)
    if stream in site.kinds:
        arrived = admitted(site, stream, arrived)
    returning = stream not in site.joined and not {"one cursor", "no gap check"} & site.shortcuts
    returning = returning and page.froms[stream] == 0
    waited = {k for k in table if stream == "K" and isinstance(k[1], Stamp) and not site.valued(k[1])}
    from_another = returning and site.former.get(stream, page.groups.get(stream)) != page.groups.get(stream)
    if returning and stream == "K" and "slow guests" not in site.shortcuts:
        catch_up(site, arrived, page)
    if returning:
        spared = waited if "waiting stays" in site.shortcuts else set()
        unseen = forget_collected(site, stream, arrived, page, spared)
        if stream in site.received and "views merge" not in site.shortcuts:
            start_again(site, stream)
        if from_another:
            come_over(site, stream, page)
        if stream == "R" and held_any and (from_another or "no lift" not in site.shortcuts):
            shift(site, stream, page)
    if "drop the dead" in site.shortcuts and stream in site.received:
        arrived = {k: r for k, r in arrived.items() if k[0] == "l"} | alive_on_arrival(site, stream, arrived)
    before = live_ids(site.kinds, table, site.valued) if stream in site.received else set()
    for key, row in arrived.items():
        held = table.get(key)
        if returning and key in waited and "waiting is gone" in site.shortcuts:
            held = None
        if held is None:
            collected = not returning and row.origin and is_covered(site, stream, key, row.origin)
            if collected and "accept covered" not in site.shortcuts:
                continue
            if (
                returning
                and row.origin
                and stream in site.kinds
                and is_covered(site, stream, key, row.origin)
            ):
                forgotten.append(key)
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
    if stream in site.received and "revived unseen" not in site.shortcuts:
        revive(site, stream, before)
    if returning and stream in site.kinds and "no lift" not in site.shortcuts:
        below = waited if "waiting below" in site.shortcuts else set()
        lift(site, stream, unseen - arrived.keys() - below, page)
    if from_another and stream in ("R", "K") and "deaths once" not in site.shortcuts:
        grown += tell_deaths_again(site, stream, arrived)
    if "strangers" not in site.shortcuts:
        tell_forgotten(site, stream, forgotten, page, floor)
    if "delta only" in site.shortcuts and stream in site.received:
        live = live_ids(site.kinds, table, site.valued)
        site.shown |= {k: all(i in live for i in k[3]) for k in arrived if k[0] == "d"}
    return grown


def revive(site, view, before):
    """A derivation that comes to live gets a new version: who reads from here may have forgotten it."""
    table = site.tables[view]
    live = live_ids(site.kinds, table, site.valued)
    for key, row in table.items():
        if key[0] == "d" and live.issuperset(key[3]) and not before.issuperset(key[3]):
            table[key] = row._replace(version=site.head)


def catch_up(site, arrived, page):
    """A joiner's clock passes every delete of the snapshot that all members have passed, as the sender knows.

    Those who have not heard of the joiner may forget such a delete at any time: it must not write below.
    """
    passed = min(readings(site, page))
    passed = max(passed, page.agreed.get((page.sender, "K"), passed))
    for (_, stamp), row in arrived.items():
        if row.value is None and stamp <= passed:
            site.pass_by(stamp)


def readings(site, page):
    """The clocks of the members of the sender's group, as far as the sender knows them."""
    names = {page.groups.get("K"), *page.absorbed.get("K", ())}
    for (inc, stream, group), length in page.members.items():
        view = VIEWS.get(stream)
        if inc == site.inc or length % 2 == 0 or "K" not in (view.inputs if view else (stream,)):
            continue
        of_k, what = (group[view.inputs.index("K")], (stream, "K")) if view else (group, stream)
        if of_k in names and (inc, what) in page.known:
            yield page.known[inc, what][1]
    yield page.known[page.sender, "K"][1]


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


def forget_collected(site, stream, arrived, page, spared):
    """Drop what the snapshot covers and does not hold; return the keys that it does not cover."""
    table, unseen = site.tables[stream], set()
    for key, row in list(table.items()):
        if key in arrived or key in spared or row.origin is None:
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
        if not may_tell(site, relation, key):
            continue
        growth = site.kinds[relation].lift(table, key, floor, pen)
        if relation == "K" and growth:
            del table[key]
        for lifted, value in growth.items():
            table[lifted] = Row(value, site.head, (site.inc, site.head))
            row = value if isinstance(lifted[1], Stamp) else key
            when = stamp() if relation == "K" else None
            site.world.history.record(site, relation, "insert", row, when, floor if relation == "R" else 0)


def start_again(site, view):
    """Nothing of a view is written where it is received: the snapshot is all there is to know."""
    site.tables[view].clear()
    for relation in VIEWS[view].inputs:
        site.known[site.inc, (view, relation)] = (VersionVector(), site.own((view, relation))[1])


def come_over(site, relation, page):
    """From another group: what it had forgotten is not known in this one."""
    held = site.tables[relation]
    if relation in ("R", "K"):
        held = {site.world.history.name(relation, key) for key in held}
        site.world.history.forget(relation, site.seen[relation] - page.seen[relation], held)


def shift(site, relation, page):
    """On joining, the lengths of all unseen tuples are counted from the floor, dead ones too.

    Another who joined before us may have lifted what we have deleted since: the delete must be longer. Who is
    not listed yet may take several wholes: it is lifted once.
    """
    floor, table = max(page.floors[relation], site.floors[relation]), site.tables[relation]
    wanted = floor + floor % 2
    base = max(0, wanted - site.lifted.get(relation, 0))
    site.lifted[relation] = wanted
    theirs = page.known[page.sender, relation][0]
    for key, row in sorted(table.items()):
        unseen = base and not theirs.covers(*row.origin) and may_tell(site, relation, key)
        if unseen and "no shift" not in site.shortcuts:
            length = base + row.value
            table[key] = Row(length, site.head, (site.inc, site.head))
            operation = "insert" if length % 2 else "delete"
            site.world.history.record(site, relation, operation, key, None, 0, length)


def tell_deaths_again(site, relation, arrived):
    """As our own: somebody may have forgotten them in the old group, and met the row again in the new one.

    Its vector covers them, so others would forget them too, before it has heard of them again.
    """
    table, told = site.tables[relation], 0
    for key, row in table.items():
        if relation == "R":
            dead, surpassed = row.value % 2 == 0, key in arrived and arrived[key].value >= row.value
        else:
            dead, surpassed = row.value is None, any(k == key[0] and s >= key[1] for k, s in arrived)
        if dead and not surpassed and may_tell(site, relation, key):
            table[key] = Row(row.value, site.head, (site.inc, site.head))
            told += 1
    return told


def tell_forgotten(site, relation, keys, page, floor):
    """What was forgotten here, and lives where we join, is dead: nobody there was asked.

    Of a tuple it is not known at which length it died, only that this was no longer than the own floor. What
    is dead there may have died sooner, if those who are there were put back. Of a bag nothing follows, for
    each may have dropped other pairs; there strangers' are not forgotten.
    """
    table, again = site.tables[relation], relation == "R" and is_founded_again(site, relation, page)
    for key in keys:
        value, dot = table[key].value, (site.inc, site.head)
        if not may_tell(site, relation, key):
            dot = owners_dot(site, relation, key, page)
        if dot is None:
            continue
        if relation == "K" and value is not None and not superseded(site, key):
            stamp = key[1]
            table[key[0], Stamp(stamp.time_us, stamp.counter + 1, site.inc)] = Row(None, site.head, dot)
        elif relation in "RW" and (value % 2 or again):
            length = value + value % 2
            if relation == "R" and may_tell(site, relation, key) and "next length" not in site.shortcuts:
                length = max(length, floor + floor % 2)
            if length == value:
                continue
            table[key] = Row(length, site.head, dot)
            if relation == "R":
                site.world.history.record(site, "R", "delete", key, None, 0, length)


def is_founded_again(site, relation, page):
    """Whether the sender's group, or one that came to it, was founded by who had been in ours and was in none
    again: it may have been put back to before what was forgotten there.
    """
    theirs = {page.groups.get(relation, ""), *page.absorbed.get(relation, ())}
    ours = {site.former.get(relation), *site.absorbed.get(relation, ())} - {None}
    return any(name.startswith(f"{group}/") for name in theirs for group in ours)


def superseded(site, key):
    return any(k == key[0] and s > key[1] and site.valued(s) for k, s in site.tables["K"])

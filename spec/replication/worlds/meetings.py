"""What may happen in a world: meetings, transfers, late cuts, backups, copies, departures."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from spec.replication.answers import answer
from spec.replication.cuts import Cut
from spec.replication.endings import heard
from spec.replication.incarnations import overtaken, went_back
from spec.replication.merges import merged
from spec.replication.repairs import alarms, repaired
from spec.replication.rules import Rule, holds
from spec.replication.stores import without_logs
from spec.replication.transfers import Abandoned, assembled, begun, cut_for, request, staged
from spec.replication.worlds.sites import NOTHING, Reading, Site
from spec.replication.worlds.writing import writes

if TYPE_CHECKING:
    from spec.replication.worlds.world import Actions, World


def meets(world: "World", i: int) -> None:
    """Read from another site, and often let it read back."""
    other = world.random.choice(list(world.sites))
    read(world, i, other)
    if world.random.random() < 0.6:
        read(world, other, i)


def read(world: "World", reader: int, sender: int) -> None:
    """Read all that a site has, if the two are connected."""
    if world.may_read(reader, sender):
        reading = Reading(
            reader, sender, begun(world.sites[reader].store, world.sites[sender].store.incarnation)
        )
        turn(world, reading, None)


def turn(world: "World", reading: Reading, limit: int | None) -> Reading | None:
    """Ask for one page; return the transfer if it goes on, and apply it if the page is the last."""
    reader, sender, transfer = reading.reader, reading.sender, reading.transfer
    question = request(world.sites[reader].store, transfer, limit)
    if went_back(world.sites[sender].store, question):
        if world.renew(sender):
            read(world, reader, sender)
        return None
    source = world.sites[sender]
    page = answer(source.store, question)
    if went_back(world.sites[reader].store, page):
        if world.renew(reader):
            read(world, reader, sender)
        return None
    try:
        transfer = staged(transfer, question, page)
        if page.last is None:
            world.counted("page")
            return Reading(reader, sender, transfer)
        world.before_read(reader, source)
        give(world, reader, assembled(transfer, page.last), source)
    except Abandoned:
        world.counted("abandoned")
    return None


def give(world: "World", i: int, cut: Cut, source: Site) -> None:
    """Let a site merge a cut of what the source had."""
    vectors = {name: part.vector for name, part in cut.parts.items()}
    if overtaken(world.sites[i].store, vectors):
        world.renew(i)
        return
    world.before_merge(i, cut, source)
    site = world.sites[i]
    known = heard(site.store, cut)
    emptied = known.version != site.store.version  # a view that nobody can vouch for starts empty
    site = replace(site, store=known, seen={} if emptied else site.seen)
    world.sites[i] = site
    store = merged(site.store, cut)
    if store is None:
        world.counted("unfit")
        return
    for part in cut.parts.values():
        world.counted(part.mode.name.lower())
    seen = dict(site.seen)
    for name in {name.removeprefix("~") for name in cut.parts}:
        seen[name] = seen.get(name, NOTHING) | source.seen.get(name, NOTHING)
    halves = {
        place
        for place, touched in enumerate(world.history.transactions)
        if touched.keys() & cut.parts.keys()
        and not touched.keys() <= cut.parts.keys()
        and holds(Rule.TOGETHER)
    }
    world.sites[i] = replace(site, store=store, seen=seen, torn=site.torn | source.torn | halves)
    world.wrong += ["a false alarm"] * bool(alarms(store, cut) and world.exact)
    world.after_merge(i, site, cut.sender)


def pages(world: "World", i: int) -> None:
    """Begin a transfer, or go on with one under way, or abandon one."""
    going = [reading for reading in world.readings if {reading.reader, reading.sender} <= world.sites.keys()]
    chance = world.random.random()
    if not going or chance < 0.2:
        other = world.random.choice(list(world.sites))
        if world.may_read(i, other):
            transfer = begun(world.sites[i].store, world.sites[other].store.incarnation)
            world.readings.append(Reading(i, other, transfer))
        return
    reading = world.random.choice(going)
    world.readings.remove(reading)
    if chance > 0.25:
        after = turn(world, reading, world.random.choice([1, 1, 2, 3]))
        if after is not None:
            world.readings.append(after)
            if not holds(Rule.TOGETHER):
                early(world, after)


def early(world: "World", reading: Reading) -> None:
    """Apply what has been staged so far: the rule that pages belong together is left out."""
    source, reader = world.sites[reading.sender], world.sites[reading.reader].store
    try:
        last = cut_for(source.store, reader)
    except Abandoned:
        return
    first = min(last.parts, default=None)
    if first is not None:
        give(
            world,
            reading.reader,
            Cut(last.sender, last.end, {first: last.parts[first]}, {}, last.ended),
            source,
        )


def keeps(world: "World", i: int) -> None:
    """Keep a cut that will come late, or twice, or to somebody else."""
    other = world.random.choice(list(world.sites))
    if world.may_read(i, other):
        source = world.sites[other]
        page = answer(
            source.store, request(world.sites[i].store, begun(world.sites[i].store, source.store.incarnation))
        )
        if page.last:
            world.kept.append((page.last, source))


def delivers(world: "World", i: int) -> None:
    """Let a site have a cut that was kept."""
    if world.kept:
        give(world, i, *world.random.choice(world.kept))


def forgets(world: "World", i: int) -> None:
    """Forget the logs of some relations."""
    site = world.sites[i]
    names = [name for name in site.store.relations if world.random.random() < 0.7]
    world.sites[i] = replace(site, store=without_logs(site.store, names))


def repairs(world: "World", i: int) -> None:
    """Repair a relation from another site, needed or not."""
    other = world.random.choice(list(world.sites))
    names = sorted(world.sites[i].store.relations.keys() & world.sites[other].store.relations.keys())
    if names and world.may_read(i, other):
        repair(world, i, other, world.random.choice(names))


def repair(world: "World", i: int, other: int, name: str) -> None:
    """Repair a relation from another site."""
    site, peer = world.sites[i], world.sites[other]
    store = repaired(site.store, name, peer.store)
    if store is not None:
        base = name.removeprefix("~")
        seen = {**site.seen, base: site.seen.get(base, NOTHING) | peer.seen.get(base, NOTHING)}
        halves = {p for p, touched in enumerate(world.history.transactions) if base in touched}
        world.sites[i] = replace(site, store=store, seen=seen, torn=site.torn | peer.torn | halves)
        world.counted("repair")


def backs_up(world: "World", i: int) -> None:
    """Make a backup."""
    world.backups[i] = world.sites[i]


def restores(world: "World", i: int) -> None:
    """Put a backup back; it is noticed when the store is opened."""
    if i in world.backups:
        world.lost.add(world.sites[i].store.incarnation)
        world.sites[i] = world.reborn(world.backups[i])


def copies(world: "World", i: int) -> None:
    """Copy a store; the copy is noticed when it is opened."""
    if len(world.sites) < world.most:
        world.sites[max(world.sites) + 1] = world.reborn(world.sites[i])


def joins(world: "World", i: int) -> None:
    """Add a site."""
    del i
    world.join()


def leaves(world: "World", i: int) -> None:
    """Lose a site for good, with what only it had."""
    if len(world.sites) > 2 and i:
        world.lost.add(world.sites.pop(i).store.incarnation)


PLAIN: Final["Actions"] = {
    writes: 40,
    meets: 30,
    keeps: 6,
    delivers: 6,
    forgets: 3,
    backs_up: 3,
    restores: 3,
    copies: 2,
    joins: 2,
    repairs: 2,
    leaves: 1,
}

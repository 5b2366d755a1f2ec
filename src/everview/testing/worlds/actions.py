"""What each step does to a world."""

from __future__ import annotations

import functools
from collections import Counter

from everview.engines.sqlite.rows.ledger import PARTITIONS
from everview.engines.sqlite.rows.taking import forget_log
from everview.language.partitions import text_of
from everview.replication.rights.rights import Rights
from everview.replication.transports.folder.transport import FolderTransport
from everview.replication.transports.report import SyncReport
from everview.testing.worlds import steps as do
from everview.testing.worlds.history import Event, written
from everview.testing.worlds.invariants import Wrong
from everview.testing.worlds.liars import lie
from everview.testing.worlds.network import deliver, dial, sync
from everview.testing.worlds.sites import Crashed, Site, part_of, stream_of
from everview.testing.worlds.world import World

MOST_SITES = 6


@functools.singledispatch
def happen(step: do.Step, world: World) -> None:
    """Let a step happen, if it can."""
    raise TypeError(f"nothing is known of {step!r} in {world!r}")


@happen.register
def _write(step: do.Write, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None:
        operations = [_own(site, one) for one in step.operations if site.may_write(_part(world, one))]
        write(world, site, operations, step.crash)


def _own(site: Site, operation: do.Operation) -> do.Operation:
    """A write to rows of owners is to the writer's own."""
    verb, name, row = operation
    return (verb, name, [*row[:-1], site.name]) if site.program.relations[name].owner else operation


@happen.register
def _load(step: do.Load, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None:
        rows = [[n, n % 100] for n in range(step.start, step.start + step.count)]
        write(world, site, [(step.verb, step.relation, row) for row in rows])
        world.counts["rows loaded"] += step.count


def write(world: World, site: Site, operations: list[do.Operation], crash: int = 0) -> None:
    """A transaction, and what the oracle is told of it if it was committed, also by a process that died."""
    relations = world.program.relations
    touched = sorted({*site.sets, *(_part(world, one) for one in operations)})
    before = {name: site.live(name) for name in touched}
    own, stamp = site.own(), 0
    with world.acting(site, crash), site.writing.transaction():
        for (verb, name), rows in _batches(operations, large=world.case.large):
            change = site.writing.insert if verb == "insert" else site.writing.delete
            change(relations[name], rows)
        stamp = site.writing.commit.stamp if operations else 0
    for name in touched:
        upto, live = site.own()[name], site.live(name)
        if upto == own[name]:
            if live != before[name]:
                raise Wrong(f"{site.name} has written {name}, and given it no number")
            continue
        if stamp == 0:  # it died after the commit
            stamp = max((row[-1] for dot, row in live.items() if dot not in before[name]), default=0)
        mine = [one for one in operations if _part(world, one) == name]
        expected = written(relations[stream_of(name)[0]], before[name], mine, stamp)
        expected -= world.forgotten(site, name, before[name], live)
        if Counter(live.values()) != expected:
            raise Wrong(f"{site.name} has written {mine} to {before[name]}, and holds {live}")
        added = {dot: row for dot, row in live.items() if dot not in before[name]}
        event = Event(name, site.incarnation, upto, added, frozenset(before[name].keys() - live.keys()))
        if site.fork is None:
            world.history.record(event)
        else:
            site.fork.events.append(event)
        world.counts["writes"] += 1
    world.check(site)


def _part(world: World, operation: do.Operation) -> str:
    """The relation that is written, or the value of it."""
    _, name, row = operation
    places = world.program.relations[name].partition_positions
    return part_of(name, text_of(row[place] for place in places)) if places else name


def _relation(part: str) -> str:
    return stream_of(part)[0]


def _batches(
    operations: list[do.Operation], *, large: bool
) -> list[tuple[tuple[str, str], list[tuple[object, ...]]]]:
    if large:
        return [((operations[0][0], operations[0][1]), [tuple(row) for _, _, row in operations])]
    return [((verb, name), [tuple(row)]) for verb, name, row in operations]


@happen.register
def _sync(step: do.Sync, world: World) -> None:
    site, peer = world.sites.get(step.site), world.sites.get(step.peer)
    if site is None or peer is None:
        return
    before = site.incarnation, peer.incarnation
    whole = sync(world, site, peer, messages=step.messages, victim=step.victim, crash=step.crash)
    world.check(site)
    world.check(peer)
    if whole and site.name not in peer.rights and before == (site.incarnation, peer.incarnation):
        _check_equal(world, site, peer)


def _check_equal(world: World, site: Site, peer: Site) -> None:
    """After a whole exchange both have seen the same of what both hold."""
    for name in site.shares.keys() & peer.shares.keys():
        if world.is_sound(name) and site.vector(name) != peer.vector(name):
            vectors = f"{site.vector(name)}, {peer.vector(name)}"
            raise Wrong(f"{site.name} and {peer.name} have met, and not seen the same of {name}: {vectors}")


@happen.register
def _dial(step: do.Dial, world: World) -> None:
    site, peer = world.sites.get(step.site), world.sites.get(step.peer)
    if site is None or peer is None or site is peer or not world.may_meet(site, peer):
        return
    packet = dial(world, site, peer)
    if packet is not None:
        world.network.packets.append(packet)


@happen.register
def _deliver(step: do.Deliver, world: World) -> None:
    packets = world.network.packets
    if not packets:
        return
    at = step.pick % len(packets)
    packet = packets[at] if step.fate == "doubled" else packets.pop(at)
    world.counts[f"messages {step.fate}"] += 1
    world.counts["messages out of order"] += at > 0 and step.fate != "lost"
    to, sender = world.sites.get(packet.to), world.sites.get(packet.sender)
    if step.fate == "lost" or to is None:
        return
    if not world.case.wild and (to.fork or (sender and sender.fork)):
        return  # they meet in whole exchanges until it is found out
    if (packet.sender, packet.to) in world.network.down:
        world.counts["messages cut off"] += 1
        return
    following = deliver(world, packet, step.crash)
    world.check(to)
    if following is not None:
        packets.append(following)


@happen.register
def _visit(step: do.Visit, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None and not site.fork and world.is_honest(step.site):
        visit(world, site, step.crash)


def visit(world: World, site: Site, crash: int = 0) -> SyncReport:
    """Let a site visit the folder, and say what came of it."""
    report = SyncReport()
    with world.acting(site, crash):
        report = FolderTransport(world.shared).sync(site.replica)
        world.counts["rows from files"] += report.received_rows
        world.counts["visits"] += 1
    world.check(site)
    return report


@happen.register
def _lose(step: do.Lose, world: World) -> None:
    if step.how == "back":
        for path, data in world.lost[:1]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return
    files = sorted(path for path in world.shared.rglob("*") if path.is_file())
    if not files:
        return
    path, other = files[step.pick % len(files)], files[step.pick // 7 % len(files)]
    name = f"{step.pick:08d}{path.suffix}"
    data = path.read_bytes()
    world.lost.append((path, data))
    world.counts[f"files {step.how}"] += 1
    match step.how:
        case "doubled":
            other.with_name(name).write_bytes(data)
        case "renamed":
            path.rename(path.with_name(name))
        case "lost":
            path.unlink()
        case "torn":
            path.write_bytes(data[: len(data) // 2])
        case "changed":
            at = step.pick % max(len(data), 1)
            path.write_bytes(data[:at] + bytes(byte ^ 1 for byte in data[at : at + 1]) + data[at + 1 :])


@happen.register
def _partition(step: do.Partition, world: World) -> None:
    world.network.down ^= {(step.site, step.peer)}
    world.counts["partitions"] += (step.site, step.peer) in world.network.down


@happen.register
def _permit(step: do.Permit, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None:
        halves = frozenset(step.inserts), frozenset(step.deletes)
        site.rights[step.peer] = Rights(None, frozenset(step.reads), frozenset(step.writes), False, *halves)
        world.counts["rights changed"] += 1


@happen.register
def _forget(step: do.Forget, world: World) -> None:
    site = world.sites.get(step.site)
    if site is None:
        return
    with world.acting(site), site.store.writing() as connection:
        site.store.ledger.load(connection)
        for (number,) in connection.execute(f"SELECT number FROM {PARTITIONS}").fetchall():
            world.counts["removals forgotten"] += forget_log(connection, number, step.keep)
        site.store.ledger.forget()


@happen.register
def _host(step: do.Host, world: World) -> None:
    site = world.sites.get(step.site)
    if site is None or site.hosts is None or site.fork:
        return
    world.network.forget(site.name)
    site.host(step.more)
    world.counts["came to host more"] += 1
    world.check(site)


@happen.register
def _repair(step: do.Repair, world: World) -> None:
    """Who repairs greets as a stranger: by that alone nobody finds out that a store went back."""
    site, peer = world.sites.get(step.site), world.sites.get(step.peer)
    if site and peer and not (site.fork or peer.fork) and step.relation in map(_relation, site.shares):
        with site.replica.repairing([step.relation]):
            _sync(do.Sync(step.site, step.peer), world)
        world.counts["repairs"] += 1


@happen.register
def _wait(step: do.Wait, world: World) -> None:
    world.pass_time(step.seconds)


@happen.register
def _set(step: do.Set, world: World) -> None:
    world.skews[step.site] = step.skew
    world.counts["clocks set"] += 1


@happen.register
def _crash(step: do.Crash, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None and not site.fork:
        with world.acting(site):
            _die()
        world.check(site)


def _die() -> None:
    raise Crashed


@happen.register
def _backup(step: do.Backup, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None and site.fork is None:
        site.keep()


@happen.register
def _restore(step: do.Restore, world: World) -> None:
    site = world.sites.get(step.site)
    if site is None or site.kept is None or site.fork or not _is_told(world, site, step.how):
        return
    world.network.forget(site.name)
    world.gone.add(site.incarnation)
    site.put_back(step.how)
    if site.fork is None and site.incarnation == site.kept.incarnation:
        world.history.undo(site.incarnation, site.kept.own)
    world.note(f"  {site.name} {site.incarnation[:4]} at {site.head}")
    world.counts[f"restored, {step.how}"] += 1
    world.check(site)


def _is_told(world: World, site: Site, how: do.Return) -> bool:
    """Whether it can be found out that a store went back, and by whom.

    A store that has told nobody anything may be put back in its place: nobody knows better but its copies.
    """
    kept = site.kept
    assert kept is not None
    others = [other for other in world.sites.values() if other is not site]
    if how != "unnoticed":
        unspoken = not site.has_spoken and how == "in place"
        return not (unspoken and any(_knows_more(other, kept.incarnation, kept.own) for other in others))
    if kept.incarnation != site.incarnation or kept.head >= site.head or not kept.is_exact:
        return False
    if world.case.wild:
        return True
    cursors = "SELECT version FROM everview_cursors WHERE incarnation = ? AND version > ?"
    told = (kept.incarnation, kept.head)
    return any(other.connection.execute(cursors, told).fetchone() for other in others)


def _knows_more(site: Site, incarnation: str, own: dict[str, int]) -> bool:
    return any(site.vector(name).get(incarnation, 0) > own.get(name, 0) for name in site.shares)


@happen.register
def _copy(step: do.Copy, world: World) -> None:
    site = world.sites.get(step.site)
    if site is None or site.fork or step.name in world.sites or len(world.sites) >= MOST_SITES:
        return
    twin = world.add(step.name, world.skews[site.name], image=site.image(), hosts=site.hosts)
    twin.came = dict(site.came)
    world.counts["copies"] += 1
    world.check(twin)


@happen.register
def _arrive(step: do.Arrive, world: World) -> None:
    if step.name not in world.sites and len(world.sites) < MOST_SITES:
        world.add(step.name, step.skew)
        world.counts["newcomers"] += 1


@happen.register
def _leave(step: do.Leave, world: World) -> None:
    site = world.sites.get(step.site)
    honest = [name for name in world.sites if world.is_honest(name)]
    if site is not None and len(honest) > 2 and world.is_honest(step.site):
        world.remove(site)
        world.counts["left"] += 1


@happen.register
def _choose(step: do.Choose, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None and not site.fork and step.relation in site.choices:
        world.network.forget(site.name)
        site.stop()
        site.open({step.relation: {"a": [step.value]}})
        world.counts["values hosted"] += 1
        world.check(site)


@happen.register
def _drop(step: do.Drop, world: World) -> None:
    site, value = world.sites.get(step.site), text_of([step.value])
    if site is None or site.fork or value not in site.choices.get(step.relation, ()):
        return
    if len(site.choices[step.relation]) > 1:
        with world.acting(site):
            site.replica.drop(world.program.relations[step.relation], frozenset([value]))
        site.forget()
        part = part_of(step.relation, value)
        site.seen.pop(part, None)
        site.came = {known: us for known, us in site.came.items() if known[0] != part}
        world.counts["values dropped"] += 1
        world.check(site)


@happen.register
def _lie(step: do.Lie, world: World) -> None:
    site = world.sites.get(step.site)
    if site is not None and world.is_honest(step.site) and not site.fork and world.case.liar in world.sites:
        lie(world, world.sites[world.case.liar], site, step.seed)
        world.check(site)

"""What each step does to a world."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations

from everview.errors import SyncError
from everview.replication.rights import Rights
from everview.testing.simulation import steps as do
from everview.testing.simulation.crashes import Crashed
from everview.testing.simulation.device import Device
from everview.testing.simulation.exchanges import absorb, deliver, dial, sync
from everview.testing.simulation.network import Batch
from everview.testing.simulation.published import note_published
from everview.testing.simulation.world import World
from everview.testing.simulation.writes import load, write

MOST_DEVICES = 6


@functools.singledispatch
def happen(step: do.Step, world: World) -> None:
    """Let a step happen, if it can."""
    raise TypeError(f"nothing is known of {step!r} in {world!r}")


@happen.register
def _write(step: do.Write, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None:
        crash = 0 if device.rewound_from else step.crash
        write(world, device, [(a, r, tuple(row)) for a, r, row in step.operations], crash)


@happen.register
def _load(step: do.Load, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None:
        rows = [(n, n % 100) for n in range(step.start, step.start + step.count)]
        load(world, device, step.action, step.relation, rows)


@happen.register
def _sync(step: do.Sync, world: World) -> None:
    site, peer = world.devices.get(step.site), world.devices.get(step.peer)
    if site is not None and peer is not None:
        sync(world, site, peer, step.victim, step.crash)


@happen.register
def _dial(step: do.Dial, world: World) -> None:
    site, peer = world.devices.get(step.site), world.devices.get(step.peer)
    if site is None or peer is None or site is peer or site.rewound_from or peer.rewound_from:
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
    if step.fate != "arrives":
        world.counts[f"messages {step.fate}"] += 1
    if at and step.fate != "lost":
        world.counts["messages out of order"] += 1
    to = world.devices.get(packet.to)
    if step.fate == "lost" or to is None or to.rewound_from:
        return
    if not world.network.is_open(packet.sender, packet.to):
        world.counts["messages cut off"] += 1
        return
    following = deliver(world, packet, step.crash)
    if following is not None:
        packets.append(following)


@contextmanager
def _passing_over(world: World) -> Iterator[None]:
    """Pass over a file whose writer runs another program and does not say what that declares."""
    try:
        yield
    except SyncError:
        if not world.case.later:
            raise
        world.counts["files of another program"] += 1


@happen.register
def _publish(step: do.Publish, world: World) -> None:
    device = world.devices.get(step.site)
    if device is None or device.rewound_from:
        return
    since = 0
    if step.kind == "any":
        since = step.since % (device.head + 1)
    elif step.kind == "cursor":
        readers = [d for d in world.devices.values() if d is not device and not d.rewound_from]
        if readers:
            reader = readers[step.since % len(readers)]
            with _passing_over(world):
                since = device.replica.cursor_of(reader.replica.request()) or 0
    with world.acting(device):
        pages = list(device.replica.batch(since))
        world.network.folder.append(Batch(device.name, pages, dict(device.seen)))
        world.counts["batches"] += 1


@happen.register
def _find(step: do.Find, world: World) -> None:
    device, folder = world.devices.get(step.site), world.network.folder
    if device is None or device.rewound_from or not folder:
        return
    at = step.pick % len(folder)
    batch = folder[at] if step.fate == "doubled" else folder.pop(at)
    if step.fate == "lost":
        world.counts["batches lost"] += 1
        return
    if batch.sender == device.name:
        return
    taken = world.acting(device, step.crash, after=lambda: absorb(device, batch.pages[-1], batch.seen))
    with taken, _passing_over(world):
        applied = device.replica.take(batch.pages)
        world.counts[f"batches {applied.outcome.value}"] += 1


@happen.register
def _collect(step: do.Collect, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None:
        with world.acting(device):
            world.counts["rows collected"] += device.replica.collect()
            device.checked = ()


@happen.register
def _wait(step: do.Wait, world: World) -> None:
    world.clocks.pass_time(step.seconds)
    for device in world.devices.values():
        with world.acting(device):
            device.replica.tick()


@happen.register
def _set(step: do.Set, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None:
        with world.acting(device):
            world.clocks.skews[step.site] = step.skew
            world.counts["clocks set"] += 1
            device.replica.tick()


@happen.register
def _crash(step: do.Crash, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None and not device.rewound_from:
        with world.acting(device):
            raise Crashed


@happen.register
def _backup(step: do.Backup, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None and device.rewound_from is None:
        device.keep()


@happen.register
def _restore(step: do.Restore, world: World) -> None:
    device = world.devices.get(step.site)
    if device is None or device.kept is None or device.rewound_from:
        return
    if step.how == "unnoticed" and not _would_notice(world, device):
        return
    if step.how == "in place" and _is_copied(world, device):
        return  # nothing tells it that it went back, and it would do again what its copy has of it
    world.network.forget(device.name)
    with world.acting(device, returns=True):
        device.put_back(step.how)
    world.counts[f"restored, {step.how}"] += 1


@happen.register
def _copy(step: do.Copy, world: World) -> None:
    device = world.devices.get(step.site)
    if device is None or device.rewound_from or step.name in world.devices:
        return
    if len(world.devices) >= MOST_DEVICES:
        return
    note_published(device, world.history)  # it may just have begun to, when somebody asked
    twin = world.add(step.name, world.clocks.skews[device.name], device.image())
    twin.seen, twin.come = dict(device.seen), device.come
    for near in [device.name, *world.network.links[device.name]]:
        world.network.link(twin.name, near)
    world.counts["copies"] += 1
    with world.acting(twin, returns=True):
        pass


@happen.register
def _arrive(step: do.Arrive, world: World) -> None:
    if step.name not in world.devices and len(world.devices) < MOST_DEVICES and world.devices:
        near = step.near if step.near in world.devices else world.anchor.name
        world.add(step.name, step.skew)
        world.network.link(step.name, near)
        world.counts["newcomers"] += 1


@happen.register
def _leave(step: do.Leave, world: World) -> None:
    device = world.devices.get(step.site)
    if device is world.anchor and world.hosts_parts:
        return
    if device is not None and len(world.devices) > 2:
        world.remove(device)
        world.counts["left"] += 1


@happen.register
def _expire(step: do.Expire, world: World) -> None:
    device, victim = world.devices.get(step.site), world.devices.get(step.victim)
    if device is None or victim is None or victim is device:
        return
    if victim is world.anchor and any(stream.is_base for stream in device.store.engine.streams.values()):
        return  # who only receives views may give anyone up: it has nothing that others could lose by it
    if victim.rewound_from or device.rewound_from:
        return  # the one that could find out would be gone
    if _is_given_up(world, device) or _gives_up(world, victim):
        return  # they would be two halves
    if set(device.store.engine.streams) <= set(device.state.joined):  # a stranger gives nobody up
        with world.acting(device):
            world.counts["expiries"] += device.replica.expire(victim.incarnation)


@happen.register
def _absence(step: do.Absence, world: World) -> None:
    if step.site not in world.devices or step.site == world.anchor.name:
        return
    if any(device.rewound_from for device in world.devices.values()):
        return  # it would be given up before it is found out, and what it wrote since would be lost
    if _gives_up(world, world.devices[step.site]):
        return  # it would be given up, too, and they would be two halves
    world.counts["absences"] += 1
    others = [d for d in world.devices.values() if d.name != step.site and d is not world.anchor]
    # Who is cut off from the anchor for so long is away, too; the two might meet, and give the anchor up.
    world.network.down -= {pair for d in others for pair in permutations((d.name, world.anchor.name))}
    for _ in range(4):
        happen(do.Wait(step.days * 21_600), world)
        for other in [*others, *others]:
            sync(world, other, world.anchor)
        for name in sorted(world.devices):
            if name != step.site:
                happen(do.Collect(name), world)


@happen.register
def _partition(step: do.Partition, world: World) -> None:
    world.network.down ^= {(step.site, step.peer)}
    world.counts["partitions"] += (step.site, step.peer) in world.network.down


@happen.register
def _permit(step: do.Permit, world: World) -> None:
    device = world.devices.get(step.site)
    if device is not None:
        device.rights[step.peer] = Rights(None, frozenset(step.reads), frozenset(step.writes))
        world.counts["rights changed"] += 1


@happen.register
def _migrate(step: do.Migrate, world: World) -> None:
    device = world.devices.get(step.site)
    if device is None or device.rewound_from or not world.case.later:
        return
    world.network.forget(device.name)
    with world.acting(device, returns=True):
        world.counts["migrations"] += device.migrate(world.program)


def _gives_up(world: World, device: Device) -> bool:
    """Whether a device has given up somebody who is still there.

    Should it be given up as well, by whomever, then there are two halves (see `World.anchor`): of the one all
    whom the others took in are orphans, the site that nobody gives up perhaps among them.
    """
    return any(other.incarnation in device.state.expired for other in world.devices.values())


def _is_given_up(world: World, device: Device) -> bool:
    """Whether somebody who is still there has given a device up."""
    return any(device.incarnation in other.state.expired for other in world.devices.values())


def _is_copied(world: World, device: Device) -> bool:
    """Whether a store that has told nobody anything would lose by its backup what a copy has of it."""
    kept = device.kept
    if kept is None or kept.incarnation != device.incarnation or device.has_spoken:
        return False
    known = [
        (other.incarnation, other.state.known) for other in world.devices.values() if other is not device
    ]
    return any(
        told.vector.get(kept.incarnation, 0) > kept.head
        for own, sites in known
        for told in sites.get(own, {}).values()
    )


def _would_notice(world: World, device: Device) -> bool:
    """Whether a store that goes back is found out: by someone who has read what it then no longer has."""
    kept = device.kept
    if kept is None or kept.incarnation != device.incarnation or kept.head >= device.head:
        return False
    device.rewound_from = (kept.incarnation, kept.head)
    found = any(other.knows(device) for other in world.devices.values() if other is not device)
    device.rewound_from = None
    return found

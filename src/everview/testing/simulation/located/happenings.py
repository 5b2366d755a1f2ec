"""What the steps of located worlds do; those that all worlds share do what they do everywhere."""

from __future__ import annotations

from everview.errors import StoreError
from everview.located import CountingNode, ProvenanceNode
from everview.located.facts import Fact
from everview.testing.simulation import steps as do
from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.crashes import Crashed
from everview.testing.simulation.happenings import happen
from everview.testing.simulation.located.checks import check_together
from everview.testing.simulation.located.device import LocatedDevice
from everview.testing.simulation.located.steps import AnyStep, Ask, Deafen, Forget, Open, Operation, Put
from everview.testing.simulation.located.world import LocatedWorld


class Refused(Exception):  # noqa: N818 - it says what became of a place
    """A place that counts was put back from a backup, and says that it cannot go on: the world ends here."""


def happen_located(step: AnyStep, world: LocatedWorld) -> None:
    """Let a step happen, if it can."""
    match step:
        case Put(site, operations, crash):
            if (device := world.node(site)) is not None:
                _put(world, device, operations, crash)
        case Deafen(site):
            if (device := world.node(site)) is not None and not device.deaf:
                world.counts["nodes closed"] += 1
                device.deafen()
        case Open(site, crash):
            if (device := world.node(site)) is not None and not device.rewound_from:
                _open(world, device, crash)
        case Ask(site):
            if (device := world.node(site)) is not None:
                _ask(world, device)
        case Forget(site, crash):
            if (device := world.node(site)) is not None and not device.deaf:
                _forget(world, device, crash)
        case do.Restore() if world.located.mode == "counting":
            _restore_counting(world, step)
        case do.Collect(site) if (device := world.node(site)) is not None and not device.has_spoken:
            pass  # a site collects at the end of an exchange; before its first there is nothing to forget
        case do.Copy() | do.Arrive() | do.Leave() | do.Expire() | do.Permit() | do.Write() | do.Load():
            raise TypeError(f"{type(step).__name__} does not happen in located worlds")
        case _:
            happen(step, world)


def _put(world: LocatedWorld, device: LocatedDevice, operations: list[Operation], crash: int) -> None:
    before, after = device.base, set(device.base)
    for action, relation, values in operations:
        (after.add if action == "insert" else after.discard)((relation, tuple(values)))
    world.ever |= after
    world.wrote += 1
    world.counts["writes"] += 1
    done: list[bool] = []

    def look() -> None:
        device.base = frozenset(after) if done else _of_two(device, before, frozenset(after))

    with world.acting(device, crash, after=look):
        with device.site.transaction():
            for action, relation, values in operations:
                write = device.site.insert if action == "insert" else device.site.delete
                write(f"{relation}@{device.name}", [tuple(values)])
        done.append(True)


def _of_two(device: LocatedDevice, before: frozenset[Fact], after: frozenset[Fact]) -> frozenset[Fact]:
    """The base facts of a place that died while it wrote: as they were before, or as they were to be."""
    found = frozenset(fact for name in device.located.rules.base for fact in device.table(name))
    if found not in (before, after):
        raise Wrong(f"{device.name} died in a transaction, and holds a part of it: {sorted(found)}")
    return found


def _open(world: LocatedWorld, device: LocatedDevice, crash: int) -> None:
    world.counts["restarts"] += 1
    world.network.forget(device.name)
    with world.acting(device):
        device.stop()
        try:
            device.open(crash)
        except Crashed:
            world.counts["crashes while opening"] += 1
            device.die()
            device.open()


def _ask(world: LocatedWorld, device: LocatedDevice) -> None:
    node = device.node
    if not isinstance(node, CountingNode) or device.deaf:
        return
    first = world.asked.setdefault(device.name, world.wrote)
    quiet: list[bool] = []
    with world.acting(device):
        quiet.append(node.is_quiet())
    if not quiet or quiet[0]:
        world.asked.pop(device.name, None)
    if quiet == [True]:
        world.counts["found quiet"] += 1
        deaf = any(one.deaf for one in world.nodes)  # what it was given while closed it does not know of
        if first == world.wrote and not deaf:
            check_together(world.nodes)


def _forget(world: LocatedWorld, device: LocatedDevice, crash: int) -> None:
    node = device.node
    if isinstance(node, ProvenanceNode):
        with world.acting(device, crash):
            world.counts["derivations forgotten"] += node.collect()


def _restore_counting(world: LocatedWorld, step: do.Restore) -> None:
    """Counts cannot go on from an old state, unless nobody has seen the one that is lost."""
    device = world.node(step.site)
    if device is None or device.kept is None or device.kept.head == device.head:
        return
    incarnation = device.incarnation
    world.network.forget(device.name)
    try:
        with world.acting(device):
            device.put_back("in place")
    except StoreError as error:
        if "counting mode cannot go on" in str(error):
            raise Refused from error
        raise
    if device.incarnation != incarnation:
        raise Wrong(f"{device.name} was put back from a backup and goes on counting")
    world.counts["restored, and nobody had seen the rest"] += 1

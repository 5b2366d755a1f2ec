"""Healing: all faults end, neighbours sync until nothing moves; then everyone must agree.

Then everyone forgets what it may, and they must agree again.
"""

from __future__ import annotations

from everview.testing.simulation.checks import Wrong, check_all
from everview.testing.simulation.exchanges import deliver, sync
from everview.testing.simulation.happenings import happen
from everview.testing.simulation.steps import Collect, Migrate, Wait
from everview.testing.simulation.world import World

ROUNDS = 20
"""How often neighbours may sync before they have to be at rest."""


def heal(world: World) -> None:
    """Let what waits arrive, time pass, and all neighbours sync; compare."""
    _arrive(world)
    world.network.down.clear()
    for device in world.devices.values():
        device.rights.clear()
    happen(Wait(3 * 86_400), world)
    _find_out(world)
    if not world.devices or (world.hosts_parts and world.case.places[0].name not in world.devices):
        return  # whoever knew better than those that went back has left, and who has everything is lost
    _give_up_the_gone(world)
    for name in sorted(world.devices) if world.case.later else ():
        happen(Migrate(name), world)
    settle(world)
    while _give_up_the_gone(world):  # some have only now heard of one that was there, too
        settle(world)
    happen(Wait(3 * 86_400), world)  # what was told again has a new stamp
    if any(view.authority for view in world.program.views.values()):
        settle(world)  # its time has come at the authority, too, and others have yet to hear what that makes
    check_all(world.devices.values(), world.history, world.network.links)
    for _ in range(2):
        for name in sorted(world.devices):
            happen(Collect(name), world)
    settle(world)
    unfed = check_all(world.devices.values(), world.history, world.network.links)
    world.counts["out of reach"] += unfed


def _arrive(world: World) -> None:
    """Half of what is still on its way comes now, the youngest first; the rest never does."""
    packets, world.network.packets = world.network.packets, []
    for packet in packets[::-2]:
        to = world.devices.get(packet.to)
        if to is not None and not to.rewound_from and packet.sender in world.devices:
            deliver(world, packet)
    world.network.folder.clear()


def _find_out(world: World) -> None:
    """A store that went back unnoticed meets someone who knows better; if nobody does now, it is lost."""
    for device in list(world.devices.values()):
        for other in world.devices.values():
            if device.rewound_from and other is not device and other.knows(device):
                sync(world, device, other)
        if device.rewound_from:
            world.counts["never found out"] += 1
            world.remove(device)


def _give_up_the_gone(world: World) -> int:
    """Who waits for a site that will never come back stops waiting: by itself, that takes 90 days.

    Returns how many were given up.
    """
    living, before = (
        {device.incarnation for device in world.devices.values()},
        world.counts["given up as gone"],
    )
    for device in world.devices.values():
        state = device.state
        awaited = {waits.sponsor for waits in state.provisional.values()}
        if state.bound or device.store.engine.received:  # what views have of them may be nowhere else
            awaited |= state.members.keys()
        for incarnation in sorted(awaited - living - state.expired.keys()):
            world.counts["given up as gone"] += device.replica.expire(incarnation)
    return world.counts["given up as gone"] - before


def settle(world: World) -> None:
    """Sync along links, everything to one site and back, until that changes nothing anywhere.

    Where sites host different parts, over all links: what one does not pass on may come by another.
    """
    tree = world.network.tree(world.anchor.name)
    more = []
    if world.hosts_parts:
        links = world.network.links.items()
        known = {frozenset(pair) for pair in tree}
        more = [(a, b) for a, near in sorted(links) for b in sorted(near) if a < b and {a, b} not in known]
    for _ in range(ROUNDS):
        before = _state(world)
        for one, other in [*reversed(tree), *more, *tree[1:]]:
            sync(world, world.devices[one], world.devices[other])
        if _state(world) == before:
            return
    raise Wrong(f"the sites do not come to rest in {ROUNDS} rounds")


def _state(world: World) -> list[tuple[str, str, int, dict[str, str]]]:
    return [
        (device.name, device.incarnation, device.head, dict(device.state.joined))
        for device in world.devices.values()
    ]

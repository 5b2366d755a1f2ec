"""Healing: faults end, nodes are open, neighbours sync until nothing moves; then all places must be right.

Then everyone forgets what it may, and begins anew from its file: they must be right again, and say no more.
"""

from __future__ import annotations

from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.exchanges import deliver, sync
from everview.testing.simulation.happenings import happen
from everview.testing.simulation.healing import ROUNDS, settle
from everview.testing.simulation.located.checks import check_together
from everview.testing.simulation.located.happenings import happen_located
from everview.testing.simulation.located.steps import Ask, Forget, Open
from everview.testing.simulation.located.world import LocatedWorld
from everview.testing.simulation.steps import Collect, Wait

ASKED = 12
"""How often places may be asked, and sync, before they know that all is quiet."""


def heal_located(world: LocatedWorld) -> None:
    """Let what waits arrive, all nodes hear, and all neighbours sync; compare."""
    names = sorted(world.devices)
    _arrive(world)
    world.network.down.clear()
    for device in world.nodes:
        if device.deaf and not device.rewound_from:
            happen_located(Open(device.name), world)
    happen(Wait(3 * 86_400), world)
    _find_out(world)
    _settle(world)
    check_together(world.nodes)
    if world.located.mode == "counting":
        _be_quiet(world, names[0])
    for step in (Forget, Forget, Collect):
        for name in names:
            happen_located(step(name), world)
    _settle(world)
    check_together(world.nodes)
    heads = {device.name: device.head for device in world.nodes}
    for name in names:
        happen_located(Open(name), world)
    if moved := [device.name for device in world.nodes if device.head != heads[device.name]]:
        raise Wrong(f"{moved[0]} has something to say when it is opened again")
    check_together(world.nodes)


def _settle(world: LocatedWorld) -> None:
    """Sync until that changes nothing: over all links, for what two sites share nobody else may have."""
    if not world.near:
        settle(world)
        return
    links = sorted(
        {tuple(sorted((one, other))) for one, near in world.network.links.items() for other in near}
    )
    for _ in range(ROUNDS):
        before = [(device.incarnation, device.head, dict(device.state.joined)) for device in world.nodes]
        for one, other in links:
            sync(world, world.devices[one], world.devices[other])
        if before == [(device.incarnation, device.head, dict(device.state.joined)) for device in world.nodes]:
            return
    raise Wrong(f"the places do not come to rest in {ROUNDS} rounds")


def _arrive(world: LocatedWorld) -> None:
    """Half of what is still on its way comes now, the youngest first; the rest never does."""
    packets, world.network.packets = world.network.packets, []
    for packet in packets[::-2]:
        if not world.devices[packet.to].rewound_from:
            deliver(world, packet)
    world.network.folder.clear()


def _find_out(world: LocatedWorld) -> None:
    """A store that went back unnoticed meets someone who knows better; or nobody does, and it is told."""
    for device in world.nodes:
        for other in world.nodes:
            if device.rewound_from and other is not device and other.knows(device):
                sync(world, device, other)
        if device.rewound_from:
            world.counts["never found out"] += 1
            with world.acting(device):
                device.replica.renew()
        if device.deaf:
            happen_located(Open(device.name), world)


def _be_quiet(world: LocatedWorld, name: str) -> None:
    """All updates are consumed, and whoever asks is told so."""
    for device in world.nodes:
        if left := device.rows(world.located.mail(device.name)):
            raise Wrong(f"{len(left)} updates are never picked at {device.name}")
    before = world.counts["found quiet"]
    for _ in range(ASKED):
        happen_located(Ask(name), world)
        if world.counts["found quiet"] > before:
            return
        _settle(world)
    raise Wrong(f"all is quiet, and {name} is never told")

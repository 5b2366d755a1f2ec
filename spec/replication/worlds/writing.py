"""What sites write in a world."""

from dataclasses import replace
from typing import TYPE_CHECKING

from spec.replication.lattices import Greatest, Merged
from spec.replication.stores import Store
from spec.replication.transactions import Delete, Forget, Insert, Statement, Written, write

if TYPE_CHECKING:
    from spec.replication.worlds.world import World


def writes(world: "World", i: int) -> None:
    """Write a transaction of one to three statements."""
    names = [name for name in world.sites[i].store.relations if not name.startswith("~")]
    if names:
        number = world.random.choice([1, 1, 2, 3])
        transact(world, i, [statement(world, world.random.choice(names)) for _ in range(number)])


def statement(world: "World", name: str) -> Statement:
    """Return a random statement."""
    key, chance = world.random.randrange(world.keys), world.random.random()
    if chance < 0.55:
        return Insert(name, key, value(world))
    return Forget(name, key) if chance > 0.85 and world.forgets else Delete(name, key)


def value(world: "World") -> object:
    """Return a value that fits the kind."""
    match world.kind:
        case Merged():
            columns = world.random.sample("xyz", world.random.choice([1, 1, 2]))
            return tuple((column, world.random.randrange(100)) for column in columns)
        case Greatest():
            return world.random.randrange(10)
        case _:
            return len(world.history.events)


def transact(world: "World", i: int, statements: list[Statement]) -> None:
    """Write a transaction, and record it."""
    site = world.sites[i]
    store, written = write(site.store, statements, now=world.random.randrange(50))
    wrote(world, i, store, written)
    world.counted("write")


def wrote(world: "World", i: int, store: Store, written: list[Written]) -> None:
    """Let a site have the store after its commit, and record what it wrote."""
    site = world.sites[i]
    world.sites[i] = replace(site, store=store, seen=world.history.record(site.seen, written, site.life))

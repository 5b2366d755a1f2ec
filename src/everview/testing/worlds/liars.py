"""A liar: a member that changes what it says, within the protocol and within a token that limits its writes.

It knows all that is to be known but random tags: incarnations, relations, what others hold. Without the right
to write it changes nothing that is stored. With the right to write some relations it changes no other one.
What it says is never more than a refusal, nothing escapes from an answer, and no store grows by much.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from everview.engines.sqlite.rows.dots import NUMBERS
from everview.engines.sqlite.rows.ledger import PARTITIONS
from everview.errors import EverviewError
from everview.language.plan import Schema
from everview.replication.protocol.exchange import Exchange
from everview.replication.rights.rights import Rights
from everview.replication.wire.codec import decode, encode
from everview.replication.wire.messages import (
    Ask,
    Columns,
    Cursor,
    Greeting,
    Message,
    News,
    Page,
    Place,
    Refusal,
    Share,
    Undone,
    Wish,
)
from everview.testing.worlds.invariants import Wrong
from everview.testing.worlds.sites import stream_of

if TYPE_CHECKING:
    from everview.testing.worlds.sites import Site
    from everview.testing.worlds.world import World

replace = msgspec.structs.replace
Pages = list[Columns]

GREATEST = (1 << 63) - 1
MOST_GROWTH = 400_000
"""So many bytes a store may grow by, over some lies, each of which names a few thousand things at most."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a liar knows, and by what it decides."""

    rng: random.Random
    incarnations: Sequence[str]
    streams: Sequence[str]
    schemas: dict[str, Schema]

    def number(self) -> int:
        """A number of a row: a small one, mostly, or a huge one."""
        return self.rng.choice([0, 1, 1, 2, 2, 3, 4, 7, 40, NUMBERS - 1, NUMBERS])

    def version(self) -> int:
        """A version of a store, or a stamp."""
        return self.rng.choice([0, 1, 2, 5, 1 << 40, 1 << 62, GREATEST - 1, GREATEST])

    def cursor(self) -> Cursor:
        """How far something was read."""
        return Cursor(self.version(), self.rng.getrandbits(53))

    def incarnation(self) -> bytes:
        """A store's name: of one that is there, or was, or of none."""
        known = bytes.fromhex(self.rng.choice(self.incarnations))
        return known if self.rng.random() < 0.8 else self.rng.randbytes(8)

    def place(self) -> Place:
        """A partition, mostly one that there is."""
        stream = self.rng.choice([*self.streams, *self.streams, "nothing", ""])
        return Place(stream, self.rng.choices(["", "[0]", "[1]", "[2]", "x"], [6, 1, 1, 1, 1])[0])

    def pairs(self, message: Message) -> list[int]:
        """A vector over the message's sites."""
        count = len(message.sites)
        places = self.rng.sample(range(count), self.rng.randint(0, min(count, 5)))
        return [one for place in places for one in (place, self.number())]

    def cell(self) -> Any:
        """A value, of the right type by chance."""
        return self.rng.choice([0, 1, 2, None, "a", -1, 1 << 40, GREATEST, -GREATEST, 0.5])


Lie = Callable[[Message, Pages, Scene], tuple[Message, Pages]]


def _greeting(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    reads = scene.rng.choice([None, [], list(scene.streams), ["nothing"] * 3])
    told = Greeting(scene.cursor(), scene.cursor(), scene.rng.getrandbits(32), scene.incarnation(), reads)
    return replace(message, greeting=told), columns


def _speaker(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    name = scene.incarnation()
    rest = [one if one != name else message.sites[0] for one in message.sites[1:]]
    return replace(message, sites=[name, *rest]), columns


def _sites(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    more = {scene.incarnation() for _ in range(scene.rng.choice([1, 5, 300]))} - set(message.sites)
    return replace(message, sites=[*message.sites, *sorted(more)]), columns


def _news(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    places = [scene.place() for _ in range(scene.rng.choice([0, 1, 4]))]
    return replace(message, news=News(scene.cursor(), scene.rng.getrandbits(32), places)), columns


def _ask(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    wishes = [
        Wish(scene.place(), scene.pairs(message), scene.pairs(message))
        for _ in range(scene.rng.randint(0, 5))
    ]
    return replace(message, ask=Ask(scene.rng.getrandbits(53), scene.cursor(), wishes)), columns


def _unasked(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    """A page that nobody has asked for, instead of others."""
    del columns
    rng = scene.rng
    place = scene.place()
    width = len(scene.schemas.get(place.stream, ())) + rng.randint(0, 1)
    count = rng.randint(0, 3)
    rows = [[scene.cell() for _ in range(count)] for _ in range(width)]
    one = Columns(
        rows, [rng.randrange(len(message.sites)) for _ in range(count)], [1 + scene.number()] * count
    )
    page = Page(
        rng.getrandbits(53), rng.random() < 0.7, scene.cursor(), [Share(place, count, scene.pairs(message))]
    )
    return replace(message, page=page), [one]


def _share(change: Callable[[Message, Share, Columns, Scene], tuple[Share, Columns]]) -> Lie:
    """A lie about one share of a page."""

    def lie_(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
        page = message.page
        if page is None or not page.shares:
            return message, columns
        at = scene.rng.randrange(len(page.shares))
        share, own = change(message, page.shares[at], columns[at], scene)
        shares = [*page.shares[:at], share, *page.shares[at + 1 :]]
        return replace(message, page=replace(page, shares=shares)), [*columns[:at], own, *columns[at + 1 :]]

    return lie_


@_share
def _vector(message: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    vector = dict(zip(share.vector[::2], share.vector[1::2], strict=True))
    for _ in range(scene.rng.randint(1, 3)):
        vector[scene.rng.randrange(len(message.sites))] = scene.number()
    return replace(share, vector=[one for pair in vector.items() for one in pair]), own


@_share
def _digest(_: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    return replace(share, digest=(scene.version(), scene.number())), own


@_share
def _place(_: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    return replace(share, place=scene.place()), own


@_share
def _gone(message: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    """Removals of whatever there is, or intervals of all that could be."""
    mode, sites = scene.rng.choice([0, 1, 2, 3, 3]), sorted(range(len(message.sites)))
    columns: list[Sequence[int]] = [sites, [1 + scene.number() for _ in sites]]
    if mode == 3:
        columns.append([scene.number() for _ in sites])
    elif scene.rng.random() < 0.5:  # the first rows of everybody
        columns = [[site for site in sites for _ in range(9)], [1 for _ in sites for _ in range(9)]]
    gone = () if mode == 0 else tuple(columns)
    return replace(share, mode=mode, gone=len(columns[0]) if gone else 0), replace(own, gone=gone)


@_share
def _dots(message: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    """Rows under the dots of others, and under the last ones that there are."""
    rng = scene.rng
    sites = [rng.randrange(len(message.sites)) if rng.random() < 0.5 else site for site in own.sites]
    steps = [1 + scene.number() if rng.random() < 0.4 else step for step in own.numbers]
    return share, replace(own, sites=sites, numbers=steps)


@_share
def _values(_: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    rng = scene.rng
    rows = [[scene.cell() if rng.random() < 0.3 else cell for cell in column] for column in own.rows]
    return share, replace(own, rows=rows)


@_share
def _ahead(_: Message, share: Share, own: Columns, scene: Scene) -> tuple[Share, Columns]:
    """Stamps from the future, and causal lengths that nobody could have come to."""
    if not own.rows:
        return share, own
    last = [scene.version() for _ in own.rows[-1]]
    return share, replace(own, rows=[*own.rows[:-1], last])


@_share
def _twice(_: Message, share: Share, own: Columns, __: Scene) -> tuple[Share, Columns]:
    """All rows once more."""
    rows = [[*column, *column] for column in own.rows]
    more = Columns(rows, [*own.sites, *own.sites], [*own.numbers, *own.numbers], own.gone)
    return replace(share, rows=2 * share.rows), more


def _end(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    """Another head; the last page is not the last, or the other way round."""
    if message.page is None:
        return message, columns
    done = message.page.done is (scene.rng.random() < 0.7)
    return replace(message, page=replace(message.page, head=scene.cursor(), done=done)), columns


def _refusal(message: Message, columns: Pages, _: Scene) -> tuple[Message, Pages]:
    return replace(message, refusal=Refusal("x", "no", retry=True)), columns


def _program(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    return replace(message, program=scene.rng.randbytes(scene.rng.choice([0, 8, 100]))), columns


def _undone(message: Message, columns: Pages, scene: Scene) -> tuple[Message, Pages]:
    """Rows that were refused, it is said."""
    told = [
        Undone(scene.place().stream, scene.rng.randrange(len(message.sites)), scene.number(), "no")
        for _ in range(5)
    ]
    return replace(message, refused=told), columns


LIES: tuple[Lie, ...] = (
    _greeting, _speaker, _sites, _news, _ask, _unasked, _vector, _vector, _digest, _place, _gone, _gone,
    _dots, _values, _ahead, _twice, _end, _refusal, _program, _undone, _undone,
)  # fmt: skip


def tampered(data: bytes, scene: Scene) -> bytes:
    """Return a message with some lies in it."""
    message, columns = decode(data)
    for _ in range(scene.rng.choice([0, 1, 1, 2, 3])):
        message, columns = scene.rng.choice(LIES)(message, columns, scene)
    try:
        lied = encode(message, columns)
    except (EverviewError, AttributeError, OverflowError, TypeError, ValueError):
        return data  # it cannot be written
    if scene.rng.random() < 0.03:
        at = scene.rng.randrange(len(lied))
        lied = lied[:at] + scene.rng.randbytes(1) + lied[at + 1 :]
    return lied


def lie(world: World, liar: Site, victim: Site, seed: int) -> None:
    """A liar talks with a victim; what it may not change is as it was."""
    rng, grants = random.Random(seed), world.case.grants
    rights = Rights(None, None, frozenset(stream_of(one)[0] for one in grants), parts=_limits(grants))
    _talk(world, liar, victim, rights, None)  # an honest one first: the victim tells what it tells anybody
    before = tables(victim)
    others = {
        name: (victim.vector(name), victim.live(name)) for name in victim.shares if _is_safe(name, grants)
    }
    known = [one for (one,) in liar.connection.execute("SELECT incarnation FROM everview_dot_sites")]
    schemas = {name: relation.schema for name, relation in world.program.relations.items()}
    scene = Scene(rng, [*known, victim.incarnation], sorted(schemas), schemas)
    for _ in range(rng.randint(2, 6)):
        _talk(world, liar, victim, rights, scene)
    after = tables(victim)
    if not grants and after != before:
        changed = sorted(name for name in after if after[name] != before.get(name))
        raise Wrong(f"a liar without rights has changed {changed} at {victim.name}")
    for name, (vector, live) in others.items():
        if victim.live(name) != live or victim.vector(name) != vector:
            raise Wrong(f"a liar has changed {name} at {victim.name}, which it may not write")
    grown = sum(map(len, map(repr, after.values()))) - sum(map(len, map(repr, before.values())))
    if grown > MOST_GROWTH:
        raise Wrong(f"{victim.name} has grown by {grown} bytes for a few lies")


def _limits(grants: Sequence[str]) -> tuple[tuple[str, frozenset[str]], ...]:
    """The values that the liar may write, of relations of which it may not write all."""
    return tuple((name, frozenset([value])) for name, value in map(stream_of, grants) if value)


def _is_safe(part: str, grants: Sequence[str]) -> bool:
    return part not in grants and stream_of(part)[0] not in grants


def _talk(world: World, liar: Site, victim: Site, rights: Rights, scene: Scene | None) -> None:
    """An exchange of a liar's; without a scene it is honest."""
    talk = Exchange(liar.replica, victim.name)
    message: bytes | None = talk.open()
    for _ in range(40):
        if message is None:
            return
        said = message if scene is None else tampered(message, scene)
        world.counts["lies"] += said != message
        answer = victim.replica.answer(said, rights)
        try:
            message = talk.receive(answer)
        except EverviewError:
            return


def tables(site: Site) -> dict[str, list[Any]]:
    """Every table of a store, row by row; but what rows add up to: that is kept when somebody asks."""
    names = site.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    found = {name: site.connection.execute(f'SELECT * FROM "{name}"').fetchall() for (name,) in names}
    listed = f"SELECT number, stream, value, floor FROM {PARTITIONS}"
    return found | {PARTITIONS: site.connection.execute(listed).fetchall()}

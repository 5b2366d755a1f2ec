"""Steps: what may happen in a world, as data, and cases, which are made of them.

A step does not depend on how earlier ones ended: what cannot be done when its turn comes is not done. So
steps can be left out of a case one by one, and what is left is still a history.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Operation = tuple[Literal["insert", "delete"], str, list[Any]]
"""Verb, relation, row."""

Fate = Literal["arrives", "doubled", "lost"]
"""What becomes of a message: a doubled one stays on its way and arrives again."""

Return = Literal["in place", "moved", "unnoticed"]
"""How a backup is put back: over the file, as another file, or with all that could tell."""


Loss = Literal["lost", "torn", "changed", "renamed", "doubled", "back"]
"""What becomes of a file; a doubled one is there under another name, too, perhaps as another's."""


class Step(msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True, omit_defaults=True):
    """Something that happens."""


class Write(Step, frozen=True, tag="write"):
    """A transaction; the process dies before a statement of it if `crash` is not 0."""

    site: str
    operations: list[Operation]
    crash: int = 0


class Load(Step, frozen=True, tag="load"):
    """A transaction of many rows (n, n % 100)."""

    site: str
    verb: Literal["insert", "delete"]
    relation: str
    start: int
    count: int


class Sync(Step, frozen=True, tag="sync"):
    """An exchange: whole, or cut off after some messages, or until a statement of `victim`'s process."""

    site: str
    peer: str
    messages: int = 0
    victim: str = ""
    crash: int = 0


class Dial(Step, frozen=True, tag="dial"):
    """An exchange whose messages travel one by one."""

    site: str
    peer: str


class Deliver(Step, frozen=True, tag="deliver"):
    """One of the messages on their way comes to its end."""

    pick: int = 0
    fate: Fate = "arrives"
    crash: int = 0


class Visit(Step, frozen=True, tag="visit"):
    """A site visits the folder that all share."""

    site: str
    crash: int = 0


class Lose(Step, frozen=True, tag="lose"):
    """A file in the folder is lost or spoiled, or one that was is back."""

    pick: int
    how: Loss = "lost"


class Partition(Step, frozen=True, tag="partition"):
    """No message goes from a site to a peer; or again."""

    site: str
    peer: str


class Permit(Step, frozen=True, tag="permit"):
    """What a site lets a peer that dials it read and write."""

    site: str
    peer: str
    reads: list[str]
    writes: list[str]
    inserts: list[str] = []
    deletes: list[str] = []


class Forget(Step, frozen=True, tag="forget"):
    """A site forgets removals but for the last few of each relation."""

    site: str
    keep: int = 0


class Host(Step, frozen=True, tag="host"):
    """A site that hosts a part is started again, and hosts more."""

    site: str
    more: list[str]


class Repair(Step, frozen=True, tag="repair"):
    """A site reads a relation again, whole, in an exchange with a peer."""

    site: str
    peer: str
    relation: str


class Wait(Step, frozen=True, tag="wait"):
    """Time passes."""

    seconds: int


class Set(Step, frozen=True, tag="set"):
    """A site's clock is set so many seconds ahead."""

    site: str
    skew: int


class Crash(Step, frozen=True, tag="crash"):
    """A process dies, and starts again."""

    site: str


class Backup(Step, frozen=True, tag="backup"):
    """A site's file is copied away."""

    site: str


class Restore(Step, frozen=True, tag="restore"):
    """The backup is put back."""

    site: str
    how: Return


class Copy(Step, frozen=True, tag="copy"):
    """A site's file is copied, and both are used."""

    site: str
    name: str


class Arrive(Step, frozen=True, tag="arrive"):
    """A new site."""

    name: str
    skew: int = 0


class Leave(Step, frozen=True, tag="leave"):
    """A site goes for good, with its file."""

    site: str


class Choose(Step, frozen=True, tag="choose"):
    """A site hosts a value more of a partitioned relation, of which it hosts some."""

    site: str
    relation: str
    value: int


class Drop(Step, frozen=True, tag="drop"):
    """A site hosts a value less."""

    site: str
    relation: str
    value: int


class Lie(Step, frozen=True, tag="lie"):
    """The liar dials a site, and changes what it says; `seed` decides how."""

    site: str
    seed: int


AnyStep = (
    Write | Load | Sync | Dial | Deliver | Visit | Lose | Partition | Permit | Forget | Wait | Set | Crash
    | Backup | Restore | Copy | Arrive | Leave | Lie | Host | Repair | Choose | Drop
)  # fmt: skip


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A site as a case begins: its clock is `skew` seconds ahead; it hosts everything, or only these.

    Of partitioned relations it may host some values, as in `m/a=0,1`.
    """

    name: str
    skew: int = 0
    hosts: list[str] | None = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A world and its history."""

    seed: int
    program: str
    places: list[Place]
    steps: list[AnyStep]
    shape: Literal["line", "star", "mesh"] = "line"
    """Who meets whom in the end."""
    page_cells: int = 1_000_000
    transfers: bool = False
    """Whether every transaction is a transfer, so that each site's total is 0 at any time."""
    large: bool = False
    liar: str = ""
    grants: list[str] = []
    """The relations that the liar may write, or values of them, as in `m [0]`."""
    wild: bool = False
    """Whether a store that went back unnoticed meets sites that cannot tell."""


def dump_case(case: Case) -> str:
    """Write a case as JSON, a step on a line."""
    lines = ",\n".join("  " + msgspec.json.encode(step).decode() for step in case.steps)
    rest = msgspec.json.encode(msgspec.structs.replace(case, steps=[])).decode()
    head, tail = rest.split('"steps":[]')
    return f'{head}"steps":[\n{lines}\n]{tail}\n' if case.steps else rest + "\n"


def load_case(text: str | bytes) -> Case:
    """Read a case that was written."""
    return msgspec.json.decode(text, type=Case)

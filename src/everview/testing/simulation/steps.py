"""Steps: everything that can happen in a simulated world, as data that is written to a file and read back.

A step never depends on how an earlier one ended: what cannot be done when its turn comes is not done. So
steps can be dropped one by one, and what is left is still a history.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Fate = Literal["arrives", "doubled", "lost"]
"""What the network does with a message; one that is doubled arrives, and stays for another time."""

Return = Literal["in place", "moved", "unnoticed"]
"""How a backup is put back: over the old file, as another file, or with the side file that it had."""


class Step(msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True, omit_defaults=True):
    """One thing that happens."""


class Write(Step, frozen=True, tag="write"):
    """A transaction at a site: (action, relation, row) each. `crash`: the process dies at that statement."""

    site: str
    operations: list[tuple[Literal["insert", "delete"], str, list[Any]]]
    crash: int = 0


class Load(Step, frozen=True, tag="load"):
    """A transaction that inserts many rows, or deletes them: (n, n mod 100) for n from `start`."""

    site: str
    relation: str
    start: int
    count: int
    action: Literal["insert", "delete"] = "insert"


class Sync(Step, frozen=True, tag="sync"):
    """A whole exchange, with nothing in between; at the statement `crash` of `victim` that process dies."""

    site: str
    peer: str
    victim: str = ""
    crash: int = 0


class Dial(Step, frozen=True, tag="dial"):
    """An exchange begins; its messages travel one by one, as they are delivered."""

    site: str
    peer: str


class Deliver(Step, frozen=True, tag="deliver"):
    """One of the messages on their way comes to its end."""

    pick: int
    fate: Fate = "arrives"
    crash: int = 0


class Publish(Step, frozen=True, tag="publish"):
    """A site leaves a batch in the folder: whole, from where some reader is, or from any commit."""

    site: str
    since: int
    kind: Literal["whole", "cursor", "any"] = "whole"


class Find(Step, frozen=True, tag="find"):
    """A site takes a batch out of the folder; lost, it is gone for all."""

    site: str
    pick: int
    fate: Fate = "doubled"
    crash: int = 0


class Collect(Step, frozen=True, tag="collect"):
    """A site forgets what is dead and stable."""

    site: str


class Wait(Step, frozen=True, tag="wait"):
    """Time passes, for everyone."""

    seconds: int


class Set(Step, frozen=True, tag="set"):
    """A site's clock is set: from now on it is so many seconds ahead."""

    site: str
    skew: int


class Crash(Step, frozen=True, tag="crash"):
    """A process dies between two statements, and is started again."""

    site: str


class Backup(Step, frozen=True, tag="backup"):
    """The store's file, and the one beside it, are put by."""

    site: str


class Restore(Step, frozen=True, tag="restore"):
    """The last backup is put back."""

    site: str
    how: Return = "in place"


class Copy(Step, frozen=True, tag="copy"):
    """The store's file is copied, and the copy is used as well, as a site of another name."""

    site: str
    name: str


class Arrive(Step, frozen=True, tag="arrive"):
    """A new site, which knows nobody yet."""

    name: str
    near: str
    skew: int = 0


class Leave(Step, frozen=True, tag="leave"):
    """A site goes for good, with its file: what it never told anyone is lost."""

    site: str


class Expire(Step, frozen=True, tag="expire"):
    """A site gives another up."""

    site: str
    victim: str


class Absence(Step, frozen=True, tag="absence"):
    """A site is away for so many days, while the others go on talking and collecting."""

    site: str
    days: int


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


class Migrate(Step, frozen=True, tag="migrate"):
    """A site goes over to the case's later program."""

    site: str


AnyStep = (
    Write
    | Load
    | Sync
    | Dial
    | Deliver
    | Publish
    | Find
    | Collect
    | Wait
    | Set
    | Crash
    | Backup
    | Restore
    | Copy
    | Arrive
    | Leave
    | Expire
    | Absence
    | Partition
    | Permit
    | Migrate
)


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A site as a case begins: its clock is `skew` seconds ahead; it hosts everything, or only these."""

    name: str
    skew: int = 0
    hosts: list[str] | None = None


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A world and its history."""

    seed: int
    program: str
    places: list[Place]
    links: list[tuple[str, str]]
    steps: list[AnyStep]
    page_rows: int = 20_000
    transfers: bool = False
    """Whether every transaction is a transfer, so that each site's total is 0 at any time."""
    large: bool = False
    later: str = ""
    """The program that sites go over to, if they do."""


def dump_case(case: Case) -> str:
    """Write a case as JSON, a step on a line."""
    lines = ",\n".join("  " + msgspec.json.encode(step).decode() for step in case.steps)
    rest = msgspec.json.encode(msgspec.structs.replace(case, steps=[])).decode()
    head, tail = rest.split('"steps":[]')
    return f'{head}"steps":[\n{lines}\n]{tail}\n' if case.steps else rest + "\n"


def load_case(text: str | bytes) -> Case:
    """Read a case that was written."""
    return msgspec.json.decode(text, type=Case)

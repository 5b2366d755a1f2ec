"""Cases of located worlds: a program with places, and what happens at and between its sites."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from everview.located.program import Mode
from everview.testing.simulation import steps as do

Operation = tuple[Literal["insert", "delete"], str, list[Any]]


class Put(do.Step, frozen=True, tag="put"):
    """A transaction over base facts of a place. `crash`: its process dies at that statement."""

    site: str
    operations: list[Operation]
    crash: int = 0


class Deafen(do.Step, frozen=True, tag="deafen"):
    """The node of a place is closed, while its site goes on writing and talking."""

    site: str


class Open(do.Step, frozen=True, tag="open"):
    """The process of a place ends and begins anew; `crash`: it dies once more while its node is opened."""

    site: str
    crash: int = 0


class Ask(do.Step, frozen=True, tag="ask"):
    """In counting mode a place asks whether all is quiet; what it is told must be true."""

    site: str


class Forget(do.Step, frozen=True, tag="forget"):
    """In provenance mode a place forgets the proofs that have been dead since the last time."""

    site: str
    crash: int = 0


AnyStep = do.AnyStep | Put | Deafen | Open | Ask | Forget


class LocatedCase(do.Case, frozen=True, kw_only=True):
    """A located world and its history; `near`: sites host only the mail of those that they are linked to."""

    mode: Mode
    steps: list[AnyStep]  # type: ignore[assignment]  # more can happen here
    near: bool = False


def load_located(text: str | bytes) -> LocatedCase:
    """Read a case that was written."""
    return msgspec.json.decode(text, type=LocatedCase)

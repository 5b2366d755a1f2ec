"""What travels in provenance mode: derivations, and the causal lengths of the ids that they name."""

from __future__ import annotations

from dataclasses import dataclass

from everview.located.facts import Fact

__all__ = ["Derivation", "Item", "Length"]


@dataclass(frozen=True, slots=True)
class Derivation:
    """A fact, and the ids of base facts that it was made from."""

    fact: Fact
    ids: frozenset[bytes]


@dataclass(frozen=True, slots=True)
class Length:
    """The causal length of a base fact's id, and the place that it is written at."""

    place: str
    id: bytes
    length: int


Item = Derivation | Length

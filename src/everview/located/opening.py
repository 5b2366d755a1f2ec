"""Opening a place of a located program at its site."""

from __future__ import annotations

from everview.errors import DataError
from everview.located.counting_node import CountingNode
from everview.located.node import Store
from everview.located.program import LocatedProgram
from everview.located.provenance_node import ProvenanceNode

__all__ = ["open_counting", "open_node"]


def open_node(
    site: Store, program: LocatedProgram, *, place: str | None = None, limit: int | None = None
) -> ProvenanceNode:
    """Run a place by provenance, by default that of the site's name.

    The site must host what `program.hosts` says; `limit` is how many proofs a fact may have.
    """
    at = _place(site, program, place, "provenance", "open_counting")
    return ProvenanceNode(site, program, at, _hosted(site, program, at), limit)


def open_counting(site: Store, program: LocatedProgram, *, place: str | None = None) -> CountingNode:
    """Run a place of a program that was parsed with mode='counting'."""
    at = _place(site, program, place, "counting", "open_node")
    return CountingNode(site, program, at, _hosted(site, program, at))


def _place(site: Store, program: LocatedProgram, place: str | None, mode: str, other: str) -> str:
    at = site.name if place is None else place
    program.require(at)
    if program.mode != mode:
        raise DataError(f"the program runs by {program.mode}; open its places with {other}")
    if site.program.hash != program.program.hash:
        raise DataError(f"the site of {at!r} runs another program; open it with LocatedProgram.program")
    return at


def _hosted(site: Store, program: LocatedProgram, place: str) -> frozenset[str]:
    status = site.status()
    there = frozenset((*status["relations"], *status["views"]))
    missing = sorted(program.hosts(place, ()) - there)
    if missing:
        raise DataError(
            f"the site of {place!r} does not host {', '.join(missing)}; "
            f"open it with hosts=program.hosts({place!r})"
        )
    return there

"""Convergence: of each relation, what every site that holds it is known to lack.

A site's vector says up to which commit of each site it has everything. The join of all vectors that are
known here is all that anybody is known to have; a site lacks what it is short of that. So it is as of when
the sites were last heard of, and of what nobody here has heard of nothing can be said.
"""

from __future__ import annotations

from typing import Any

from everview.engines.sqlite.stamps import microseconds
from everview.replication.knowledge import Knowledge
from everview.replication.membership import join

__all__ = ["convergence"]


def convergence(knowledge: Knowledge) -> list[dict[str, Any]]:
    """Relations that are held here, with their holders: how many commits each lacks; None if not known."""
    membership, state, own = knowledge.membership, knowledge.state, knowledge.incarnation
    found = []
    for relation in membership.wanted:
        if not membership.is_base(relation):
            continue
        told = {
            incarnation: whole for incarnation, whole in membership.holders(relation) if incarnation != own
        }
        vectors = {own: dict(membership.own(relation).vector)}
        for incarnation, whole in told.items():
            known = state.known.get(incarnation, {}).get(whole)
            if known is not None:
                vectors[incarnation] = known.vector
        whole_vector: dict[str, int] = {}
        for vector in vectors.values():
            join(whole_vector, vector)
        sites = [own, *sorted(incarnation for incarnation in told if incarnation not in state.expired)]
        lacking = [_site(knowledge, site, vectors.get(site), whole_vector) for site in sites]
        found.append({"relation": relation, "sites": lacking})
    return found


def _site(
    knowledge: Knowledge, incarnation: str, vector: dict[str, int] | None, whole: dict[str, int]
) -> dict[str, Any]:
    state = knowledge.state
    heard = [microseconds(told.reading) for told in state.known.get(incarnation, {}).values()]
    lacks = None
    if vector is not None:
        lacks = sum(max(commit - vector.get(origin, 0), 0) for origin, commit in whole.items())
    return {
        "incarnation": incarnation,
        "name": state.names.get(incarnation, ""),
        "lacks": lacks,
        "heard_us": max(heard, default=0),
    }

"""The map: this site, those it has heard of, how they are linked, and whether they have come to agree."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from everview.console.subject import Subject
from everview.planner.published import view_of
from everview.replication.rights import Rights

__all__ = ["sitemap"]

MANY = 500
"""So many sites are told of: those that were heard of last."""


def sitemap(subject: Subject, rights: Rights) -> dict[str, Any]:
    """Sites and links, and what each is known to lack; addresses only for who may watch the server."""
    status, lacking = subject.status(), subject.convergence()
    relations = [one for one in lacking if rights.may_read(one["relation"])]
    own, peers = status["incarnation"], {peer["incarnation"]: peer for peer in status["peers"]}
    listed = {one["incarnation"]: one for one in (*status["readers"], *status["members"])}
    strangers = {inc: _stranger(peer) for inc, peer in peers.items() if inc not in listed and inc != own}
    others = sorted({**listed, **strangers}.values(), key=lambda one: -one["heard_us"])
    return {
        "now_us": int(time.time() * 1e6),
        "self": {
            "incarnation": own,
            "name": subject.name,
            "kind": subject.kind,
            "head": status["head"],
            "lacks": _lacks(relations, own),
        },
        "sites": [_site(one, peers, relations, rights) for one in others[:MANY]],
        "all_sites": len(others),
        "convergence": {
            "agree": all(site["lacks"] == 0 for one in relations for site in one["sites"]),
            "relations": relations,
        },
        "waiting": {
            "provisional": [stream for stream in status["provisional"] if rights.may_read(stream)],
            "from_the_future": status["from_the_future"],
            "staged_pages": status["staged_pages"],
            "dropped_rows": status["dropped_rows"],
            "held": {name: held for name, held in status["held"].items() if rights.may_read(name)},
        },
        "published": {name: view for name, view in status["published"].items() if rights.may_read(name)},
    }


def _stranger(peer: Mapping[str, Any]) -> dict[str, Any]:
    """A peer that holds nothing of ours yet."""
    return {
        "incarnation": peer["incarnation"],
        "name": peer["name"],
        "holds": [],
        "expired": False,
        "heard_us": peer["synced_us"],
        "lag": None,
        "read": max(peer["cursors"].values(), default=0),
    }


def _site(
    member: Mapping[str, Any],
    peers: Mapping[str, Mapping[str, Any]],
    relations: Sequence[Mapping[str, Any]],
    rights: Rights,
) -> dict[str, Any]:
    incarnation = member["incarnation"]
    peer = peers.get(incarnation)
    return {
        "incarnation": incarnation,
        "name": member["name"],
        "heard_us": max(member["heard_us"], peer["synced_us"] if peer is not None else 0),
        "expired": member["expired"],
        "lag": member["lag"],
        "lacks": _lacks(relations, incarnation),
        "holds": sorted({view_of(stream) for stream in member["holds"] if rights.may_read(stream)}),
        "link": None
        if peer is None and not member["read"]
        else {
            "address": peer["address"] if peer is not None and rights.watches else "",
            "dialled": peer is not None,
            "synced_us": peer["synced_us"] if peer is not None else 0,
            "read": member["read"],
        },
    }


def _lacks(relations: Sequence[Mapping[str, Any]], incarnation: str) -> int | None:
    """The most that it lacks of any relation; None if of none it is known."""
    found = [
        site["lacks"]
        for one in relations
        for site in one["sites"]
        if site["incarnation"] == incarnation and site["lacks"] is not None
    ]
    return max(found, default=None)

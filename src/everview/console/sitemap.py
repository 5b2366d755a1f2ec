"""The map: this site, the others that it knows, how they are linked, and whether any differs from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from everview.console.subject import Subject
from everview.replication.rights.rights import Rights
from everview.replication.status.status import subject_of

__all__ = ["sitemap"]

MANY = 500
"""So many sites are told of: those that were heard of last."""


def sitemap(subject: Subject, rights: Rights) -> dict[str, Any]:
    """Return sites, links and alarms; addresses only for who may watch the server."""
    status = subject.status()
    found = sorted(_others(status).values(), key=lambda one: -one["heard_us"])
    alarms = [
        {**one, "relation": subject_of(one["relation"])}
        for one in status["alarms"]
        if rights.may_read(subject_of(one["relation"]))
    ]
    return {
        "now_us": int(time.time() * 1e6),
        "self": {
            "incarnation": status["incarnation"],
            "name": subject.name,
            "kind": subject.kind,
            "head": status["head"],
        },
        "sites": [_shown(one, rights) for one in found[:MANY]],
        "all_sites": len(found),
        "alarms": alarms,
        "refused": sum(rights.may_read(subject_of(one["stream"])) for one in status["refused"]),
        "staged_pages": status["staged_pages"],
        "published": {n: view for n, view in status.get("published", {}).items() if rights.may_read(n)},
    }


def _others(status: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Incarnation → what is known: from rows that were seen, from who was dialled, and from who came here."""
    found: dict[str, dict[str, Any]] = {}

    def known(one: Mapping[str, Any]) -> dict[str, Any]:
        empty = {"names": [], "heard_us": 0, "lag": None, "link": None, "name": ""}
        site = found.setdefault(one["incarnation"], {"incarnation": one["incarnation"], **empty})
        site["name"] = site["name"] or one["name"]
        return site

    for one in status["sites"]:
        known(one)["names"] = one["names"]
    for one in status.get("heard", ()):  # since this process began
        site = known(one)
        site |= {"heard_us": one["heard_us"], "lag": one["lag"]}
        site["link"] = {"address": "", "dialled": False, "synced_us": one["heard_us"]}
    for one in status["peers"]:
        site = known(one)
        site["heard_us"] = max(site["heard_us"], one["synced_us"])
        site["link"] = {"address": one["address"], "dialled": True, "synced_us": one["synced_us"]}
    found.pop(status["incarnation"], None)
    return found


def _shown(site: Mapping[str, Any], rights: Rights) -> dict[str, Any]:
    link = site["link"]
    if link is not None and not rights.watches:
        link = {**link, "address": ""}
    names = [name for name in site["names"] if rights.may_read(name) and not name.startswith("everview_")]
    return {**site, "names": names, "link": link}

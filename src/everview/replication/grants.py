"""Grants: whether what a token grants can work, given the program.

To write a relation is to read it: a site joins it by its snapshot before it sends rows of it ("Join before
you send", docs/REPLICATION.md). Views are written without being read: nobody joins what its authority
publishes, what owners' rows come to, or derivations that are fed.

To read a view is to read what is needed whole where it is computed: relations that its plan is cut above, and
published views below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from everview.language.correlation import scans_of
from everview.language.program import Program
from everview.planner.exchange import Exchange
from everview.replication.rights import Rights

__all__ = ["lacking", "told_lacking", "told_unreadable", "unreadable"]


def unreadable(program: Program, rights: Rights) -> list[str]:
    """The relations that may be written and not read, so that nothing would ever be written."""
    return [
        name
        for name, relation in program.relations.items()
        if not relation.system and rights.may_write(name) and not rights.may_read(name)
    ]


def lacking(program: Program, rights: Rights) -> dict[str, tuple[str, ...]]:
    """The views that may be read → what they need, where all of these are hosted, and may not be read."""
    if rights.reads is None:
        return {}
    hosts = rights.reads.intersection(program.names())
    needs = needed(Exchange(program, hosts, rights.site or ""))
    return {view: needs[view] for view in program.views if view in hosts and view in needs}


def needed(exchange: Exchange) -> dict[str, tuple[str, ...]]:
    """The views that are kept → what is received whole for them and not hosted, if there is such a thing."""
    names = {*exchange.program.relations, *(view for view, own in exchange.published.items() if not own)}
    found = {view: set(scans_of(kept.plan)) & names - exchange.hosts for view, kept in exchange.views.items()}
    return {view: tuple(sorted(needs)) for view, needs in found.items() if needs}


def told_unreadable(rights: Rights, relations: Iterable[str]) -> str:
    """Say which relations are written and not read, why that cannot work, and what to say instead."""
    names = sorted(relations)
    what = names[0] if len(names) == 1 else "these"
    may = f"may write {', '.join(names)} but not read {'it' if len(names) == 1 else 'them'}"
    instead = f"read = {_listed({*(rights.reads or ()), *names})}, or take {what} out of write"
    if rights.writes is None:
        may = f"may write everything but not read {', '.join(names)}"
        instead = 'read = "*", or list in write what it may read'
    return (
        f"{rights.site} {may}, and would send nothing: a site reads a relation before it sends rows of it; "
        f"say {instead}"
    )


def told_lacking(rights: Rights, needs: dict[str, tuple[str, ...]]) -> str:
    """Say which views stay empty for want of what, and what to say instead."""
    each = (f"{view}, but not {', '.join(names)}, which {view} needs" for view, names in needs.items())
    all_of_it = {*(rights.reads or ()), *(name for names in needs.values() for name in names)}
    return (
        f"{rights.site} may read {'; '.join(each)}. A view stays empty without what it needs, unless "
        f"that comes from elsewhere; to give it here, say read = {_listed(all_of_it)}"
    )


def _listed(names: Iterable[str]) -> str:
    """Lists of names look alike in TOML and in JSON."""
    return json.dumps(sorted(names), ensure_ascii=False)

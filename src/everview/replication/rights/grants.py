"""Grants: whether what a token grants can work, given the program.

To read a view is to read what is needed whole where it is computed: relations that its plan is cut above, and
published views below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from everview.language.correlation import scans_of
from everview.language.program import Program
from everview.planner.exchange import Exchange
from everview.replication.rights.rights import Rights

__all__ = ["lacking", "needed", "told_lacking"]


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

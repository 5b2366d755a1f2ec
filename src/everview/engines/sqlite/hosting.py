"""Hosting: the tables of what a site holds, of what it receives, and what it can tell others of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.derivations.received import Received, received_core
from everview.engines.sqlite.derivations.sending import SentBranch
from everview.engines.sqlite.derivations.sent_liveness import SentLiveness
from everview.engines.sqlite.derived.received import received_core as dotted_core
from everview.engines.sqlite.partials import ReceivedPartials, received_partials
from everview.engines.sqlite.published import Published, published_view
from everview.engines.sqlite.relations import StoredRelation, stored_relation
from everview.engines.sqlite.rows.making import stored_rows
from everview.engines.sqlite.streams import Stream
from everview.errors import DataError
from everview.language.program import Program
from everview.language.windowed import CLOSED, PARTICIPANTS, PROGRESS, late_name, windowed_relations
from everview.planner.cut import Core
from everview.planner.exchange import Exchange
from everview.planner.partials import Partials


def checked_hosts(program: Program, hosts: Iterable[str] | None) -> frozenset[str]:
    """Return what is to be hosted; all there is if nothing is said."""
    if hosts is None:
        return frozenset(program.names())
    if isinstance(hosts, str):
        raise DataError(f"hosts is a set of names, not the name {hosts!r}", value=hosts)
    wanted = frozenset(hosts)
    if not wanted:
        raise DataError("hosts names nothing; leave it out to host all of the program")
    for name in sorted(wanted, key=str):
        program.schema(name)
    return _with_companions(program, wanted)


def _with_companions(program: Program, wanted: frozenset[str]) -> frozenset[str]:
    """With windowed relations goes what is kept beside them; with windows that become final, their events."""
    windowed = [name for name in windowed_relations(program.relations) if name in wanted]
    for name in sorted(wanted & program.views.keys()):
        missing = sorted(_events(program, name) - wanted) if program.views[name].authority is None else []
        if missing:
            raise DataError(
                f"{name} tells which windows are final, and that can be told only where their events are; "
                f"host {', '.join(missing)} as well, or declare the view WITH (authority = …)",
                relation=name,
            )
    late = [late_name(name) for name in windowed]
    return wanted.union(late, (CLOSED, PROGRESS, PARTICIPANTS) if windowed else ())


def _events(program: Program, view: str) -> set[str]:
    """The windowed relations below a view that tells which windows are final; none below another."""
    reads, found = [view], set[str]()
    while reads:
        name = reads.pop()
        if name not in found:
            found.add(name)
            known = program.views.get(name)
            reads += known.reads if known is not None and (known.authority is None or name == view) else ()
    return found & windowed_relations(program.relations).keys() if PROGRESS in found else set()


def held_relations(circuit: Circuit, exchange: Exchange, *, dots: bool) -> dict[str, Any]:
    """Declare the relations that are here, shown or hidden; their numbers are those of the program."""
    return {
        name: stored_rows(circuit, relation, f"r{number}")
        if dots
        else stored_relation(circuit, relation, number)
        for number, (name, relation) in enumerate(exchange.program.relations.items())
        if name in exchange.held
    }


def received_cores(circuit: Circuit, exchange: Exchange, *, dots: bool) -> dict[str, Any]:
    """Declare the cores that come from elsewhere."""
    if dots:
        cores = exchange.cores.items()
        return {name: dotted_core(circuit, exchange.program, core) for name, core in cores}
    return {name: received_core(circuit, exchange.program, core) for name, core in exchange.cores.items()}


def published_views(circuit: Circuit, exchange: Exchange) -> dict[str, Published]:
    """Declare the views that come from their authority, or go out from here; by their streams."""
    found = (
        published_view(circuit, view, number)
        for number, view in enumerate(exchange.program.views.values())
        if view.name in exchange.published
    )
    return {published.stream: published for published in found}


def partial_aggregates(circuit: Circuit, exchange: Exchange) -> dict[str, ReceivedPartials]:
    """Declare the partial aggregates that come from elsewhere; their numbers are those of the program."""
    wanted = exchange.partials
    return {
        name: received_partials(circuit, partials, number)
        for number, (name, partials) in enumerate(exchange.all_partials.items())
        if name in wanted
    }


def fed_partials(exchange: Exchange) -> dict[int, Partials]:
    """Return the partial aggregates that can be computed here, by their numbers in the program."""
    fed = {partials.name for partials in exchange.fed()} - exchange.partials.keys()
    every = enumerate(exchange.all_partials.values())
    return {number: partials for number, partials in every if partials.name in fed}


def wanted_streams(
    exchange: Exchange, relations: dict[str, StoredRelation], received: dict[str, Received]
) -> dict[str, Stream]:
    """Return what the site reads from others."""
    found = {
        name: Stream(name, (stored,), (name,))
        for name, stored in relations.items()
        if not stored.relation.local
    }
    for name, core in exchange.cores.items():
        found[name] = Stream(name, received[name].parts, core.inputs)
    return found


def derived_streams(
    circuit: Circuit, exchange: Exchange, relations: dict[str, StoredRelation]
) -> dict[str, Stream]:
    """Return the cores that can be derived from the relations held here."""
    return {core.name: _derived(circuit, core, relations) for core in exchange.offered()}


def _derived(circuit: Circuit, core: Core, relations: dict[str, StoredRelation]) -> Stream:
    liveness = [SentLiveness(relations[name], core.passing(relations[name].relation)) for name in core.inputs]
    branches = [
        SentBranch(circuit, branch, core.schema, tuple(relations[atom.name] for atom in branch.atoms))
        for branch in core.branches
    ]
    return Stream(core.name, (*liveness, *branches), core.inputs)

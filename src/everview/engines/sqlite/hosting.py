"""Hosting: the tables of what a site holds, of what it receives, and what it can tell others of."""

from __future__ import annotations

from collections.abc import Iterable

from everview.engines.sqlite.circuits.circuit import Circuit
from everview.engines.sqlite.derived.received import ReceivedCore, received_core
from everview.engines.sqlite.rows.base import StoredRows
from everview.engines.sqlite.rows.making import stored_rows
from everview.errors import DataError
from everview.language.program import Program
from everview.language.windowed import CLOSED, PARTICIPANTS, PROGRESS, late_name, windowed_relations
from everview.planner.exchange import Exchange


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


def check_inputs(exchange: Exchange) -> None:
    """DataError for a view whose rows would come from elsewhere, and are made from a partitioned relation.

    Others may host other values of it. So such a view is made where its inputs are.
    """
    relations = exchange.program.relations
    for name, kept in exchange.views.items():
        for inputs in (kept.hidden, *(core.inputs for core in kept.cores)):
            parts = sorted(one for one in inputs if relations[one].partitioned)
            if parts:
                missing = ", ".join(sorted(set(inputs) - exchange.hosts))
                raise DataError(
                    f"{name} is made from {parts[0]}, which is partitioned, and follows from the rows that "
                    f"are hosted; host {missing} as well, or declare the view WITH (authority = …)",
                    relation=name,
                )


def held_relations(circuit: Circuit, exchange: Exchange) -> dict[str, StoredRows]:
    """Declare the relations that are here, shown or hidden; their numbers are those of the program."""
    check_inputs(exchange)
    return {
        name: stored_rows(circuit, relation, f"r{number}")
        for number, (name, relation) in enumerate(exchange.program.relations.items())
        if name in exchange.held
    }


def received_cores(circuit: Circuit, exchange: Exchange) -> dict[str, ReceivedCore]:
    """Declare the cores that come from elsewhere."""
    return {name: received_core(circuit, exchange.program, core) for name, core in exchange.cores.items()}

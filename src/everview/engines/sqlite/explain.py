"""Explain: how a view is kept, step by step, and how much each step remembers."""

from __future__ import annotations

import re
import sqlite3

from everview.engines.sqlite.circuits.circuit import Step
from everview.engines.sqlite.derived.explaining import core_lines
from everview.engines.sqlite.engine import Engine
from everview.engines.sqlite.partitions import said
from everview.engines.sqlite.publications import partial_lines, publication_lines
from everview.engines.sqlite.rows.ledger import hosted_parts
from everview.language.correlation import scans_of
from everview.planner.exchange import Kept, Way
from everview.planner.explain import explain as explain_plan

_HOW = {
    Way.LOCAL: "{name} is kept by a local circuit, because {why}.",
    Way.RECEIVED: "{name} comes from other sites as derivations, because {why}.",
    Way.CUT: "{name} is cut: parts of it come from other sites, the rest is a local circuit, because {why}.",
    Way.AGGREGATED: "{name} is merged from partial aggregates of other sites, because {why}.",
    Way.PUBLISHED: "{name} is {why}.",
}


def explain(engine: Engine, name: str, connection: sqlite3.Connection) -> str:
    """Return a text for people: the plan, and what each of its operators does on a commit."""
    program = engine.program
    if name in program.relations:
        relation = program.relations[name]
        kind = relation.semantics.value.replace("_", "-")
        table = engine.relations[name].table.name
        said = f"{name} is a {kind} relation: it is written to, and stored in the table {table}."
        return "\n".join([said, *_values(engine, name, connection)])
    kept = engine.exchange.views[name]
    lines = [_HOW[kept.way].format(name=name, why=kept.why), *_received(engine, kept, connection)]
    for read in sorted(set(scans_of(engine.shared[name])) & program.relations.keys()):
        lines += _values(engine, read, connection)
    lines += publication_lines(engine, name, connection)
    if kept.way in (Way.RECEIVED, Way.PUBLISHED):
        return "\n".join(lines)
    lines += [
        "",
        "Plan:",
        *(f"  {line}" for line in explain_plan(engine.shared[name]).splitlines()),
        *_parts(engine, name),
        "",
        "On a commit:",
    ]
    steps = engine.circuit.steps_behind(_tables(engine, name))
    lines += [f"  {step.title}: {step.how}{_remembered(step, connection)}" for step in steps]
    again = list(dict.fromkeys(step.title for step in steps if re.search("again|every", step.how)))
    if again:
        lines += ["", f"Computed again where a commit touches it: {', '.join(again)}. The rest is by change."]
    else:
        lines += ["", "All of it is by change: a commit costs what it changes, not what there is."]
    return "\n".join(lines)


def _values(engine: Engine, name: str, connection: sqlite3.Connection) -> list[str]:
    """Which values of a partitioned relation are here: views are over these."""
    relation = engine.program.relations[name]
    if not relation.partitioned:
        return []
    columns, choices = ", ".join(relation.partitioned), hosted_parts(connection).get(name)
    if choices is None:
        return [f"{name} is partitioned by {columns}; this site hosts all values."]
    here = "; ".join(said(relation, choice) for choice in sorted(choices))
    return [
        f"{name} is partitioned by {columns}; this site hosts {here}. Views here are over those rows alone."
    ]


def _received(engine: Engine, kept: Kept, connection: sqlite3.Connection) -> list[str]:
    """What comes from elsewhere: the derivations of each branch, the rows of each input."""
    lines = (
        ["", *(f"{name} is received whole, and not shown." for name in kept.hidden)] if kept.hidden else []
    )
    for core in kept.cores:
        received = engine.received[core.name]
        lines += ["", *core_lines(received, engine.exchange.views_of[core.name], connection)]
    for partials in kept.partials:
        lines += partial_lines(engine, partials.name, connection)
    return lines


def _tables(engine: Engine, name: str) -> list[str]:
    """The state tables that are looked at when the view is read, also those in its conditions."""
    text = " ".join(select.sql() for select in engine.contents(name))
    return [table for table in engine.circuit.states if re.search(rf"\b{table}\b", text)]


def _remembered(step: Step, connection: sqlite3.Connection) -> str:
    if not step.table:
        return ""
    size = connection.execute(f"SELECT count(*) FROM {step.table}").fetchone()[0]
    return f"; remembers {size:,} {'row' if size == 1 else 'rows'} in {step.table}"


def _parts(engine: Engine, name: str) -> list[str]:
    """The parts that the view has in common with others, kept once."""
    lines = []
    for part in dict.fromkeys(scans_of(engine.shared[name])):
        if part in engine.shared and part not in engine.program.views:
            lines += ["", f"{part}, which other views read too:"]
            lines += [f"  {line}" for line in explain_plan(engine.shared[part]).splitlines()]
            lines += _parts(engine, part)
    return lines

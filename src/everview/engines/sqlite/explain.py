"""Explain: how a view is kept, step by step, and how much each step remembers."""

from __future__ import annotations

import sqlite3

from everview.engines.sqlite.engine import Engine
from everview.planner.explain import explain as explain_plan


def explain(engine: Engine, name: str, connection: sqlite3.Connection) -> str:
    """Return a text for people: the plan, and what each of its operators does on a commit."""
    program = engine.program
    if name in program.relations:
        relation = program.relations[name]
        kind = relation.semantics.value.replace("_", "-")
        table = engine.relations[name].table.name
        return f"{name} is a {kind} relation: it is written to, and stored in the table {table}."
    reads = ", ".join(program.views[name].reads)
    lines = [
        f"{name} is kept by a local circuit, because this site hosts all that it reads: {reads}.",
        "",
        "Plan:",
        *(f"  {line}" for line in explain_plan(engine.plans[name]).splitlines()),
        "",
        "On a commit:",
    ]
    tables = [source.table for select in engine.contents(name) for source in select.sources]
    for step in engine.circuit.steps_behind(tables):
        size = connection.execute(f"SELECT count(*) FROM {step.table}").fetchone()[0] if step.table else 0
        remembered = f"; remembers {size:,} rows in {step.table}" if step.table else ""
        lines.append(f"  {step.title}: {step.how}{remembered}")
    return "\n".join(lines)

"""A hub as a notebook shows it: what it keeps as of its last refresh, and what waits for the next."""

from __future__ import annotations

import datetime as dt

from everview.hub.inspecting import Inspection
from everview.hub.status import HubStatus, Waiting, status_of
from everview.hub.store import Store
from everview.tables import html

__all__ = ["hub_html"]

_COUNTED = 1_000
"""Rows that wait are counted up to so many: a cell is shown at once."""


def hub_html(store: Store, inspection: Inspection) -> str:
    """Its relations and views, with rows and columns; no Spark job is run for it."""
    heading = html.heading(f"{store.name} at {store.files.uri('')}")
    if store.is_closed:
        return heading + html.note("closed")
    program, status = store.catalog.program, status_of(store, _COUNTED)
    names = [("relation", name) for name in program.relations] + [("view", name) for name in program.views]
    rows = [
        (kind, name, _count(*inspection.count(name)), ", ".join(map(str, program.schema(name))))
        for kind, name in names
    ]
    return (
        heading
        + html.table(("", "name", "rows", "columns"), rows, numbers=(False, False, True, False))
        + html.note("; ".join([_made(status), *_waits(status.waiting)]))
    )


def _count(rows: int, exact: bool) -> str:  # noqa: FBT001 - as inspection has it
    return f"{rows:,}" if exact else f"≈ {rows:,}"


def _made(status: HubStatus) -> str:
    if not status.refresh:
        return "no refresh yet"
    made = dt.datetime.fromtimestamp(status.refreshed_us // 1_000_000, tz=dt.UTC)
    return f"refresh {status.refresh:,}, {made:%Y-%m-%d %H:%M:%S} UTC"


def _waits(waiting: Waiting) -> list[str]:
    """What the next refresh takes in."""
    found = []
    if waiting.writes:
        found.append(f"{waiting.writes:,} {'write waits' if waiting.writes == 1 else 'writes wait'}")
    if waiting.rows:
        more = "at least " if waiting.rows >= _COUNTED else ""
        found.append(
            f"{more}{waiting.rows:,} {'row of sites waits' if waiting.rows == 1 else 'rows of sites wait'}"
        )
    return found

"""Publications: what there is to say about rows that only their owners write, for `explain` and `status`."""

from __future__ import annotations

import sqlite3
from typing import Any

from everview.engines.sqlite.engine import Engine
from everview.language.correlation import scans_of

__all__ = ["partial_lines", "publication_lines", "publication_status"]


def publication_lines(engine: Engine, name: str, connection: sqlite3.Connection) -> list[str]:
    """Which epoch of a published view is here, or goes out from here; and which other views it reads."""
    lines: list[str] = []
    for stream, rows in engine.published.items():
        view = rows.view.name
        shown = [
            f"epoch {epoch} of {writer}, in {rows.table.name}" for _, epoch, writer in rows.marks(connection)
        ]
        if view == name and stream in engine.authors:
            begun = f"; now {shown[0]}" if shown else ", once it has met another"
            lines += ["", f"This site publishes it for others{begun}."]
        elif view == name:
            lines += ["", f"Its state here is that of {shown[0]}." if shown else "None has come yet."]
        elif view not in engine.exchange.hosts and view in scans_of(engine.plans[name]):
            lines += ["", f"{view} is published by {rows.authority}, received, and not shown."]
    told = [rows.table.name for stream, rows in engine.partials.items() if _is_told(engine, stream, name)]
    if told:
        lines += ["", f"This site tells others what its own rows come to, in {', '.join(told)}."]
    return lines


def _is_told(engine: Engine, stream: str, name: str) -> bool:
    return stream in engine.authors and engine.partials[stream].partials.view == name


def partial_lines(engine: Engine, stream: str, connection: sqlite3.Connection) -> list[str]:
    """Of how many owners entries are here."""
    rows = engine.partials[stream]
    held = connection.execute(f"SELECT count(*) FROM {rows.table.name} WHERE {rows.partial}").fetchone()[0]
    owners = len(rows.marks(connection))
    inputs = ", ".join(rows.partials.inputs)
    return [
        "",
        f"{stream}, any site feeds it that hosts {inputs}, or receives it too:",
        f"  entries of {owners:,} owner{'' if owners == 1 else 's'}: {held:,} in {rows.table.name}",
    ]


def publication_status(
    engine: Engine, connection: sqlite3.Connection, site: int, now_us: int
) -> dict[str, dict[str, Any]]:
    """Return of published views and partial aggregates who writes them, and whether a namesake does, too."""
    published, partials = {}, {}

    def said(stream: str) -> dict[str, Any]:
        author = engine.authors.get(stream)
        return {
            "publishes": author is not None and author.is_own(connection, site),
            "contested": author is not None and author.is_contested(connection, site, now_us),
        }

    for stream, view in engine.published.items():
        epoch = max((epoch for _, epoch, _ in view.marks(connection)), default=0)
        published[view.view.name] = {"authority": view.authority, "epoch": epoch, **said(stream)}
    for stream, rows in engine.partials.items():
        owners = sorted(owner for owner, *_ in rows.marks(connection))
        receives = stream in engine.exchange.partials
        partials[rows.partials.view] = {"receives": receives, "owners": owners, **said(stream)}
    return {"published": published, "partials": partials}

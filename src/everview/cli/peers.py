"""What `everview status` says about other sites."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Mapping
from typing import Any

from everview.cli.options import count, size
from everview.replication.status.status import subject_of

__all__ = ["print_replication", "site_name"]

_LEAST = 8
"""So many digits of an incarnation tell it from the others."""

_SHOWN = 3
"""So many refused rows are shown."""


def print_replication(state: Mapping[str, Any]) -> None:
    """Print peers, sites whose rows were seen, alarms, and refused rows; nothing if alone."""
    _print_table(
        "peer",
        [(peer["address"], site_name(peer), f"synced {_ago(peer['synced_us'])}") for peer in state["peers"]],
    )
    _print_table("site", [_site(site) for site in state["sites"]])
    _print_table("published", [_published(name, view) for name, view in state.get("published", {}).items()])
    _print_table("window", _windows(state.get("windows")))
    for alarm in state["alarms"]:
        name = subject_of(alarm["relation"]) + (f" {alarm['partition']}" if alarm["partition"] else "")
        sys.stdout.write(
            f"{'alarm:':20}{name} differs from that of {alarm['peer']}, although both have seen the same "
            f"(noticed {_ago(alarm['noticed_us'])}); `everview repair` reads it again\n"
        )
    _print_refused(state["refused"])
    removed: dict[str, int] = {}
    for stream, number in state["removals"].items():
        removed[subject_of(stream)] = removed.get(subject_of(stream), 0) + number
    if removed:
        told = ", ".join(f"{name} {number:,}" for name, number in sorted(removed.items()))
        sys.stdout.write(f"{'removals kept:':20}{told}\n")
    if state["staged_pages"]:
        pages = f"{count(state['staged_pages'], 'page')} of a cut that has not ended"
        sys.stdout.write(f"{'staged:':20}{pages} ({size(state['staged_bytes'])})\n")


def _site(site: Mapping[str, Any]) -> tuple[str, ...]:
    met = f"synced {_ago(site['synced_us'])}" if site["synced_us"] else "not dialled from here"
    names = ", ".join(name for name in site["names"] if not name.startswith("everview_"))
    return site_name(site), met, f"rows seen of {names}" if names else "no rows seen"


def _published(name: str, view: Mapping[str, Any]) -> tuple[str, ...]:
    if view["contested"]:
        return name, "by this site", f"and by another called {view['authority']}: only one may be"
    by = "by this site" if view["publishes"] else f"by {view['authority']}"
    return name, by, f"epoch {view['epoch']}" if view["epoch"] else "nothing has come yet"


def _windows(windows: Mapping[str, Any] | None) -> list[tuple[str, ...]]:
    """How far each source has closed each windowed relation, and how much of that is final here."""
    if windows is None:
        return []
    found: list[tuple[str, ...]] = []
    for name, relation in windows["relations"].items():
        for source, one in relation["sources"].items():
            closed = f"closed up to {one['closed']}" if one["closed"] else "not closed yet"
            final = f"final here up to {one['final']}" if one["final"] else "nothing final here"
            found.append((name, source, closed, final))
        if relation["late_rows"]:
            found.append((name, "", count(relation["late_rows"], "row") + " came too late", ""))
    if not windows["in_charge"]:
        found.append(("", "", "this store does not write as its source until take_charge()", ""))
    return found


def _print_refused(rows: list[Mapping[str, Any]]) -> None:
    for one in rows[:_SHOWN]:
        writer = f", written by {one['writer']}" if one["writer"] else ""
        by = f" (refused by {one['refused_by']})" if one["refused_by"] else ""
        name = subject_of(one["stream"])
        sys.stdout.write(f"{'refused:':20}{name} {one['row']}{writer}: {one['why']}{by}\n")
    if len(rows) > _SHOWN:
        sys.stdout.write(f"{'':20}and {count(len(rows) - _SHOWN, 'more row')}\n")


def site_name(site: Mapping[str, Any]) -> str:
    """A site as people see it: its name, and enough of its incarnation."""
    short = str(site["incarnation"])[:_LEAST]
    return f"{site['name']} ({short})" if site["name"] else short


def _ago(microseconds: int) -> str:
    """How long ago, in one unit; past a month, the day."""
    if not microseconds:
        return "never"
    seconds = time.time() - microseconds / 1e6
    if seconds > 30 * 86_400:
        return dt.datetime.fromtimestamp(microseconds / 1e6, dt.UTC).date().isoformat()
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{count(int(seconds // length), unit)} ago"
    return "just now"


def _print_table(label: str, rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{label:9} {cells}".rstrip() + "\n")

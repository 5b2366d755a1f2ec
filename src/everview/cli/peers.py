"""What `everview status` says about other sites."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from everview.cli.options import count, size
from everview.planner.published import view_of

__all__ = ["print_replication", "site_name"]

_EXPIRY_DAYS = 90
"""What goes without saying."""

_LEAST = 8
"""So many digits of an incarnation tell it from the others."""

_SHOWN = 3
"""So many of the sites of which the same is to be said are named."""


def print_replication(state: Mapping[str, Any]) -> None:
    """Print peers, members with their lag, what is held back for whom, and what waits; nothing if alone."""
    alone = not (state["peers"] or state["members"] or state["readers"] or state["waits_for"])
    if not alone or state["expiry_days"] != _EXPIRY_DAYS:
        limit = count(state["expiry_days"], "day")
        sys.stdout.write(f"{'given up:':20}members not heard of for {limit}\n")
    if alone:
        return
    for sites, streams in _by_sites(state["waits_for"]).items():
        names = ", ".join(_names(streams))
        what = f", before it exchanges {names} with other groups"
        if set(streams) <= set(state["provisional"]):
            what = f", or whoever else answers, to be listed for {names}"
        sys.stdout.write(f"{'waits for:':20}{' or '.join(sites)}{what}\n")
    _print_table(
        "peer",
        [
            (
                peer["address"],
                site_name(peer),
                f"answered {_ago(peer['synced_us'])}",
                _cursors(peer["cursors"]),
            )
            for peer in state["peers"]
        ],
    )
    _print_table("member", [_member(member) for member in state["members"]])
    _print_table("reader", [_member(reader) for reader in state["readers"]])
    for line in _halves(state["halves"]):
        sys.stdout.write(f"{'in part:':20}{line}\n")
    _print_table("published", [_published(name, view) for name, view in state["published"].items()])
    _print_table("held", [_held(name, held) for name, held in _by_name(state["held"]).items()])
    for label, number in (
        ("from the future", state["from_the_future"]),
        ("rows not allowed", state["dropped_rows"]),
    ):
        if number:
            sys.stdout.write(f"{label + ':':20}{count(number, 'row')}\n")
    if state["staged_pages"]:
        pages = f"{count(state['staged_pages'], 'page')} of a cut that has not ended"
        sys.stdout.write(f"{'staged:':20}{pages} ({size(state['staged_bytes'])})\n")


def _member(member: Mapping[str, Any]) -> tuple[str, ...]:
    if member["expired"]:
        lag = "expired"
    else:
        lag = f"{count(member['lag'], 'commit')} behind" if member["lag"] else "has everything"
        lag += _waiting(member.get("waiting"))
    holds = ", ".join(_names(member["holds"]))
    return site_name(member), lag, f"heard {_ago(member['heard_us'])}", f"holds {holds}"


def _waiting(waiting: Mapping[str, Any] | None) -> str:
    """What there is to be sent; of who reads published views nobody counts it."""
    if waiting is None or not waiting["rows"]:
        return ""
    more = "more than " if waiting["more"] else ""
    return f", {more}{count(waiting['rows'], 'row')} wait{'s' if waiting['rows'] == 1 else ''}"


def _halves(halves: Iterable[Mapping[str, Any]]) -> list[str]:
    """Over whom a transaction may arrive in two, and which: those that pass on the same together."""
    over: dict[tuple[str, str, bool], list[str]] = {}
    for one in halves:
        passes = ", ".join(n if n not in one["lacks"] else f"a part of {n}" for n in one["passes"])
        lacks = ", ".join(n if n not in one["passes"] else f"all of {n}" for n in one["lacks"])
        over.setdefault((passes, lacks, one["read"]), []).append(site_name(one))
    return [
        "halves of a transaction may arrive separately: "
        f"{_some(sites)}{'' if read else ', by way of others,'} "
        f"pass{'es' if len(sites) == 1 else ''} on {passes}, but not {lacks}"
        for (passes, lacks, read), sites in over.items()
    ]


def _some(sites: list[str]) -> str:
    """The first few of many."""
    if len(sites) <= _SHOWN:
        return " and ".join(filter(None, (", ".join(sites[:-1]), sites[-1])))
    return f"{', '.join(sites[:_SHOWN])} and {len(sites) - _SHOWN:,} more"


def _names(streams: Iterable[str]) -> list[str]:
    """The relations and views that streams tell of, each once."""
    return sorted(set(map(view_of, streams)))


def _by_sites(waits: Mapping[str, Iterable[str]]) -> dict[tuple[str, ...], list[str]]:
    """Who is waited for → what for."""
    found: dict[tuple[str, ...], list[str]] = {}
    for stream, sites in waits.items():
        found.setdefault(tuple(sites), []).append(stream)
    return found


def _by_name(held: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What is held of a view, of all its streams together."""
    found: dict[str, Mapping[str, Any]] = {}
    for stream, one in held.items():
        name = view_of(stream)
        before = found.get(name, {"dead_rows": 0, "waiting_for": []})
        found[name] = {
            "dead_rows": before["dead_rows"] + one["dead_rows"],
            "waiting_for": sorted({*before["waiting_for"], *one["waiting_for"]}),
        }
    return found


def _published(name: str, view: Mapping[str, Any]) -> tuple[str, ...]:
    if view["contested"]:
        return name, "by this site", f"and by another called {view['authority']}: only one may be"
    by = "by this site" if view["publishes"] else f"by {view['authority']}"
    return name, by, f"as of its commit {view['mark']:,}" if view["epoch"] else "nothing has come yet"


def _held(relation: str, held: Mapping[str, Any]) -> tuple[str, ...]:
    waiting = ", ".join(held["waiting_for"])
    return relation, count(held["dead_rows"], "dead row"), f"waiting for {waiting}" if waiting else "stable"


def site_name(site: Mapping[str, Any]) -> str:
    """A site as people see it: its name, and enough of its incarnation."""
    short = str(site["incarnation"])[:_LEAST]
    return f"{site['name']} ({short})" if site["name"] else short


def _cursors(cursors: Mapping[str, int]) -> str:
    """Mostly a site has read all streams equally far."""
    if not cursors:
        return "nothing read"
    if len(set(cursors.values())) == 1:
        return f"read up to {next(iter(cursors.values())):,}"
    least: dict[str, int] = {}
    for stream, head in cursors.items():
        name = view_of(stream)
        least[name] = min(head, least.get(name, head))
    return "read up to " + ", ".join(f"{name} {head:,}" for name, head in least.items())


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

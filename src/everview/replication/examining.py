"""Looking at what a store knows of others: what somebody should do something about."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from everview.engines.sqlite.examining import Finding, counted
from everview.engines.sqlite.names import CONFLICTS, STORE
from everview.engines.sqlite.stamps import microseconds
from everview.engines.sqlite.store import Store
from everview.planner.published import view_of
from everview.replication.knowledge import Knowledge
from everview.replication.status import replication_status

_AHEAD_US = 60_000_000
"""A clock that is ahead by more than this makes others wait."""


def examine_others(store: Store) -> Iterator[Finding]:
    """What this store knows of other sites that somebody should know."""
    connection, knowledge = store.writer.connection, Knowledge(store)
    knowledge.refresh(connection)
    (stamp,) = connection.execute(f"SELECT clock FROM {STORE}").fetchone()
    knowledge.membership.advance(knowledge.head(connection), stamp)
    state = replication_status(knowledge, connection)
    ahead = microseconds(stamp) - time.time_ns() // 1000
    if ahead > _AHEAD_US:
        text = f"its last commit was stamped {ahead // 1_000_000:,} s ahead of this machine's clock"
        advice = "set the clock, and sync with a site whose clock is right: then its rows are told again"
        yield Finding("warning", "clock", text, advice)
    if state["from_the_future"]:
        text = f"{counted(state['from_the_future'], 'row')} came with stamps whose time has not come"
        yield Finding("warning", "clock", text, "find the site whose clock is ahead")
    for (name,) in connection.execute(f"SELECT relation FROM {CONFLICTS}"):
        text = f"{name} has two rows for a key, written under one stamp by one site"
        yield Finding("error", name, text, "write the key again to say which is right")
    if state["dropped_rows"]:
        were = "was" if state["dropped_rows"] == 1 else "were"
        text = f"{counted(state['dropped_rows'], 'row')} {were} dropped that their senders may not write"
        yield Finding("warning", "rights", text, "look into the tokens of the sites that wrote them")
    yield from _waiting(state)
    yield from _members(state)


def _waiting(state: dict[str, Any]) -> Iterator[Finding]:
    """Whom this site has to meet first. To be listed, anybody will do who answers."""
    listed_by_none = {name: state["waits_for"][name] for name in state["provisional"]}
    bound = {name: sites for name, sites in state["waits_for"].items() if name not in listed_by_none}
    for waiting, other in ((bound, ""), (listed_by_none, " or another")):
        if waiting:
            streams = ", ".join(sorted(set(map(view_of, waiting))))
            sites = " or ".join(sorted({site for some in waiting.values() for site in some}))
            what = (
                "files of other groups are not taken" if other else "nothing is exchanged with other groups"
            )
            text = f"{streams}: {what} before this site has met {sites}{other}"
            yield Finding("warning", "sites", text, f"sync with {sites}, or give it up by `everview expire`")


def _members(state: dict[str, Any]) -> Iterator[Finding]:
    members = [one for one in state["members"] if not one["expired"]]
    for name, held in state["held"].items():
        if held["waiting_for"]:
            kept_for = ", ".join(held["waiting_for"])
            are = "is" if held["dead_rows"] == 1 else "are"
            text = f"{counted(held['dead_rows'], 'dead row')} of {view_of(name)} {are} kept for {kept_for}"
            have = "it has" if len(held["waiting_for"]) == 1 else "they have"
            away = f"been away for {counted(state['expiry_days'], 'day')}"
            yield Finding("fine", "sites", f"{text}, until {have} synced, or {away}")
    behind = sum(1 for one in members if one["lag"])
    yield Finding("fine", "sites", f"other members: {len(members)}; behind: {behind}")

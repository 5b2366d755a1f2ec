"""Giving a member up: by the limit that a site declares, or by hand.

Who is given up is no longer waited for, here and wherever that is heard of. It learns so with its next sync,
takes a new incarnation, and joins again by a snapshot; what it wrote that nobody had seen is told anew.
"""

from __future__ import annotations

from typing import Any

from everview.errors import DataError
from everview.replication.knowledge import Knowledge
from everview.replication.status import others

__all__ = ["LONGEST_DAYS", "checked_days", "the_member"]

LONGEST_DAYS = 1_000_000
"""For good, to all intents."""

_LEAST = 8
"""So many digits of an incarnation are shown to people, and name it."""


def checked_days(given: Any) -> int:
    """Return a limit after which an absent member is given up; DataError if it is no number of days."""
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= LONGEST_DAYS:
        raise DataError(
            f"expiry_days is {given!r}: say a whole number of days, from 1 to {LONGEST_DAYS:,}, such as 90",
            value=given,
        )
    return given


def the_member(knowledge: Knowledge, called: str) -> str:
    """Return the incarnation of the member of this name, or of these digits; DataError if it is not one."""
    state, own = knowledge.state, knowledge.incarnation
    members = {one for one in others(knowledge) if _is_living(knowledge, one)}
    living = {*members, own}
    found = {one for one in living if one == called} or {
        one for one in living if called and state.names.get(one, "") == called
    }
    if not found and len(called) >= _LEAST:
        found = {one for one in living if one.startswith(called)}
    if found == {own}:
        raise DataError(f"{called} is this site itself, which cannot be given up here", value=called)
    if len(found) > 1:
        raise DataError(
            f"several sites are called {called}: {_listed(knowledge, found)}; name one by its incarnation",
            value=called,
        )
    if not found:
        raise DataError(_why_none(knowledge, called, members), value=called)
    return found.pop()


def _is_living(knowledge: Knowledge, incarnation: str) -> bool:
    streams = knowledge.state.members.get(incarnation, {})
    return any(held.length % 2 for groups in streams.values() for held in groups.values())


def _why_none(knowledge: Knowledge, called: str, members: set[str]) -> str:
    state = knowledge.state

    def is_meant(incarnation: str) -> bool:
        return called in (incarnation, incarnation[:_LEAST], state.names.get(incarnation) or None)

    if any(is_meant(incarnation) for incarnation in state.expired):
        return f"{called} has been given up already"
    if any(is_meant(incarnation) for incarnation in state.readers):
        return f"{called} only reads published views: nothing is kept for it, so there is nothing to give up"
    there = f"members: {_listed(knowledge, members)}" if members else "this site knows of no other member"
    return f"no member is called {called}; {there}"


def _listed(knowledge: Knowledge, incarnations: set[str]) -> str:
    def said(one: str) -> str:
        name = knowledge.state.names.get(one, "")
        return f"{name} ({one}{', this site' if one == knowledge.incarnation else ''})" if name else one

    return ", ".join(sorted(map(said, incarnations)))

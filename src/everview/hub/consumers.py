"""Who follows a store's changes, and from which refresh on: what they have not read yet is not vacuumed.

A consumer notes the refresh that it goes on from in a file of its own, created only if absent, and removes
those before it. A note is a sign of life too, so it is made again now and then. One that gives no sign for
long is given up, and what was held for it goes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

from everview.errors import DataError
from everview.hub.files import Files

__all__ = ["DAYS", "FOLDER", "SIGN_US", "check_name", "held", "note", "now_us"]

FOLDER = "consumers"

DAYS = 7.0
"""After how many days without a sign a consumer is given up."""

SIGN_US = 3600 * 1_000_000
"""How often a consumer gives a sign that has read all there is."""

_DAY_US = 24 * 60 * 60 * 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_NOTE = re.compile(r"(\d{12,})-(\d{16,})\.json")


def now_us() -> int:
    """The time, in microseconds since 1970."""
    return time.time_ns() // 1000


def check_name(name: str) -> str:
    """The name of a consumer; DataError when it cannot be the name of a folder everywhere."""
    if not _NAME.fullmatch(name):
        raise DataError(
            f"the consumer is called {name!r}: give up to 64 letters, digits, - and _",
            value=name,
            expected="letters, digits, - and _",
        )
    return name


def note(files: Files, consumer: str, refresh: int, what: str) -> None:
    """Say that a consumer goes on from a refresh; `what` it reads is for people.

    The last note counts, also where it goes back: a checkpoint may have been put back from before.
    """
    content = json.dumps({"reads": what, "refresh": refresh}).encode()
    mine = f"{refresh:012}-{now_us():016}.json"
    files.create(f"{FOLDER}/{consumer}/{mine}", content)
    for name in files.list(f"{FOLDER}/{consumer}"):
        if _NOTE.fullmatch(name) and name != mine:
            files.remove_file(f"{FOLDER}/{consumer}/{name}")


def _notes(files: Files, consumer: str) -> Iterator[tuple[int, int]]:
    """When each was made, and its refresh."""
    for name in files.list(f"{FOLDER}/{consumer}"):
        found = _NOTE.fullmatch(name)
        if found:
            yield int(found[2]), int(found[1])


def held(files: Files, days: float) -> int | None:
    """The least refresh from which a consumer goes on; None when there is none. Others are given up."""
    since = now_us() - days * _DAY_US
    needed = []
    for consumer in files.list(FOLDER):
        notes = [*_notes(files, consumer)]
        if not notes:
            continue
        signed, refresh = max(notes)
        if signed < since:
            files.remove(f"{FOLDER}/{consumer}")
        else:
            needed.append(refresh)
    return min(needed, default=None)

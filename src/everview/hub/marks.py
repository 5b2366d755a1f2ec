"""Where writes lie that have arrived: folders named by their numbers, each whole once its mark is there.

Short, and without Arrow: Spark starts processes that need no more than this.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, suppress
from urllib.parse import quote

from everview.hub.files import Files

__all__ = ["FOLDER", "GATE", "MARK", "gate_head", "number_of", "whole_writes"]

FOLDER = "inbox"
MARK = "_arrival.json"
GATE = "gate/gate.db"
"""The replica through which sites write (see `gate`)."""
_NAME = re.compile(r"(\d{12,})-\w+")


def number_of(name: str) -> int | None:
    """The number of the write that a folder of this name holds; None when it is not a name of ours."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


def whole_writes(files: Files) -> list[tuple[int, str]]:
    """The numbers and names of the writes that are there and complete."""
    found = [(number_of(name), name) for name in files.list(FOLDER)]
    return [
        (number, name)
        for number, name in found
        if number is not None and files.exists(f"{FOLDER}/{name}/{MARK}")
    ]


def gate_head(files: Files) -> int | None:
    """The last commit of the gate in these files; None when there is none, or it cannot be read now."""
    if files.exists(GATE):
        place = f"file:{quote(files.local(GATE))}?mode=ro"
        with suppress(sqlite3.Error), closing(sqlite3.connect(place, uri=True)) as connection:
            return int(connection.execute("SELECT version FROM everview_store").fetchone()[0])
    return None

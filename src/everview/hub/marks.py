"""Where writes lie that have arrived: folders named by their numbers, each whole once its mark is there.

Short, and without Arrow: Spark starts processes that need no more than this.
"""

from __future__ import annotations

import re

from everview.hub.files import Files

__all__ = ["FOLDER", "MARK", "number_of", "whole_writes"]

FOLDER = "inbox"
MARK = "_arrival.json"
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

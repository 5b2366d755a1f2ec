"""Durations as people write them: 5s, 500ms, 2m, or plain seconds."""

from __future__ import annotations

import re

import typer

__all__ = ["seconds"]

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", re.ASCII)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Read a duration of more than nothing."""
    match = DURATION.fullmatch(text.strip())
    found = float(match[1]) * UNITS[match[2] or "s"] if match else 0.0
    if found <= 0:
        raise typer.BadParameter(f"{text!r} is no duration; say 5s, 500ms or 2m")
    return found

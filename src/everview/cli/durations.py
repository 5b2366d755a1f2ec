"""Durations as people write them: 5s, 500ms, 2m, or plain seconds; or whole days, 90d."""

from __future__ import annotations

import re

import typer

__all__ = ["days", "seconds", "whole_days"]

DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?", re.ASCII)
DAYS = re.compile(r"(\d{1,9})d", re.ASCII)
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(text: str) -> float:
    """Read a duration of more than nothing."""
    match = DURATION.fullmatch(text.strip())
    found = float(match[1]) * UNITS[match[2] or "s"] if match else 0.0
    if found <= 0:
        raise typer.BadParameter(f"{text!r} is no duration; say 5s, 500ms or 2m")
    return found


def days(text: str | None) -> int | None:
    """Read a whole number of days, at least one; None if nothing is said."""
    return None if text is None else whole_days(text)


def whole_days(text: str) -> int:
    """Read a whole number of days, at least one."""
    match = DAYS.fullmatch(text.strip())
    if match is None or int(match[1]) < 1:
        raise typer.BadParameter(f"{text!r} is no whole number of days, at least one; say 90d")
    return int(match[1])

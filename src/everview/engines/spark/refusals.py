"""What Spark does not do, said when a program is compiled and never when data flows."""

from __future__ import annotations

from dataclasses import dataclass

from everview.errors import ProgramError

__all__ = ["Refusal", "refuse"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no Spark SQL for something, and what to write instead."""

    reason: str
    hint: str


def refuse(what: str, refusal: Refusal) -> ProgramError:
    """The error to raise for `what`."""
    return ProgramError(f"{what} cannot be run on Spark: {refusal.reason}", hint=refusal.hint)

"""Pictures: the operators of a view as nodes that can be drawn, with what the last change did to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from everview.language.plan import Join, Plan, RecursiveScan, Scan
from everview.planner.explain import node_text

__all__ = ["Box", "Picture", "words_of"]


@dataclass(frozen=True, slots=True)
class Box:
    """One operator: what it does, which others it reads, how many rows came and went; None: not counted."""

    id: int
    kind: Literal["view", "relation", "operator"]
    title: str
    detail: str
    reads: tuple[int, ...]
    appeared: int | None = None
    disappeared: int | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """All operators, the view itself first. `change` is the commit or refresh whose rows are counted."""

    boxes: tuple[Box, ...]
    change: int | None
    unit: Literal["commit", "refresh"]


def words_of(plan: Plan) -> tuple[str, str]:
    """What an operator is called, and what there is to say about it."""
    text = node_text(plan)
    match plan:
        case Scan(name) | RecursiveScan(name):
            return name, "" if isinstance(plan, Scan) else "the recursion itself"
        case Join():
            title, _, detail = text.partition(" on ")
        case _:
            longer = next((word for word in ("union all", "intersect all", "except all") if word == text), "")
            title, _, detail = (longer, "", "") if longer else text.partition(" ")
    return title, detail

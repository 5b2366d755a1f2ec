"""Nodes: a plan's operators, compiled to how their contents and their changes are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from everview.engines.sqlite.circuits.select import Select
from everview.language.plan import Schema


@dataclass(frozen=True, slots=True)
class Node:
    """An operator: its rows now, and what this commit changes in them, as branches to be united.

    Both make new aliases each time they are asked, so that a self-join reads one table twice. `contents`
    is None where the rows are nowhere to be read: whoever needs them has them stored first.
    """

    schema: Schema
    delta: Callable[[], list[Select]]
    contents: Callable[[], list[Select]] | None
    is_set: bool = False
    """Whether no row can occur twice."""

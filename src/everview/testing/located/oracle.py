"""The oracle of located programs: one site that has all base facts and no places."""

from __future__ import annotations

import functools

from everview.engines.reference import evaluate_views
from everview.language.program import Program
from everview.located.facts import Fact

__all__ = ["centralised"]


@functools.lru_cache(maxsize=512)
def _whole(text: str) -> Program:
    return Program.parse(text, language="datalog")


@functools.lru_cache(maxsize=512)
def centralised(text: str, base: frozenset[Fact]) -> frozenset[Fact]:
    """Return all facts that follow from base facts, by one site that knows them all: naively."""
    program = _whole(text)
    tables = {name: [row for relation, row in base if relation == name] for name in program.relations}
    found = {
        (name, tuple(row)) for name, view in evaluate_views(program, tables).items() for row in view.rows
    }
    return frozenset(found) | base

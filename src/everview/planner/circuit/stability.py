"""Stable columns: what every derivation hands on unchanged, so that a recursion falls apart by it.

Where each clause reads the group at most once, and the head has in its stable column what that row of the
group has in its own, all rows that a row leads to have the same value there. So the rows of each value can be
derived apart from all others, over all rows of the inputs. Intuitively: where a path starts does not change
as it grows. (Wolfson and Silberschatz call such programs decomposable.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, product

from everview.language.expressions import Column
from everview.language.plan import Fixpoint, RecursiveScan
from everview.language.recursion import Clause, group_clauses

__all__ = ["stable_columns"]

_MOST = 4_096
"""How many choices of columns are tried; groups of many wide relations have more."""


def stable_columns(group: Fixpoint) -> tuple[int, ...]:
    """A column of each relation that is stable, or nothing."""
    clauses = group_clauses(group)
    recursive: list[tuple[str, Clause, int]] = []
    for name, found in clauses.items():
        for clause in found:
            places = [i for i, atom in enumerate(clause.atoms) if isinstance(atom, RecursiveScan)]
            if len(places) > 1:
                return ()
            recursive += [(name, clause, place) for place in places]
    choices = product(*(range(len(schema)) for schema in group.schemas))
    for choice in islice(choices, _MOST):
        if _hands_on(recursive, dict(zip(group.names, choice, strict=True))):
            return choice
    return ()


def _hands_on(recursive: Sequence[tuple[str, Clause, int]], chosen: Mapping[str, int]) -> bool:
    for name, clause, place in recursive:
        atom, made = clause.atoms[place], clause.head[chosen[name]]
        if not isinstance(atom, RecursiveScan) or not isinstance(made, Column):
            return False
        if made.index != clause.offsets[place] + chosen[atom.name]:
            return False
    return True

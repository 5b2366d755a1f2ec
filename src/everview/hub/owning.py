"""Rows that only their owner writes (`WITH (owner = …)`), at the door of a hub.

A key's row may be another site's, and then it is neither replaced nor deleted; that is found out when the
write goes into the gate (see `gate`). Without a gate all rows are the hub's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (as all of Spark's documentation calls it)

from everview.errors import DataError
from everview.language.relations import Relation, Semantics

__all__ = ["check_counted", "check_owner", "check_owners", "check_writable", "counting"]

_OTHERS = "others"
_OTHER = "other"


def _checked(relation: Relation, *, present: bool) -> int | None:
    """The place of the owner in the rows of a write; None when they have none, or only keys."""
    if relation.owner is None or (relation.semantics is Semantics.KEYED and not present):
        return None
    return relation.columns.index(relation.owner)


def check_writable(relation: Relation) -> None:
    """DataError when no job and no DataFrame writes into a relation: its windows are closed at a door."""
    if relation.system:
        raise DataError(f"{relation.name} is kept by Everview, and not written to", relation=relation.name)
    if relation.event_time is not None:
        raise DataError(
            f"{relation.name} is windowed, and its events enter at the doors of its sources: "
            "write them by hub.insert of a hub that is one, or at a site of the source's name",
            relation=relation.name,
        )


def check_owner(relation: Relation, rows: Sequence[Sequence[Any]], name: str, *, present: bool) -> None:
    """DataError when a row belongs to another site."""
    place = _checked(relation, present=present)
    if place is None:
        return
    for row in rows:
        if row[place] != name:
            raise _not_ours(relation, row[place], name)


def check_owners(relation: Relation, rows: pa.Table, name: str, *, present: bool) -> None:
    """DataError when a row of a table belongs to another site."""
    place = _checked(relation, present=present)
    if place is None:
        return
    owners = rows.column(place)
    others = owners.filter(pc.fill_null(pc.not_equal(owners, name), True))
    if len(others):
        raise _not_ours(relation, others[0].as_py(), name)


def counting(relation: Relation, name: str, *, present: bool) -> list[Column]:
    """What a DataFrame is asked while it is written: how many rows belong to others, and the last such."""
    place = _checked(relation, present=present)
    if place is None:
        return []
    owner = F.col(f"c{place}")
    others = ~owner.eqNullSafe(F.lit(name))
    return [F.count_if(others).alias(_OTHERS), F.max(F.when(others, owner)).alias(_OTHER)]


def check_counted(relation: Relation, counts: Mapping[str, Any], name: str) -> None:
    """DataError when there were any."""
    if counts.get(_OTHERS):
        raise _not_ours(relation, counts[_OTHER], name)


def _not_ours(relation: Relation, value: Any, name: str) -> DataError:
    return DataError(
        f"{relation.name}.{relation.owner} is {value!r}, and only that site writes such rows; "
        f"this one is {name!r}",
        relation=relation.name,
        column=relation.owner,
        value=value,
        expected=name,
    )

"""Events of windowed relations that a hub writes as a source: at the door of its gate, as at a site's.

They do not wait in the inbox. Whether an event is too late is decided when it is written, in the commit that
holds it, and a marker closes what is in the gate by then; the next refresh takes both in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from everview.engines.spark.types import rows_of
from everview.errors import DataError
from everview.hub.fitting import converted
from everview.hub.gate import Gate
from everview.language.relations import Relation
from everview.language.values import check_rows

__all__ = ["put_events"]


def put_events(
    gate: Gate,
    relation: Relation,
    rows: DataFrame | Iterable[Mapping[str, Any] | Sequence[Any]],
    *,
    present: bool,
) -> int:
    """Let events in, or aside; how many went in. A DataFrame comes to the driver whole."""
    if not isinstance(rows, DataFrame):
        return gate.write(relation, check_rows(relation.name, relation.schema, rows), present=present)
    if rows.isStreaming:
        raise DataError(
            f"{relation.name} is windowed, and a streaming DataFrame cannot be written into it: write each "
            "of its batches by foreachBatch and hub.insert",
            relation=relation.name,
        )
    given = rows_of(rows.select(*converted(relation, rows)), relation.schema)
    return gate.write(relation, check_rows(relation.name, relation.schema, given), present=present)

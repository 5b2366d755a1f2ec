"""A table: the rows of a relation, a view or a query at one moment, for people and for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everview.errors import MissingDependencyError
from everview.language.shown import shown
from everview.language.types import Field, Kind
from everview.tables import html

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Table"]

Row = tuple[Any, ...]

SHOWN_ROWS = 20
"""So many rows a notebook shows; `len` says how many there are."""

_NUMBERS = (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """Rows as they were when they were asked for; `site.table` makes one.

    It is a sequence of tuples. A notebook shows it as a table, `arrow()` and `pandas()` hand it on with its
    types.
    """

    schema: tuple[Field, ...]
    """The columns: `name`, `type` and `nullable`."""
    rows: Sequence[Row]
    """The rows, as tuples in the order of the columns."""
    name: str = ""
    """The relation or view; nothing for a query."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(field.name for field in self.schema)

    def arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, each column of exactly the type that it has here."""
        try:
            import pyarrow as pa  # noqa: PLC0415 - an optional part

            from everview.tables.arrow import arrow_type  # noqa: PLC0415
        except ImportError as error:
            raise _missing("arrow", error) from None
        types = [arrow_type(field.type) for field in self.schema]
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(types)
        arrays = [pa.array(list(column), kind) for column, kind in zip(columns, types, strict=True)]
        return pa.Table.from_arrays(
            arrays,
            schema=pa.schema(
                [
                    pa.field(field.name, kind, nullable=field.nullable)
                    for field, kind in zip(self.schema, types, strict=True)
                ]
            ),
        )

    def pandas(self) -> pd.DataFrame:
        """Return the rows as a DataFrame.

        BIGINT, DOUBLE and BOOLEAN become pandas' nullable types, so that a NULL neither turns whole numbers
        into floats nor is taken for a NaN. DECIMAL, DATE, TEXT and BLOB are Python's own values.
        """
        try:
            import pandas as pd  # noqa: PLC0415 - an optional part
            import pyarrow as pa  # noqa: PLC0415
        except ImportError as error:
            raise _missing("pandas", error) from None
        exact = {pa.int64(): pd.Int64Dtype(), pa.float64(): pd.Float64Dtype(), pa.bool_(): pd.BooleanDtype()}
        made: pd.DataFrame = self.arrow().to_pandas(types_mapper=exact.get, date_as_object=True)
        return made

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Row:
        return self.rows[index]

    def __repr__(self) -> str:
        what = f" of {self.name}" if self.name else ""
        return f"<Table{what}: {_count(len(self))}, {', '.join(map(str, self.schema))}>"

    def _repr_html_(self) -> str:
        right = [field.type.kind in _NUMBERS for field in self.schema]
        cells = [[shown(value) for value in row] for row in self.rows[:SHOWN_ROWS]]
        above = html.heading(self.name) if self.name else ""
        more = len(self) - len(cells)
        below = html.note(f"{_count(len(self))}; {more:,} more" if more else _count(len(self)))
        return above + html.table(self.columns, cells, numbers=right) + below


def _count(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"


def _missing(method: str, error: ImportError) -> MissingDependencyError:
    needed = error.name or "pyarrow"
    return MissingDependencyError(
        f"table.{method}() needs {needed}: pip install 'everview[notebook]'; table.rows does without"
    )

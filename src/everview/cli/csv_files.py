"""CSV: a header of column names, then a row a line, as RFC 4180 has it, in UTF-8.

An empty field is NULL, a quoted empty one (`""`) the empty text. Columns stand in any order, and one that
the header leaves out is NULL. An empty line is no row, unless there is only one column.

Python's reader does not tell whether a field was quoted. So the lines it has read are kept, and looked at
again only where two quotes stand together and a field came out empty.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from everview.cli.chunks import CHUNK, Chunk, Place, cannot_hold, to_rows, unknown_column
from everview.errors import DataError
from everview.language.relations import Relation
from everview.language.text_values import UnreadableError, read_texts, write_text

__all__ = ["csv_line", "read_csv"]

_LONGEST_FIELD = 2**31 - 1
_FIELD = re.compile(r'("(?:[^"]|"")*"|[^,\r\n]*)(?:,|\r?\n|\r|\Z)')

Row = list[str]


def read_csv(
    stream: TextIO, source: str, relation: Relation, done: Callable[[], int], size: int = CHUNK
) -> Iterator[Chunk]:
    """The rows of a CSV file for a relation; DataError names the line of the first that does not fit."""
    csv.field_size_limit(_LONGEST_FIELD)
    ours, kept = itertools.tee(stream)
    reader = csv.reader(ours, strict=True)
    start = 0
    header: Row | None = None
    while True:
        try:
            rows = list(itertools.islice(reader, 1 if header is None else size))
        except csv.Error as error:
            raise DataError(f"{source}, line {reader.line_num}: {error}") from None
        if not rows:
            return
        raw = list(itertools.islice(kept, reader.line_num - start))
        before, start = start, reader.line_num
        if header is None:
            header = rows[0] or None
            _check_header(relation, header or [], f"{source}, line {start}")
        else:
            yield _chunk(relation, header, _Lines(source, before, raw, rows), done())


class _Lines:
    """The lines of a chunk, the rows the reader made of them, and on which line each row begins."""

    def __init__(self, source: str, before: int, raw: list[str], rows: list[Row]) -> None:
        self.source = source
        self.before = before
        self.raw = raw
        self.rows = rows

    def ends(self) -> list[int]:
        """After how many of the lines each row ends."""
        if len(self.raw) == len(self.rows):
            return list(range(1, len(self.rows) + 1))
        again = csv.reader(self.raw, strict=True)
        return [again.line_num for _ in again]

    def without_blank(self) -> tuple[list[Row], Place]:
        """The rows that are not blank lines, and where they stand."""
        if all(self.rows):
            return self.rows, self._named
        kept = [index for index, row in enumerate(self.rows) if row]
        return [self.rows[index] for index in kept], lambda index: self._named(kept[index])

    def _named(self, index: int) -> str:
        first = self.ends()[index - 1] + 1 if index else 1
        return f"{self.source}, line {self.before + first}"


def _check_header(relation: Relation, header: Row, where: str) -> None:
    for index, name in enumerate(header):
        if name not in relation.columns:
            raise unknown_column(relation, name, where)
        if name in header[:index]:
            raise DataError(f"{where}: the header names {name} twice", relation=relation.name, column=name)


def _chunk(relation: Relation, header: Row, lines: _Lines, done: int) -> Chunk:
    if len(header) == 1:
        lines.rows = [row or [""] for row in lines.rows]
    columns = _columns(header, lines)
    rows, place = lines.without_blank()
    typed: dict[str, Sequence[Any]] = {}
    for name, column in zip(header, columns, strict=True):
        field = relation.field(name)
        try:
            typed[name] = read_texts(column, field.type)
        except UnreadableError as bad:
            raise cannot_hold(relation, field, place, bad) from None
    return Chunk(to_rows(relation, typed, len(rows)), place, done)


def _columns(header: Row, lines: _Lines) -> list[Sequence[str | None]]:
    """The fields column by column, NULL for the empty ones that were not quoted."""
    rows, place = lines.without_blank()
    if not rows:
        return [[] for _ in header]
    if set(map(len, rows)) != {len(header)}:
        index = next(index for index, row in enumerate(rows) if len(row) != len(header))
        fields = f"{len(rows[index])} field{'' if len(rows[index]) == 1 else 's'}"
        raise DataError(f"{place(index)}: {fields}, but the header names {len(header)} columns")
    columns: list[Sequence[str | None]] = list(zip(*rows, strict=True))
    nulled = [[field or None for field in column] if "" in column else column for column in columns]
    for row, position in _quoted_empty(lines):
        nulled[position][row] = ""  # type: ignore[index]  # a column with an empty field is a list by now
    return nulled


def _quoted_empty(lines: _Lines) -> Iterator[tuple[int, int]]:
    """Where a field is a pair of quotes and nothing else: (row, not counting blank ones; position)."""
    if not any('""' in line for line in lines.raw):
        return
    ends = lines.ends()
    number = -1
    for index, row in enumerate(lines.rows):
        number += 1 if row else 0
        if "" in row:
            text = "".join(lines.raw[ends[index - 1] if index else 0 : ends[index]])
            fields = itertools.islice(_FIELD.finditer(text), len(row))
            yield from ((number, position) for position, field in enumerate(fields) if field[1] == '""')


_SPECIAL = re.compile(r'[",\r\n]')


def csv_line(values: Sequence[Any]) -> str:
    """A row as a line of CSV: NULL is nothing, the empty text a pair of quotes."""
    return ",".join(["" if value is None else _field(write_text(value)) for value in values])


def _field(text: str) -> str:
    if text and not _SPECIAL.search(text):
        return text
    return '"' + text.replace('"', '""') + '"'

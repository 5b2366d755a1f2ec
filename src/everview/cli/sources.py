"""Where rows come from: a file or standard input, in a format told by its name or by the user."""

from __future__ import annotations

import enum
import io
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from everview.cli.chunks import CHUNK, Chunk
from everview.cli.csv_files import read_csv
from everview.cli.json_lines import read_json_lines
from everview.cli.missing import missing_file
from everview.cli.parquet_files import read_parquet
from everview.errors import DataError
from everview.language.relations import Relation

__all__ = ["Format", "Source"]

STDIN = "-"


class Format(enum.StrEnum):
    """How rows lie in a file."""

    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


_EXTENSIONS = {
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
}


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or standard input for `-`."""

    path: str
    format: Format

    @classmethod
    def named(cls, path: str, form: Format | None = None) -> Source:
        """The source of that name; DataError when it is not there, or its format cannot be told."""
        if path != STDIN and not Path(path).is_file():
            raise DataError(missing_file(Path(path), "name a file of rows, or - for standard input"))
        found = form or _EXTENSIONS.get(Path(path).suffix.lower())
        if found is None:
            what = (
                "standard input has no extension" if path == STDIN else f"the extension of {path} is unknown"
            )
            raise DataError(f"{what}: say --format csv, json or parquet")
        return cls(path, found)

    @property
    def label(self) -> str:
        """What errors call it."""
        return "standard input" if self.path == STDIN else self.path

    @property
    def size(self) -> int | None:
        """Its bytes, where they can be known."""
        return None if self.path == STDIN else Path(self.path).stat().st_size

    def chunks(self, relation: Relation, size: int = CHUNK) -> Generator[Chunk, None, None]:
        """Its rows; `done` of a chunk counts bytes."""
        with self._opened() as stream:
            if self.format is Format.PARQUET:
                seekable = io.BytesIO(stream.read()) if self.path == STDIN else stream
                yield from read_parquet(seekable, self.label, relation, self.size or 0, size)
                return
            newline = "" if self.format is Format.CSV else "\n"
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline=newline)
            read = read_csv if self.format is Format.CSV else read_json_lines
            position = stream.tell if self.path != STDIN else lambda: 0
            try:
                yield from read(text, self.label, relation, position, size)
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                raise DataError(f"{self.label} is not UTF-8: it has a byte 0x{byte:02x}") from None
            finally:
                text.detach()

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.path == STDIN:
            yield sys.stdin.buffer
            return
        with Path(self.path).open("rb") as stream:
            yield stream

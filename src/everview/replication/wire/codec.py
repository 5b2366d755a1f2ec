"""A message as bytes and back."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain

from everview.engines.sqlite.ids import IdTable
from everview.errors import WireError
from everview.language.identity import ID_BYTES
from everview.language.sizes import LARGEST_ROW
from everview.replication.messages import PROTOCOL, PROTOCOL_3, PROTOCOLS, Message, Section
from everview.replication.wire.columns import decode_column, encode_column, ids_of
from everview.replication.wire.frame import FRAME, LEVEL, frame, unframe
from everview.replication.wire.header import SectionHeader, header_of, message_of, read_header, write_header

__all__ = ["LARGEST_MESSAGE", "LIMIT", "decode", "encode"]

LIMIT = 4 * LARGEST_ROW
"""How many bytes a message may have after decompression, unless the reader says otherwise."""

LARGEST_MESSAGE = LIMIT + FRAME.size
"""How many bytes a message may have on its way: what does not get shorter is sent as it is."""

_SIZE = struct.Struct("<I")
_CELL_BYTES = 16
"""What a cell counts against the limit, even one that costs no byte on the wire."""
_HEADER_SHARE = 16
"""The header gets this part of the limit: no other bytes grow as much, some 40 times, when they are read."""


def encode(message: Message, *, level: int = LEVEL) -> bytes:
    """Return the bytes of a message; `level` is zlib's, and 0 leaves it uncompressed."""
    sections = message.page.sections if message.page else []
    ids = _table_of_ids(sections)
    coded = [_encode_section(section, ids) for section in sections]
    outlines = [
        SectionHeader(section.stream, section.part, section.count, list(map(len, columns)))
        for section, columns in zip(sections, coded, strict=True)
    ]
    header = write_header(header_of(message, outlines, len(ids)))
    pieces = [_SIZE.pack(len(header)), header, b"".join(ids), *chain.from_iterable(coded)]
    protocol = message.protocol if message.versions is None else PROTOCOL_3
    return frame(pieces, protocol=protocol, level=level)


def _table_of_ids(sections: Sequence[Section]) -> dict[bytes, int]:
    """The place of every id, in the order of first appearance."""
    columns = (column for section in sections for column in section.columns if ids_of(column))
    return {key: place for place, key in enumerate(dict.fromkeys(chain.from_iterable(columns)))}


def _encode_section(section: Section, ids: dict[bytes, int]) -> list[bytes]:
    if any(len(column) != section.count for column in section.columns):
        raise WireError(f"a column of {section.stream} has not {section.count} values", where="section")
    return [encode_column(column, ids) for column in section.columns]


def decode(data: bytes, *, limit: int = LIMIT) -> Message:
    """Return the message in these bytes; WireError if they are none.

    `limit` bounds the bytes after decompression and, at 16 bytes a cell, the cells, some of which cost
    nothing on the wire. So no message makes the reader use more than sixteen times the limit.
    """
    protocol, plain = unframe(data, protocols=PROTOCOLS, limit=limit)
    content = memoryview(plain)
    if len(content) < _SIZE.size:
        raise WireError("the message ends before its header", where="header")
    (size,) = _SIZE.unpack_from(content)
    if size > min(len(content) - _SIZE.size, max(limit // _HEADER_SHARE, 1024)):
        raise WireError(f"a header of {size} bytes is longer than the message or the limit", where="header")
    header = read_header(content[_SIZE.size : _SIZE.size + size], protocol)
    outlines = header.page.sections if header.page else []
    rest = content[_SIZE.size + size :]
    _measure(outlines, header.ids, len(rest), limit)
    ids = IdTable(bytes(rest[: header.ids * ID_BYTES]))
    rest = rest[len(ids.data) :]
    sections = []
    for outline in outlines:
        columns = []
        for length in outline.lengths:
            columns.append(decode_column(rest[:length], outline.count, ids))
            rest = rest[length:]
        sections.append(Section(outline.stream, outline.part, outline.count, columns))
    return message_of(header, sections, PROTOCOL)


def _measure(outlines: Sequence[SectionHeader], ids: int, size: int, limit: int) -> None:
    """All that is announced must be there, and nothing else; and the cells must be within the limit."""
    if sum(sum(outline.lengths) for outline in outlines) + ids * ID_BYTES != size:
        raise WireError("the columns are not as long as the header says", where="section")
    cells = sum(outline.count * max(len(outline.lengths), 1) for outline in outlines)
    if cells * _CELL_BYTES > limit:
        raise WireError(f"{cells} cells are more than the limit of {limit} bytes allows", where="section")

"""The frame around a message: magic, protocol version, lengths, checksum, compression.

The content is deflated as one stream. Between long pieces (columns) a new block is begun, so that each gets
its own code lengths; one block over integers, text and doubles would suit none of them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

from everview.errors import WireError

__all__ = ["FRAME", "LEVEL", "MAGIC", "frame", "unframe"]

MAGIC = b"EVVW"
LEVEL = 6

FRAME = struct.Struct("<4sBBIII")
"""Magic, protocol version, flags, length of the content, length as sent, checksum."""

_CHECKED = FRAME.size - 4
_DEFLATED = 1
_RAW = -zlib.MAX_WBITS
_WORTH_A_BLOCK = 256
_FEWEST_BITS = 10
_GREATEST = 2**32 - 1


def frame(pieces: Sequence[bytes], *, protocol: int, level: int) -> bytes:
    """Return the content, one piece after the other, in a frame; as it is if compression gains nothing."""
    plain = sum(map(len, pieces))
    if plain > _GREATEST or not 0 <= protocol < 256:
        raise WireError(f"a message of {plain} bytes in protocol {protocol} has no frame", where="frame")
    sent = _deflate(pieces, level) if level else b""
    flags = _DEFLATED
    if not level or len(sent) >= plain:
        sent, flags = b"".join(pieces), 0
    head = FRAME.pack(MAGIC, protocol, flags, plain, len(sent), 0)[:_CHECKED]
    return b"".join((head, zlib.crc32(sent, zlib.crc32(head)).to_bytes(4, "little"), sent))


def _deflate(pieces: Sequence[bytes], level: int) -> bytes:
    # To lay out a window of 32 KB for a message of 3 takes longer than to deflate it.
    bits = min(max(sum(map(len, pieces)).bit_length(), _FEWEST_BITS), zlib.MAX_WBITS)
    deflater = zlib.compressobj(level, zlib.DEFLATED, -bits, 9 if bits == zlib.MAX_WBITS else 8)
    parts: list[bytes] = []
    for piece in pieces:
        if len(piece) >= _WORTH_A_BLOCK:
            parts.append(deflater.flush(zlib.Z_BLOCK))
        parts.append(deflater.compress(piece))
    parts.append(deflater.flush())
    return b"".join(parts)


def unframe(data: bytes, *, protocols: Sequence[int], limit: int) -> tuple[int, bytes]:
    """Return the protocol and the content of a frame, at most `limit` bytes of it.

    WireError if it is not whole, or in none of these protocols.
    """
    if len(data) < FRAME.size:
        raise WireError(f"{len(data)} bytes are too few for a message", where="frame", retry=True)
    magic, version, flags, plain, sent, checksum = FRAME.unpack_from(data)
    if magic != MAGIC:
        raise WireError("this is no message of Everview", where="frame")
    if version not in protocols:
        raise WireError(
            f"the message is in protocol {version}, this site speaks {max(protocols)}: "
            "bring both to one version",
            where="frame",
        )
    if sent != len(data) - FRAME.size:
        raise WireError(
            f"the message should have {sent} bytes after its frame and has {len(data) - FRAME.size}",
            where="frame",
            retry=True,
        )
    view = memoryview(data)
    if zlib.crc32(view[FRAME.size :], zlib.crc32(view[:_CHECKED])) != checksum:
        raise WireError(
            "the message was damaged on its way (its checksum is wrong)", where="frame", retry=True
        )
    if flags & ~_DEFLATED:
        raise WireError(f"the message has unknown flags ({flags})", where="frame")
    if plain > limit:
        raise WireError(f"the message has {plain} bytes, and at most {limit} are taken", where="frame")
    content = _inflate(view[FRAME.size :], plain) if flags else data[FRAME.size :]
    if len(content) != plain:
        raise WireError(f"the message should have {plain} bytes and has {len(content)}", where="frame")
    return version, content


def _inflate(data: memoryview, plain: int) -> bytes:
    """The content, of which no more than one byte beyond `plain` is ever made."""
    inflater = zlib.decompressobj(_RAW)
    try:
        content = inflater.decompress(data, plain + 1)
    except zlib.error as error:
        raise WireError("the message does not decompress", where="frame") from error
    if len(content) <= plain and (not inflater.eof or inflater.unused_data):
        raise WireError("the compressed message does not end where its bytes end", where="frame")
    return content

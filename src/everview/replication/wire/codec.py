"""A message as bytes and back: a frame, a header in MessagePack, and the columns of a page behind it.

What MessagePack's types cannot say is checked here: that positions name sites of the message, that counts and
lengths fit, and that values are in the one form in which a store holds them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from everview.engines.sqlite.integers import Integers, within
from everview.engines.sqlite.rows.dots import NUMBERS
from everview.engines.sqlite.rows.serving import Mode
from everview.errors import WireError
from everview.language.sizes import LARGEST_ROW
from everview.replication.wire.columns import decode_column, encode_column
from everview.replication.wire.frame import FRAME, LEVEL, frame, unframe
from everview.replication.wire.messages import PROTOCOL, Columns, DerivedColumns, Message, Page

__all__ = ["LARGEST_MESSAGE", "LIMIT", "decode", "encode", "peek"]

LIMIT = 4 * LARGEST_ROW
"""How many bytes a message may have after decompression, unless the reader says otherwise."""

LARGEST_MESSAGE = LIMIT + FRAME.size
"""How many bytes a message may have on its way: what does not get shorter is sent as it is."""

MOST_SITES = 1 << 16
"""How many sites a message names at most."""

_SIZE = struct.Struct("<I")
_CELL_BYTES = 16
_HEADER_SHARE = 8
_GONE = {Mode.SAME: 0, Mode.SINCE: 2, Mode.LOG: 2, Mode.LIVE: 3}
"""How many columns say what went."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Message)

Pages = Sequence[Columns]


def encode(message: Message, columns: Pages = (), *, level: int = LEVEL) -> bytes:
    """Return the bytes of a message; `columns` has those of each share of its page, and then derivations'."""
    coded = [[encode_column(column) for column in one.all] for one in columns]
    if message.page is not None:
        page, lengths = message.page, [list(map(len, own)) for own in coded]
        count = len(page.shares)
        replace = msgspec.structs.replace
        shares = [replace(one, lengths=own) for one, own in zip(page.shares, lengths, strict=False)]
        derived = [replace(one, lengths=own) for one, own in zip(page.derived, lengths[count:], strict=True)]
        page = msgspec.structs.replace(page, shares=shares, derived=derived)
        message = msgspec.structs.replace(message, page=page)
    try:
        header = _ENCODER.encode(message)
    except (OverflowError, TypeError, ValueError) as error:
        raise WireError(f"the message cannot be written ({error})", where="header") from error
    pieces = [_SIZE.pack(len(header)), header, *chain.from_iterable(coded)]
    return frame(pieces, protocol=PROTOCOL, level=level)


def decode(data: bytes, *, limit: int = LIMIT) -> tuple[Message, list[Columns]]:
    """Return the message in these bytes, and the columns of its shares; WireError if they are none."""
    message, rest = _opened(data, limit)
    if message.page is None:
        if rest:
            raise WireError("there are columns, and no page", where="section")
        return message, []
    return message, _columns(message.page, rest, len(message.sites), limit)


def peek(data: bytes, *, limit: int = LIMIT) -> Message:
    """Return the message in these bytes without the columns of its shares, which may be wrong."""
    return _opened(data, limit)[0]


def _opened(data: bytes, limit: int) -> tuple[Message, memoryview]:
    _, plain = unframe(data, protocols=(PROTOCOL,), limit=limit)
    content = memoryview(plain)
    if len(content) < _SIZE.size:
        raise WireError("the message ends before its header", where="header")
    (size,) = _SIZE.unpack_from(content)
    if size > min(len(content) - _SIZE.size, max(limit // _HEADER_SHARE, 1024)):
        raise WireError(f"a header of {size} bytes is longer than the message or the limit", where="header")
    try:
        message = _DECODER.decode(content[_SIZE.size : _SIZE.size + size])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"the header is malformed ({error})", where="header") from error
    _check(message)
    return message, content[_SIZE.size + size :]


def _check(message: Message) -> None:
    count = len(message.sites)
    if not 0 < count <= MOST_SITES or len(set(message.sites)) != count or len(message.names) > count:
        raise WireError("the sites are not a list of distinct ones, the sender first", where="header")
    vectors = [wish.had for wish in message.ask.wishes] if message.ask else []
    vectors += [wish.has for wish in message.ask.wishes] if message.ask else []
    vectors += [share.vector for share in message.page.shares] if message.page else []
    for pairs in vectors:
        places = pairs[::2]
        if len(pairs) % 2 or max(places, default=0) >= count or len(set(places)) != len(places):
            raise WireError("a vector names what is not among the sites, or a site twice", where="header")


def _columns(page: Page, rest: memoryview, sites: int, limit: int) -> list[Columns]:
    lengths = [*(share.lengths for share in page.shares), *(one.lengths for one in page.derived)]
    if sum(map(sum, lengths)) != len(rest):
        raise WireError("the columns are not as long as the header says", where="section")
    cells = sum(share.rows * len(share.lengths) + 3 * share.gone for share in page.shares)
    cells += sum(one.rows * len(one.lengths) for one in page.derived)
    if cells * _CELL_BYTES > limit:
        raise WireError(f"{cells} cells are more than the limit of {limit} bytes allows", where="section")
    found = []
    for share in page.shares:
        if share.mode not in _GONE or len(share.lengths) < 2 + _GONE[Mode(share.mode)]:
            raise WireError(f"a share of {share.place.stream} has too few columns", where="section")
        width = len(share.lengths) - 2 - _GONE[Mode(share.mode)]
        columns: list[Sequence[Any]] = []
        for place, length in enumerate(share.lengths):
            columns.append(decode_column(rest[:length], share.rows if place < width + 2 else share.gone))
            rest = rest[length:]
        one = Columns(columns[:width], columns[width], columns[width + 1], columns[width + 2 :])
        for places, *numbers in (
            ((one.sites, one.numbers), one.gone) if one.gone else ((one.sites, one.numbers),)
        ):
            _check_integers(places, sites - 1)
            for column in numbers:
                _check_integers(column, NUMBERS)
        found.append(one)
    for derived in page.derived:
        columns = []
        for length in derived.lengths:
            columns.append(decode_column(rest[:length], derived.rows))
            rest = rest[length:]
        found.append(DerivedColumns(columns))
    return found


def check_dots(columns: Sequence[Sequence[Any]], sites: int) -> None:
    """Raise WireError unless columns are sites and numbers of dots in turn."""
    for places, numbers in zip(columns[::2], columns[1::2], strict=True):
        _check_integers(places, sites - 1)
        _check_integers(numbers, NUMBERS)


def _check_integers(column: Sequence[Any], greatest: int) -> None:
    if not isinstance(column, Integers) and set(map(type, column)) - {int}:
        raise WireError("a dot is not made of integers", where="value")
    if not within(column, 0, greatest):
        raise WireError(f"a part of a dot is not within 0 and {greatest}", where="value")

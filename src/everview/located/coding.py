"""Derivations, lengths and updates as rows of mail, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from everview.errors import StoreError
from everview.language.identity import ID_BYTES
from everview.located.counting import Derived, Update
from everview.located.facts import Fact, Row
from everview.located.items import Derivation, Item, Length

__all__ = ["item_of", "read_derived", "read_update", "row_of", "write_derived"]

_ROW = msgspec.msgpack.Decoder(tuple[int | str | bool, ...])
_DERIVED = msgspec.msgpack.Decoder(
    tuple[
        tuple[str, tuple[int | str | bool, ...]],
        list[tuple[str, tuple[int | str | bool, ...]]],
        list[tuple[str, tuple[int | str | bool, ...]]],
    ]
)
_encode = msgspec.msgpack.Encoder().encode


def row_of(item: Item) -> Row:
    """A row of a place's mail in provenance mode."""
    match item:
        case Derivation((relation, row), ids):
            return relation, _encode(row), b"".join(sorted(ids)), 0
        case Length(place, id_, length):
            return place, id_, b"", length


def item_of(row: Sequence[Any]) -> Item:
    """What a row of mail says."""
    name, what, ids, length = row
    if length:
        return Length(name, what, length)
    try:
        fact = (name, _ROW.decode(what))
    except msgspec.DecodeError as error:
        raise StoreError(f"mail holds a derivation of {name} that is none ({error})") from error
    return Derivation(fact, frozenset(ids[at : at + ID_BYTES] for at in range(0, len(ids), ID_BYTES)))


def write_derived(derived: Derived) -> bytes:
    """One derivation, the same bytes whenever it is the same."""
    return _encode([derived.fact, _sorted(derived.support), _sorted(derived.circles)])


def _sorted(facts: frozenset[Fact]) -> list[Fact]:
    return sorted(facts, key=_encode)


def read_derived(data: bytes) -> Derived:
    """The derivation in these bytes."""
    try:
        fact, support, circles = _DERIVED.decode(data)
    except msgspec.DecodeError as error:
        raise StoreError(f"mail holds a derivation that is none ({error})") from error
    return Derived(fact, frozenset(support), frozenset(circles))


def read_update(row: Sequence[Any]) -> Update:
    """What a row of mail says in counting mode."""
    _, _, sign, data = row
    return Update(sign, read_derived(data))

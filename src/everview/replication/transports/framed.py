"""Framed files: messages in a file that is whole or recognisably not.

::

    magic     15 bytes   "everview file 1"
    header    u32 length, then JSON: an object of the transport's own
    frames    u32 length, then the message; any number
    end       u32 2³²−1, then BLAKE2b (16 bytes) of everything before it

A file is written under a temporary name, synced to the disk and renamed: it appears whole or not at all,
where the file system keeps that promise. The digest is for those that do not, and for sticks pulled early.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

__all__ = ["TEMPORARY", "TornFileError", "read_frames", "read_header", "verify", "write_framed"]

MAGIC = b"everview file 1"
LENGTH = struct.Struct(">I")
END = 2**32 - 1
DIGEST = 16
TEMPORARY = ".tmp-"
"""How the names of files begin that are being written."""

BLOCK = 1 << 20


class TornFileError(Exception):
    """A file is not, or not wholly, what was written."""


def write_framed(
    folder: Path, name: Callable[[], str], header: dict[str, Any], messages: Iterable[bytes]
) -> tuple[Path, int]:
    """Write a file; it appears when it is whole and on the disk. Return its path and its bytes.

    Its name is asked for when all messages are there, since what they reach is known only then.
    """
    temporary = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
    digest = hashlib.blake2b(digest_size=DIGEST)
    try:
        with temporary.open("xb") as file:

            def put(data: bytes) -> None:
                digest.update(data)
                file.write(data)

            head = json.dumps(header).encode()
            put(MAGIC + LENGTH.pack(len(head)) + head)
            for message in messages:
                put(LENGTH.pack(len(message)))
                put(message)
            put(LENGTH.pack(END))
            file.write(digest.digest())
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        path = temporary.replace(folder / name())
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(folder)
    return path, size


def _sync_folder(folder: Path) -> None:
    """Bring a renaming to the disk; not every system lets a folder be opened for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_header(path: Path) -> dict[str, Any]:
    """Return a file's header, without looking at the rest."""
    with path.open("rb") as file:
        return _header(file, path)


def verify(path: Path) -> int:
    """Read a file through and return its bytes; TornFileError unless every byte is what was written."""
    size = path.stat().st_size - DIGEST
    if size < 0:
        raise TornFileError(f"{path} is too short")
    digest = hashlib.blake2b(digest_size=DIGEST)
    with path.open("rb") as file:
        left = size
        while left > 0 and (block := file.read(min(BLOCK, left))):
            digest.update(block)
            left -= len(block)
        if file.read() != digest.digest():
            raise TornFileError(f"{path} is not what was written: it was cut off or changed")
    return size + DIGEST


def read_frames(path: Path) -> Iterable[bytes]:
    """Return the messages of a file, which are read one after the other each time they are gone through."""
    return _Frames(path)


@dataclass(frozen=True, slots=True)
class _Frames:
    path: Path

    def __iter__(self) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            _header(file, self.path)
            while (length := _length(file, self.path)) != END:
                yield _exactly(file, length, self.path)


def _header(file: BinaryIO, path: Path) -> dict[str, Any]:
    if _exactly(file, len(MAGIC), path) != MAGIC:
        raise TornFileError(f"{path} is no file of ours")
    try:
        found = json.loads(_exactly(file, _length(file, path), path))
    except ValueError:
        raise TornFileError(f"{path} has no header that can be read") from None
    if not isinstance(found, dict):
        raise TornFileError(f"{path} has no header that can be read")
    return found


def _length(file: BinaryIO, path: Path) -> int:
    (length,) = LENGTH.unpack(_exactly(file, LENGTH.size, path))
    return int(length)


def _exactly(file: BinaryIO, count: int, path: Path) -> bytes:
    """Read so many bytes; a length that a damaged file claims costs no more memory than the file has."""
    if count > BLOCK and count > os.fstat(file.fileno()).st_size:
        raise TornFileError(f"{path} ends in the middle")
    data = file.read(count)
    if len(data) < count:
        raise TornFileError(f"{path} ends in the middle")
    return data

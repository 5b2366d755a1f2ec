"""Framed files: messages in a file that is whole or recognisably not.

::

    magic     15 bytes   "everview file 1"
    header    u32 length, up to 4 MiB, then JSON: an object of the transport's own
    frames    u32 length, up to that of the largest message, then the message; any number
    end       u32 2³²−1, then BLAKE2b (16 bytes) of everything before it

A file is written under a temporary name, synced to the disk and renamed: it appears whole or not at all,
where the file system keeps that promise. The digest is for those that do not, and for sticks pulled early.

Whoever can write in a folder can leave anything there under any name. So only regular files are opened, what
is read in one piece is bounded, and a header is of the type that its reader names, or the file is torn.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from everview.errors import LimitError
from everview.replication.wire.codec import LARGEST_MESSAGE

__all__ = ["TEMPORARY", "Frames", "TornFileError", "verify", "write_framed"]

MAGIC = b"everview file 1"
LENGTH = struct.Struct(">I")
END = 2**32 - 1
DIGEST = 16
TEMPORARY = ".tmp-"
"""How the names of files begin that are being written."""

BLOCK = 1 << 20
MOST_FRAMES = 100_000
LARGEST_HEADER = 4 << 20
"""Room for the names of tens of thousands of sites."""

T = TypeVar("T")


class TornFileError(Exception):
    """A file is not, or not wholly, what was written."""


def write_framed(
    folder: Path, name: Callable[[], str], header: dict[str, Any], messages: Iterable[bytes]
) -> tuple[Path, int]:
    """Write a file; it appears when it is whole and on the disk. Return its path and its bytes.

    Its name is asked for when all messages are there, since what they reach is known only then.
    """
    head = json.dumps(header).encode()
    if len(head) > LARGEST_HEADER:
        raise LimitError(
            f"more sites share {folder.parent} than a file there can name; remove the subfolders of those "
            "that are gone",
            limit=LARGEST_HEADER,
        )
    temporary = folder / f"{TEMPORARY}{secrets.token_hex(8)}"
    digest = hashlib.blake2b(digest_size=DIGEST)
    try:
        with temporary.open("xb") as file:

            def put(data: bytes) -> None:
                digest.update(data)
                file.write(data)

            put(MAGIC + LENGTH.pack(len(head)) + head)
            for message in messages:
                put(LENGTH.pack(len(message)))
                put(message)
            put(LENGTH.pack(END))
            file.write(digest.digest())
            size = file.tell()
            file.flush()
            os.fsync(file.fileno())
        path = folder / name()
        if path.is_dir():  # which cannot be replaced
            path.rename(folder / f"{TEMPORARY}{secrets.token_hex(8)}")
        temporary.replace(path)
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


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file. A pipe would be waited for, and to open a device may do something already."""
    _regular(path.stat(), path)
    with open(path, "rb", opener=_at_once) as file:
        _regular(os.fstat(file.fileno()), path)  # it may be another by now
        yield file


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _regular(state: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise TornFileError(f"{path} is no regular file")


def verify(path: Path, kind: type[T]) -> tuple[T, int]:
    """Read a file through; TornFileError unless every byte is what was written. Return header and bytes."""
    with _opened(path) as file:
        header = _decoded(_header(file, path), kind, path)
        size = os.fstat(file.fileno()).st_size - DIGEST
        # Before all is read: a file may be made as long as one likes without taking room on the disk.
        if size - LENGTH.size < file.tell():
            raise TornFileError(f"{path} is too short")
        file.seek(size - LENGTH.size)
        if _length(file, path) != END:
            raise TornFileError(f"{path} has no end")
        file.seek(0)
        digest = hashlib.blake2b(digest_size=DIGEST)
        left = size
        while left > 0 and (block := file.read(min(BLOCK, left))):
            digest.update(block)
            left -= len(block)
        if file.read(DIGEST + 1) != digest.digest():
            raise TornFileError(f"{path} is not what was written: it was cut off or changed")
    return header, size + DIGEST


class Frames:
    """The messages of a file, each of which is read when it is asked for; TornFileError if it has no end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: list[tuple[int, int]] = []
        with _opened(path) as file:
            _header(file, path)
            while (length := _length(file, path)) != END:
                self._places.append((file.tell(), length))
                if len(self._places) > MOST_FRAMES:
                    raise TornFileError(f"{path} has more than {MOST_FRAMES:,} messages")
                file.seek(length, os.SEEK_CUR)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> bytes:
        start, length = self._places[index]
        with _opened(self._path) as file:
            file.seek(start)
            return _exactly(file, length, LARGEST_MESSAGE, self._path)


def _header(file: BinaryIO, path: Path) -> bytes:
    if _exactly(file, len(MAGIC), len(MAGIC), path) != MAGIC:
        raise TornFileError(f"{path} is no file of ours")
    return _exactly(file, _length(file, path), LARGEST_HEADER, path)


def _decoded(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):  # no JSON, no UTF-8, of another type; or nested without end
        raise TornFileError(f"{path} has no header that can be read") from None


def _length(file: BinaryIO, path: Path) -> int:
    (length,) = LENGTH.unpack(_exactly(file, LENGTH.size, LENGTH.size, path))
    return int(length)


def _exactly(file: BinaryIO, count: int, most: int, path: Path) -> bytes:
    """Read so many bytes; a length that a damaged file claims costs no more memory than the file has."""
    if count > most:
        raise TornFileError(f"{path} claims {count:,} bytes where {most:,} are the most")
    if count > BLOCK and count > os.fstat(file.fileno()).st_size:
        raise TornFileError(f"{path} ends in the middle")
    data = file.read(count)
    if len(data) < count:
        raise TornFileError(f"{path} ends in the middle")
    return data

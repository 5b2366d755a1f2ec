"""The files of a hub as objects of a store such as S3, by `obstore`, the binding of Rust's object_store.

What there is: put if absent, get in whole or in part, list by prefix, copy, delete. There is no rename, no
lock and no folder, and an upload that fails has either not happened or, which the error does not say, has.
So each object that is created carries a word of the call that made it: who finds one where it wanted to put
its own knows whether that is its own.

A request that fails for a reason that passes by (throttling, an error of the server, a lost connection) is
made again, each time later than the last, until `retry_seconds` are over; then it is a StoreError. Those that
may be made any number of times object_store makes again, so that of a long listing only a page is asked for
once more; those that create something are made again here.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import random
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import from_url

from everview.errors import StoreError
from everview.hub.files.address import Address, parse_address
from everview.hub.files.cache import Cache
from everview.hub.files.interface import Entry
from everview.hub.files.local import LocalFiles
from everview.hub.files.options import Options, read_options

if TYPE_CHECKING:
    from obstore.store import ObjectStore

__all__ = ["RETRY_SECONDS", "ObjectFiles"]

RETRY_SECONDS = 60.0
"""For how long a request is made again before it has failed."""

_FIRST_WAIT, _LONGEST_WAIT = 0.05, 5.0
_RETRIES = 20
_TIMEOUT = "5 minutes"
"""How long one request may take: a run of a large table is one upload."""

_MAKER = "everviewmaker"
"""The attribute with the word of the call that made an object. Azure allows no hyphen in it."""

_PASSING = {408, 409, 425, 429}
"""Answers that begin with 4 and do not mean that it is pointless to ask again."""

_BUFFER = 1 << 20
_AT_ONCE = 1000
"""How many objects one request deletes."""

T = TypeVar("T")


class ObjectFiles:
    """The objects below a URI."""

    def __init__(self, uri: str, given: Mapping[str, str] | None = None) -> None:
        address = parse_address(uri)
        if address is None:
            raise StoreError(f"{uri} is no URI of an object store", path=uri)
        self._address: Address = address
        self._options = read_options(address.kind, given or {}, os.environ, address.account)
        self._connect()

    def __repr__(self) -> str:
        """Without its options: they may be secret."""
        return f"ObjectFiles({str(self._address)!r})"

    def __getstate__(self) -> tuple[Address, Options]:
        """What tasks are sent: with what the environment of the driver says, for theirs may be another."""
        return self._address, self._options

    def __setstate__(self, state: tuple[Address, Options]) -> None:
        self._address, self._options = state
        self._connect()

    def _connect(self) -> None:
        options = self._options
        self._patience = _number(options.own, "retry_seconds", RETRY_SECONDS)
        self._cache = Cache(*_cache(options.own))
        told = (*sorted(options.store.items()),), (*sorted(options.client.items()),)
        try:
            self._store = _connected(str(self._address), *told, self._patience)
            self._once = _connected(str(self._address), *told, None)
        except (BaseError, ValueError) as error:
            advice = "docs/OBJECT_STORES.md has the options"
            if isinstance(error, UnknownConfigurationKeyError):
                advice = "leave that option out, or correct its name; docs/OBJECT_STORES.md has the options"
            raise self._error("cannot use", "", error, advice) from None

    # Files.

    def create(self, path: str, content: bytes) -> bool:
        """Put it if it is absent; what is there may be what an attempt of ours has put, whatever it said."""
        word = uuid.uuid4().hex

        def attempt() -> bool:
            try:
                obstore.put(self._once, path, content, mode="create", attributes={_MAKER: word})
            except AlreadyExistsError:
                maker = self._maker(path)
                if maker is None:  # gone again, or two were put at once and neither counts
                    raise
                return maker == word
            return True

        return self._tried("write", path, attempt)

    def _maker(self, path: str) -> str | None:
        """The word of the call that made an object; None when there is none, empty when it has no word."""
        try:
            return obstore.get(self._store, path, options={"head": True}).attributes.get(_MAKER, "")
        except FileNotFoundError:
            return None

    def copy(self, path: str, target: str) -> None:
        """The store copies it; to do that twice makes no difference."""
        self._tried("copy", path, lambda: obstore.copy(self._store, path, target))

    def read(self, path: str) -> bytes:
        """The content of an object."""
        return self._tried("read", path, lambda: bytes(obstore.get(self._store, path).bytes()))

    def open(self, path: str) -> BinaryIO:
        """Reads what is asked for, in pieces of a megabyte or more."""
        try:
            size = self._tried("read", path, lambda: obstore.head(self._store, path)["size"], missing=True)
        except FileNotFoundError:
            raise FileNotFoundError(2, "no such object", self._address.at(path)) from None
        return io.BufferedReader(_Remote(self._piece(path), size), _BUFFER)

    def _piece(self, path: str) -> Callable[[int, int], memoryview]:
        def piece(start: int, end: int) -> memoryview:
            get = obstore.get_range
            return memoryview(self._tried("read", path, lambda: get(self._store, path, start=start, end=end)))

        return piece

    def list(self, folder: str) -> list[str]:
        """The names of objects and of prefixes, without those that begin with a dot."""
        found = self._tried("list", folder, lambda: obstore.list_with_delimiter(self._store, folder or None))
        paths = [*found["common_prefixes"], *(one["path"] for one in found["objects"])]
        names = {path.rstrip("/").rpartition("/")[2] for path in paths}
        return sorted(name for name in names if not name.startswith("."))

    def find(self, folder: str) -> tuple[Entry, ...]:
        """All objects with this prefix."""

        def attempt() -> list[Entry]:
            return [
                Entry(one["path"], one["size"], int(one["last_modified"].timestamp() * 1e6))
                for page in obstore.list(self._store, folder or None)
                for one in page
            ]

        return tuple(sorted(self._tried("list", folder, attempt), key=lambda entry: entry.path))

    def exists(self, path: str) -> bool:
        """Whether there is an object of this name, or any below it."""
        try:
            self._tried("read", path, lambda: obstore.head(self._store, path), missing=True)
        except FileNotFoundError:
            found = self._tried("list", path, lambda: obstore.list_with_delimiter(self._store, path))
            return bool(found["objects"] or found["common_prefixes"])
        return True

    def remove(self, path: str) -> None:
        """The object of this name, and all below it."""
        paths = [*(entry.path for entry in self.find(path)), path]
        for start in range(0, len(paths), _AT_ONCE):
            self._delete(path, paths[start : start + _AT_ONCE])

    def remove_file(self, path: str) -> None:
        """The object."""
        self._delete(path, [path])

    def _delete(self, path: str, paths: Sequence[str]) -> None:
        try:
            self._tried("remove", path, lambda: obstore.delete(self._store, paths), missing=True)
        except FileNotFoundError:  # not all stores take it for done
            return

    def settle(self, folder: str) -> None:
        """What is in the store outlasts a loss of power."""

    def sweep(self, folder: str) -> None:
        """An upload that was not finished is nowhere."""

    def lock(self, path: str, owner: bytes) -> None:  # noqa: ARG002
        """There are no locks."""
        return

    def local(self, path: str) -> str:
        """A copy in the cache of this machine."""

        def bring(file: BinaryIO) -> None:
            def attempt() -> None:
                file.seek(0)
                file.truncate()
                file.writelines(obstore.get(self._store, path).stream())

            self._tried("read", path, attempt)

        return self._cache.get(self._address.at(path), bring)

    def near(self) -> LocalFiles:
        """A folder for each store, below the one that the option `gate_folder` names."""
        folder = self._options.own.get("gate_folder")
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        place = Path(folder) if folder else Path(state, "everview")
        name = hashlib.sha256(str(self._address).encode()).hexdigest()[:16]
        return LocalFiles(place / f"{self._address.bucket}-{name}")

    # For others.

    def uri(self, path: str) -> str:
        """As Hadoop says it, or where the option `spark_uri` says that the hub's objects are for Spark."""
        account = self._options.store.get("azure_storage_account_name", self._address.account)
        start = self._options.own.get("spark_uri") or self._address.in_spark(account)
        return "/".join(part for part in (start.rstrip("/"), path) if part)

    def hadoop(self) -> Mapping[str, str]:
        """The options in Hadoop's words."""
        return self._options.hadoop

    def redacted(self, text: str) -> str:
        """Without the values of options, and without queries, which may have a signature."""
        return self._options.redacted(text)

    def delta(self, path: str) -> tuple[str, dict[str, str] | None]:
        """As object_store says it."""
        patience = {"retry_timeout": f"{max(1, round(self._patience))}s"}
        return self._address.at(path), {**patience, **self._options.delta()}

    # Requests.

    def _tried(self, verb: str, path: str, attempt: Callable[[], T], *, missing: bool = False) -> T:
        """What an attempt gives, made until it succeeds or the time is over.

        FileNotFoundError, where there is nothing of this name, is for those to handle who expect it.
        """
        until = time.monotonic() + self._patience
        wait = _FIRST_WAIT
        while True:
            try:
                return attempt()
            except FileNotFoundError as error:
                if missing:
                    raise
                raise self._error(f"cannot {verb}", path, error, "") from None
            except BaseError as error:
                advice = _final(error)
                if advice is None and time.monotonic() + wait > until:
                    nevertheless = ", and may have been done all the same" if verb == "write" else ""
                    advice = f"it was tried for {self._patience:g} s{nevertheless}; {_ADVICE}"
                if advice is not None:
                    raise self._error(f"cannot {verb}", path, error, advice) from None
            time.sleep(wait * random.uniform(0.5, 1))
            wait = min(2 * wait, _LONGEST_WAIT)

    def _error(self, doing: str, path: str, error: Exception, advice: str) -> StoreError:
        """The first that an error says, without its addresses and secrets."""
        place = self._address.at(path)
        reason = self._options.redacted(_reason(error))
        return StoreError(f"{doing} {place}: {reason}" + (f"; {advice}" if advice else ""), path=place)


_ADVICE = (
    "look whether the store can be reached and is not asked for too much, then try again; "
    "the option retry_seconds gives it longer"
)


@functools.lru_cache(maxsize=16)
def _connected(
    address: str,
    config: tuple[tuple[str, str], ...],
    client: tuple[tuple[str, str], ...],
    patience: float | None,
) -> ObjectStore:
    """A store with its connections, which the tasks of a process share; None for requests made once."""
    told: Any = {"timeout": _TIMEOUT, **dict(client)}
    flags = {name: value == "true" for name, value in told.items() if value in ("true", "false")}
    found: ObjectStore = from_url(
        address,
        config=dict(config),  # type: ignore[call-overload]  # names as users give them
        client_options={**told, **flags},
        retry_config={
            "max_retries": _RETRIES if patience else 0,
            "retry_timeout": timedelta(seconds=patience or 0),
            "backoff": {
                "init_backoff": timedelta(seconds=_FIRST_WAIT),
                "max_backoff": timedelta(seconds=_LONGEST_WAIT),
                "base": 2,
            },
        },
    )
    return found


def _final(error: Exception) -> str | None:
    """What to do about an error that does not pass by; None for one that may."""
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "look whether the credentials are right and may do this (docs/OBJECT_STORES.md)"
    if isinstance(error, NotSupportedError):
        return "the store cannot do what a hub needs (docs/OBJECT_STORES.md)"
    if isinstance(error, AlreadyExistsError):
        return None
    status = _status(error)
    if status is None or status not in range(400, 500) or status in _PASSING:
        return None
    if status in (401, 403):
        return "look whether the credentials are right and may do this (docs/OBJECT_STORES.md)"
    return "look whether the address and the options are right (docs/OBJECT_STORES.md)"


def _status(error: Exception) -> int | None:
    found = re.search(r"status code: (\d{3})", str(error))
    return int(found[1]) if found else None


def _reason(error: Exception) -> str:
    """What is of use to a reader: the answer's code and message, else the end of the first line."""
    text = str(error).partition("\n\nDebug source")[0]
    status = re.search(r"status code: (\d{3}[^:<]*)", text)
    if status is None:
        return text.partition("\n")[0].rpartition(" - ")[2]
    told = [re.search(rf"<{tag}>([^<]*)</{tag}>", text) for tag in ("Code", "Message")]
    return " ".join([status[1].strip(), *(found[1] for found in told if found)])


def _number(own: Mapping[str, str], name: str, default: float) -> float:
    try:
        found = float(own.get(name, default))
    except ValueError:
        found = -1.0
    if not found >= 0:
        raise StoreError(f"the option {name} is {own[name]!r}: give a number, 0 or greater")
    return found


def _cache(own: Mapping[str, str]) -> tuple[Path, int | None]:
    """Where copies lie, and how many bytes of them."""
    folder = own.get("cache_folder") or os.environ.get("EVERVIEW_CACHE")
    place = Path(folder) if folder else Path(tempfile.gettempdir(), f"everview-cache-{os.getuid()}")
    return place.absolute(), int(_number(own, "cache_bytes", 0)) if "cache_bytes" in own else None


class _Remote(io.RawIOBase):
    """An object as a file."""

    def __init__(self, piece: Callable[[int, int], memoryview], size: int) -> None:
        self._piece = piece
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if end <= self._at:
            return 0
        piece = self._piece(self._at, end)
        buffer[: len(piece)] = piece
        self._at += len(piece)
        return len(piece)

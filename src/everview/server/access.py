"""Access: whose token a request carries, and what that site may read and write.

Tokens are kept as SHA-256 hashes. They are random and long, so a hash that nobody can turn back needs no
salt and no slowness. The file is TOML::

    [[token]]
    site = "drone-7"
    sha256 = "…"               # or token = "…", the token itself
    read = "*"                 # everything, or a list of relations and views
    write = ["visit"]          # everything, or a list of relations and published views
    insert = ["log"]           # relations of which it may only insert rows
    delete = ["inbox"]         # relations of which it may only delete rows
    values = { orders = { region = ["eu"] } }   # of partitioned relations these values alone
    metrics = true             # it may read the metrics

What cannot work is refused, and a view that would stay empty is warned of (see `replication.grants`).
"""

from __future__ import annotations

import hmac
import logging
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from everview.engines.sqlite.partitions import choices_of
from everview.errors import DataError
from everview.language.partitions import Choices
from everview.language.program import Program
from everview.replication.rights.grants import lacking, told_lacking
from everview.replication.rights.rights import ALL, Rights
from everview.server.tokens import hash_of

__all__ = ["Access", "One", "Open", "Tokens"]

FIELDS = {"site", "sha256", "token", "read", "write", "insert", "delete", "values", "metrics"}
HEX = frozenset("0123456789abcdef")
SHORTEST_TOKEN = 16

log = logging.getLogger("everview.server")


class Access(Protocol):
    """Decides who may do what."""

    def rights(self, authorization: str | None) -> Rights | None:
        """Return the rights that an `Authorization` header gives; None if it gives none."""


class Open:
    """Everybody may do everything: for a server that only this machine reaches."""

    def rights(self, authorization: str | None) -> Rights | None:  # noqa: ARG002 - nobody is asked
        """Return all rights."""
        return ALL


class One:
    """Whoever has the one token, known by its hash, may do everything."""

    def __init__(self, sha256: str) -> None:
        self._sha256 = sha256

    def rights(self, authorization: str | None) -> Rights | None:
        """Return all rights, or none."""
        return ALL if hmac.compare_digest(self._sha256, _given(authorization)) else None


@dataclass(frozen=True, slots=True)
class _Entry:
    sha256: str
    rights: Rights


class Tokens:
    """The tokens of a file. It is read again when it changes, so that a token can be withdrawn at once."""

    def __init__(
        self, path: Path, names: Collection[str] | None = None, *, program: Program | None = None
    ) -> None:
        self._path = path
        self._program = program
        self._names = names if program is None else list(program.names())
        self._state = self._look()
        self._entries = self._read()

    def rights(self, authorization: str | None) -> Rights | None:
        """Return the rights of the site whose token this is."""
        self._refresh()
        given = _given(authorization)
        found: Rights | None = None
        for entry in self._entries:  # all of them: how long it takes tells nothing
            if hmac.compare_digest(entry.sha256, given):
                found = entry.rights
        return found

    def _refresh(self) -> None:
        state = self._look()
        if state == self._state:
            return
        self._state = state
        try:
            self._entries = self._read()
        except DataError as error:
            log.error("%s; the tokens from before are in force", error)  # noqa: TRY400 - no traceback is due

    def _look(self) -> tuple[int, int, int]:
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0, 0)
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> list[_Entry]:
        try:
            text = self._path.read_text(encoding="utf-8")
            document = tomllib.loads(text)
        except OSError as error:
            raise DataError(
                f"cannot read the tokens in {self._path}: {error.strerror}; "
                f"`everview token --site NAME >> {self._path}` puts one there"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"{self._path} is not TOML: {error}") from None
        listed = document.pop("token", [])
        if document:
            raise DataError(f"{self._path}: {min(document)!r} is unknown; tokens are [[token]] tables")
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise DataError(f"{self._path}: tokens are [[token]] tables, one for each")
        entries = [self._entry(number, one) for number, one in enumerate(listed, 1)]
        if len({entry.sha256 for entry in entries}) < len(entries):
            raise DataError(f"{self._path}: two entries have the same token")
        for number, entry in enumerate(entries, 1):
            self._look_at(number, entry.rights)
        return entries

    def _look_at(self, number: int, rights: Rights) -> None:
        """Warn of what may be less than was meant."""
        if self._program is None:
            return
        needs = lacking(self._program, rights)
        if needs:
            log.warning("%s: %s", self._where(number), told_lacking(rights, needs))

    def _where(self, number: int) -> str:
        return f"{self._path}, token {number}"

    def _entry(self, number: int, table: Mapping[str, Any]) -> _Entry:
        where = self._where(number)
        unknown = sorted(set(table) - FIELDS)
        if unknown:
            raise DataError(f"{where}: {unknown[0]!r} is unknown; there are {', '.join(sorted(FIELDS))}")
        site = table.get("site")
        if not isinstance(site, str) or not site:
            raise DataError(f'{where}: a token belongs to a site; say site = "its name"')
        if ("sha256" in table) == ("token" in table):
            raise DataError(f"{where}: give either the token or its sha256")
        watches = table.get("metrics", False)
        if not isinstance(watches, bool):
            raise DataError(f"{where}: metrics is true or false")
        reads, writes = self._allowed(where, table, "read"), self._allowed(where, table, "write")
        inserts, deletes = self._relations(where, table, "insert"), self._relations(where, table, "delete")
        if writes is not None:  # who may do both may write
            writes |= inserts & deletes
        values = self._values(where, table.get("values", {}))
        return _Entry(_hash(where, table), Rights(site, reads, writes, watches, inserts, deletes, values))

    def _relations(self, where: str, table: Mapping[str, Any], verb: str) -> frozenset[str]:
        """Relations of which rows may only be inserted, or only deleted; a view has no such rows."""
        if verb not in table:
            return frozenset()
        if table[verb] == "*":
            raise DataError(f"{where}: {verb} is a list of relations")
        found = self._allowed(where, table, verb) or frozenset()
        views = sorted(found & (self._program.views.keys() if self._program is not None else set()))
        if views:
            raise DataError(f"{where}: {verb} names {views[0]!r}, which is a view: say write = …")
        return found

    def _allowed(self, where: str, table: Mapping[str, Any], verb: str) -> frozenset[str] | None:
        given = table.get(verb, [])
        if given == "*":
            return None
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise DataError(f'{where}: {verb} is "*" or a list of names')
        missing = _missing(given, self._names)
        if missing is not None:
            raise DataError(f"{where}: {verb} names {missing!r}, which is not in the program")
        return frozenset(given)

    def _values(self, where: str, given: Any) -> tuple[tuple[str, Choices], ...]:
        """The values of relations that a token is limited to."""
        if not given:
            return ()
        if self._program is None or not isinstance(given, dict):
            raise DataError(f"{where}: values are a table of relations of the program")
        missing = _missing(given, self._program.relations)
        if missing is not None:
            raise DataError(f"{where}: values name {missing!r}, which is no relation of the program")
        try:
            return tuple(sorted(choices_of(self._program, given).items()))
        except DataError as error:
            raise DataError(f"{where}: {error}") from None


def _given(authorization: str | None) -> str:
    """The hash of the token in a header; nothing if there is none."""
    scheme, _, token = (authorization or "").partition(" ")
    return hash_of(token.strip()) if scheme.lower() == "bearer" else ""


def _missing(names: Iterable[str], known: Collection[str] | None) -> str | None:
    return next((name for name in names if known is not None and name not in known), None)


def _hash(where: str, table: Mapping[str, Any]) -> str:
    if "token" in table:
        token = table["token"]
        if not isinstance(token, str) or len(token) < SHORTEST_TOKEN:
            raise DataError(f"{where}: a token has at least {SHORTEST_TOKEN} characters")
        return hash_of(token)
    found = table["sha256"]
    if not isinstance(found, str) or len(found) != 64 or not set(found.lower()) <= HEX:
        raise DataError(f"{where}: sha256 is 64 hexadecimal digits")
    return found.lower()

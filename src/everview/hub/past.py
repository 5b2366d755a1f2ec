"""The past: a refresh is read by the program that it was made under, be that an earlier one."""

from __future__ import annotations

import dataclasses

from everview.errors import DataError
from everview.hub.files import Files
from everview.hub.record import Record
from everview.hub.shapes import read_program
from everview.hub.tables import Catalog, catalog

__all__ = ["Past"]


class Past:
    """What a store keeps, and has kept, under each of its programs; `now` is what it keeps under the last."""

    def __init__(self, files: Files, now: Catalog) -> None:
        self._files, self._now = files, now
        self._known: dict[tuple[str, bool], Catalog] = {}

    def catalog(self, record: Record, name: str) -> Catalog:
        """What the store kept when a refresh was made; DataError where a relation or view was not there."""
        then = self._at(record)
        if name not in then.program.names() and name in self._now.program.names():
            there = ", ".join(
                declared for declared in then.program.names() if not declared.startswith("everview_")
            )
            raise DataError(
                f"refresh {record.refresh} was made under an earlier program, which did not have {name}: "
                f"there were {there}",
                relation=name,
            )
        return then

    def _at(self, record: Record) -> Catalog:
        if record.program == self._now.program.hash:
            return self._now
        key = record.program, record.ids
        if key not in self._known:
            made = catalog(read_program(self._files, record.program))
            self._known[key] = dataclasses.replace(made, ids=record.ids)
        return self._known[key]

"""The refreshes that are in a store, for those who only read it: they hold no lease and know no program."""

from __future__ import annotations

import bisect
from collections import OrderedDict

from everview.errors import DataError, StoreError
from everview.hub.files import Files
from everview.hub.record import Record, read, refreshes

__all__ = ["History"]

_READ = 256
"""How many records are remembered: they never change."""


class History:
    """The records of a store, the last one of each refresh.

    Changes are followed from one to the next under the present program; a single one is read by the program
    that it was made under.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._known: OrderedDict[int, Record] = OrderedDict()

    def latest(self) -> Record:
        """The last one; StoreError when there is no store here."""
        return self._read(self._numbers()[-1])

    def earliest(self) -> int:
        """The first refresh that is there under the present program; 0 before there is any."""
        numbers, program = self._numbers(), self.latest().program
        same = bisect.bisect_left(numbers, True, key=lambda n: self._read(n).program == program)
        first = self._read(numbers[same]).refresh
        return first or min(self._read(numbers[-1]).refresh, 1)

    def at(self, refresh: int) -> Record:
        """The state after a refresh under the present program; DataError when it is not there."""
        found = self._find(refresh)
        if found is not None and found.program == self.latest().program:
            return found
        raise self._missing(refresh, self.earliest(), migrated=found is not None)

    def past(self, refresh: int) -> Record:
        """The state after a refresh under any program; DataError when it is not there."""
        found = self._find(refresh)
        if found is not None:
            return found
        first = self._read(self._numbers()[0]).refresh
        raise self._missing(refresh, first or min(self.latest().refresh, 1))

    def _find(self, refresh: int) -> Record | None:
        numbers = self._numbers()
        place = bisect.bisect_right(numbers, refresh, key=lambda number: self._read(number).refresh)
        found = self._read(numbers[place - 1]) if place else None
        return found if found is not None and found.refresh == refresh else None

    def _missing(self, refresh: int, first: int, *, migrated: bool = False) -> DataError:
        last = self.latest().refresh
        if migrated:
            why = f"was made before the hub went over to another program, under which {first} to {last} are"
        else:
            why = "is not there: " + (f"{first} to {last} are" if last else "none has been made yet")
        return DataError(f"refresh {refresh} of {self._files.uri('')} {why}", value=refresh)

    def _numbers(self) -> list[int]:
        numbers = refreshes(self._files)
        if not numbers:
            uri = self._files.uri("")
            raise StoreError(f"there is no hub at {uri}: make one with Hub.open", path=uri)
        return numbers

    def _read(self, number: int) -> Record:
        if number not in self._known:
            self._known[number] = read(self._files, number)
            if len(self._known) > _READ:
                self._known.popitem(last=False)
        return self._known[number]

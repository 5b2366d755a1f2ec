"""A hub as a peer: when its gate is made, whether it is the right one, and what a refresh takes from it.

The last record says what of the gate is in the hub. A gate that does not know of that is missing, or was
put back from an earlier time, or is another's. Then nothing is guessed: a refresh and a sync are refused,
and the user says what is to count, the last refresh or the file.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from everview.errors import DataError, StoreError
from everview.hub.announcing import At, announce
from everview.hub.exporting import FOLDER as EXPORTS
from everview.hub.exporting import Export, export, stored_chunks
from everview.hub.files import Files
from everview.hub.filling import fill
from everview.hub.gate import Gate
from everview.hub.generations import Shipping, restore
from everview.hub.inbox import Arrival
from everview.hub.marks import GATE, gate_head
from everview.hub.record import Record, require_epoch
from everview.hub.tables import Catalog
from everview.language.windowed import windowed_relations
from everview.replication.transports.report import OnProgress, Progress

__all__ = ["FOLDER", "Peering"]

FOLDER = "gate"
_FILE = GATE
_DRAFT = f"{FOLDER}/draft"
_ABOUT = f"""\
This hub exchanges rows with sites through the replica in {_FILE.rpartition("/")[2]}. It belongs to the
refreshes beside it: back it up and put it back together with them.
"""


class Peering:
    """The gate of a store, if it has one."""

    def __init__(
        self,
        files: Files,
        catalog: Catalog,
        name: str,
        record: Record,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._files = files
        self._near = files.near()
        self._catalog = catalog
        self._name = name
        self._check = check or (lambda: require_epoch(files, record))
        """StoreError when a later hub has the store."""
        self._gate: Gate | None = None
        self._damage: StoreError | None = None
        self._fits = False
        self._announced: Record | None = None
        """The record by which views were last announced: to find it again takes a look at all of them."""
        if record.gate:
            files.remove(EXPORTS)
            self._near.remove(_DRAFT)
            if self._is_there():
                try:
                    self._gate = self._open(_FILE, record)
                    self._fits = self._gate.told(record.gate) is not None
                except StoreError as error:  # the hub can be read and written to without it
                    self._damage = error
            if self._gate is not None:
                self._gate = self._kept(self._gate)

    @property
    def _is_far(self) -> bool:
        """Whether the gate's file lies elsewhere than the hub's."""
        return self._near is not self._files

    def _is_there(self) -> bool:
        if self._is_far:
            return restore(self._files, self._near.local(_FILE), gate_head(self._near))
        return self._near.exists(_FILE)

    def _kept(self, gate: Gate) -> Gate:
        """A gate whose commits last, wherever its file lies."""
        if self._is_far:
            try:
                gate.keep(Shipping(self._files, gate.path, self._check))
            except BaseException:
                gate.close()
                raise
        return gate

    @property
    def arrived(self) -> int:
        """The greatest number of the hub's own writes that are in the gate."""
        return self._gate.arrived if self._gate is not None else 0

    def _open(self, path: str, record: Record) -> Gate:
        return Gate(self._near.local(path), self._catalog.program, self._name, record.epoch)

    def make(self, record: Record, on_progress: OnProgress | None) -> Record:
        """Make a gate with what the last refresh has; it counts when the record is made that is returned."""
        if record.gate:
            self._require_no_source()
        self._near.remove(_DRAFT)
        self._near.create(f"{FOLDER}/about.txt", _ABOUT.encode())
        self._near.create(f"{_DRAFT}/about.txt", _ABOUT.encode())
        draft = self._open(f"{_DRAFT}/gate.db", record)
        try:
            on_rows = _told_of(self._files.uri(""), on_progress)
            fill(draft, self._files, self._catalog, record, self._name, on_rows)
            word = draft.start(record.arrived)
        finally:
            draft.close()
        self._near.settle(_DRAFT)
        self.close()
        for name in self._near.list(FOLDER):
            if f"{FOLDER}/{name}".startswith(_FILE):
                self._near.remove(f"{FOLDER}/{name}")
        # One file under two names until the draft's is gone, which nobody opens.
        self._near.copy(f"{_DRAFT}/gate.db", _FILE)
        self._near.remove(_DRAFT)
        self._gate = self._kept(self._open(_FILE, record))
        self._gate.meet()
        self._fits = True
        now = time.time_ns() // 1000
        return msgspec.structs.replace(record, number=record.number + 1, made_us=now, gate=word)

    def _require_no_source(self) -> None:
        """Whoever made a gate anew would not know which windows the old one had closed, before whom."""
        for name, relation in windowed_relations(self._catalog.program.relations).items():
            if self._name in relation.sources:
                path = self._near.local(_FILE)
                raise StoreError(
                    f"this hub is a source of {name}, and only its gate knows which windows it has closed: "
                    f"put {path} back, of whatever time, and call hub.adopt_gate() and hub.take_charge()",
                    path=path,
                )

    @property
    def gate(self) -> Gate:
        """The gate that goes with the last refresh; StoreError when there is none."""
        gate = self._the_gate
        if not self._fits:
            raise self._another(gate)
        return gate

    @property
    def _the_gate(self) -> Gate:
        if self._gate is None:
            path = self._near.local(_FILE)
            found = "is missing" if self._damage is None else f"cannot be opened ({self._damage})"
            raise StoreError(
                f"{path}, through which this hub talks with sites, {found}: put it back; or call "
                "hub.rebuild_gate(), and what the last refresh has becomes the hub's own rows (docs/HUB.md "
                "says what that does to bags)",
                path=path,
            ) from self._damage
        return self._gate

    @staticmethod
    def _another(gate: Gate) -> StoreError:
        return StoreError(
            f"{gate.path} does not go with the last refresh, but with another: put back the one that does; "
            "or call hub.adopt_gate() to go by what it has, or hub.rebuild_gate() to go by the last refresh",
            path=gate.path,
        )

    def take_in(
        self,
        arrivals: Sequence[Arrival],
        record: Record,
        reject: Callable[[Arrival, str], object],
        on_rows: Callable[[int], None] | None = None,
        *,
        whole: bool = False,
    ) -> Export:
        """Put the hub's own writes into the gate; what has changed in the gate since a record was made.

        `whole` is for a record that does not go with the gate: all that the gate has.
        """
        gate = self._the_gate
        if whole and not self._fits:
            gate.renew()  # it may give numbers to rows that others know it by already
        since = -1 if whole else gate.told(record.gate)
        if since is None:
            raise self._another(gate)
        for arrival in arrivals:
            relation = self._catalog.program.relations[arrival.relation]
            writes = [
                (piece.present, stored_chunks(self._files, piece, relation)) for piece in arrival.pieces()
            ]
            try:
                gate.put(arrival.number, relation, writes)
            except (DataError, pa.ArrowException, OSError) as error:
                reject(arrival, str(error).strip().partition("\n")[0])
        return export(self._files, gate, record, on_rows, since=since)

    def waiting(self, record: Record, most: int) -> tuple[int, int]:
        """How many commits of the gate are in no refresh, and of how many rows, counted up to `most`."""
        gate = self._gate
        since = None if gate is None else gate.told(record.gate)
        return (0, 0) if gate is None or since is None else gate.grown_since(since, most)

    def recorded(self, taken: Export, record: Record) -> Record:
        """The record of a refresh by this export; the gate has its word before there is a record with it."""
        return msgspec.structs.replace(
            record,
            gate=self._the_gate.tell(taken.head),
            arrived=taken.arrived,
            exported=max(record.exported, taken.numbered),
        )

    def finish(self, taken: Export, record: Record) -> None:
        """The record of a refresh by this export is made; what fails now is done by a later refresh."""
        self._fits = True
        try:
            self._the_gate.forget(record.gate, taken.noted)
        except StoreError as error:
            warnings.warn(f"what the gate had noted is still there: {error}", RuntimeWarning, stacklevel=2)
        self._files.remove(EXPORTS)

    def announce(self, record: Record, at: At) -> None:
        """Have the gate publish what the last refresh has; what fails now is done by a later one."""
        if self._gate is None or not self._fits or not record.gate:
            return
        last = self._announced

        def known(refresh: int | None) -> Record:
            return last if last is not None and last.refresh == refresh else at(refresh)

        try:
            announce(self._gate, self._files, self._catalog, record, known)
        except (StoreError, OSError, pa.ArrowException) as error:
            what = f"sites get an earlier state of the hub's views: {error}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)
        else:
            self._announced = record

    def origin(self, name: str, row: tuple[Any, ...]) -> str:
        """The name of the site that wrote a row of a relation; without a gate it is the hub."""
        return self._name if self._gate is None else self._gate.origin(name, row)

    def close(self) -> None:
        """Close the gate."""
        if self._gate is not None:
            self._gate.close()
            self._gate = None


def _told_of(peer: str, on_progress: OnProgress | None) -> Callable[[int], None]:
    def told(rows: int) -> None:
        if on_progress is not None:
            on_progress(Progress(peer, "filling", rows, 0, 0, 0))

    return told

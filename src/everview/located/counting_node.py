"""A node in counting mode: PSN over mail whose every row is consumed once.

An update is a row of mail under its own number, so that no two are the same. It is consumed by deleting the
row, in the transaction that does what it says: then it is dead at every site that holds the mail, whatever
repeats it. What cannot be picked yet stays. Counts, and the numbers of what was sent, are kept in relations
of the site alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from everview.errors import DataError, StoreError
from everview.located.coding import read_derived, read_update, write_derived
from everview.located.counting import CountingPlace, Moves, Update
from everview.located.facts import Fact, Row
from everview.located.node import Change, Node, Store
from everview.located.program import LocatedProgram
from everview.located.quiet import Report, Rounds

__all__ = ["CountingNode"]

_CONSUMED = ""
"""Instead of a place's name: how much was consumed."""


class CountingNode(Node):
    """One place of a located program whose heads travel as updates."""

    def __init__(self, site: Store, program: LocatedProgram, place: str, hosted: frozenset[str]) -> None:
        super().__init__(site, program, place, hosted)
        self._mail, self._counts, self._sent = (
            program.mail(place),
            program.counts(place),
            program.sent(place),
        )
        self._store = site.replica.incarnation
        self._core = CountingPlace(place, program.rules)
        self._numbers: dict[str, int] = {}
        self._asked_after: int | None = None
        self._watches += [
            site.watch(self._mail, self._on_mail),
            site.watch(program.reports, partial(self._on_reports)),
        ]
        self.refresh()

    # All is quiet.

    def is_quiet(self) -> bool:
        """Whether all places have consumed all that was written before this was first asked.

        It takes two rounds of reports, and so some syncs: ask, sync, and ask again. Once it has said yes,
        the next question is a new one.
        """
        self.refresh()
        self._asked_after = self._last_round() if self._asked_after is None else self._asked_after
        self._react(self._report)
        quiet = self._rounds().quiet(self._asked_after)
        if quiet:
            self._asked_after = None
        return quiet

    def _last_round(self) -> int:
        return max((report.round for report in self._rounds().reports), default=0)

    def _rounds(self) -> Rounds:
        rows = self._site.rows(self.program.reports)
        return Rounds.of(self.program.places, (Report(*row) for row in rows))

    def _on_reports(self, _: list[Change]) -> None:
        if self._rounds().due(self.place, asked=False) is not None:
            self._react(self._report)

    def _report(self) -> None:
        rounds = self._rounds()
        number = rounds.due(self.place, asked=self._asked_after is not None)
        if number is None:
            return
        sent = sum(n for to, n in self._numbers.items() if to != _CONSUMED)
        waiting = len(self._site.rows(self._mail))
        report = Report(self.place, number, sent, self._numbers.get(_CONSUMED, 0), waiting)
        old = [tuple(r) for r in rounds.reports if r.place == self.place and r.round < number - 2]
        self._site.insert(self.program.reports, [tuple(report)])
        self._site.delete(self.program.reports, old)

    # Inside.

    def _react(self, work: Callable[[], None]) -> None:
        """Do something; not if the store turns out, in a sync, to have gone back while nobody noticed."""
        if self._site.replica.incarnation != self._store:
            self._store, self._current = self._site.replica.incarnation, False
        super()._react(work)

    def _rebuild(self) -> None:
        stored = self._site.rows(self._sent)
        if any(store != self._store for _, _, store in stored):
            raise StoreError(
                f"the store of {self.place!r} was put back from a backup or copied, or others gave it up "
                "while it was away, and counting mode cannot go on from an old state: its updates would "
                "count twice. Begin anew at all places, or run the program by provenance"
            )
        if not stored:  # a backup of it, though nothing was sent yet, must be known for one
            self._site.insert(self._sent, [(_CONSUMED, 0, self._store)])
        self._numbers = {to: n for to, n, _ in stored}
        held = {read_derived(data): n for data, n in self._site.rows(self._counts)}
        self._core = CountingPlace(self.place, self.program.rules, held)
        there = set(self._base_facts())
        for relation in self.program.rules.base:
            for row in self._core.rows(relation) - {row for name, row in there if name == relation}:
                self._core.write((relation, row), present=False)
        for fact in there:
            self._core.write(fact, present=True)
        self._show(self._differences(self._core.rows))
        self._flush()
        self._report()  # others may have begun a round, and wait for it, while this node was closed

    def _write_base(self, fact: Fact, *, present: bool) -> None:
        self._core.write(fact, present=present)

    def _on_mail(self, changes: list[Change]) -> None:
        if any(weight > 0 for _, weight in changes):
            self._react(self._flush)

    def _flush(self) -> None:
        """Pick what can be picked; all that follows is written together with what is consumed."""
        arrived: dict[Update, list[Row]] = {}
        for row in self._site.rows(self._mail):
            arrived.setdefault(read_update(row), []).append(row)
        moves = self._core.run(update for update, rows in arrived.items() for _ in rows)
        before = dict(self._numbers)
        consumed = [arrived[update].pop() for update in moves.done]
        self._site.delete(self._mail, consumed)
        self._numbers[_CONSUMED] = self._numbers.get(_CONSUMED, 0) + len(consumed)
        self._post(moves)
        self._keep(moves)
        changed = [(to, n, self._store) for to, n in self._numbers.items() if before.get(to, 0) != n]
        self._site.insert(self._sent, changed)
        self._show(moves.changes)

    def _post(self, moves: Moves) -> None:
        own = self._core.drain()
        for to, updates in [*moves.send.items(), *([(self.place, own)] if own else [])]:
            if self.program.mail(to) not in self._hosted:
                raise DataError(
                    f"a rule at {self.place!r} has a head at {to!r}, whose mail is not hosted here; "
                    f"open the site with hosts=program.hosts({self.place!r}, neighbours) that name it"
                )
            rows: list[tuple[Any, ...]] = []
            for update in updates:
                self._numbers[to] = number = self._numbers.get(to, 0) + 1
                rows.append((self.place, number, update.sign, write_derived(update.derived)))
            self._site.insert(self.program.mail(to), rows)

    def _keep(self, moves: Moves) -> None:
        counts = {write_derived(derived): n for derived, n in moves.counts.items()}
        self._site.insert(self._counts, [(data, n) for data, n in counts.items() if n])
        self._site.delete(self._counts, [(data,) for data, n in counts.items() if not n])

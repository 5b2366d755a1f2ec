"""The four kinds of relation as lattice tables: key → value that only grows (design: Three layers).

A table maps a key to a `Row`: the value, the version (the local commit that last grew it) and the origin
(the dot of the growth). A kind says how a write grows the table, how two values join, what the table means
(its valuation) and which rows are garbage. Nothing here knows of sites or messages.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from everview.algebra.causal_length import deleted, inserted
from everview.algebra.zset import ZSet

BOTTOM = None
TOP = "⊤"


class TwoValuesError(AssertionError):
    """A key that is written once has two values: merging stores ⊤, reading it raises."""


def single(table):
    """The values of a table that is written once, or an error."""
    if any(held.value == TOP for held in table.values()):
        raise TwoValuesError
    return [held.value for held in table.values()]


class Row(NamedTuple):
    value: Any
    version: int
    origin: tuple[str, int]


@dataclass
class Pen:
    """What a write needs to know: its dot, its stamp, the floor, and which stamps have come."""

    dot: tuple
    stamp: Any
    floor: Any
    valued: Any
    shortcuts: frozenset
    apart: int = 0
    minted: int = field(default=0)

    def fresh(self):
        """A new id, never used again: the dot and a number."""
        self.minted += 1
        return (*self.dot, self.minted)


class SetKind:
    """Tuple → causal length, joined by max; present when odd. An unknown tuple has the floor's length; a
    known one counts from what another group may have forgotten of it, if that is more.
    """

    lowest = 0

    def insert(self, table, row, pen):
        length = self._length(table, row, pen)
        return {row: inserted(length)} if inserted(length) != length else {}

    def delete(self, table, row, pen):
        length = self._length(table, row, pen)
        return {row: deleted(length)} if deleted(length) != length else {}

    def _length(self, table, row, pen):
        if row in table:
            return self.known(table[row].value, pen)
        return 0 if "restart at 1" in pen.shortcuts else pen.floor

    def known(self, length, pen):
        return length if "write below" in pen.shortcuts else max(length, pen.apart + length % 2)

    def join(self, a, b):
        return max(a, b)

    def valuation(self, table, valued):
        return Counter({row: 1 for row, held in table.items() if held.value % 2})

    def garbage(self, table, stable, passed, valued):
        """A dead row whose death is stable; the floor is the greatest length collected."""
        keys = [key for key, held in table.items() if held.value % 2 == 0 and stable(held.origin)]
        return keys, max((table[key].value for key in keys), default=0)

    def lift(self, table, key, floor, pen):
        """Above the floor, if it is alive and below: nobody who forgot the id can know its length."""
        length = table[key].value
        return {key: floor + 1} if length % 2 and length <= floor else {}


class KeyedKind:
    """(key, stamp) → row or ⊥, written once; a key's row is the one of its greatest valued stamp.

    Of a key there is that version, and those whose time has not come: what is superseded goes at once.
    """

    lowest = None

    def insert(self, table, row, pen):
        return {(row[0], pen.stamp()): row}

    def delete(self, table, row, pen):
        return {(row[0], pen.stamp()): BOTTOM} if self.current(table, pen.valued).get(row[0]) else {}

    def current(self, table, valued):
        """Key → row or ⊥ at its greatest valued stamp."""
        stamps = self.greatest(table, valued)
        return {key: table[key, stamp].value for key, stamp in stamps.items()}

    def greatest(self, table, valued):
        stamps = {}
        for key, stamp in table:
            if valued(stamp) and (key not in stamps or stamp > stamps[key]):
                stamps[key] = stamp
        return stamps

    def superseded(self, table, valued):
        """The versions below their key's greatest valued one."""
        stamps = self.greatest(table, valued)
        return [(key, stamp) for key, stamp in table if key in stamps and stamp < stamps[key]]

    def join(self, a, b):
        return a if a == b else TOP

    def valuation(self, table, valued):
        single(table)
        return Counter(row for row in self.current(table, valued).values() if row is not BOTTOM)

    def garbage(self, table, stable, passed, valued):
        """A stable ⊥, once every member's clock has passed its stamp: another could still write below."""
        keys = [
            (key, stamp)
            for key, stamp in self.greatest(table, valued).items()
            if table[key, stamp].value is BOTTOM and stable(table[key, stamp].origin) and passed(stamp)
        ]
        return keys, max((stamp for _, stamp in keys), default=None)

    def lift(self, table, key, floor, pen):
        """Under a new stamp, if it is the key's last write and below the floor."""
        name, stamp = key
        if floor is None or stamp > floor or any(k == name and s > stamp and pen.valued(s) for k, s in table):
            return {}
        return {} if table[key].value is BOTTOM else {(name, pen.stamp()): table[key].value}


class BagKind:
    """Dot → (tuple, weight), written once; a tuple is there as often as its weights sum to, if above 0."""

    lowest = 0

    def insert(self, table, row, pen):
        return {pen.fresh(): (row, 1)}

    def delete(self, table, row, pen):
        return {pen.fresh(): (row, -1)} if self.sums(table)[row] > 0 else {}

    def sums(self, table):
        return ZSet(single(table))

    def join(self, a, b):
        return a if a == b else TOP

    def valuation(self, table, valued):
        return Counter({row: weight for row, weight in self.sums(table).items() if weight > 0})

    def garbage(self, table, stable, passed, valued):
        """Stable pairs of one tuple that cancel: each site may choose others, the sums stay the same."""
        spare, keys = {}, []
        for key in sorted(table):
            if table[key].value == TOP or not stable(table[key].origin):
                continue
            row, weight = table[key].value
            if spare.get((row, -weight)):
                keys += [key, spare[row, -weight].pop()]
            else:
                spare.setdefault((row, weight), []).append(key)
        return keys, 0

    def lift(self, table, key, floor, pen):
        return {}


class AddWinsKind:
    """(tuple, fresh id per insertion) → causal length; present while some insertion is odd."""

    lowest = 0

    def insert(self, table, row, pen):
        if "add-wins reuse" in pen.shortcuts:
            old = [key for key in table if key[0] == row]
            if old:
                return {min(old): inserted(table[min(old)].value)}
        return {(row, pen.fresh()): 1}

    def delete(self, table, row, pen):
        """Bump every odd insertion that is seen; one that is not seen survives."""
        return {key: deleted(held.value) for key, held in table.items() if key[0] == row and held.value % 2}

    def join(self, a, b):
        return max(a, b)

    def valuation(self, table, valued):
        return Counter({key[0]: 1 for key, held in table.items() if held.value % 2})

    def garbage(self, table, stable, passed, valued):
        """Dead insertions that are stable; no floor, for an id is never used again."""
        return [key for key, held in table.items() if held.value % 2 == 0 and stable(held.origin)], 0

    def lift(self, table, key, floor, pen):
        return {}


class KeyedLengths(SetKind):
    """✗ Tuple → causal length for a keyed relation; an insert closes the key's other rows by a bump."""

    def insert(self, table, row, pen):
        losers = {r: h.value + 1 for r, h in table.items() if r[0] == row[0] and r != row and h.value % 2}
        return losers | super().insert(table, row, pen)

    def delete(self, table, row, pen):
        return {r: h.value + 1 for r, h in table.items() if r[0] == row[0] and h.value % 2}

    def valuation(self, table, valued):
        winners = {}
        for row, held in table.items():
            if held.value % 2:
                winners[row[0]] = max(row, winners.get(row[0], row))
        return Counter(winners.values())


class BagSums(BagKind):
    """✗ Tuple → weight, joined by adding: an echo counts twice."""

    def insert(self, table, row, pen):
        return {(row,): (row, (table[(row,)].value[1] if (row,) in table else 0) + 1)}

    def delete(self, table, row, pen):
        held = table.get((row,))
        return {(row,): (row, held.value[1] - 1)} if held and held.value[1] > 0 else {}

    def join(self, a, b):
        return (a[0], a[1] + b[1])

    def garbage(self, table, stable, passed, valued):
        return [], 0


def kinds(shortcuts):
    """The program's relations, one of each kind, as the shortcuts have them."""
    return {
        "R": AddWinsKind() if "unique ids for sets" in shortcuts else SetKind(),
        "K": KeyedLengths() if "keyed lengths" in shortcuts else KeyedKind(),
        "B": BagSums() if "bag sums" in shortcuts else BagKind(),
        "W": AddWinsKind(),
    }

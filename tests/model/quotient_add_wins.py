"""Every reachable state of three sites with four writes each to an add-wins relation of one tuple.

The table is a product: one row for each insertion, which no other insertion touches. A join is row by row, a
delete bumps every live row it sees, and the tuple is there while some row lives; the oracle says of each
insertion alone whether it lives. So what is true of every insertion is true of the relation, and it is enough
to follow any few of them at once, among writes that are not followed. The search follows up to `tracked`.
Rows arrive one by one, apart from each other, with the derivation if they live: more than messages of whole
states can do. A row that is dead everywhere changes nothing any more; insertions and sites have no names.

A fourth entry of each row is the onlooker's, which holds only derivations and lengths.
"""

import itertools
from collections import Counter
from functools import cache

from tests.model.quotient import always, view_of
from tests.model.relations import AddWinsKind, Pen, Row
from tests.model.views import derivations, evaluate, live_ids, liveness, valuation

TUPLE = (0, 0)
SITES = 3
UNKNOWN, LIVE, DEAD = (0, 0), (1, 1), (2, 2)
"""What a row is in the table, and by the oracle."""


class AddWinsQuotient:
    """A state is (writes made by each site, rows): a row is its entry at each site, and its pool."""

    def __init__(self, operations, tracked, kind=None, shortcuts=frozenset()):
        self.operations, self.tracked, self.shortcuts = operations, tracked, shortcuts
        self.kind = kind or AddWinsKind()
        self.kinds = {"W": self.kind}
        self.view = view_of("W")
        self.check, self.see = cache(self._check), cache(self._see)
        self.join, self.delete = cache(self._join), cache(self._delete)
        self.checks = 0

    def run(self):
        start = ((0,) * SITES, ())
        reached, waiting = {start}, [start]
        while waiting:
            for used, rows in self._successors(*waiting.pop()):
                state = self._normal(used, rows)
                if state not in reached:
                    reached.add(state)
                    waiting.append(state)
        return reached

    def _successors(self, used, rows):
        for i in range(SITES):
            if used[i] == self.operations:
                continue
            after = (*used[:i], used[i] + 1, *used[i + 1 :])
            if len(rows) < self.tracked:
                entries = tuple(LIVE if s == i else UNKNOWN for s in range(SITES + 1))
                yield after, (*rows, (entries, (LIVE,)))
            dead = [_with(row, i, self.delete(row[0][i])) for row in rows]
            if dead != list(rows):
                yield after, tuple(dead)
        for n, row in enumerate(rows):
            for site, message in itertools.product(range(SITES + 1), row[1]):
                entry = self.join(row[0][site], message)
                if entry != row[0][site]:
                    yield used, (*rows[:n], _with(row, site, entry), *rows[n + 1 :])

    def _normal(self, used, rows):
        """Checked, without rows that are dead everywhere, under the least of six renamings."""
        for site in range(SITES):
            self.check(tuple(sorted(row[0][site] for row in rows)))
        self.see(tuple(sorted(row[0][SITES] for row in rows)))
        rows = [row for row in rows if row[0] != (DEAD,) * (SITES + 1)]
        return min(
            (
                tuple(used[i] for i in order),
                tuple(
                    sorted(((*(entries[i] for i in order), entries[SITES]), pool) for entries, pool in rows)
                ),
            )
            for order in itertools.permutations(range(SITES))
        )

    # The kind's own code, on one row or on a table of all that are followed.

    def _join(self, mine, message):
        value = message[0] if mine == UNKNOWN else self.kind.join(mine[0], message[0])
        return (value, max(mine[1], message[1]))

    def _delete(self, entry):
        """By the oracle a deletion removes the insertions that it has seen."""
        growth = self.kind.delete(_table([entry]), TUPLE, Pen(("s", 1), None, 0, always, self.shortcuts))
        return (next(iter(growth.values()), entry[0]), 2 if entry[1] else 0)

    def _check(self, entries):
        self.checks += 1
        rows, wanted = self.kind.valuation(_table(entries), always), _plain(entries)
        if rows != wanted:
            raise AssertionError(f"{dict(rows)}, not {wanted}")

    def _see(self, entries):
        """The onlooker: each row as it is, or first as it lived, with the derivation that came with it."""
        for first in (0, 1):
            table = {}
            for number, (value, _) in enumerate(entries):
                for length in range(first or value, value + 1) if value else ():
                    table |= self._feed(number, length)
            self.checks += 1
            rows = valuation(table, live_ids(self.kinds, table, always))
            wanted = evaluate(self.view, {"W": _plain(entries)})
            if rows != wanted:
                raise AssertionError(f"the onlooker sees {dict(rows)}, not {dict(wanted)}")

    def _feed(self, number, length):
        tables = {"W": {(TUPLE, ("s", 1, number)): Row(length, 0, ("-", 1))}}
        made = derivations(self.kinds, self.view, tables, always)
        named = {i for key in made for i in key[3]}
        lengths = liveness(self.kinds, self.view, tables, always, self.shortcuts, named)
        found = dict.fromkeys(made, True) | {key: value for key, (value, _) in lengths.items()}
        return {key: Row(value, 0, None) for key, value in found.items()}


def _plain(entries):
    return Counter({TUPLE: 1} if any(oracle == 1 for _, oracle in entries) else {})


def _table(entries):
    return {(TUPLE, ("s", 1, n)): Row(value, 0, ("-", 1)) for n, (value, _) in enumerate(entries) if value}


def _with(row, site, entry):
    entries, pool = row
    pool = pool if entry in pool or entry == UNKNOWN else tuple(sorted((*pool, entry)))
    return (*entries[:site], entry, *entries[site + 1 :]), pool

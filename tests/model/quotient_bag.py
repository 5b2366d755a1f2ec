"""Every reachable state of three sites with four writes each to a bag of one tuple.

A bag's table is its dots, and of each site's dots a reader knows a prefix, for messages are whole states.
The search lets the prefixes of different writers arrive one dot at a time and apart from each other, which is
more than any network of whole states can do; so nothing that can happen is missed. Then a global state is,
for each writer, its signs and how many of them each of the other two has. Signs that all three know are only
their sum: no reader can stop before them any more. Sites are the same under renaming.

What a site's own code makes of its table depends on the three prefixes alone: `check_tables` runs it on all
of them, and the search is over numbers. Bags do not travel as derivations, so nobody looks on.
"""

import itertools

import numpy as np
from tests.model.relations import Pen, Row, kinds

TUPLE = (0, 0)
RANGE, ZERO = 32, 12
"""Sums known to all, from −12 to 12, as numbers below 32."""


class BagQuotient:
    """The states as arrays of numbers, layer by layer: each step is one write, or one dot that arrives."""

    def __init__(self, operations):
        self.operations = operations
        self.writers = list(self._writers())
        self.size = len(self.writers)
        number = {writer: i for i, writer in enumerate(self.writers)}
        steps = [self._steps(*writer) for writer in self.writers]
        # Where a step leads, or −1; and what it adds to the sum that all know.
        self.plus, self.minus, self.first, self.second = (
            np.array([number.get(step[i][0], -1) for step in steps]) for i in range(4)
        )
        self.settled = [np.array([step[i][1] for step in steps]) for i in range(4)]
        self.swapped = np.array([number[used, signs, q, p] for used, signs, p, q in self.writers])
        self.own = np.array([sum(signs) for _, signs, _, _ in self.writers])
        self.seen_by_first = np.array([sum(signs[:p]) for _, signs, p, _ in self.writers])
        self.seen_by_second = np.array([sum(signs[:q]) for _, signs, _, q in self.writers])

    def _writers(self):
        """(writes made, signs that someone lacks, how many of them the next site has, and the last one)."""
        for used in range(self.operations + 1):
            for lacking in range(used + 1):
                for signs in itertools.product((1, -1), repeat=lacking):
                    for ahead in range(lacking + 1):
                        yield used, signs, 0, ahead
                        if ahead:
                            yield used, signs, ahead, 0

    def _steps(self, used, signs, p, q):
        """Insert, delete; the next site gets a dot, the one after it gets a dot."""
        arrivals = []
        for there, (a, b) in ((p, (p + 1, q)), (q, (p, q + 1))):
            if there == len(signs):
                arrivals.append((None, 0))
            elif min(a, b):  # the first sign is now known to all
                arrivals.append(((used, signs[1:], a - 1, b - 1), signs[0]))
            else:
                arrivals.append(((used, signs, a, b), 0))
        return [((used + 1, (*signs, 1), p, q), 0), ((used + 1, (*signs, -1), p, q), 0), *arrivals]

    def run(self):
        """The number of reachable states."""
        return sum(len(layer) for layer in self.layers())

    def layers(self):
        layer = np.array([ZERO], dtype=np.int64)
        while len(layer):
            yield layer
            layer = self._next(layer)

    def number(self, signs, known):
        """The number of a state: each writer's signs, and how many of j's signs site i has in known[i][j]."""
        common, writers = 0, []
        for j in range(3):
            p, q = known[(j + 1) % 3][j], known[(j + 2) % 3][j]
            common += sum(signs[j][: min(p, q)])
            rest = tuple(signs[j][min(p, q) :])
            writers.append(self.writers.index((len(signs[j]), rest, p - min(p, q), q - min(p, q))))
        a, b, c = (np.array([writer]) for writer in writers)
        return int(self._least(a, b, c, np.array([common + ZERO]))[0])

    def _next(self, layer):
        rest, common = np.divmod(layer, RANGE)
        writers = [rest // self.size**2, rest // self.size % self.size, rest % self.size]
        found = []
        for i in range(3):
            o, after, last = writers[i], writers[(i + 1) % 3], writers[(i + 2) % 3]
            total = common - ZERO + self.own[o] + self.seen_by_second[after] + self.seen_by_first[last]
            for number, target in enumerate((self.plus, self.minus, self.first, self.second)):
                may = (target[o] >= 0) & ((total > 0) | (number != 1))  # a delete needs a row
                o2 = target[o][may]
                if len(o2):
                    known = common[may] + self.settled[number][o[may]]
                    found.append(self._least(o2, after[may], last[may], known))
        return np.unique(np.concatenate(found)) if found else layer[:0]

    def _least(self, a, b, c, common):
        """The least number of a state under the six renamings of the sites."""
        x, y, z = self.swapped[a], self.swapped[b], self.swapped[c]
        n = self.size
        least = (a * n + b) * n + c
        for p, q, r in ((b, c, a), (c, a, b), (x, z, y), (z, y, x), (y, x, z)):
            np.minimum(least, (p * n + q) * n + r, out=least)
        return least * RANGE + common


def check_tables(operations, kind=None):
    """The bag's own code on every table that a site can have; returns how many there are."""
    kind = kind or kinds(frozenset())["B"]
    sequences = [s for n in range(operations + 1) for s in itertools.product((1, -1), repeat=n)]
    for signs in itertools.product(sequences, repeat=3):
        dots = [((f"s{i}", n, 1), (TUPLE, sign)) for i, s in enumerate(signs) for n, sign in enumerate(s)]
        table = {key: Row(value, 0, key[:2]) for key, value in dots}
        total = sum(sum(s) for s in signs)
        pen = Pen(("s0", 9), None, 0, None, frozenset())
        if kind.valuation(table, None) != ({TUPLE: total} if total > 0 else {}):
            raise AssertionError(f"{signs} are not {total}")
        if len(kind.insert(table, TUPLE, pen)) != 1 or bool(kind.delete(table, TUPLE, pen)) != (total > 0):
            raise AssertionError(f"a write to {signs} is wrong")
        if any(kind.join(value, value) != value for _, value in dots):
            raise AssertionError("a dot that comes again changes something")
    return len(sequences) ** 3

"""Every reachable state of three sites with four writes each, for a set and for a keyed relation.

`explore` keeps the writes that each site has seen; here a site is what its table and the oracle make of them,
and states that differ only in names are one. Why nothing is lost by that:

- **Messages.** Any state that a site ever had may arrive at any time, again, or never. So a global state also
  has the pool of all states that were ever sent. What is below every reader changes nothing any more, and is
  left out of the pool; a message that comes again is below its reader.
- **A set.** A write depends on the length alone, a join too, and so does the oracle: its chain of the writes
  seen is one number. A site is (length in the table, length by the oracle, writes made).
- **A keyed relation.** A site is its register: a stamp, and whether it is a row; the row is named by the
  stamp. Only the order of stamps counts, so they are numbered anew in every state. A new stamp may fall
  anywhere above those its writer has seen: whatever clocks do.
- **Names of sites** do not matter: the three are sorted.

A fourth site holds a view, not the relation: a self-join and a projection in one union. It receives what any
state in the pool feeds, in any order. Each step runs the kinds' and the views' own code, once for every
distinct local step; each local state is compared with the oracle.
"""

from collections import Counter
from functools import cache

from tests.model.relations import BOTTOM, Pen, Row, kinds
from tests.model.views import Branch, View, derivations, evaluate, everything, live_ids, liveness, valuation

from everview.algebra.clock import Stamp

SITES = 3
TUPLE = (0, 0)


def always(_):
    return True


def view_of(relation):
    atom = (relation, everything, everything)
    both = Branch((atom, atom), lambda a, b: (a[0],) if a[0] == b[0] else None)
    return View("x", (both, Branch((atom,), lambda a: (a[1],))))


class Quotient:
    """A search over (sites, onlooker, pool); subclasses say what a local state is."""

    relation = empty = blank = None
    """The relation's name; the local state of a site, and of the onlooker, that has seen nothing."""

    def __init__(self, operations, *, looks=True, shortcuts=frozenset()):
        self.operations, self.looks, self.shortcuts = operations, looks, shortcuts
        self.kinds = kinds(shortcuts)
        self.kind = self.kinds[self.relation]
        self.view = view_of(self.relation)
        self.checks = 0
        self.join = cache(self._join)
        self.feed = cache(self._feed)
        self.look = cache(self._look)
        self.write = cache(self._write)

    def run(self, limit=10**9):
        """Visit every state once; returns them all, or the first `limit`."""
        start = self.normal([(self.empty, 0)] * SITES, self.blank, frozenset([self.empty]))
        reached, waiting = {start}, [start]
        while waiting and len(reached) < limit:
            for after in self.successors(*waiting.pop()):
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)
        return reached

    def successors(self, sites, onlooker, pool):
        for i, (local, used) in enumerate(sites):
            others = sites[:i] + sites[i + 1 :]
            for message in pool:
                if (grown := self.join(local, message)) != local:
                    yield self.normal([*others, (grown, used)], onlooker, pool | {grown})
            if used < self.operations:
                for written in self.writes(local, pool):
                    yield self.normal([*others, (written, used + 1)], onlooker, pool | {written})
        for message in pool if self.looks else ():
            if (seen := self.look(onlooker, message)) != onlooker:
                yield self.normal(list(sites), seen, pool)

    # The kind's own code, on tables made of a local state.

    def _grow(self, table, operation, row, stamp):
        pen = Pen(("s", 1), lambda: stamp, self.kind.lowest, always, self.shortcuts)
        growth = getattr(self.kind, operation)(_rows(table), row, pen)
        return {**table, **growth} if growth else None

    def _join(self, local, message):
        table, theirs = self.table(local), self.table(message)
        for key, value in theirs.items():
            table[key] = self.kind.join(table[key], value) if key in table else value
        grown = self.local(table, max(self.oracle(local), self.oracle(message)))
        self.check(grown)
        return grown

    def check(self, local):
        """The table means what the oracle says."""
        self.checks += 1
        rows, wanted = self.kind.valuation(_rows(self.table(local)), always), self.plain(self.oracle(local))
        if rows != wanted:
            raise AssertionError(f"{dict(rows)}, not {dict(wanted)}")

    # The onlooker: derivations and lengths, without the relation.

    def _feed(self, local):
        tables = {self.relation: _rows(self.table(local))}
        made = derivations(self.kinds, self.view, tables, always)
        named = {i for key in made for i in key[3]}
        lengths = liveness(self.kinds, self.view, tables, always, self.shortcuts, named)
        return dict.fromkeys(made, True) | {key: value for key, (value, _) in lengths.items()}

    def _look(self, onlooker, message):
        """What it holds after this message, and the oracle's view of all that the messages knew."""
        table = self.onlookers(onlooker)
        for key, value in self.feed(message).items():
            join = self.kind.join if key[0] == "l" else max
            table[key] = join(table[key], value) if key in table else value
        oracle = max(onlooker[1], self.oracle(message))
        rows = valuation(table, live_ids(self.kinds, _rows(table), always))
        wanted = evaluate(self.view, {self.relation: self.plain(oracle)})
        self.checks += 1
        if rows != wanted:
            raise AssertionError(f"the onlooker sees {dict(rows)}, not {dict(wanted)}")
        return self.tidy(table), oracle

    def useful(self, sites, onlooker, pool):
        """The messages that can still change something somewhere."""
        return [
            m
            for m in pool
            if any(self.join(local, m) != local for local, _ in sites)
            or (self.looks and self.look(onlooker, m) != onlooker)
        ]


class SetQuotient(Quotient):
    """A local state is (table, length by the oracle)."""

    relation, empty, blank = "R", ((), 0), ((), 0)

    def table(self, local):
        return dict(local[0])

    def oracle(self, local):
        return local[1]

    def local(self, table, oracle):
        return (tuple(sorted(table.items())), oracle)

    def writes(self, local, pool):
        return self.write(local)

    def _write(self, local):
        written = []
        for operation in ("insert", "delete"):
            if grown := self._grow(self.table(local), operation, TUPLE, None):
                length = local[1] + (local[1] % 2 == (operation == "delete"))
                written.append(self.local(grown, length))
                self.check(written[-1])
        return written

    def plain(self, oracle):
        return Counter({TUPLE: 1} if oracle % 2 else {})

    def tidy(self, table):
        return tuple(sorted(table.items(), key=repr))

    def onlookers(self, onlooker):
        return dict(onlooker[0])

    def normal(self, sites, onlooker, pool):
        return tuple(sorted(sites)), onlooker, frozenset(self.useful(sites, onlooker, pool))


class KeyedQuotient(Quotient):
    """A local state is (versions, last write by the oracle), a version (number of the stamp, is it a row)."""

    relation, empty, blank = "K", ((), (0, False)), (((), ()), (0, False))

    def table(self, local):
        return {_version(number): (0, number) if alive else BOTTOM for number, alive in local[0]}

    def oracle(self, local):
        return local[1]

    def local(self, table, oracle):
        for key in self.kind.superseded(table, always):
            del table[key]
        return (
            tuple(sorted((stamp.time_us, row is not BOTTOM) for (_, stamp), row in table.items())),
            oracle,
        )

    def writes(self, local, pool):
        """Under a stamp in any of the gaps between those that there are, above what is seen."""
        above = sorted({oracle[0] for _, oracle in pool if oracle[0] > local[1][0]})
        for number in [n - 1 for n in above] + [max([local[1][0], *above]) + 1]:
            yield from self.write(local, number)

    def _write(self, local, number):
        written = []
        for operation in ("insert", "delete"):
            if grown := self._grow(self.table(local), operation, (0, number), Stamp(number, 0, "-")):
                written.append(self.local(grown, (number, operation == "insert")))
                self.check(written[-1])
        return written

    def plain(self, oracle):
        return Counter({(0, oracle[0]): 1} if oracle[1] else {})

    def tidy(self, table):
        """Lengths, and the stamps with derivations, as far as they are not superseded."""
        lengths = {key[2]: value for key, value in table.items() if key[0] == "l"}
        for key in self.kind.superseded(lengths, always):
            del lengths[key]
        last = max((stamp.time_us for _, stamp in lengths), default=0)
        derived = {key[3][0][2].time_us for key in table if key[0] == "d"}
        return (
            tuple(sorted((stamp.time_us, value is not BOTTOM) for (_, stamp), value in lengths.items())),
            tuple(sorted(number for number in derived if number >= last)),
        )

    def onlookers(self, onlooker):
        versions, derived = onlooker[0]
        table = {}
        for number in derived:
            table |= {k: v for k, v in self.feed((((number, True),), (number, True))).items() if k[0] == "d"}
        lengths = {("l", "K", _version(number)): alive or BOTTOM for number, alive in versions}
        return table | lengths

    def normal(self, sites, onlooker, pool):
        """Stamps numbered anew, two apart: the odd numbers are the gaps."""
        pool = self.useful(sites, onlooker, pool)
        stamps = {n for (versions, last), _ in sites for n in (last[0], *(v[0] for v in versions))}
        stamps |= {n for versions, last in pool for n in (last[0], *(v[0] for v in versions))}
        (versions, derived), seen = onlooker
        stamps |= {seen[0], *derived, *(v[0] for v in versions)} - {0}
        new = {n: 2 * i for i, n in enumerate(sorted(stamps | {0}))}

        def local(versions, last):
            return tuple((new[n], alive) for n, alive in versions), (new[last[0]], last[1])

        return (
            tuple(sorted((local(*state), used) for state, used in sites)),
            ((local(versions, seen)[0], tuple(new[n] for n in derived)), (new[seen[0]], seen[1])),
            frozenset(local(*state) for state in pool),
        )


def _version(number):
    return 0, Stamp(number, 0, "-")


def _rows(table):
    return {key: Row(value, 0, ("-", 1)) for key, value in table.items()}

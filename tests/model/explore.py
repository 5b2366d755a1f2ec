"""Every reachable state of a few sites over one tuple or key, memoised; a site without the base looks on.

A write is interned by (site, number, operation, writes seen); a site's state is the set of writes it has
seen, so a global state is one set per site, the same under a renaming of the sites. A site may write, or
receive the present state of another, or the state right after any write so far: late, again, or never, for a
message that is lost is one that is never received. Checked in every state: the joined table is a function of
the set of writes, in whichever order they came, and means what the oracle says; and whoever sees only
derivations and lengths, in any two or three messages, sees the same.
"""

import itertools
from collections import deque

from tests.model.oracle import Event, History
from tests.model.relations import Pen, Row, kinds
from tests.model.views import Branch, View, derivations, evaluate, everything, live_ids, liveness, valuation

from everview.algebra.clock import Stamp


class Explorer:
    """The states of `sites` sites with at most `operations` writes each, for one kind of relation."""

    def __init__(
        self, relation, *, sites=3, operations=2, limit=10**9, looks=2, rng=None, shortcuts=frozenset()
    ):
        self.relation, self.sites, self.operations, self.limit = relation, sites, operations, limit
        self.looks, self.rng = looks, rng
        self.shortcuts, self.kinds = shortcuts, kinds(shortcuts)
        self.kind = self.kinds[relation]
        self.history = History()
        self.owner, self.number, self.interned = [], [], {}
        self.tables = {0: {}}
        self.feeds, self.renamed, self.looked = {}, {}, set()
        self.checks = 0
        atom = (relation, everything, everything)
        both = Branch((atom, atom), lambda a, b: (a[0],) if a[0] == b[0] else None)
        self.view = View("x", (both, Branch((atom,), lambda a: (a[1],))))
        self.orders = list(itertools.permutations(range(sites)))

    def run(self):
        """Visit every state once, in the order found, or with `rng` in any order; returns how many."""
        start = (0,) * self.sites
        reached, waiting = {start}, deque([start])
        while waiting and len(reached) < self.limit:
            if self.rng:  # deep rather than wide
                waiting.rotate(self.rng.choice([0, 1, 1, 1, 2]))
            state = waiting.popleft()
            for after in self._successors(state):
                if (same := self._canonical(after)) not in reached:
                    reached.add(same)
                    waiting.append(same)
        self.reached = reached
        return len(reached)

    # Steps.

    def _successors(self, state):
        messages = set(state) | {self._after(e) for mask in state for e in _bits(mask)}
        for site, mask in enumerate(state):
            for message in messages:
                if message & ~mask:
                    self._receive(mask, message)
                    yield self._with(state, site, mask | message)
            if sum(self.owner[e] == site for e in _bits(mask)) < self.operations:
                for operation in ("insert", "delete"):
                    if (event := self._write(site, mask, operation)) is not None:
                        yield self._with(state, site, mask | 1 << event)
        self._look_on(sorted(messages))

    def _with(self, state, site, mask):
        return tuple(mask if i == site else m for i, m in enumerate(state))

    def _after(self, event):
        return sum(1 << e for e in self.history.events[event].seen) | 1 << event

    def _write(self, site, mask, operation):
        """The interned write, or None if it would change nothing; the kind's own rule makes its table."""
        number = sum(self.owner[e] == site for e in _bits(mask))
        key = (site, number, operation, mask)
        if key in self.interned:
            return self.interned[key]
        seen = frozenset(_bits(mask))
        clock = 1 + max((self.history.events[e].stamp.counter for e in seen), default=0)
        stamp = Stamp(0, clock, f"s{site}")
        row = (0, len(self.history.events) % 3) if self.relation == "K" else (0, 0)
        table = {k: Row(v, 0, ("-", 1)) for k, v in self.tables[mask].items()}
        pen = Pen((f"s{site}", number), lambda: stamp, self.kind.lowest, lambda _: True, self.shortcuts)
        growth = getattr(self.kind, operation)(table, row, pen)
        if not growth:
            self.interned[key] = None
            return None
        lengths = [self.history.events[e].length for e in seen]
        length = max([0, *lengths]) + 1 if self.relation == "R" else 0
        event = len(self.history.events)
        self.history.events.append(Event(event, self.relation, operation, row, seen, stamp, length))
        self.owner.append(site)
        self.number.append(number)
        self.interned[key] = event
        self._keep(mask | 1 << event, {**self.tables[mask], **growth})
        return event

    def _receive(self, mask, message):
        """The join, twice: a message that comes again changes nothing."""
        joined = self._join(self.tables[mask], self.tables[message])
        self._keep(mask | message, joined)
        if self._join(joined, self.tables[message]) != joined:
            raise AssertionError("a message that came again changed something")

    def _join(self, a, b):
        joined = dict(a)
        for key, value in b.items():
            joined[key] = self.kind.join(joined[key], value) if key in joined else value
        return joined

    def _keep(self, mask, table):
        if self.tables.setdefault(mask, table) != table:
            raise AssertionError(f"the order matters: {self.tables[mask]} or {table}")
        rows = self.kind.valuation({k: Row(v, 0, None) for k, v in table.items()}, lambda _: True)
        wanted = self._wanted(mask)
        self.checks += 1
        if rows != wanted:
            raise AssertionError(f"{dict(rows)}, not {dict(wanted)}")

    def _wanted(self, mask):
        return self.history.relation(self.relation, _bits(mask), lambda _: True)

    # The onlooker.

    def _look_on(self, messages):
        if self.relation == "B":
            return
        for count in range(1, self.looks + 1):
            for chosen in itertools.combinations(messages, count):
                if chosen in self.looked:
                    continue
                self.looked.add(chosen)
                table, mask = {}, 0
                for message in chosen:
                    mask |= message
                    for key, value in self._feed(message).items():
                        held = table.get(key)
                        join = self.kind.join if key[0] == "l" else max
                        table[key] = Row(value if held is None else join(held.value, value), 0, None)
                rows = valuation(table, live_ids(self.kinds, table, lambda _: True))
                wanted = evaluate(self.view, {self.relation: self._wanted(mask)})
                self.checks += 1
                if rows != wanted:
                    raise AssertionError(f"the onlooker sees {dict(rows)}, not {dict(wanted)}")

    def _feed(self, mask):
        """What a site in this state sends of the view: derivations over what lives, and lengths."""
        if mask not in self.feeds:
            tables = {self.relation: {k: Row(v, 0, ("-", 1)) for k, v in self.tables[mask].items()}}
            valued = lambda _: True
            made = derivations(self.kinds, self.view, tables, valued)
            named = {i for key in made for i in key[3]}
            lengths = liveness(self.kinds, self.view, tables, valued, self.shortcuts, named)
            self.feeds[mask] = dict.fromkeys(made, True) | {k: v for k, (v, _) in lengths.items()}
        return self.feeds[mask]

    # Renaming.

    def _canonical(self, state):
        """The least of the states that differ only by the sites' names. Ties in stamps go by name, so the
        states of a keyed relation are left as they are.
        """
        if self.relation == "K":
            return state
        return min(
            tuple(self._rename(state[order.index(i)], order) for i in range(self.sites))
            for order in self.orders
        )

    def _rename(self, mask, order):
        if (mask, order) not in self.renamed:
            self.renamed[mask, order] = sum(1 << self._renamed_event(e, order) for e in _bits(mask))
            self._copy_table(mask, order)
        return self.renamed[mask, order]

    def _renamed_event(self, event, order):
        e = self.history.events[event]
        seen = self._rename(sum(1 << s for s in e.seen), order)
        return self._write(order[self.owner[event]], seen, e.operation)

    def _copy_table(self, mask, order):
        """The renamed state has its table too: the join of the states after its latest writes."""
        target = self.renamed[mask, order]
        if target not in self.tables:
            table = {}
            for event in _bits(target):
                table = self._join(table, self.tables[self._after(event)])
            self._keep(target, table)


def _bits(mask):
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found

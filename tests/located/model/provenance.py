"""Provenance mode as a program: heads travel as derivations over the ids of base facts.

A place keeps of each fact its provenance: the minimal sets of base facts that it can be made from. With it
travel the causal lengths of the ids that it names. A derivation counts while all its ids are live; so nothing
is ever taken back, a cyclic proof is absorbed by the one it goes round in, and whatever arrives may arrive in
any order, any number of times. Rules fire over what is live; when an id comes to live again, everything over
it fires again.

Here each row that one place has for another, a derivation or a length, travels alone: the harshest network.
With `whole`, all that is new for a place travels together, as a site's cuts do; there are fewer orders then.
"""

from tests.located.model.rules import instance, match

from everview.algebra.causal_length import deleted, inserted, is_present
from everview.algebra.provenance import Provenance

SHORTCUTS = {
    "drop the dead": "a derivation that is dead on arrival is not stored",
    "no revival": "what an id makes live again does not fire",
    "lengths once": "the length of an id is sent with its derivation, and not when it grows later",
    "lengths first hand": "only the place of a base fact tells others of its length",
    "silent cut": "of more monomials than the limit the rest is dropped",
    "last length": "of two lengths the one that came last counts",
}

LIMIT = 1


def name(fact):
    return fact[0] + "(" + ",".join(fact[1:]) + ")"


class Place:
    """What one place holds, and what it has for others; `step` methods return rows for other places."""

    def __init__(self, place, rules, shortcuts):
        self.place, self.shortcuts = place, shortcuts
        self.rules = rules
        self.lengths = {}
        self.known = {}
        """Fact → its monomials, an antichain."""
        self.sent = {}
        """Place → the rows that were ever put out for it."""

    def copy(self):
        made = Place(self.place, self.rules, self.shortcuts)
        made.lengths, made.known = dict(self.lengths), dict(self.known)
        made.sent = dict(self.sent)
        return made

    def frozen(self):
        return (
            frozenset(self.lengths.items()),
            frozenset(self.known.items()),
            frozenset(self.sent.items()),
        )

    # Steps.

    def write(self, what, fact):
        """Insert or delete a base fact; nothing happens where it is there already, or not there."""
        id_ = name(fact)
        before = self.lengths.get(id_, 0)
        after = inserted(before) if what == "insert" else deleted(before)
        if after != before:
            self._settle([("length", id_, after), ("derivation", fact, frozenset([id_]))])

    def receive(self, rows):
        self._settle(rows)

    def rows(self):
        """The facts that are here."""
        return {fact for fact, known in self.known.items() if any(map(self._is_live, known))}

    # Inside.

    def _is_live(self, monomial):
        return all(is_present(self.lengths.get(id_, 0)) for id_ in monomial)

    def _settle(self, rows):
        waiting = list(rows)
        while waiting:
            kind, what, value = waiting.pop()
            fired = self._grow(what, value) if kind == "length" else self._add(what, value)
            for fact, monomial in fired:
                for head, made in self._fire(fact, monomial):
                    if head[1] == self.place:
                        waiting.append(("derivation", head, made))
                    else:
                        self._put(head[1], head, made)

    def _grow(self, id_, length):
        """Take a length; return the derivations that it makes live."""
        before = self.lengths.get(id_, 0)
        if length == before or (length < before and "last length" not in self.shortcuts):
            return []
        over = [(fact, m) for fact, known in self.known.items() for m in known if id_ in m]
        was = [one for one in over if self._is_live(one[1])]
        self.lengths[id_] = length
        for place in self.sent:
            self._tell(place, id_)
        if "no revival" in self.shortcuts and before:
            return []
        return [one for one in over if one not in was and self._is_live(one[1])]

    def _add(self, fact, monomial):
        """Store a derivation; return it if it is new and live."""
        known = self.known.get(fact, frozenset())
        live = self._is_live(monomial)
        if not live and "drop the dead" in self.shortcuts:
            return []
        after = Provenance(known).plus(Provenance([monomial])).monomials
        if "silent cut" in self.shortcuts:
            after = frozenset(sorted(after, key=lambda m: (len(m), sorted(m)))[:LIMIT])
        self.known[fact] = after
        return [(fact, monomial)] if live and monomial in after and monomial not in known else []

    def _fire(self, fact, monomial):
        """The heads of all rules over one live derivation and others that are live here."""
        for rule in self.rules:
            for driver, atom in enumerate(rule.body):
                if (bound := match(atom, fact, {})) is not None and bound_place(atom, bound) == self.place:
                    found = [(bound, monomial)]
                    for other, at in enumerate(rule.body):
                        if other != driver:
                            found = [
                                (b, m | more)
                                for bound, m in found
                                for fact2, known in self.known.items()
                                if (b := match(at, fact2, bound)) is not None
                                for more in known
                                if self._is_live(more)
                            ]
                    yield from ((instance(rule.head, bound), m) for bound, m in found)

    def _put(self, place, fact, monomial):
        row = ("derivation", fact, monomial)
        if row not in self.sent.get(place, ()):
            self.sent[place] = self.sent.get(place, frozenset()) | {row}
            for id_ in monomial:
                self._tell(place, id_, new=True)

    def _tell(self, place, id_, new=False):
        """Put the length of an id out for a place that has derivations over it."""
        sent = self.sent.get(place, frozenset())
        named = any(kind == "derivation" and id_ in m for kind, _, m in sent)
        if "lengths first hand" in self.shortcuts:
            named = named and any(fact[1] == self.place and name(fact) == id_ for fact in self.known)
        if named and (new or "lengths once" not in self.shortcuts):
            self.sent[place] = sent | {("length", id_, self.lengths[id_])}


def bound_place(atom, bound):
    return bound.get(atom.place, atom.place)


class World:
    """All places, their writes to come, and what is under way; everything a row can do is a `step`."""

    def __init__(self, rules, places, shortcuts=frozenset(), *, whole=False):
        self.whole = whole
        self.places = {place: Place(place, rules, shortcuts) for place in places}
        self.taken = {place: frozenset() for place in places}
        """Place → the rows that have arrived there, with their senders."""
        self.writes = ()
        """What is still to be written, in order at each place, and in any order across places."""

    def copy(self):
        made = object.__new__(World)
        made.places = dict(self.places)
        made.taken, made.writes, made.whole = dict(self.taken), self.writes, self.whole
        return made

    def key(self):
        return (
            tuple(place.frozen() for place in self.places.values()),
            tuple(self.taken.values()),
            self.writes,
        )

    def steps(self):
        """All that can happen next: a write, or the arrival of a row that has not arrived yet."""
        first = {}
        for number, (_, fact) in enumerate(self.writes):
            first.setdefault(fact[1], number)
        found = [("write", number) for number in first.values()]
        for sender, place in self.places.items():
            for to, rows in place.sent.items():
                taken = self.taken[to]
                new = [row for row in rows if (sender, row) not in taken]
                if self.whole and new:
                    new = [frozenset(new)]
                found += [("arrive", sender, to, row) for row in new]
        return found

    def after(self, step):
        made = self.copy()
        match step:
            case ("write", number):
                what, fact = self.writes[number]
                made.writes = self.writes[:number] + self.writes[number + 1 :]
                made._at(fact[1]).write(what, fact)
            case ("arrive", sender, to, row):
                rows = row if self.whole else [row]
                made.taken[to] |= {(sender, one) for one in rows}
                made._at(to).receive(rows)
        return made

    def again(self, sender, to, row):
        """The world after a row has arrived once more."""
        made = self.copy()
        made._at(to).receive(row if self.whole else [row])
        return made

    def _at(self, place):
        self.places[place] = self.places[place].copy()
        return self.places[place]

    def rows(self):
        return set().union(*(place.rows() for place in self.places.values()))

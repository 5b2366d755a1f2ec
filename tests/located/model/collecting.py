"""Collecting in provenance mode as a program: the dead is taken out of mail, and made again if it returns.

A place's mail is a set relation with causal lengths of its own, which all who send to the place hold: a row
that one takes out another can put back, and what counts is the longest. So anyone may take out a derivation
that is dead by what it knows, at any time. It may know too little: then whoever makes the derivation, and has
it live, finds on hearing of it that the row is gone, and puts it back. Lengths of ids stay for good.

After whatever happens a place reads all its mail and base facts, and writes what follows and is not there.
"""

from tests.located.model.provenance import bound_place, name
from tests.located.model.rules import fixpoint, instance, localise, match, parse
from tests.located.model.worlds import WrongError, applied

from everview.algebra.causal_length import deleted, inserted, is_present

SHORTCUTS = {
    "sent for good": "who has once sent a derivation does not send it again",
    "no answer": "a derivation that was taken out is not put back by who has it live, until an id revives",
    "lengths too": "lengths of dead ids are taken out with the last derivation over them",
}


class Place:
    """Base facts, and for each place's mail the causal length of each row."""

    def __init__(self, place, rules, shortcuts, boxes):
        self.place, self.rules, self.shortcuts, self.boxes = place, rules, shortcuts, boxes
        self.base = frozenset()
        self.mail = {}
        """(place, row) → causal length of the row."""
        self.sent = frozenset()

    def copy(self):
        made = Place(self.place, self.rules, self.shortcuts, self.boxes)
        made.base, made.mail, made.sent = self.base, dict(self.mail), self.sent
        return made

    def key(self):
        return self.base, frozenset(self.mail.items()), self.sent

    # Steps.

    def write(self, what, fact):
        before = self.live()
        self.base = self.base | {fact} if what == "insert" else self.base - {fact}
        self._react(before)

    def merge(self, other):
        """Hear all that another has; return whether that is anything new."""
        before, news = self.live(), False
        for key, length in other.mail.items():
            if key[0] in self.boxes and length > self.mail.get(key, 0):
                self.mail[key], news = length, True
        self._react(before)
        return news

    def collect(self):
        """Take out every derivation that is dead here; return whether there is one."""
        lengths, found = self.lengths(), False
        for key, length in self.mail.items():
            kind, _, value = key[1]
            if is_present(length) and kind == "derivation" and not alive(value, lengths):
                self.mail[key], found = deleted(length), True
        if "lengths too" in self.shortcuts:
            named = {(to, id_) for to, (kind, _, ids) in self.rows() if kind == "derivation" for id_ in ids}
            for to, (kind, id_, value) in list(self.rows()):
                if kind == "length" and not is_present(lengths[id_]) and (to, id_) not in named:
                    self.mail[to, (kind, id_, value)] += 1
        return found

    # What it knows.

    def rows(self):
        return [key for key, length in self.mail.items() if is_present(length)]

    def lengths(self):
        """The greatest lengths in any mail; of one's own facts the next that says whether they are there."""
        found = {}
        for _, (kind, id_, length) in self.rows():
            if kind == "length":
                found[id_] = max(length, found.get(id_, 0))
        own = {name(fact) for fact in self.base}
        for id_ in own | {id_ for id_ in found if id_.split("(")[1][0] == self.place}:
            if is_present(found.get(id_, 0)) != (id_ in own):
                found[id_] = found.get(id_, 0) + 1
        return found

    def live(self):
        """The live monomials of all facts here, closed under the rules; heads for others, too."""
        lengths = self.lengths()
        found = {(fact, frozenset([name(fact)])) for fact in self.base}
        for to, (kind, fact, ids) in self.rows():
            if kind == "derivation" and to == self.place and alive(ids, lengths):
                found.add((fact, ids))
        while more := {one for one in self._fired(found) if absent(one, found)}:
            found |= more
        return frozenset(found)

    def shown(self):
        return {fact for fact, _ in self.live() if fact[1] == self.place}

    # Inside.

    def _fired(self, found):
        here = [(fact, ids) for fact, ids in found if fact[1] == self.place]
        for rule in self.rules:
            bodies = [({}, frozenset())]
            for atom in rule.body:
                bodies = [
                    (more, ids | others)
                    for bound, ids in bodies
                    for fact, others in here
                    if (more := match(atom, fact, bound)) is not None
                    and bound_place(atom, more) == self.place
                ]
            yield from ((instance(rule.head, bound), ids) for bound, ids in bodies)

    def _react(self, before):
        lengths, live = self.lengths(), self.live()
        for fact, ids in live:
            to = fact[1]
            if to == self.place or ("no answer" in self.shortcuts and (fact, ids) in before):
                continue
            if "sent for good" in self.shortcuts and (fact, ids) in self.sent:
                continue
            self.sent |= {(fact, ids)} if "sent for good" in self.shortcuts else frozenset()
            self._put(to, ("derivation", fact, ids))
            for id_ in ids:
                self._tell(to, id_, lengths)
        for to, (kind, id_, _) in self.rows():
            if kind == "length":
                self._tell(to, id_, lengths)

    def _tell(self, to, id_, lengths):
        told = [n for at, (kind, other, n) in self.rows() if (at, kind, other) == (to, "length", id_)]
        if lengths.get(id_, 0) > max(told, default=0):
            self._put(to, ("length", id_, lengths[id_]))

    def _put(self, to, row):
        self.mail[to, row] = inserted(self.mail.get((to, row), 0))


def alive(ids, lengths):
    return all(is_present(lengths.get(id_, 0)) for id_ in ids)


def absent(one, found):
    """Whether no smaller monomial of the fact is known."""
    fact, ids = one
    return not any(other == fact and known <= ids for other, known in found)


class World:
    """Places, what is still to be written, and how often somebody may collect.

    In a line, a place has its own mail and that of its neighbours alone.
    """

    def __init__(self, text, places, writes, collects, shortcuts=frozenset(), *, line=False):
        rules = localise(parse(text))
        self.text, self.writes, self.collects = text, tuple(writes), collects
        self.places = {}
        for at, place in enumerate(places):
            boxes = places[max(at - 1, 0) : at + 2] if line else places
            self.places[place] = Place(place, rules, shortcuts, boxes)

    def key(self):
        return tuple(place.key() for place in self.places.values()), self.writes, self.collects

    def after(self, *changed):
        made = object.__new__(World)
        made.text, made.writes, made.collects = self.text, self.writes, self.collects
        made.places = {n: p.copy() if n in changed else p for n, p in self.places.items()}
        return made

    def following(self):
        """All worlds that one step leads to; those by a write or by hearing something new."""
        found = []
        first = {}
        for number, (_, fact) in enumerate(self.writes):
            first.setdefault(fact[1], number)
        for place, number in first.items():
            made = self.after(place)
            made.writes = self.writes[:number] + self.writes[number + 1 :]
            made.places[place].write(*self.writes[number])
            found.append(made)
        for one in self.places:
            for other in self.places:
                made = self.after(one)
                if one != other and made.places[one].merge(self.places[other]):
                    found.append(made)
        return found

    def collecting(self):
        """All worlds in which some place has collected."""
        found = []
        for place in self.places if self.collects else ():
            made = self.after(place)
            made.collects -= 1
            if made.places[place].collect():
                found.append(made)
        return found

    def check(self, writes):
        rules = parse(self.text)
        names = {atom.name for rule in rules for atom in (rule.head, *rule.body)}
        wanted = {fact for fact in fixpoint(rules, applied(frozenset(), writes)) if fact[0] in names}
        shown = set().union(*(place.shown() for place in self.places.values()))
        if (found := {fact for fact in shown if fact[0] in names}) != wanted:
            raise WrongError(f"{found} is not {wanted}")


def every_schedule(text, places, writes, collects, shortcuts=frozenset(), *, line=False, limit=60_000):
    """Visit every state that some schedule reaches; each that is at rest must be right. Return how many."""
    start = World(text, places, writes, collects, shortcuts, line=line)
    seen, waiting = {start.key()}, [start]
    while waiting:
        world = waiting.pop()
        following = world.following()
        if not following:
            world.check(writes)
        for made in (*following, *world.collecting()):
            if (key := made.key()) not in seen:
                seen.add(key)
                waiting.append(made)
        if len(seen) > limit:
            raise WrongError("it does not come to rest")
    return len(seen)


def random_schedule(text, places, writes, rng, shortcuts=frozenset()):
    """One schedule in which places write, hear and collect in any order, then only hear."""
    world = World(text, places, writes, 10, shortcuts)
    for _ in range(3_000):
        following = world.following()
        collecting = world.collecting() if world.writes else []
        if not following and not collecting:
            world.check(writes)
            return
        world = rng.choice(collecting if collecting and rng.random() < 0.3 else following or collecting)
    raise WrongError("it does not come to rest")

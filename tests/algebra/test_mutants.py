"""Each gap of the papers that lives at this level, put back: a check must catch it.

The numbers are those of the lists of gaps: Streams, Titan, Rings.
"""

import operator
from dataclasses import replace
from types import MappingProxyType

import pytest

from everview import crdt
from everview.algebra.clock import HybridClock, Stamp
from everview.algebra.crdt.contributions import Contributions, Delta, Entry
from everview.algebra.crdt.summation import Total
from everview.algebra.crdt.top_n import Top
from everview.algebra.lattices import CONFLICT, DotSet, GrowSet, Lexicographic, Max, MergeMap, WriteOnce
from everview.algebra.provenance import Provenance, PSemiring
from everview.testing import LawViolation, check_crdt, check_lattice, check_semiring

UPDATES = [lambda r: r.add(3), lambda r: r.add(2)]


def caught(make, law, updates=UPDATES):
    with pytest.raises(LawViolation) as violation:
        check_crdt(make, updates)
    assert violation.value.law in ([law] if isinstance(law, str) else law)


class Unreduced(Provenance):
    """A sum of monomials without absorption."""

    @classmethod
    def made(cls, family):
        made = cls()
        made._monomials = frozenset(family)
        return made


class UnionInsteadOfAbsorption(PSemiring):
    """Streams: a sum keeps monomials that contain another."""

    def plus(self, a, b):
        return Unreduced.made(a.monomials | b.monomials)

    def times(self, a, b):
        return Unreduced.made(m | n for m in a.monomials for n in b.monomials)

    join = plus


SMALL = [Provenance.parse(text) for text in ("0", "1", "t", "u", "t·u", "t + u")]


def test_union_instead_of_absorption():
    with pytest.raises(LawViolation, match="order"):
        check_lattice(UnionInsteadOfAbsorption(), SMALL)
    mutant = UnionInsteadOfAbsorption()
    t_plus_u, u_plus_v = (Provenance.parse(text) for text in ("t + u", "u + v"))
    assert mutant.times(t_plus_u, u_plus_v) != PSemiring().times(t_plus_u, u_plus_v)
    with pytest.raises(LawViolation) as violation:
        check_semiring(_Absorbing(), SMALL)
    assert violation.value.law in ("distribution", "associative +", "associative ·")


class _Absorbing(PSemiring):
    """Absorption the wrong way round: the largest monomials stay."""

    def plus(self, a, b):
        both = a.monomials | b.monomials
        return Unreduced.made(m for m in both if not any(m < n for n in both))


class AppliedTwice(crdt.Sum):
    """Titan 1: merge-delta adds, whatever it has seen."""

    def merge_delta(self, delta):
        mine = self._state.get(delta.source, Entry(0, self.aggregate.zero()))
        total = self.aggregate.combine(mine.total, delta.contribution)
        count = max(mine.count, delta.number)
        self._state = MappingProxyType({**self._state, delta.source: Entry(count, total)})
        return True


def test_merge_delta_applied_twice():
    caught(AppliedTwice, ["merge_delta applies once", "echo"])


class AddedIntoTheSourcesEntry(AppliedTwice):
    """Titan 2: each delta once, but folded into the source's entry, and entries joined by the greater."""

    def merge_delta(self, delta):
        seen = self.__dict__.setdefault("_seen", set())
        if (delta.source, delta.number) in seen or delta.source == self.source:
            return False
        seen.add((delta.source, delta.number))
        return super().merge_delta(delta)


def test_deltas_of_one_replica_folded_into_two_primaries():
    caught(AddedIntoTheSourcesEntry, ["two primaries", "order of deltas"])
    one, other = AddedIntoTheSourcesEntry("one"), AddedIntoTheSourcesEntry("other")
    worker = one.hollow("worker")
    for primary, amount in ((one, 3), (other, 2)):
        worker.add(amount)
        primary.merge_delta(worker.flush())
    one.join(other)
    assert one.value != 5


class CreditedToTheReceiver(crdt.Sum):
    """Titan 2, half mended: credit the receiver's own entry, so a delta over two paths counts twice."""

    def merge_delta(self, delta):
        seen = self.__dict__.setdefault("_seen", set())
        if (delta.source, delta.number) in seen or delta.source == self.source:
            return False
        seen.add((delta.source, delta.number))
        self.contribute(delta.contribution)
        return True


def test_deltas_credited_to_the_receiver():
    caught(CreditedToTheReceiver, ["two paths", "echo", "promotion in flight"])


class ForgetsTheUnsent(crdt.Sum):
    """Titan 7: promotion replaces the state and drops what was not sent."""

    def promote(self, known):
        self._unsent, self._dirty = self.aggregate.zero(), False
        super().promote(known)


def test_promotion_that_forgets_the_unsent_part():
    caught(ForgetsTheUnsent, "promotion")


class SendsTheWhole(crdt.Sum):
    """Titan 7: promotion mixes what was learnt into what will be sent."""

    def promote(self, known):
        self.contribute(self.lattice.total(known.state()))
        self._hollow = False


def test_promotion_that_mixes_the_learnt_into_the_unsent():
    caught(SendsTheWhole, "unsent part")


class Lost(crdt.Sum):
    """Promotion that takes the whole for all there is, and loses a delta under way."""

    def promote(self, known):
        self._state = known.state()
        self._hollow = False


def test_promotion_that_loses_a_delta_in_flight():
    caught(Lost, "promotion in flight")


class EchoCounted(crdt.Sum):
    """Rings 1: a replica does not record its own update ids, so an echo doubles."""

    def flush(self):
        before = self._state
        delta = super().flush()
        if delta:
            self.__dict__["_mine"] = self.__dict__.get("_mine", 0) + 1
            self._state = before
            self._state = self.lattice.join(
                before, {f"{self.source}/self": Entry(self._mine, self._own(delta))}
            )
            delta = replace(delta, number=self._mine)
        return delta

    def _own(self, delta):
        entry = self._state.get(f"{self.source}/self")
        return self.aggregate.combine(entry.total if entry else self.aggregate.zero(), delta.contribution)


def test_an_echo_counted_twice():
    caught(EchoCounted, ["echo", "promotion in flight"])


class SameDotAgain(crdt.Sum):
    """Rings 3: the clock is lost, dots are used again, and new updates are silently dropped."""

    def flush(self):
        delta = super().flush()
        if delta:
            mine = self._state[self.source]
            self._state = MappingProxyType({**self._state, self.source: Entry(0, mine.total)})
            delta = replace(delta, number=1)
        return delta


def test_a_lost_clock_reuses_dots():
    caught(SameDotAgain, ["order of deltas", "echo", "two primaries"])


class Negative(Total):
    """Titan 3: add(−5) goes into the half of what was added."""

    def lift(self, amount):
        return self.exact.enter(amount), self.exact.enter(0)


def test_negative_amounts_added_break_monotonicity():
    """Titan's merge takes the greater of each half: under it, adding −5 must not shrink a half."""
    titan = MergeMap(Max())
    for total, grows in ((crdt.Sum("a").aggregate, True), (Negative(crdt.Sum("a").aggregate.exact), False)):
        before = total.lift(3)
        after = total.combine(before, total.lift(-5))
        halves = [dict(zip("PN", amounts, strict=True)) for amounts in (before, after)]
        assert titan.leq(*halves) is grows
        assert (titan.join(*halves) == halves[1]) is grows


class TopKeptAlone(Top):
    """Titan 5: only the n greatest are kept, so nobody can move up."""

    def combine(self, a, b):
        whole = super().combine(a, b)
        return MappingProxyType({key: whole[key] for key, _ in self.value(whole)})


def test_a_top_n_kept_alone():
    class Mutant(crdt.TopN):
        def __init__(self, source):
            crdt.Replica.__init__(self, TopKeptAlone(1, crdt.Sum("a").aggregate.exact), source)

    updates = [lambda r: r.add("x", 3), lambda r: r.add("y", 2), lambda r: r.subtract("x", 2)]
    caught(Mutant, "order of updates", updates)


class FirstComes(crdt.Set):
    """Titan 8: of two texts for one message the first to arrive stays."""

    def __init__(self, source):
        super().__init__(source, key=lambda element: element[0])
        self.aggregate = _FirstWins(self.aggregate.key)
        self.lattice = Contributions(self.aggregate)


class _FirstWins(type(crdt.Set("a").aggregate)):
    def combine(self, a, b):
        return MappingProxyType({**b, **a})


def test_the_first_text_of_a_message_wins():
    caught(
        FirstComes,
        "order of updates",
        [lambda r: r.add((1, "x")), lambda r: r.add((1, "y"))],
    )


class GapsForgotten(Contributions):
    """Rings, performant wrapper: a clock per source, and whatever is below it counts as seen."""

    def join(self, a, b):
        joined = dict(a)
        for source, entry in b.items():
            mine = joined.get(source)
            number = max([entry.count, *entry.ahead])
            total = self.total({source: entry})
            if mine is None:
                joined[source] = Entry(number, total)
            elif number > mine.count:
                joined[source] = Entry(number, self.aggregate.combine(mine.total, total))
        return MappingProxyType(joined)


def test_a_clock_instead_of_dots_loses_what_comes_late():
    class Mutant(crdt.Sum):
        def __init__(self, source):
            super().__init__(source)
            self.lattice = GapsForgotten(self.aggregate)

        def hollow(self, source):
            made = super().hollow(source)
            made.lattice = GapsForgotten(self.aggregate)
            return made

    caught(Mutant, ["order of deltas", "concurrent updates", "echo"])


def test_floats_added_as_floats_depend_on_the_order():
    class Floats(type(crdt.Sum("a", of=float).aggregate)):
        def combine(self, a, b):
            return float(a[0]) + float(b[0]), float(a[1]) + float(b[1])

    class Mutant(crdt.Sum):
        def __init__(self, source):
            crdt.Replica.__init__(self, Floats(crdt.Sum("a", of=float).aggregate.exact), source)

    updates = [lambda r: r.add(1e16), lambda r: r.add(1.0), lambda r: r.add(-1e16)]
    caught(Mutant, "order of updates", updates)


def mutant(lattice, **methods):
    return type("Mutant", (lattice,), methods)


@pytest.mark.parametrize(
    ("broken", "samples", "law"),
    [
        (
            type("Overwrite", (Max,), {"join": lambda s, a, b: a if b is None else b})(),
            [None, 1, 2],
            "commutative",
        ),
        (type("Sum", (Max,), {"join": lambda s, a, b: (a or 0) + (b or 0)})(), [None, 1, 2], "idempotent"),
        (
            mutant(Lexicographic, join=lambda s, a, b: b if s.first.leq(a[0], b[0]) else a)(Max(), GrowSet()),
            [(1, frozenset("a")), (1, frozenset("b"))],
            "commutative",
        ),
        (
            mutant(WriteOnce, join=lambda s, a, b: a)(),
            ["a", "b", CONFLICT],
            "commutative",
        ),
        (
            type("Strict", (Max,), {"leq": lambda s, a, b: a is None or (b is not None and a < b)})(),
            [1, 2],
            "reflexive",
        ),
        (
            type("AlwaysGrew", (GrowSet,), {"merge": lambda s, a, b: (a | b, True)})(),
            [frozenset("a")],
            "merge",
        ),
    ],
)
def test_broken_lattices(broken, samples, law):
    with pytest.raises(LawViolation) as violation:
        check_lattice(broken, samples)
    assert violation.value.law in (law, "bottom")


def test_forwarding_what_did_not_grow_would_echo_for_ever():
    """Streams 4: two mutual replicas, each forwarding what a merge says is new, must fall silent."""

    def rounds(delta):
        table, one, other, batch = MergeMap(Max()), {}, {}, {"t": 1}
        for count in range(10):
            if not batch:
                return count
            news = delta(table, one, batch)
            one, other, batch = other, table.join(one, batch), news
        return None

    assert rounds(lambda table, current, arriving: table.delta(current, arriving)) is not None
    assert rounds(lambda table, current, arriving: arriving) is None


def test_a_tie_break_by_arrival_diverges():
    clock = HybridClock("b", lambda: 5)
    mine, theirs = clock.stamp(), Stamp(5, 0, "a")
    assert (mine > theirs) is not (theirs > mine)
    unbroken = operator.attrgetter("time_us", "counter")
    assert unbroken(mine) == unbroken(theirs)


def test_an_unrecorded_gap_would_count_as_seen():
    seen = DotSet([("a", 1), ("a", 3)])
    assert seen.prefix("a") == 1
    assert ("a", 2) not in seen
    assert Delta("a", 2, "late").number not in range(1, seen.prefix("a") + 1)

"""The laws of a computational CRDT: of its states, of hollow replicas, deltas and promotion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations, product
from operator import eq
from typing import Any

from everview.algebra.crdt.contributions import Delta, State, dots
from everview.algebra.crdt.replica import Replica
from everview.testing.laws import Law, check_laws
from everview.testing.structures import lattice_laws

AnyReplica = Replica[Any, Any]
Make = Callable[[str], AnyReplica]
Update = Callable[[AnyReplica], object]
Equality = Callable[[Any, Any], bool]


def check_crdt(make: Make, updates: Any, *, equal: Equality | None = None, max_examples: int = 60) -> None:
    """Check that replicas of a CRDT agree with one replica that was updated directly.

    `make(source)` returns a new replica, `updates` are functions that update one (samples or a Hypothesis
    strategy), `equal` compares values: exactly by default, within a bound for sketches.
    """
    laws = _Laws(make, equal or eq, exact=equal is None)
    check_laws(make("a").aggregate, laws.all(), updates, max_examples=max_examples)


@dataclass(frozen=True, slots=True)
class _Laws:
    make: Make
    equal: Equality
    exact: bool

    def all(self) -> list[Law]:
        return [
            Law("order of updates", "updates may be made in any order", 3, self.commute),
            Law("hollow", "a hollow replica's delta counts as much as a direct update", 2, self.hollow),
            Law("merge_delta applies once", "a delta taken in twice counts once", 2, self.once),
            Law("echo", "a replica's own delta, coming back, changes nothing", 2, self.echo),
            Law("order of deltas", "deltas may arrive in any order", 3, self.any_order),
            Law("concurrent updates", "joining two replicas keeps the updates of both", 2, self.concurrent),
            Law("two primaries", "deltas of one source may go to different replicas", 2, self.primaries),
            Law("two paths", "a delta that came over two replicas counts once", 2, self.paths),
            Law("promotion", "a promoted replica shows the whole and its own unsent part", 2, self.promotion),
            Law("unsent part", "after promotion a delta holds the replica's own part alone", 2, self.unsent),
            Law("promotion in flight", "a delta under way at promotion counts once", 2, self.in_flight),
            Law(
                "states form a lattice",
                "all states that are reached obey its laws",
                3,
                self.states,
            ),
        ]

    def direct(self, *updates: Update) -> Any:
        """Return the value of one replica to which the updates were applied: what all must agree with."""
        replica = self.make("direct")
        for update in updates:
            update(replica)
        return replica.value

    def commute(self, a: Update, b: Update, c: Update) -> bool:
        whole = self.direct(a, b, c)
        return all(self.equal(whole, self.direct(*order)) for order in permutations((a, b, c)))

    def hollow(self, a: Update, b: Update) -> bool:
        primary = self.make("primary")
        a(primary)
        worker = primary.hollow("worker")
        alone = self.equal(worker.value, self.direct())
        primary.merge_delta(self._delta(worker, b))
        return alone and self.equal(primary.value, self.direct(a, b))

    def once(self, a: Update, b: Update) -> bool:
        primary, worker = self._pair(a)
        delta = self._delta(worker, b)
        news = [primary.merge_delta(delta) for _ in range(3)]
        return news == [True, False, False] and self.equal(primary.value, self.direct(a, b))

    def echo(self, a: Update, b: Update) -> bool:
        replica, other = self.make("one"), self.make("other")
        delta = self._delta(replica, a)
        b(replica)
        other.merge_delta(delta)
        news = replica.join(other) or replica.merge_delta(delta)
        return news is False and self.equal(replica.value, self.direct(a, b))

    def any_order(self, a: Update, b: Update, c: Update) -> bool:
        worker = self.make("primary").hollow("worker")
        first, second, third = (self._delta(worker, update) for update in (a, b, c))
        late = self.make("primary")
        for delta in (third, first, third, second, first):
            late.merge_delta(delta)
        return self.equal(late.value, self.direct(a, b, c))

    def concurrent(self, a: Update, b: Update) -> bool:
        one, other = self.make("one"), self.make("other")
        a(one)
        b(other)
        grew = one.join(other)
        again = one.join(other)
        other.join(one)
        whole = self.direct(a, b)
        return grew and not again and self.equal(one.value, whole) and self.equal(other.value, whole)

    def primaries(self, a: Update, b: Update) -> bool:
        one, other = self.make("one"), self.make("other")
        worker = one.hollow("worker")
        one.merge_delta(self._delta(worker, a))
        other.merge_delta(self._delta(worker, b))
        one.join(other)
        return self.equal(one.value, self.direct(a, b))

    def paths(self, a: Update, b: Update) -> bool:
        one, other = self.make("one"), self.make("other")
        worker = one.hollow("worker")
        delta = self._delta(worker, a)
        one.merge_delta(delta)
        other.merge_delta(delta)
        b(other)
        one.join(other)
        return self.equal(one.value, self.direct(a, b))

    def promotion(self, a: Update, b: Update) -> bool:
        primary, worker = self._pair(a)
        b(worker)
        worker.promote(primary)
        return not worker.is_hollow and self.equal(worker.value, self.direct(a, b))

    def unsent(self, a: Update, b: Update) -> bool:
        primary, worker = self._pair(a)
        b(worker)
        worker.promote(primary)
        delta = worker.flush()
        if delta is None:  # the unsent part was forgotten
            return False
        stranger = self.make("stranger")
        stranger.merge_delta(delta)
        primary.merge_delta(delta)
        return self.equal(stranger.value, self.direct(b)) and self.equal(primary.value, self.direct(a, b))

    def in_flight(self, a: Update, b: Update) -> bool:
        primary, worker = self._pair(a)
        delta = self._delta(worker, b)
        worker.promote(primary)
        before = self.equal(worker.value, self.direct(a, b))
        primary.merge_delta(delta)
        worker.join(primary)
        return before and self.equal(worker.value, self.direct(a, b))

    def states(self, a: Update, b: Update, c: Update) -> bool:
        one, other, gap = self.make("one"), self.make("other"), self.make("gap")
        reached: list[State[Any]] = [one.state()]
        for replica, update in ((one, a), (one, b), (other, c)):
            update(replica)
            reached.append(replica.state())
        worker = one.hollow("worker")
        deltas = [self._delta(worker, update) for update in (a, b)]
        gap.merge_delta(deltas[1])
        reached.append(gap.state())
        gap.join(one)
        reached.append(gap.state())
        laws = lattice_laws(one.lattice, self._same_state(one))
        return all(law.holds(*elements) for law in laws for elements in product(reached, repeat=law.arity))

    def _same_state(self, replica: AnyReplica) -> Equality:
        def same(x: State[Any], y: State[Any]) -> bool:
            if self.exact:
                return bool(x == y)
            value = replica.aggregate.value
            total = replica.lattice.total
            return dots(x) == dots(y) and self.equal(value(total(x)), value(total(y)))

        return same

    def _pair(self, first: Update) -> tuple[AnyReplica, AnyReplica]:
        primary = self.make("primary")
        first(primary)
        return primary, primary.hollow("worker")

    def _delta(self, replica: AnyReplica, update: Update) -> Delta[Any]:
        update(replica)
        delta = replica.flush()
        if delta is None:
            raise AssertionError("flush returned nothing right after an update")
        return delta

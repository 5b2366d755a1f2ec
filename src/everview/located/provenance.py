"""Provenance mode: one place of a located program, without input or output (Streams §7 over PSN's rules).

Of each fact a place keeps the minimal sets of base facts that it can be made from, its monomials, as bits.
Facts for other places travel as derivations: the fact and the ids of one monomial. With them travel the
causal lengths of the ids they name, and again whenever one grows. A derivation counts while all its ids are
live. So nothing is ever taken back; a proof that goes round in a circle contains a shorter one, and is
absorbed.

Rules fire over what is live. What is dead on arrival is kept, and when an id comes to live again, everything
over it fires again. `tests/located/model/provenance.py` is the specification.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from everview.algebra.antichain import minimal
from everview.algebra.causal_length import is_present
from everview.errors import LimitError
from everview.located.facts import Fact
from everview.located.items import Derivation, Item, Length
from everview.located.monomials import absorb, thin
from everview.located.rules import Firing, Rules

__all__ = ["MOST_MONOMIALS", "News", "ProvenancePlace"]

MOST_MONOMIALS = 10_000
"""How many minimal proofs a fact may have before it is too much to send them about."""

_SUPERSEDED = 8
"""So many lengths of an id may lie in a place's mail beside the one that counts."""


@dataclass(slots=True)
class News:
    """What happened at a place: facts that appeared (+1) or went (−1), and what is to be sent.

    `add` is for each place what is new for it, and `drop` what that makes superfluous.
    """

    changes: dict[Fact, int] = field(default_factory=dict)
    add: dict[str, list[Item]] = field(default_factory=dict)
    drop: dict[str, list[Item]] = field(default_factory=dict)


@dataclass(slots=True)
class _Channel:
    """What a place has been sent, by whoever sent it."""

    monomials: dict[Fact, list[int]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)


class ProvenancePlace:
    """What one place knows. Tell it things, then `take` what is new."""

    def __init__(
        self, place: str, rules: Rules, identify: Callable[[Fact], bytes], *, limit: int = MOST_MONOMIALS
    ) -> None:
        self.place = place
        self._rules, self._identify, self._limit = rules, identify, limit
        self._facts = rules.facts()
        self._bits: dict[bytes, int] = {}
        self._powers: dict[bytes, int] = {}
        """Id → the monomial of that id alone."""
        self._ids: list[bytes] = []
        self._owners: dict[int, str] = {}
        self._lengths: dict[int, int] = {}
        self._live = 0
        """The bits of ids that are live."""
        self._written: set[int] = set()
        """The ids of base facts that are here now."""
        self._monomials: dict[Fact, list[int]] = {}
        self._over: dict[int, dict[Fact, None]] = {}
        """Id → the facts that had it in a monomial."""
        self._shown: set[Fact] = set()
        self._channels: dict[str, _Channel] = {}
        self._before: dict[Fact, bool] = {}
        self._news = News()
        self._waiting: deque[tuple[Fact, int]] = deque()
        self._dead: dict[int, int] = {}
        """The ids that were dead when `stale` was last asked for, with their lengths."""

    # Telling.

    def write(self, fact: Fact, *, present: bool) -> None:
        """Say that a base fact of this place is there now, or not."""
        bit = self._bit(self._identify(fact))
        (self._written.add if present else self._written.discard)(bit)
        if present:
            self._derive(fact, 1 << bit, "")
        self._grow(bit, self._lengths.get(bit, 0), self.place)
        self._settle()

    def hold(self, facts: Iterable[Fact]) -> None:
        """Say, before anything is heard, which base facts are here: lengths of them are judged by it."""
        self._written.update(self._bit(self._identify(fact)) for fact in facts)

    def hear(self, to: str, items: Iterable[Item]) -> None:
        """Take what was sent to this place, or what another is known to have been sent."""
        told = sorted(items, key=lambda item: isinstance(item, Derivation))  # lengths first
        channel = None if to == self.place else self._channels.setdefault(to, _Channel())
        behind: dict[int, None] = {}
        for item in told:
            match item:
                case Length(place, id_, length):
                    bit = self._bit(id_)
                    if channel is not None:
                        channel.lengths[bit] = max(length, channel.lengths.get(bit, 0))
                        behind[bit] = None
                    self._grow(bit, length, place)
                case Derivation(fact, ids):
                    mask = self._mask(ids)
                    if channel is not None:
                        absorb(channel.monomials.setdefault(fact, []), mask)
                    else:
                        self._derive(fact, mask, "")
        if channel is not None:
            self._catch_up(to, channel, behind)
        self._settle()

    def _catch_up(self, to: str, channel: _Channel, bits: Iterable[int]) -> None:
        """Tell a place what is known here beyond what it was sent: by this place, before it went back."""
        for bit in bits:
            self._tell(to, channel, bit)

    def take(self) -> News:
        """Return what has happened since the last time."""
        news, self._news = self._news, News()
        for fact, was in self._before.items():
            now = fact in self._shown
            if now != was:
                news.changes[fact] = 1 if now else -1
        self._before = {}
        return news

    # Forgetting.

    def stale(self) -> frozenset[bytes]:
        """The ids that are dead now, and have been since the last time that this was asked."""
        dead = {bit: length for bit, length in self._lengths.items() if not is_present(length)}
        before, self._dead = self._dead, dead
        return frozenset(self._ids[bit] for bit, length in dead.items() if before.get(bit) == length)

    def forget(self, ids: Iterable[bytes]) -> None:
        """Forget all derivations over dead ids, here and as sent to others; their lengths are kept."""
        bits = [self._bits[id_] for id_ in ids]
        gone = sum(1 << bit for bit in bits)
        over = {fact: None for bit in bits for fact in self._over.pop(bit, ())}
        thin(self._monomials, over, gone)
        for channel in self._channels.values():
            thin(channel.monomials, list(channel.monomials), gone)

    def counts_on(self, to: str, derivation: Derivation) -> bool:
        """Whether this place takes it that a derivation lies in a place's mail: no smaller one is known."""
        known = self._monomials if to == self.place else self._channels.get(to, _Channel()).monomials
        kept = known.get(derivation.fact)
        return kept is not None and self._mask(derivation.ids) in kept

    # Reading.

    def rows(self, relation: str) -> set[tuple[object, ...]]:
        """The rows of a relation that are here."""
        return {row for name, row in self._shown if name == relation}

    def monomials(self, fact: Fact) -> frozenset[frozenset[bytes]]:
        """The minimal sets of live base facts that a fact is there for."""
        live = [mask for mask in self._monomials.get(fact, ()) if self._is_live(mask)]
        return frozenset(frozenset(self._ids_of(mask)) for mask in minimal(live))

    def size(self) -> Mapping[str, int]:
        """How much is kept: facts, monomials, ids."""
        kept = sum(map(len, self._monomials.values()))
        return {"facts": len(self._shown), "monomials": kept, "ids": len(self._ids)}

    # Ids.

    def _bit(self, id_: bytes) -> int:
        bit = self._bits.setdefault(id_, len(self._ids))
        if bit == len(self._ids):
            self._ids.append(id_)
        return bit

    def _mask(self, ids: Iterable[bytes]) -> int:
        powers, mask = self._powers, 0
        for id_ in ids:
            power = powers.get(id_)
            if power is None:
                power = powers[id_] = 1 << self._bit(id_)
            mask |= power
        return mask

    def _bits_of(self, mask: int) -> Iterator[int]:
        while mask:
            lowest = mask & -mask
            yield lowest.bit_length() - 1
            mask ^= lowest

    def _ids_of(self, mask: int) -> Iterator[bytes]:
        return (self._ids[bit] for bit in self._bits_of(mask))

    def _is_live(self, mask: int) -> bool:
        return not mask & ~self._live

    def _grow(self, bit: int, length: int, place: str) -> None:
        """Take a causal length; of an own base fact it goes on to the next that says whether that is there.

        Others may know more of this place's facts than it does itself, if it was put back from a backup.
        """
        self._owners[bit] = place
        before = self._lengths.get(bit, 0)
        after = max(before, length)
        if place == self.place and is_present(after) != (bit in self._written):
            after += 1
        if after == before:
            return
        self._lengths[bit] = after
        for to, channel in self._channels.items():
            if bit in channel.lengths:
                self._tell(to, channel, bit)
        if is_present(before) != is_present(after):
            self._live ^= 1 << bit
            turn = self._revive if is_present(after) else self._fade
            for fact in self._over.get(bit, ()):
                turn(fact, bit)

    def _revive(self, fact: Fact, bit: int) -> None:
        for mask in self._monomials.get(fact, ()):
            if mask >> bit & 1 and self._is_live(mask):
                self._show(fact)
                self._waiting.append((fact, mask))

    def _fade(self, fact: Fact, _: int) -> None:
        if fact in self._shown and not any(map(self._is_live, self._monomials[fact])):
            self._before.setdefault(fact, True)
            self._shown.discard(fact)
            self._facts.drop(*fact)

    # Facts.

    def _derive(self, fact: Fact, mask: int, rule: str) -> None:
        """Keep a monomial, dead or alive; what is new and live is going to fire."""
        kept = self._monomials.setdefault(fact, [])
        if absorb(kept, mask) is None:
            return
        if len(kept) > self._limit:
            raise self._too_many(fact, rule)
        for bit in self._bits_of(mask):
            self._over.setdefault(bit, {})[fact] = None
        if self._is_live(mask):
            self._show(fact)
            self._waiting.append((fact, mask))

    def _show(self, fact: Fact) -> None:
        if fact not in self._shown:
            self._before.setdefault(fact, False)
            self._shown.add(fact)
            self._facts.add(*fact)

    def _settle(self) -> None:
        """Fire until nothing is new."""
        while self._waiting:
            fact, mask = self._waiting.popleft()
            if not self._is_live(mask):
                continue
            for position, firing in self._rules.fire(fact, self._facts):
                for made in self._made(firing, position, mask):
                    if firing.place == self.place:
                        self._derive(firing.head, made, firing.rule.origin)
                    else:
                        self._send(firing, made)

    def _made(self, firing: Firing, driver: int, mask: int) -> Iterable[int]:
        """The monomials of a head: of one of each fact of the body, all the ids."""
        options = [
            [mask] if position == driver else [m for m in self._monomials[fact] if self._is_live(m)]
            for position, fact in enumerate(firing.body)
        ]
        if len(options) == 1:
            return options[0]
        found = set()
        for chosen in product(*options):
            union = 0
            for one in chosen:
                union |= one
            found.add(union)
        return minimal(found) if len(found) > 1 else found

    def _send(self, firing: Firing, mask: int) -> None:
        channel = self._channels.setdefault(firing.place, _Channel())
        kept = channel.monomials.setdefault(firing.head, [])
        superfluous = absorb(kept, mask)
        if superfluous is None:
            return
        if len(kept) > self._limit:
            raise self._too_many(firing.head, firing.rule.origin)
        for bit in self._bits_of(mask):
            self._tell(firing.place, channel, bit)
        self._put(firing.place, Derivation(firing.head, frozenset(self._ids_of(mask))))
        for old in superfluous:
            self._pull(firing.place, Derivation(firing.head, frozenset(self._ids_of(old))))

    def _tell(self, to: str, channel: _Channel, bit: int) -> None:
        """Send a length that is greater than what the other place has been sent."""
        length, sent = self._lengths.get(bit, 0), channel.lengths.get(bit, 0)
        if length <= sent:
            return
        channel.lengths[bit] = length
        place, id_ = self._owners[bit], self._ids[bit]
        self._put(to, Length(place, id_, length))
        if length % _SUPERSEDED == 0:  # to take each back at once would be as much mail again
            for old in range(max(length - _SUPERSEDED, 1), length):
                self._pull(to, Length(place, id_, old))

    def _put(self, to: str, item: Item) -> None:
        self._news.add.setdefault(to, []).append(item)

    def _pull(self, to: str, item: Item) -> None:
        added = self._news.add.get(to, [])
        if item in added:
            added.remove(item)
        else:
            self._news.drop.setdefault(to, []).append(item)

    def _too_many(self, fact: Fact, rule: str) -> LimitError:
        name, row = fact
        rules = rule or " ".join(self._rules.heads(name))
        return LimitError(
            f"{name}{row} at {self.place} has more than {self._limit} proofs by {rules} "
            "Host the relations that it reads at one site, where no proofs are kept, or raise the limit",
            limit=self._limit,
        )

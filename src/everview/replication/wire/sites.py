"""Sites in a message: every incarnation that it names stands once, and is known by its position."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate, compress, islice
from operator import ne, sub

from everview.engines.sqlite.integers import is_same, within
from everview.engines.sqlite.rows.dots import NUMBERS, SHIFT
from everview.engines.sqlite.rows.ledger import SITES, Partition, number_sites, numbers_in
from everview.errors import WireError

__all__ = ["Named", "Naming", "beginnings", "incarnation_of"]

UNNAMED = -1
"""The number of a site that is not in a vector."""

MOST_NEW = 10_000
"""How many stores that were not known a message may name."""


def incarnation_of(name: bytes) -> str:
    """Return an incarnation as a store has it."""
    return name.hex()


class Naming:
    """The sites of a message that is being written: the sender's own first."""

    def __init__(self, connection: sqlite3.Connection, own: int) -> None:
        self._connection = connection
        self._sites = [own]
        self._positions: dict[int, int] = {own: 0}

    def place(self, site: int) -> int:
        """The position of a site, by any number that it has in this store."""
        found = self._positions.get(site)
        if found is None:
            (first,) = self._connection.execute(
                f"SELECT a.number FROM {SITES} AS s JOIN {SITES} AS a ON a.incarnation = s.incarnation "
                "AND a.partition = 0 WHERE s.number = ?",
                (site,),
            ).fetchone()
            found = self._positions.setdefault(first, len(self._sites))
            if found == len(self._sites):
                self._sites.append(first)
            self._positions[site] = found
        return found

    def pairs(self, vector: Mapping[int, int]) -> list[int]:
        """Return a vector as positions and numbers in turn."""
        return [number for site, seen in vector.items() for number in (self.place(site), seen)]

    def dots(self, dots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Return dots, in their order, as positions, and as steps from one number of a site to the next."""
        sites = [one >> SHIFT for one in dots]
        places = {site: self.place(site) for site in dict.fromkeys(sites)}
        steps = list(map(sub, dots, [0, *dots]))
        for place in beginnings(sites):
            steps[place] = dots[place] & NUMBERS
        return list(map(places.__getitem__, sites)), steps

    def listed(self, *, named: bool) -> tuple[list[bytes], list[str]]:
        """Return the incarnations, and what they are called; of a short message only its sender's name."""
        known = {
            number: (incarnation, name)
            for number, incarnation, name in self._connection.execute(
                f"SELECT number, incarnation, name FROM {SITES} WHERE partition = 0"
                + ("" if len(self._sites) > 1 else f" AND number = {self._sites[0]}")
            )
        }
        found = [known[site] for site in self._sites]
        names = [name for _, name in found] if named else [found[0][1]]
        return [bytes.fromhex(incarnation) for incarnation, _ in found], names


class Named:
    """The sites of a message that has come: numbers in this store by position."""

    def __init__(self, sites: Sequence[bytes], names: Sequence[str]) -> None:
        self.incarnations = [incarnation_of(name) for name in sites]
        self._names = dict(zip(self.incarnations, names, strict=False))
        self.numbers: list[int] = []

    @property
    def sender(self) -> str:
        """Who has written the message."""
        return self.incarnations[0]

    @property
    def name(self) -> str:
        """What its writer is called."""
        return self._names.get(self.sender, "")

    def known(self, connection: sqlite3.Connection, partition: Partition | None = None) -> dict[int, int]:
        """Return the numbers of those sites that this store knows, by position; it learns of no other."""
        found = numbers_in(connection, partition)
        return {place: found[one] for place, one in enumerate(self.incarnations) if one in found}

    def learn(self, connection: sqlite3.Connection) -> list[int]:
        """Give all of them numbers in this store, and names; return the numbers by position."""
        new = len(self.incarnations) - len(self.known(connection))
        if new > MOST_NEW:
            raise WireError(f"a message names {new} stores of which nothing was known", where="header")
        found = number_sites(connection, self.incarnations, self._names, speaker=self.sender)
        self.numbers = [found[one] for one in self.incarnations]
        return self.numbers

    def within(self, connection: sqlite3.Connection, partition: Partition, pairs: Sequence[int]) -> Named:
        """Return the sites of a vector by the numbers that they have in a partition; all must be learnt."""
        if not partition.value:
            return self
        found = copy(self)
        named = [self.incarnations[place] for place in pairs[::2]]
        numbers = number_sites(connection, named, self._names, partition=partition.number)
        found.numbers = [numbers.get(one, UNNAMED) for one in self.incarnations]
        return found

    def vector(self, pairs: Sequence[int], numbers: Mapping[int, int] | Sequence[int]) -> dict[int, int]:
        """Return a vector in this store's numbers; sites that it does not know are left out."""
        known = numbers if isinstance(numbers, Mapping) else dict(enumerate(numbers))
        return {
            known[place]: seen
            for place, seen in zip(pairs[::2], pairs[1::2], strict=True)
            if place in known and seen
        }

    def dots(self, sites: Sequence[int], steps: Sequence[int]) -> list[int]:
        """Return dots in this store's numbers; WireError where they do not go up, or too far."""
        if not within(steps, 1, NUMBERS):
            raise WireError("the numbers of a site's rows do not go up", where="section")
        found: list[int] = []
        begins = beginnings(sites)
        for start, stop in zip(begins, [*begins[1:], len(sites)], strict=False):
            site = self.numbers[sites[start]] << SHIFT
            if site < 0:
                raise WireError("a row is of a site that its sender's vector does not name", where="section")
            found += accumulate(steps[start + 1 : stop], initial=site + steps[start])
            if found[-1] > site + NUMBERS:
                raise WireError(f"a row has a number above {NUMBERS}", where="section")
        return found


def beginnings(sites: Sequence[int]) -> list[int]:
    """The places at which another site's dots begin."""
    if is_same(sites):
        return [0]
    changes = compress(range(1, len(sites)), map(ne, islice(sites, 1, None), sites))
    return [0, *changes] if sites else []

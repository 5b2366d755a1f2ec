"""What must hold of a place at any time, and of all places together in the end."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import chain

from everview.algebra.causal_length import is_present
from everview.engines.reference import evaluate_views
from everview.language.program import Program
from everview.located.coding import item_of, read_derived
from everview.located.facts import Fact
from everview.located.items import Derivation, Length
from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.located.device import LocatedDevice


@functools.lru_cache(maxsize=512)
def _whole(text: str) -> Program:
    return Program.parse(text, language="datalog")


@functools.lru_cache(maxsize=512)
def centralised(text: str, base: frozenset[Fact]) -> frozenset[Fact]:
    """All facts that follow from base facts, by one site that knows them all and has no places: naively."""
    program = _whole(text)
    tables = {name: [row for relation, row in base if relation == name] for name in program.relations}
    found = {
        (name, tuple(row)) for name, view in evaluate_views(program, tables).items() for row in view.rows
    }
    return frozenset(found) | base


def check_place(device: LocatedDevice, ever: frozenset[Fact]) -> None:
    """Its base facts are those that it was given; the others are what they and its mail make.

    And whatever it shows follows from base facts that were once there.
    """
    program, rules = device.located, device.located.rules
    tables = {name: device.table(name) for name in program.relations}
    base = frozenset[Fact]().union(*(tables[name] for name in rules.base))
    if base != device.base:
        raise Wrong(f"{device.name} holds base facts {_differ(base, device.base)}")
    if device.deaf:
        return
    shown = frozenset[Fact]().union(*tables.values())
    held = _by_mail(device) if program.mode == "provenance" else _by_counts(device)
    there = frozenset(fact for fact in held if fact[0] in program.relations)
    if shown != there:
        raise Wrong(f"{device.name} shows facts {_differ(shown, there)} by what its store holds")
    if groundless := shown - centralised(program.text, ever):
        raise Wrong(f"{device.name} shows facts that never followed from anything: {sorted(groundless)[:3]}")


def check_together(devices: Iterable[LocatedDevice]) -> None:
    """All places together show what one site would that had all their base facts."""
    found = list(devices)
    program = found[0].located
    base = frozenset[Fact]().union(*(device.base for device in found))
    shown = [fact for device in found for name in program.relations for fact in device.table(name)]
    wanted = centralised(program.text, base)
    if frozenset(shown) != wanted or len(shown) != len(wanted):
        raise Wrong(f"the places show facts {_differ(frozenset(shown), wanted)}")


def _by_mail(device: LocatedDevice) -> set[Fact]:
    """Base facts, and derivations in the mail of which all ids are live, closed under the rules here."""
    program, rules = device.located, device.located.rules
    boxes = [program.mail(place) for place in program.places if program.mail(place) in device.hosts]
    told = {name: [item_of(row) for row in device.rows(name)] for name in boxes}
    lengths = dict[bytes, int]()
    for item in chain.from_iterable(told.values()):
        if isinstance(item, Length) and item.place != device.name:
            lengths[item.id] = max(item.length, lengths.get(item.id, 0))
    live = {id_ for id_, length in lengths.items() if is_present(length)}
    live |= {program.identify(fact) for fact in device.base}
    waiting = list(device.base)
    own = told[program.mail(device.name)]
    waiting += [item.fact for item in own if isinstance(item, Derivation) and item.ids <= live]
    facts, known = rules.facts(), set[Fact]()
    while waiting:
        fact = waiting.pop()
        if fact in known:
            continue
        known.add(fact)
        facts.add(*fact)
        waiting += [firing.head for _, firing in rules.fire(fact, facts) if firing.place == device.name]
    return known


def _by_counts(device: LocatedDevice) -> set[Fact]:
    counts = device.rows(device.located.counts(device.name))
    if bad := [n for _, n in counts if n <= 0]:
        raise Wrong(f"{device.name} keeps derivations {bad[0]} times")
    return {read_derived(data).fact for data, _ in counts}


def _differ(found: frozenset[Fact], wanted: frozenset[Fact]) -> str:
    return f"with {sorted(found - wanted)[:3]} too many and {sorted(wanted - found)[:3]} missing"

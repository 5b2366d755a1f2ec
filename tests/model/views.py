"""Views over the wire: derivations that only grow, and the liveness of the ids they name (Streams §7).

A view is a union of branches; a branch joins base relations by position. A derivation is (row, branch, ids
by position); it counts while all its ids are live. A set's id is its tuple, live while its causal length is
odd; a keyed row's id is (key, stamp), live while the stamp is the key's greatest valued one; an add-wins id
is the tuple, live while some insertion of it is odd. Bags do not travel so.
"""

import itertools
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tests.model.relations import BOTTOM, KeyedKind


@dataclass(frozen=True)
class Branch:
    """A join of atoms: (relation, predicate on its row, predicate on its key), and what it makes of rows."""

    atoms: tuple
    make: Any


@dataclass(frozen=True)
class View:
    name: str
    branches: tuple

    @cached_property
    def inputs(self):
        return sorted({atom[0] for branch in self.branches for atom in branch.atoms})


def everything(row):
    return True


VIEWS = {
    view.name: view
    for view in (
        # A symmetric self-join and a projection, in one union: duplicates and branches count.
        View(
            "v",
            (
                Branch(
                    (("R", everything, everything), ("R", everything, everything)),
                    lambda a, b: (a[1] + b[1],) if a[0] == b[0] else None,
                ),
                Branch((("W", everything, everything),), lambda a: (a[1],)),
            ),
        ),
        # A selection on a column that is no key, joined with a set.
        View(
            "j",
            (
                Branch(
                    (("R", lambda r: r[1] != 2, everything), ("K", lambda k: k[1] != 2, everything)),
                    lambda a, b: (a[1], b[1]) if a[0] == b[0] else None,
                ),
            ),
        ),
    )
}


def evaluate(view, relations):
    """The defining query over plain relations: the naive recompute, with multiplicities."""
    rows = Counter()
    for branch in view.branches:
        inputs = [[r for r in relations[name].elements() if keep(r)] for name, keep, _ in branch.atoms]
        rows.update(made for c in itertools.product(*inputs) if (made := branch.make(*c)) is not None)
    return rows


def live_tuples(kinds, name, table, valued):
    """(id, row) of every live row of a base relation."""
    kind = kinds[name]
    if isinstance(kind, KeyedKind):
        stamps = kind.greatest(table, valued)
        found = (((name, k, s), table[k, s].value) for k, s in stamps.items())
        return [(i, row) for i, row in found if row is not BOTTOM]
    return [((name, row), row) for row in kind.valuation(table, valued)]


def liveness(kinds, view, site_tables, valued, shortcuts, named):
    """What travels beside the derivations: ("l", relation, key) → (value, origin).

    Of every tuple that passes the view's predicates on one table, whether a derivation names it or not; of
    a keyed relation every key, whatever its row says: only a predicate on the key may narrow it. Of a key
    its greatest valued stamp and those still in the future, and whether each is a row or ⊥.
    """
    found = {}
    for name, keep, keep_key in {a[:3] for branch in view.branches for a in branch.atoms}:
        table, kind = site_tables[name], kinds[name]
        keyed = isinstance(kind, KeyedKind)
        stamps = kind.greatest(table, valued) if keyed else {}
        for key, held in table.items():
            if keyed:
                if key[0] in stamps and key[1] < stamps[key[0]]:
                    continue
                passes = keep_key(key[0])
                if "passing keys only" in shortcuts:
                    passes = held.value is not BOTTOM and keep(held.value)
                id_, value = (name, *key), held.value is not BOTTOM or BOTTOM
            else:
                row = key[0] if _minted(key) else key
                passes, id_, value = keep(row), (name, row), held.value
            if "no lengths" in shortcuts:
                passes = passes and id_ not in named
            if "named lengths only" in shortcuts:
                passes = passes and id_ in named
            if passes:
                found["l", name, key] = (value, held.origin)
    return found


def _minted(key):
    """Whether a key is (tuple, fresh id) rather than a tuple."""
    return isinstance(key[0], tuple)


def live_ids(kinds, table, valued):
    """The ids that a view's own liveness rows show live, at a site without the base."""
    live, stamps = set(), {}
    for key, held in table.items():
        if key[0] != "l":
            continue
        _, name, base = key
        if isinstance(kinds[name], KeyedKind):
            k, s = base
            if valued(s) and ((name, k) not in stamps or s > stamps[name, k]):
                stamps[name, k] = s
        elif held.value % 2:
            live.add((name, base[0] if _minted(base) else base))
    return live | {(*name_key, s) for name_key, s in stamps.items()}


def derivations(kinds, view, site_tables, valued):
    """Every derivation over what is live: ("d", row, branch, ids by position)."""
    found = []
    for number, branch in enumerate(view.branches):
        inputs = [
            [(i, r) for i, r in live_tuples(kinds, name, site_tables[name], valued) if keep(r)]
            for name, keep, _ in branch.atoms
        ]
        for chosen in itertools.product(*inputs):
            made = branch.make(*(row for _, row in chosen))
            if made is not None:
                found.append(("d", made, number, tuple(i for i, _ in chosen)))
    return found


def identity(key, shortcuts):
    """How a derivation is known; ✗ by its set of ids alone, duplicates are lost."""
    if "id sets" in shortcuts and key[0] == "d":
        return ("d", key[1], 0, tuple(sorted(set(key[3]), key=repr)))
    return key


def valuation(table, live):
    """Row → how many of its derivations are live."""
    return Counter(key[1] for key in table if key[0] == "d" and all(i in live for i in key[3]))

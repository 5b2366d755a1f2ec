"""What must hold of a site at every moment, whatever it has seen so far."""

from spec.replication.rows import digest
from spec.replication.stores import Store
from spec.replication.vectors import covers
from spec.replication.views import held, names
from spec.replication.worlds.history import History, Seen

NOTHING: frozenset[int] = frozenset()


def wrong_rows(history: History, store: Store, seen: Seen) -> list[str]:
    """Return which rows are not those that follow from what the site has seen."""
    found: list[str] = []
    for name, relation in store.relations.items():
        rows = history.expected(seen.get(name.removeprefix("~"), NOTHING))
        if name.startswith("~"):
            rows = {dot: relation.kind.hollow(row) for dot, row in rows.items()}
        if rows != relation.rows:
            found.append("rows that do not follow from what was seen")
        if relation.digest != digest(relation.rows.items()) or relation.came.keys() != relation.rows.keys():
            found.append("a digest that is not that of the rows")
        if any(not covers(relation.vector, dot) for dot in relation.rows):
            found.append("a row beyond the vector")
    for view in store.views.values():
        inputs = [names(held(store.relations, name)) for name in view.inputs]
        if any(name not in known for m in view.derivations for name, known in zip(m, inputs, strict=True)):
            found.append("a derivation without its rows")
    return found


def wrong_transactions(history: History, store: Store, torn: frozenset[int]) -> list[str]:
    """Return whether a transaction is seen in part, though every hop hosted all of it."""
    for place, touched in enumerate(history.transactions):
        if place in torn or not touched.keys() <= store.relations.keys():
            continue
        dots = [
            covers(store.relations[name].vector, dot)
            for name, events in touched.items()
            for event in events
            if (dot := history.events[event].written.dot)
        ]
        if any(dots) and not all(dots):
            return ["a transaction in part"]
    return []

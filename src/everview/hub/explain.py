"""How a view is kept, in words."""

from __future__ import annotations

from everview.hub.tables import Catalog
from everview.planner.circuit import Operator

__all__ = ["explain_view"]


def explain_view(catalog: Catalog, name: str) -> str:
    """Each operator of a view, from the view down, and how much is read to carry a change through it."""
    lines: list[str] = []
    view = catalog.program.views[name]
    lines.append(f"{name}: reads {', '.join(view.reads) or 'nothing'}")
    _describe(catalog, catalog.circuit.operators[name], 1, lines)
    return "\n".join(lines)


def _describe(catalog: Catalog, operator: Operator, depth: int, lines: list[str]) -> None:
    lines.append(f"{'  ' * depth}{operator.title}: {operator.keeping.value}")
    for lookup in dict.fromkeys((lookup.kept, lookup.take) for lookup in operator.lookups):
        kept, take = lookup
        keys = ", ".join(kept.schema[place].name for place in kept.keys) or "nothing: all rows"
        some = f", the first {take} of a key" if take is not None else ""
        lines.append(f"{'  ' * depth}  looks up {kept.name} by {keys}{some}")
    for source in sorted(operator.reads):
        if source in catalog.program.relations or source in catalog.program.views:
            lines.append(f"{'  ' * (depth + 1)}{source}")
        else:
            _describe(catalog, catalog.circuit.operators[source], depth + 1, lines)

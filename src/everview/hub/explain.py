"""How a view is kept, in words."""

from __future__ import annotations

from everview.hub.costs import Arriving, Costs
from everview.hub.tables import Catalog
from everview.planner.circuit import Operator

__all__ = ["explain_view"]

EXAMPLE = 1_000
"""The size of the change whose cost is shown."""


def explain_view(catalog: Catalog, costs: Costs, name: str) -> str:
    """Each operator of a view, from the view down, and how much is read to carry a change through it."""
    lines: list[str] = []
    view = catalog.program.views[name]
    lines.append(f"{name}: reads {', '.join(view.reads) or 'nothing'}")
    lines.append(f"  {_cost(costs, name)}")
    _describe(catalog, catalog.circuit.operators[name], 1, lines)
    return "\n".join(lines)


def _cost(costs: Costs, view: str) -> str:
    """What a change of 1,000 rows costs, and when the view is computed anew."""
    group = next(group for group in costs.catalog.groups if view in group.views)
    half = Arriving(EXAMPLE // 2, EXAMPLE // 2)
    choice = costs.choice(group, dict.fromkeys(group.relations, half))
    others = ", ".join(sorted(group.views - {view}))
    least = costs.least_recomputed(group)
    anew = "never computed anew" if least is None else f"computed anew when about {least:,} rows change"
    return (
        f"{EXAMPLE:,} changed rows: about {choice.delta_seconds:.3f} s of one core by delta, "
        f"{choice.recompute_seconds:.3f} s anew; {anew}{f'; together with {others}' if others else ''}"
    )


def _describe(catalog: Catalog, operator: Operator, depth: int, lines: list[str]) -> None:
    lines.append(f"{'  ' * depth}{operator.title}: {operator.keeping.value}")
    for lookup in dict.fromkeys((one.kept, one.take, one.keys is None) for one in operator.lookups):
        kept, take, every = lookup
        named = () if every else kept.keys
        keys = ", ".join(kept.schema[place].name for place in named) or "nothing: all rows"
        some = f", the first {take} of a key" if take is not None else ""
        lines.append(f"{'  ' * depth}  looks up {kept.name} by {keys}{some}")
    for kept in dict.fromkeys(operator.searched):
        keys = ", ".join(kept.schema[place].name for place in kept.keys) or "whole rows"
        lines.append(f"{'  ' * depth}  finds {kept.name} by {keys}, round by round")
    for source in sorted(operator.reads):
        if source in catalog.program.relations or source in catalog.program.views:
            lines.append(f"{'  ' * (depth + 1)}{source}")
        else:
            _describe(catalog, catalog.circuit.operators[source], depth + 1, lines)

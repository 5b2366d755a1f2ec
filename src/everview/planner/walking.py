"""Walking plans without building what stays as it is."""

from __future__ import annotations

from collections.abc import Callable

from everview.language.expressions import Expression
from everview.language.plan import Plan, expressions_of, map_expressions, map_inputs

__all__ = ["over", "restated"]


def over(plan: Plan, function: Callable[[Plan], Plan]) -> Plan:
    """The same node over the images of its inputs: the very same node if each is its own image."""
    return map_inputs(plan, function)


def restated(plan: Plan, function: Callable[[Expression], Expression]) -> Plan:
    """The same node with the images of its expressions: the very same node if they are equal."""
    images = {expression: function(expression) for expression in expressions_of(plan)}
    if all(image == expression for expression, image in images.items()):
        return plan
    return map_expressions(plan, images.__getitem__)

"""Ways to call every function of the language's table, read from that table.

A function that is added there is generated without a change here; one that is written in a way of its own
needs a line in `_WRITTEN`.
"""

from __future__ import annotations

from dataclasses import dataclass

from everview.language.functions import COMPARISONS, DATE_FIELDS, FUNCTIONS, TRUNCATIONS
from everview.language.types import Kind, Type
from everview.testing.fuzz.domains import KINDS

__all__ = ["CALLS", "UNIFIED", "Way", "written"]

_SAMPLES = {kind: Type(kind) for kind in KINDS if kind is not Kind.DECIMAL} | {
    Kind.DECIMAL: Type(Kind.DECIMAL, 10, 2)
}

UNIFIED = ("coalesce", "nullif", "greatest", "least")
"""Functions of any kind whose result is of the same kind."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to call a function: the kinds of its arguments."""

    function: str
    parameters: tuple[Kind, ...]


def _ways() -> dict[Kind, tuple[Way, ...]]:
    """The ways to get a value of each kind by a call."""
    found: dict[Kind, list[Way]] = {kind: [] for kind in KINDS}
    for name, function in FUNCTIONS.items():
        for signature in function.signatures:
            result = signature.returns(tuple(_SAMPLES[kind] for kind in signature.parameters))
            found[result.kind].append(Way(name, signature.parameters))
    found[Kind.TEXT].append(Way("concat", (Kind.TEXT, Kind.TEXT)))
    return {kind: tuple(ways) for kind, ways in found.items()}


CALLS = _ways()

_INFIX = frozenset(("+", "-", "*", "/", "%", "||", *COMPARISONS))
_EXTRACTS = {f"extract_{field}": field for field in DATE_FIELDS}
_TRUNCATIONS = {f"date_trunc_{unit}": unit for unit in TRUNCATIONS}


def written(function: str, arguments: list[str]) -> str:
    """The call as SQL text."""
    if function in _INFIX:
        left, right = arguments
        return f"({left} {function} {right})"
    if function == "neg":
        return f"(- {arguments[0]})"
    if function in _EXTRACTS:
        return f"extract({_EXTRACTS[function]} FROM {arguments[0]})"
    if function in _TRUNCATIONS:
        return f"date_trunc('{_TRUNCATIONS[function]}', {arguments[0]})"
    return f"{function}({', '.join(arguments)})"

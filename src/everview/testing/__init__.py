"""Public checks: run them on your own types, too. `Simulation` runs whole worlds of sites."""

from typing import TYPE_CHECKING, Any

from everview.testing.crdts import check_crdt
from everview.testing.laws import Law, LawViolation, check_laws
from everview.testing.structures import (
    check_bilinear,
    check_group,
    check_lattice,
    check_linear,
    check_ring,
    check_semiring,
)

if TYPE_CHECKING:
    from everview.testing.worlds import Simulation

__all__ = [
    "Law",
    "LawViolation",
    "Simulation",
    "check_bilinear",
    "check_crdt",
    "check_group",
    "check_lattice",
    "check_laws",
    "check_linear",
    "check_ring",
    "check_semiring",
]


def __getattr__(name: str) -> Any:
    """Load the simulator when it is asked for: it stands on all of the rest."""
    if name == "Simulation":
        from everview.testing.worlds import Simulation  # noqa: PLC0415

        return Simulation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

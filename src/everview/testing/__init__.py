"""Public checks: run them on your own types, too."""

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

__all__ = [
    "Law",
    "LawViolation",
    "check_bilinear",
    "check_crdt",
    "check_group",
    "check_lattice",
    "check_laws",
    "check_linear",
    "check_ring",
    "check_semiring",
]

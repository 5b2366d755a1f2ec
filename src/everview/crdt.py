"""Computational CRDTs, under the name that users know: `everview.crdt`."""

from everview.algebra.crdt import (
    Average,
    Bag,
    Counter,
    Delta,
    DistinctCount,
    Map,
    Maximum,
    Minimum,
    Quantiles,
    Replica,
    Set,
    Sum,
    TopN,
)

__all__ = [
    "Average",
    "Bag",
    "Counter",
    "Delta",
    "DistinctCount",
    "Map",
    "Maximum",
    "Minimum",
    "Quantiles",
    "Replica",
    "Set",
    "Sum",
    "TopN",
]

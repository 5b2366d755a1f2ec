"""Computational CRDTs: aggregates that any number of replicas update and merge (Titan §3)."""

from everview.algebra.crdt.average import Average
from everview.algebra.crdt.bag import Bag
from everview.algebra.crdt.contributions import Delta
from everview.algebra.crdt.counter import Counter
from everview.algebra.crdt.extrema import Maximum, Minimum
from everview.algebra.crdt.grow_only_set import Set
from everview.algebra.crdt.map_of import Map
from everview.algebra.crdt.replica import Replica
from everview.algebra.crdt.sketches import DistinctCount, Quantiles
from everview.algebra.crdt.summation import Sum
from everview.algebra.crdt.top_n import TopN

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

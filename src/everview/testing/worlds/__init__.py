"""Worlds: a simulator of sites, deterministic from a seed, with all that networks and disks can do."""

from everview.testing.worlds.cases import KINDS, random_case
from everview.testing.worlds.invariants import Wrong
from everview.testing.worlds.minimising import minimise
from everview.testing.worlds.runs import Failure, Result, Simulation
from everview.testing.worlds.steps import Case, dump_case, load_case
from everview.testing.worlds.timeline import timeline

__all__ = [
    "KINDS",
    "Case",
    "Failure",
    "Result",
    "Simulation",
    "Wrong",
    "dump_case",
    "load_case",
    "minimise",
    "random_case",
    "timeline",
]

"""A simulator of sites: deterministic from a seed, with everything a network, a clock and a disk can do."""

from everview.testing.simulation.checks import Wrong
from everview.testing.simulation.generate import FAULTS, generate_case
from everview.testing.simulation.minimise import minimise
from everview.testing.simulation.simulation import Failure, Result, Simulation
from everview.testing.simulation.steps import Case, dump_case, load_case
from everview.testing.simulation.timeline import timeline

__all__ = [
    "FAULTS",
    "Case",
    "Failure",
    "Result",
    "Simulation",
    "Wrong",
    "dump_case",
    "generate_case",
    "load_case",
    "minimise",
    "timeline",
]

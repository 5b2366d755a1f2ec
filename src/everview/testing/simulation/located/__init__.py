"""Worlds in which sites run a located program: rules at places, over real stores and a network that fails."""

from everview.testing.simulation.located.generate import LOCATED_FAULTS, generate_located
from everview.testing.simulation.located.simulation import LocatedSimulation
from everview.testing.simulation.located.steps import LocatedCase, load_located

__all__ = ["LOCATED_FAULTS", "LocatedCase", "LocatedSimulation", "generate_located", "load_located"]

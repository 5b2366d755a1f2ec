"""A program as a circuit of plans: what is kept, what is looked up, and how a change goes through."""

from everview.planner.circuit.build import build_circuit
from everview.planner.circuit.parts import Circuit, Keeping, Kept, Lookup, Operator

__all__ = ["Circuit", "Keeping", "Kept", "Lookup", "Operator", "build_circuit"]

"""Windowed CRDTs: any lattice, cut into windows whose values do not depend on any schedule (Windows)."""

from everview.algebra.windowed.processor import Processor
from everview.algebra.windowed.progress import Closing, Progress, Start, Windowed

__all__ = ["Closing", "Processor", "Progress", "Start", "Windowed"]

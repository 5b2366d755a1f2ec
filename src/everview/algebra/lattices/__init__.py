"""The lattices that replicated state is made of, one a file."""

from everview.algebra.lattices.boolean_or import Or
from everview.algebra.lattices.dot_set import Dots, DotSet
from everview.algebra.lattices.extremum import Max, Min
from everview.algebra.lattices.grow_set import GrowSet
from everview.algebra.lattices.last_writer import LastWriter
from everview.algebra.lattices.lexicographic import Lexicographic
from everview.algebra.lattices.merge_map import MergeMap
from everview.algebra.lattices.pair import Pair
from everview.algebra.lattices.version_vector import Vectors, VersionVector
from everview.algebra.lattices.write_once import CONFLICT, EMPTY, Cell, WriteOnce

__all__ = [
    "CONFLICT",
    "EMPTY",
    "Cell",
    "DotSet",
    "Dots",
    "GrowSet",
    "LastWriter",
    "Lexicographic",
    "Max",
    "MergeMap",
    "Min",
    "Or",
    "Pair",
    "Vectors",
    "VersionVector",
    "WriteOnce",
]

"""A dot names a row; a vector says which dots a store has seen.

The numbers of an incarnation are dense within a relation: 1, 2, 3, and so on.
So one number for each incarnation describes everything that a store has seen of a relation.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias


class Dot(NamedTuple):
    """The name under which a row is written once, and never again."""

    incarnation: str
    number: int


Vector: TypeAlias = Mapping[str, int]


def covers(vector: Vector, dot: Dot) -> bool:
    """Whether a store with this vector has seen the dot.

    >>> covers({"a": 2}, Dot("a", 2)), covers({"a": 2}, Dot("a", 3))
    (True, False)
    """
    return vector.get(dot.incarnation, 0) >= dot.number


def includes(vector: Vector, other: Vector) -> bool:
    """Whether everything that the other vector covers is covered.

    >>> includes({"a": 2, "b": 1}, {"a": 1}), includes({"a": 2}, {"b": 1})
    (True, False)
    """
    return all(vector.get(incarnation, 0) >= number for incarnation, number in other.items())


def join(*vectors: Vector) -> dict[str, int]:
    """Return the least vector that includes all of these.

    >>> join({"a": 2}, {"a": 1, "b": 1})
    {'a': 2, 'b': 1}
    """
    joined: dict[str, int] = {}
    for vector in vectors:
        for incarnation, number in vector.items():
            if number > joined.get(incarnation, 0):
                joined[incarnation] = number
    return joined


def extent(dots: Mapping[Dot, object]) -> dict[str, int]:
    """Return the least vector that covers these dots.

    >>> extent({Dot("a", 3): None, Dot("a", 7): None})
    {'a': 7}
    """
    reached: dict[str, int] = {}
    for incarnation, number in dots:
        reached[incarnation] = max(reached.get(incarnation, 0), number)
    return reached

"""Nodes remember their hash, and nothing else of them changes by it."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from everview.language.expressions import Call, Column, Literal
from everview.language.plan import Filter, Scan
from everview.language.types import BIGINT, BOOLEAN, Field


class Counted(int):
    """A value that knows how often it was hashed."""

    asked = 0

    def __hash__(self):
        Counted.asked += 1
        return super().__hash__()


def plan(value=1):
    scan = Scan("r", (Field("a", BIGINT),))
    return Filter(scan, Call("=", (Column(0, BIGINT, "a"), Literal(value, BIGINT)), BOOLEAN))


def test_a_hash_is_computed_once_and_equal_nodes_have_equal_ones():
    Counted.asked = 0
    one = plan(Counted(7))
    assert hash(one) == hash(one) == hash(replace(one)) == hash(plan(7))
    assert Counted.asked == 1
    assert one == plan(7) != plan(8)
    assert len({one, plan(7), plan(8)}) == 2


def test_it_is_no_field_and_does_not_go_to_other_processes():
    """Texts hash to something else there."""
    one = plan()
    assert hash(one) == one._hash
    assert "_hash" not in {field.name for field in fields(one)}
    there = pickle.loads(pickle.dumps(one))
    assert there == one
    for node in (there, there.input, there.predicate):
        with pytest.raises(AttributeError):
            node._hash  # noqa: B018
    with pytest.raises(FrozenInstanceError):
        one.predicate = one.predicate

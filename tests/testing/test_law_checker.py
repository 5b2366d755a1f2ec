import pytest
from hypothesis import strategies as st

import everview.testing as evt
from everview.algebra.lattices import Max
from everview.errors import DataError, MissingDependencyError


class Integers:
    """A ring, for the checker to pass."""

    def zero(self):
        return 0

    def one(self):
        return 1

    def plus(self, a, b):
        return a + b

    def times(self, a, b):
        return a * b

    def negate(self, a):
        return -a

    def __repr__(self):
        return "Integers()"


class Subtraction(Integers):
    def plus(self, a, b):
        return a - b


class NoInverse(Integers):
    def negate(self, a):
        return abs(a)


class Skewed(Integers):
    def times(self, a, b):
        return a * b + (a > 5 and b > 5)


def test_a_ring_passes_over_samples_and_over_a_strategy():
    evt.check_ring(Integers(), [-2, -1, 0, 1, 3])
    evt.check_ring(Integers(), st.integers())


@pytest.mark.parametrize(
    ("check", "structure", "law"),
    [
        (evt.check_group, Subtraction(), "identity of +"),
        (evt.check_group, NoInverse(), "inverse"),
        (evt.check_ring, NoInverse(), "inverse"),
        (evt.check_semiring, Skewed(), "associative ·"),
    ],
)
def test_a_failure_names_the_law(check, structure, law):
    for samples in ([0, 1, 7, 10], st.integers(0, 50)):
        with pytest.raises(evt.LawViolation) as violation:
            check(structure, samples)
        assert violation.value.law == law
        assert repr(structure) in str(violation.value)


def test_the_counterexample_is_the_smallest_found():
    with pytest.raises(evt.LawViolation) as over_samples:
        evt.check_group(NoInverse(), [1000, 20, 3, 0])
    assert over_samples.value.counterexample == (3,)
    assert "a + (−a) = 0, with a = 3" in str(over_samples.value)
    with pytest.raises(evt.LawViolation) as shrunk:
        evt.check_group(NoInverse(), st.integers(10, 10_000))
    assert shrunk.value.counterexample == (10,)


def test_an_exception_inside_a_law_breaks_it_and_is_shown():
    with pytest.raises(evt.LawViolation, match="raised DataError: cannot order") as violation:
        evt.check_lattice(Max(), [1, "a"])
    assert isinstance(violation.value.__cause__, DataError)


def test_linear_and_bilinear_maps():
    group = Integers()
    evt.check_linear(lambda a: 3 * a, [-1, 0, 2], domain=group, codomain=group)
    evt.check_bilinear(lambda a, b: 5 * a * b, [(0, 1), (2, -3)], left=group, right=group, codomain=group)
    with pytest.raises(evt.LawViolation, match="zero"):
        evt.check_linear(lambda a: a + 1, [0, 1], domain=group, codomain=group)
    with pytest.raises(evt.LawViolation, match="'linear'"):
        evt.check_linear(lambda a: a * a, [0, 1], domain=group, codomain=group)
    for broken, law in ((lambda a, b: a * a * b, "left linear"), (lambda a, b: a * b * b, "right linear")):
        with pytest.raises(evt.LawViolation, match=law):
            evt.check_bilinear(broken, [(1, 1), (2, 3)], left=group, right=group, codomain=group)


def test_no_samples_would_prove_nothing():
    with pytest.raises(DataError, match="no samples"):
        evt.check_group(Integers(), [])
    with pytest.raises(DataError, match="iterable or a Hypothesis strategy"):
        evt.check_group(Integers(), 7)


def test_without_hypothesis_a_strategy_is_refused_with_advice(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(MissingDependencyError, match="pip install hypothesis"):
        evt.check_group(Integers(), object())


def test_laws_of_ones_own():
    even = evt.Law("even", "a is even", 1, lambda a: a % 2 == 0)
    evt.check_laws("numbers", [even], [2, 4])
    with pytest.raises(evt.LawViolation, match="'numbers' breaks the law 'even': a is even, with a = 3"):
        evt.check_laws("numbers", [even], [2, 3, 41])

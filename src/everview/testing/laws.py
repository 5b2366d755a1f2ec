"""Laws, and the search for the smallest counterexample to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from everview.errors import DataError, MissingDependencyError


@dataclass(frozen=True, slots=True)
class Law:
    """A statement about `arity` elements, and the test of it."""

    name: str
    statement: str
    arity: int
    holds: Callable[..., bool]


class LawViolation(AssertionError):  # noqa: N818 - it names what happened; tests read better so
    """A law does not hold: which one, of what, and the smallest counterexample that was found."""

    def __init__(
        self, subject: object, law: Law, counterexample: tuple[Any, ...], cause: Exception | None
    ) -> None:
        self.law = law.name
        self.statement = law.statement
        self.counterexample = counterexample
        letters = ", ".join(
            f"{letter} = {shown(value)}" for letter, value in zip("abcdefgh", counterexample, strict=False)
        )
        raised = f" (it raised {type(cause).__name__}: {cause})" if cause else ""
        super().__init__(f"{subject!r} breaks the law '{law.name}': {law.statement}, with {letters}{raised}")


def check_laws(subject: object, laws: Iterable[Law], samples: Any, *, max_examples: int = 300) -> None:
    """Check every law over the Cartesian power of `samples`, or over examples of a Hypothesis strategy.

    Raises LawViolation with the smallest counterexample found: of samples, the one whose elements print
    shortest; of a strategy, the one that Hypothesis shrinks to. An exception inside a law breaks it too.
    """
    for law in laws:
        if isinstance(samples, Iterable):
            found = _smallest_sample(law, list(samples))
        else:
            found = _shrunk_example(law, samples, max_examples)
        if found is not None:
            counterexample, cause = found
            raise LawViolation(subject, law, counterexample, cause) from cause


def shown(value: Any) -> str:
    """Print an element; a function, which is an update of a CRDT, by its name or its source's place."""
    return getattr(value, "__name__", None) or repr(value)


Found = tuple[tuple[Any, ...], Exception | None]


def _broken(law: Law, elements: tuple[Any, ...]) -> Found | None:
    try:
        return None if law.holds(*elements) else (elements, None)
    except Exception as error:  # noqa: BLE001 - whatever a user's type raises is the finding
        return elements, error


def _smallest_sample(law: Law, samples: list[Any]) -> Found | None:
    if not samples:
        raise DataError(f"no samples: the law '{law.name}' would hold of nothing", expected="samples")
    failures = (found for elements in product(samples, repeat=law.arity) if (found := _broken(law, elements)))
    return min(failures, key=lambda found: sum(len(shown(element)) for element in found[0]), default=None)


def _shrunk_example(law: Law, strategy: Any, max_examples: int) -> Found | None:
    try:
        from hypothesis import HealthCheck, find, settings  # noqa: PLC0415 - only needed for strategies
        from hypothesis.errors import NoSuchExample  # noqa: PLC0415
        from hypothesis.strategies import SearchStrategy, tuples  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "checking laws over strategies needs Hypothesis: pip install hypothesis, or give samples"
        ) from None
    if not isinstance(strategy, SearchStrategy):
        raise DataError(
            f"samples are an iterable or a Hypothesis strategy, not {type(strategy).__name__}", value=strategy
        )
    quiet = settings(
        max_examples=max_examples, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    drawn = tuples(*[strategy] * law.arity)
    try:
        elements = find(drawn, lambda drawn: _broken(law, drawn) is not None, settings=quiet)
    except NoSuchExample:
        return None
    return _broken(law, elements) or (elements, None)

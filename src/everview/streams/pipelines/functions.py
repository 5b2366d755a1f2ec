"""Functions of a pipeline: any Python callable of one element, and a few that know their columns.

`field("id")` and `words("text")` are such callables, and also say what they read. So a source decodes that
field alone, a batch is taken in one go, and Spark runs them inside its own engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from everview.algebra import checks
from everview.errors import DataError, MissingDependencyError
from everview.streams.pipelines.batch import Batch

__all__ = ["Field", "OverArrow", "Words", "called", "field", "fields_of", "over_arrow", "words"]

SPACE = r"[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
"""What `str.split` splits at, as a regular expression that Java understands too."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of an element that is a mapping, such as an event or a row."""

    name: str

    def __call__(self, element: Any) -> Any:
        """Return it."""
        return Batch([element]).column(self.name)[0]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, as `str.split` has them; of one field, or of the element itself. None has none."""

    name: str | None = None

    def __call__(self, element: Any) -> list[str]:
        """Return the words of one element."""
        text = element if self.name is None else Field(self.name)(element)
        return [] if text is None else _text(text).split()

    def of_batch(self, batch: Batch) -> Batch:
        """Return the words of all elements, one after the other; in Arrow where the texts are."""
        texts = None if self.name is None else batch.arrow(self.name)
        if texts is not None:
            return Batch(values=_words(texts))
        return Batch(self._listed(batch))

    def _listed(self, batch: Batch) -> list[str]:
        texts = batch.elements() if self.name is None else batch.column(self.name)
        try:
            return " ".join(texts).split()
        except TypeError:
            return [word for text in texts if text is not None for word in _text(text).split()]


@dataclass(frozen=True, slots=True)
class OverArrow:
    """A function from an Arrow table of a batch's rows to a table of those that go on."""

    function: Callable[[Any], Any]

    def __call__(self, element: Any) -> list[Any]:
        """Return what one element becomes."""
        return self._made([element])

    def of_batch(self, batch: Batch) -> Batch:
        """Return what the elements of a batch become."""
        return Batch(self._made(batch.elements()))

    def _made(self, elements: list[Any]) -> list[Any]:
        try:
            import pyarrow as pa  # noqa: PLC0415 - a device need not have it
        except ImportError:
            raise MissingDependencyError(
                "functions over Arrow need it: pip install 'everview[hub]'"
            ) from None
        made = self.function(pa.Table.from_pylist(elements))
        if not isinstance(made, pa.Table):
            raise DataError(f"a function over Arrow returns a table, not {type(made).__name__}", value=made)
        rows: list[Any] = made.to_pylist()
        return rows


def field(name: str) -> Field:
    """One field of an element; where a key or a value is asked for, its name alone will do."""
    return Field(checks.name(name, "the name of a field"))


def words(name: str | None = None) -> Words:
    """The words of a text field, or of elements that are texts, split at white space."""
    return Words(name if name is None else checks.name(name, "the name of a field"))


def over_arrow(function: Callable[[Any], Any]) -> OverArrow:
    """For `flat_map`: a function that takes an Arrow table of a whole batch and returns one."""
    return OverArrow(function)


def as_function(given: Any, what: str) -> Any:
    """Return a callable; a name stands for the field of that name."""
    if isinstance(given, str):
        return field(given)
    if not callable(given):
        raise DataError(f"{what} must be a function or the name of a field, not {given!r}", value=given)
    return given


def fields_of(function: Any) -> frozenset[str] | None:
    """Return which fields of an element a function reads; None when that is not known."""
    if isinstance(function, Field | Words) and function.name is not None:
        return frozenset({function.name})
    return None


def called(function: Any, batch: Batch) -> Sequence[Any]:
    """Return a function's value for every element of a batch."""
    if function is None:
        return batch.elements()
    if isinstance(function, Field):
        return batch.column(function.name)
    return [function(element) for element in batch.elements()]


def _words(texts: Any) -> Any:
    """The words of an array of texts; Arrow splits where `str.split` does, and leaves empty ends."""
    import pyarrow.compute as pc  # noqa: PLC0415 - who has an array has it

    split = pc.ascii_split_whitespace if _is_simple(texts) else pc.utf8_split_whitespace
    words = pc.list_flatten(split(texts))
    return words.filter(pc.not_equal(words, ""))


def _is_simple(texts: Any) -> bool:
    """Whether all is ASCII, without separators that only Python, and Arrow for all of Unicode, splits at."""
    import pyarrow as pa  # noqa: PLC0415 - who has an array has it

    if not pa.types.is_string(texts.type):
        return False
    for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
        buffer = chunk.buffers()[2]
        content = b"" if buffer is None else buffer.to_pybytes()
        if not content.isascii() or any(separator in content for separator in _SEPARATORS):
            return False
    return True


_SEPARATORS = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"words are taken of a str, not of {value!r}", value=value, expected="str")
    return value

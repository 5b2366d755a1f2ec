"""A case: a program and a history, by seed or as readable text.

The text of a case is a small file that can be kept as a regression:

    -- anything that explains it
    CREATE TABLE r (a BIGINT, b TEXT);
    CREATE MATERIALIZED VIEW v AS SELECT a FROM r;

    -- history
    insert r (1, 'x'), (2, NULL);
    delete r (1, 'x') and insert r (1, 'y');

Values are written as PostgreSQL reads them, numbers bare and everything else in quotes, and take the types
of their columns. Writes joined by `and` are one statement.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from everview.errors import DataError
from everview.language.casts import cast_value, to_text
from everview.language.program import Program
from everview.language.types import UNKNOWN, Type
from everview.testing.fuzz.histories import Statement, Write, generate_history
from everview.testing.fuzz.model import Row
from everview.testing.fuzz.programs import Generated, generate_program

__all__ = ["Case", "generate_case", "parse_case", "write_case"]

_MARK = "-- history"


HISTORIES = 2
"""How many seeds in a row share a program, each with a history of its own: compiling takes longest."""


@lru_cache(maxsize=2)
def _program(seed: int) -> Generated:
    return generate_program(random.Random(f"program {seed}"))


@dataclass(frozen=True, slots=True)
class Case:
    """A program, its history, and what the generator knows about it: each view's constructs, refusals."""

    program: Program
    history: tuple[Statement, ...]
    constructs: Mapping[str, frozenset[str]] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)


def generate_case(seed: int, *, statements: int = 10, histories: int = HISTORIES) -> Case:
    """The case of a seed, the same in every process; `histories` seeds in a row share a program."""
    made = _program(seed // histories)
    history = generate_history(
        random.Random(f"history {seed}"), made.program, made.domain, statements=statements
    )
    return Case(made.program, history, made.constructs, made.refusals)


def write_case(case: Case, *, title: str = "") -> str:
    """The case as text that `parse_case` reads."""
    head = "".join(f"-- {line}\n" for line in title.splitlines())
    lines = [" and ".join(map(_write_text, statement)) + ";" for statement in case.history]
    return f"{head}{case.program.text.strip()}\n\n{_MARK}\n" + "\n".join(lines) + "\n"


def _write_text(write: Write) -> str:
    rows = ", ".join("(" + ", ".join(_value_text(value) for value in row) + ")" for row in write.rows)
    return f"{write.action} {write.relation} {rows}".rstrip()


def _value_text(value: object) -> str:
    if value is None:
        return "NULL"
    text = to_text(value)
    if isinstance(value, (bool, int)) or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return text if not isinstance(value, str) else f"'{text}'"
    return "'" + text.replace("'", "''") + "'"


_TOKEN = re.compile(r"\s*(?:'((?:[^']|'')*)'|([(),;])|([^\s'(),;]+))", re.DOTALL)


def parse_case(text: str) -> Case:
    """The case that a text describes; DataError if its history is not one."""
    head, mark, tail = text.partition(f"\n{_MARK}\n")
    if not mark:
        raise DataError(f"a case has a line '{_MARK}' between its program and its history")
    program = Program.parse(head)
    return Case(program, tuple(_History(program, tail).statements()))


class _History:
    """Reads the part after the mark."""

    def __init__(self, program: Program, text: str) -> None:
        self._program = program
        self._tokens: list[tuple[str, bool]] = []
        place = 0
        while text[place:].strip():
            found = _TOKEN.match(text, place)
            if found is None:
                raise DataError(f"no value, word or sign begins here: {text[place : place + 40]!r}")
            quoted, sign, word = found.groups()
            self._tokens.append(
                (quoted.replace("''", "'") if quoted is not None else sign or word, quoted is not None)
            )
            place = found.end()
        self._place = 0

    def _next(self, *wanted: str) -> str:
        if self._place >= len(self._tokens):
            raise DataError("the history ends in the middle of a statement")
        word, quoted = self._tokens[self._place]
        if wanted and (quoted or word not in wanted):
            raise DataError(f"expected {' or '.join(wanted)}, not {word!r}")
        self._place += 1
        return word

    def statements(self) -> Iterator[Statement]:
        while self._place < len(self._tokens):
            writes = [self._write()]
            while self._next("and", ";") == "and":
                writes.append(self._write())
            yield tuple(writes)

    def _write(self) -> Write:
        action = self._next("insert", "delete")
        relation = self._next(*self._program.relations)
        types = [f.type for f in self._program.relations[relation].schema]
        rows: list[Row] = []
        while self._tokens[self._place : self._place + 1] in ([("(", False)], [(",", False)]):
            if self._next("(", ",") == ",":
                self._next("(")
            rows.append(tuple(self._values(types)))
        return Write("insert" if action == "insert" else "delete", relation, tuple(rows))

    def _values(self, types: list[Type]) -> Iterator[object]:
        for index, target in enumerate(types):
            word, quoted = self._tokens[self._place]
            self._place += 1
            yield None if word == "NULL" and not quoted else cast_value(word, UNKNOWN, target)
            self._next("," if index + 1 < len(types) else ")")

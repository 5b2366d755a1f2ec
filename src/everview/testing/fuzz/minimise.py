"""The smallest case that still fails as the given one does, so that a person can read it.

Whatever can be left out is left out: views, statements, rows, columns; then the views' queries shrink, each
part being replaced by something inside it or by a constant. A step is kept when the case still fails in the
same way; texts that are no programs do not.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from everview.errors import ProgramError
from everview.language.program import Program
from everview.language.sql.dialect import Dialect
from everview.testing.fuzz.case import Case
from everview.testing.fuzz.check import Difference, check_case
from everview.testing.fuzz.histories import Statement, Write

__all__ = ["failure", "minimise"]

Thing = TypeVar("Thing")
Fails = Callable[[Case], str | None]


def failure(case: Case, check: Callable[[Case], object] = check_case) -> str | None:
    """How a case fails: the kind of the difference or of the exception; None if it does not."""
    try:
        check(case)
    except ProgramError:
        return None
    except Difference as difference:
        return "difference in " + ("faults" if "still has rows" in str(difference.problems) else "rows")
    except Exception as error:  # noqa: BLE001 - whatever a store raises is the finding
        return f"{type(error).__name__}: {re.sub('[0-9]+', '#', str(error))[:60]}"
    return None


def minimise(case: Case, check: Callable[[Case], object] = check_case, *, seconds: float = 60.0) -> Case:
    """A small case that fails like this one; the best that was found when the time is over."""
    how = failure(case, check)
    if how is None:
        return case
    return _Search(check, how, time.monotonic() + seconds).smallest(case)


@dataclass(slots=True)
class _Search:
    check: Callable[[Case], object]
    how: str
    until: float

    def smallest(self, case: Case) -> Case:
        before = ""
        while (size := f"{case.program.text}{case.history}") != before and time.monotonic() < self.until:
            before = size
            for step in (self._cut, self._views, self._statements, self._rows, self._queries, self._columns):
                case = step(case)
        return case

    def _fails(self, case: Case) -> bool:
        return time.monotonic() < self.until and failure(case, self.check) == self.how

    def _first(self, candidates: Iterator[Case]) -> Case | None:
        return next((candidate for candidate in candidates if self._fails(candidate)), None)

    def _cut(self, case: Case) -> Case:
        try:
            self.check(case)
        except Difference as difference:
            return difference.case
        except Exception:  # noqa: BLE001 - it fails otherwise; there is nothing to cut
            return case
        return case

    def _without(self, things: Sequence[Thing], make: Callable[[list[Thing]], Case | None]) -> list[Thing]:
        """As few of the things as still fail, leaving out halves first, then single ones."""
        kept = list(things)
        size = max(1, len(kept) // 2)
        while size:
            place = 0
            while place < len(kept):
                fewer = kept[:place] + kept[place + size :]
                made = make(fewer)
                if made is not None and self._fails(made):
                    kept = fewer
                else:
                    place += size
            size //= 2
        return kept

    def _views(self, case: Case) -> Case:
        declarations = _declarations(case.program.text)

        def make(kept: list[str]) -> Case | None:
            return _with_text(case, kept)

        return make(self._without(declarations, make)) or case

    def _statements(self, case: Case) -> Case:
        return replace(
            case,
            history=tuple(self._without(case.history, lambda kept: replace(case, history=tuple(kept)))),
        )

    def _rows(self, case: Case) -> Case:
        flat = [
            (number, place, row)
            for number, statement in enumerate(case.history)
            for place, write in enumerate(statement)
            for row in write.rows
        ]

        def make(kept: list[tuple[int, int, tuple[object, ...]]]) -> Case:
            history: list[Statement] = []
            for number, statement in enumerate(case.history):
                writes = []
                for place, write in enumerate(statement):
                    rows = tuple(row for n, p, row in kept if (n, p) == (number, place))
                    if rows:
                        writes.append(replace(write, rows=rows))
                if writes:
                    history.append(tuple(writes))
            return replace(case, history=tuple(history))

        return make(self._without(flat, make))

    def _columns(self, case: Case) -> Case:
        """Leave out columns of relations that nothing reads."""
        for name, relation in list(case.program.relations.items()):
            for column in reversed(relation.columns):
                found = self._first(iter([c for c in [_without_column(case, name, column)] if c]))
                case = found or case
        return case

    def _queries(self, case: Case) -> Case:
        declarations = _declarations(case.program.text)
        views = [index for index, text in enumerate(declarations) if "MATERIALIZED VIEW" in text]
        for index in views:
            again = True
            while again and time.monotonic() < self.until:
                again = False
                for smaller in _smaller(declarations[index]):
                    made = _with_text(case, [*declarations[:index], smaller, *declarations[index + 1 :]])
                    if made is not None and self._fails(made):
                        case, declarations[index], again = made, smaller, True
                        break
        return case


def _declarations(text: str) -> list[str]:
    """The declarations of a text, laid out alike."""
    return [
        statement.sql(dialect=Dialect)
        for statement in (parse_one(part, dialect=Dialect) for part in _split(text))
    ]


def _split(text: str) -> list[str]:
    """The statements of a text: what stands between semicolons that are in no quotes."""
    parts = re.findall(r"(?:'(?:[^']|'')*'|--[^\n]*|[^;'])+", text)
    return [part.strip() for part in parts if re.sub(r"--[^\n]*", "", part).strip()]


def _with_text(case: Case, declarations: Sequence[str]) -> Case | None:
    text = "".join(f"{declaration};\n" for declaration in declarations)
    try:
        program = Program.parse(text)
    except ProgramError:
        return None
    history = tuple(
        kept
        for statement in case.history
        if (kept := tuple(w for w in statement if w.relation in program.relations))
    )
    return Case(program, history)


def _without_column(case: Case, name: str, column: str) -> Case | None:
    place = case.program.relations[name].columns.index(column)
    declarations = []
    for declaration in _declarations(case.program.text):
        tree = parse_one(declaration, dialect=Dialect)
        if (
            isinstance(tree.this, exp.Schema)
            and tree.this.this.name == name
            and tree.args.get("kind") == "TABLE"
        ):
            for part in list(tree.this.expressions):
                if isinstance(part, exp.ColumnDef) and part.name == column:
                    part.pop()
        declarations.append(tree.sql(dialect=Dialect))
    made = _with_text(case, declarations)
    if made is None or name not in made.program.relations:
        return None

    def narrower(write: Write) -> Write:
        if write.relation != name:
            return write
        return replace(write, rows=tuple(row[:place] + row[place + 1 :] for row in write.rows))

    return replace(made, history=tuple(tuple(map(narrower, statement)) for statement in made.history))


_OPTIONAL = ("where", "having", "group", "order", "limit", "offset", "distinct", "with_", "joins")


def _smaller(declaration: str) -> Iterator[str]:
    """The declaration with one part left out, or replaced by something smaller; the boldest first."""
    try:
        count = sum(1 for _ in parse_one(declaration, dialect=Dialect).walk())
    except SqlglotError:
        return
    for index in range(count):
        option = 0
        while True:
            tree = parse_one(declaration, dialect=Dialect)
            node = next(n for i, n in enumerate(tree.walk()) if i == index)
            edits = list(_edits(node))
            if option >= len(edits):
                break
            edits[option]()
            option += 1
            try:
                text = tree.sql(dialect=Dialect)
            except (SqlglotError, ValueError, AttributeError):  # what is left is no tree
                continue
            if len(text) < len(declaration):
                yield text


def _edits(node: exp.Expr) -> Iterator[Callable[[], object]]:
    if isinstance(node, exp.Select):
        yield from (partial(node.set, key, None) for key in _OPTIONAL if node.args.get(key))
        yield from (join.pop for join in node.args.get("joins") or ())
        if len(node.expressions) > 1:
            yield from (item.pop for item in node.expressions)
    fixed = (exp.Create, exp.Schema, exp.Identifier, exp.DataType, exp.Alias)
    if node.parent is None or isinstance(node, fixed):
        return
    if isinstance(node, (exp.Query, exp.Condition, exp.Func, exp.Subquery, exp.Paren)):
        same = exp.Query if isinstance(node, exp.Query) else exp.Condition
        for child in list(node.iter_expressions()):
            if isinstance(child, same) and not isinstance(child, fixed):
                yield partial(node.replace, child)
        if isinstance(node, exp.Condition) and not isinstance(node, (exp.Literal, exp.Column, exp.Query)):
            yield from (partial(node.replace, parse_one(text, dialect=Dialect)) for text in _CONSTANTS)


_CONSTANTS = ("1", "'a'", "TRUE")

"""What has to be known of a relation or view to read it from a store, without the program that declares it.

A hub writes this into its store when it is opened, under the program's hash. So other processes read the
rows, and write some, that have neither the program nor the time to plan it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from everview.errors import DataError, StoreError
from everview.hub.files import Files
from everview.hub.runs import Layout
from everview.language.relations import Relation, Semantics
from everview.language.types import Field

if TYPE_CHECKING:
    from everview.hub.tables import Catalog
    from everview.language.program import Program

__all__ = [
    "FOLDER",
    "Shape",
    "read_program",
    "read_shape",
    "shape_of",
    "write_program",
    "write_shapes",
]

FOLDER = "shapes"


class Shape(msgspec.Struct, frozen=True):
    """A relation or view: its columns, the table of the store that has its rows, and how they lie there."""

    name: str
    fields: tuple[Field, ...]
    table: str
    layout: Layout
    hashed: tuple[int, ...]
    """The columns whose hash a row is found by."""
    relation: Relation | None = None
    """None of a view."""

    @property
    def width(self) -> int:
        """How many columns it has."""
        return len(self.fields)

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(field.name for field in self.fields)

    @property
    def by_parity(self) -> bool:
        """Whether a stored row is there when its value is odd, or else as often as it says."""
        return self.relation is not None and self.relation.semantics is not Semantics.BAG


def shape_of(catalog: Catalog, name: str) -> Shape:
    """The shape of a relation or view; DataError when there is none of that name."""
    fields = catalog.program.schema(name)
    relation = catalog.program.relations.get(name)
    if relation is not None:
        table = next(own.name for own in catalog.relations if own.relation is relation)
    else:
        table = catalog.circuit.views[name].name
    return Shape(name, fields, table, catalog.layouts[table], catalog.hashed(table).columns, relation)


def _path(program: str) -> str:
    return f"{FOLDER}/{program}.json"


def write_shapes(files: Files, catalog: Catalog) -> None:
    """Say in the store what its tables are."""
    path = _path(catalog.program.hash)
    if not files.exists(path):
        found = {name: shape_of(catalog, name) for name in catalog.program.names()}
        files.create(path, msgspec.json.format(msgspec.json.encode(found), indent=1))


def write_program(files: Files, program: Program) -> None:
    """Keep the program's text in the store: what it becomes is told by comparing."""
    files.create(_text(program.hash), program.text.encode())


def read_program(files: Files, program: str) -> Program:
    """The program with this hash, as a hub had it; StoreError when its text is not in the store."""
    from everview.language.program import Program  # noqa: PLC0415 - it brings the parser

    path = _text(program)
    if not files.exists(path):
        raise StoreError(
            f"{files.uri('')} does not have its program's text, because no hub of this version has had it "
            "open: open it once with Hub.open and the program that it has",
            path=path,
        )
    return Program.stored(files.read(path).decode())


def _text(program: str) -> str:
    return f"{FOLDER}/{program}.program"


def read_shape(files: Files, program: str, name: str) -> Shape:
    """The shape of a relation or view of the program with this hash."""
    path = _path(program)
    if not files.exists(path):
        raise StoreError(
            f"{files.uri('')} does not say what its tables are, because no hub of this version has had it "
            "open: open it once with Hub.open",
            path=path,
        )
    try:
        shapes = msgspec.json.decode(files.read(path), type=dict[str, Shape])
    except msgspec.DecodeError as error:
        raise StoreError(
            f"{path} is damaged: remove it, and open the store once with Hub.open", path=path
        ) from error
    if name not in shapes:
        raise DataError(
            f"there is no relation or view {name}: there are {', '.join(sorted(shapes))}", relation=name
        )
    return shapes[name]

"""CREATE TABLE and CREATE MATERIALIZED VIEW.

A table is a set of rows; with PRIMARY KEY one row per key; `WITH (semantics = 'bag' | 'add_wins')` says
otherwise, and `WITH (merge = 'column' | 'max' | 'min')` how concurrent writes to one key are joined; `WITH
(owner = 'column')` names the TEXT column that holds the only site to write a row; `event_time`, `sources` and
`lateness` make a relation of such rows a windowed one; `retention` says how long a set remembers deletions.
PARTITION BY names columns of which every value is replicated by itself. NOT NULL is the one constraint that
sites can keep apart from each other, so every other one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from everview.language.relations import MERGING, RETENTION_US, Relation, Semantics
from everview.language.sql.lengths import read_length
from everview.language.sql.partitions import is_partitioning, read_partitioned
from everview.language.sql.source import Source, folded, nearest, words
from everview.language.sql.typenames import bind_type
from everview.language.sql.windowed import WINDOWED, read_windowed
from everview.language.types import Field, Kind

__all__ = ["Declared", "declared_name", "read_declaration"]

_CREATE = ("this", "kind", "expression", "properties")
_CREATE_REFUSALS = {
    "replace": ("OR REPLACE", "a program declares each name once"),
    "exists": ("IF NOT EXISTS", "a program declares each name once"),
    "unique": ("UNIQUE", ""),
    "indexes": ("INDEX", "indexes follow from the views"),
    "no_schema_binding": ("WITH NO SCHEMA BINDING", ""),
    "clone": ("CLONE", ""),
}
_CONSTRAINTS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.DefaultColumnConstraint: ("DEFAULT", "give the value when the row is written"),
    exp.UniqueColumnConstraint: ("UNIQUE", "declare it as PRIMARY KEY, or count duplicates in a view"),
    exp.CheckColumnConstraint: ("CHECK", "select the offending rows in a view"),
    exp.Reference: ("REFERENCES", "select rows without a partner in a view, with NOT EXISTS"),
    exp.ForeignKey: ("FOREIGN KEY", "select rows without a partner in a view, with NOT EXISTS"),
    exp.GeneratedAsIdentityColumnConstraint: ("GENERATED", "sites cannot share a counter; choose keys"),
    exp.GeneratedAsRowColumnConstraint: ("GENERATED", "compute the column in a view"),
    exp.ComputedColumnConstraint: ("GENERATED", "compute the column in a view"),
    exp.CollateColumnConstraint: ("COLLATE", "text always compares by its UTF-8 bytes; leave it out"),
    exp.LikeProperty: ("LIKE", "write the columns out"),
    exp.Constraint: ("CONSTRAINT", "write PRIMARY KEY without a name"),
    exp.ExcludeColumnConstraint: ("EXCLUDE", "select the offending rows in a view"),
}
_RESERVED = ("sqlite_", "everview_")
_MARKS = ">#!^"
"""In messages between sites these tell names apart from what is told of them."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A view as it was declared: its query is bound when all names are known."""

    name: str
    node: exp.Expr
    query: exp.Expr
    columns: tuple[str, ...]
    authority: str | None


def declared_name(source: Source, node: exp.Expr) -> str:
    """The name that a CREATE declares."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise source.error(node, "CREATE needs a name")
    source.only(table, ("this",), {"db": (".", "a name has no schema before it"), "catalog": (".", "")})
    name = folded(table.this)
    if name.lower().startswith(_RESERVED):
        raise source.error(table, f"{name}: names that begin with sqlite_ or everview_ are reserved")
    if not set(_MARKS).isdisjoint(name):
        marks = " ".join(_MARKS)
        raise source.error(table, f"{name}: a name has none of {marks} in it", hint="use _ instead")
    return name


def read_declaration(source: Source, node: exp.Expr) -> Relation | Declared:
    """A relation, or a view whose query is still to be bound."""
    if not isinstance(node, exp.Create):
        word = words(node)
        hint = "queries go to query(), writes to execute()"
        if isinstance(node, (exp.Drop, exp.Alter)):
            hint = "edit the declarations; a program is declared as a whole"
        raise source.error(node, f"{word} is not a declaration", hint=hint)
    kind = str(node.args.get("kind")).upper()
    if kind not in ("TABLE", "VIEW"):
        advice = "indexes follow from the views" if kind == "INDEX" else None
        raise source.error(node, f"CREATE {kind} is not supported", hint=advice, word=kind)
    source.only(node, _CREATE, _CREATE_REFUSALS)
    name = declared_name(source, node)
    return _relation(source, node, name) if kind == "TABLE" else _view(source, node, name)


def _view(source: Source, node: exp.Expr, name: str) -> Declared:
    options = _options(source, node, ("authority",))
    properties = node.args.get("properties")
    if properties is None or not properties.find(exp.MaterializedProperty):
        raise source.error(
            node.this,
            f"{name} is not MATERIALIZED; every view is kept fresh and stored",
            hint="write CREATE MATERIALIZED VIEW",
        )
    columns: tuple[str, ...] = ()
    if isinstance(node.this, exp.Schema):
        columns = tuple(folded(column) for column in node.this.expressions)
    query = node.args.get("expression")
    if query is None:
        raise source.error(node, f"{name} has no query", hint="write AS SELECT …")
    return Declared(name, node, query, columns, options.get("authority"))


def _relation(source: Source, node: exp.Expr, name: str) -> Relation:
    if node.args.get("expression") is not None or not isinstance(node.this, exp.Schema):
        raise source.error(
            node.this,
            f"{name}: CREATE TABLE lists columns",
            hint="write CREATE MATERIALIZED VIEW … AS SELECT for a query",
        )
    options = _options(source, node, ("semantics", "merge", "owner", "retention", *WINDOWED))
    fields: dict[str, Field] = {}
    key: list[str] = []
    for part in node.this.expressions:
        if isinstance(part, exp.PrimaryKey):
            key = _primary_key(source, part, key)
            continue
        if isinstance(part, exp.Identifier):
            raise source.error(part, f"column {folded(part)} has no type")
        if not isinstance(part, exp.ColumnDef):
            raise _refused(source, part)
        field, is_key = _column(source, part)
        if field.name.lower() in {known.lower() for known in fields}:
            raise source.error(part, f"column {field.name} is declared twice")
        fields[field.name] = field
        if is_key:
            key = [*_once(source, part, key), field.name]
    if not fields:
        raise source.error(node.this, f"{name} has no columns")
    for column in key:
        if column not in fields:
            raise source.error(
                node.this,
                f"PRIMARY KEY: there is no column {column}",
                hint=nearest(column, fields),
                word=column,
            )
    schema = tuple(
        Field(field.name, field.type, field.nullable and field.name not in key) for field in fields.values()
    )
    semantics = _semantics(source, node, options.get("semantics"), keyed=bool(key))
    if "merge" in options:
        semantics = _merging(source, node, options["merge"], keyed=bool(key))
    owner = _owner(source, node, options.get("owner"), fields)
    retention = read_length(source, node, options, "retention")
    if retention is not None and semantics is not Semantics.SET:
        raise source.error(
            node,
            "retention: only a set remembers what was deleted",
            hint="leave it out: other relations keep nothing of a deleted row",
            word="retention",
        )
    length = RETENTION_US if retention is None else retention
    relation = Relation(name, schema, semantics, tuple(key), owner, retention=length)
    return read_partitioned(source, node, read_windowed(source, node, relation, options))


def _column(source: Source, node: exp.ColumnDef) -> tuple[Field, bool]:
    source.only(
        node, ("this", "kind", "constraints"), {"position": ("FIRST", ""), "default": ("DEFAULT", "")}
    )
    if node.args.get("kind") is None:
        raise source.error(node, f"column {folded(node.this)} has no type")
    nullable, is_key = True, False
    for constraint in node.args.get("constraints") or ():
        kind = constraint.args.get("kind")
        if constraint.args.get("this") is not None:
            raise source.error(
                node, "CONSTRAINT names are not supported", hint="leave the name out", word="CONSTRAINT"
            )
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        elif isinstance(kind, exp.PrimaryKeyColumnConstraint):
            _refuse_key_options(source, kind)
            is_key = True
        else:
            raise _refused(source, kind, near=node)
    return Field(folded(node.this), bind_type(source, node.args["kind"]), nullable), is_key


def _refused(source: Source, node: exp.Expr, *, near: exp.Expr | None = None) -> Exception:
    word, hint = _CONSTRAINTS.get(type(node), (words(node), ""))
    kept = word in ("UNIQUE", "CHECK", "REFERENCES", "FOREIGN KEY", "GENERATED", "EXCLUDE")
    return source.error(
        near or node,
        f"{word} is refused" + (": sites that write apart from each other cannot keep it" if kept else ""),
        hint=hint or None,
        word=word.split()[0],
    )


def _once(source: Source, node: exp.Expr, key: list[str]) -> list[str]:
    if key:
        raise source.error(
            node, "PRIMARY KEY is declared twice", hint="write PRIMARY KEY (a, b) once, after the columns"
        )
    return key


def _refuse_key_options(source: Source, node: exp.Expr) -> None:
    """PRIMARY KEY stands alone: no DEFERRABLE, no INCLUDE, no storage parameters."""
    hint = "leave out what follows it"
    source.only(node, ("this", "expressions", "include"), {"options": ("PRIMARY KEY with options", hint)})
    extra = node.args.get("include")
    if isinstance(extra, exp.Expr) and any(extra.args.values()):
        raise source.error(node, "PRIMARY KEY with options is not supported here", hint=hint, word="PRIMARY")


def _primary_key(source: Source, node: exp.Expr, key: list[str]) -> list[str]:
    _once(source, node, key)
    _refuse_key_options(source, node)
    return [folded(part.this if isinstance(part, exp.Ordered) else part) for part in node.expressions]


def _options(source: Source, node: exp.Expr, known: tuple[str, ...]) -> dict[str, str]:
    """WITH (name = 'value', …)."""
    found: dict[str, str] = {}
    properties, is_table = node.args.get("properties"), str(node.args.get("kind")).upper() == "TABLE"
    for part in properties.expressions if properties is not None else ():
        if isinstance(part, exp.MaterializedProperty) or (is_partitioning(part) and is_table):
            continue
        name = part.name.lower() if isinstance(part, exp.Property) and "value" in part.args else ""
        value = part.args.get("value")
        if type(part) is not exp.Property or not isinstance(value, exp.Expr):
            word = words(part).removesuffix(" PROPERTY")
            raise source.error(node.this, f"{word} is not supported for {node.args.get('kind')}")
        if name not in known:
            hint = nearest(name, known) or f"there is {', '.join(known)}"
            raise source.error(part, f"WITH ({name} = …) is not known here", hint=hint, word=name)
        if name in found:
            raise source.error(part, f"WITH names {name} twice")
        found[name] = value.name
    return found


def _semantics(source: Source, node: exp.Expr, wanted: str | None, *, keyed: bool) -> Semantics:
    if wanted is None:
        return Semantics.KEYED if keyed else Semantics.SET
    names = {kind.value: kind for kind in Semantics if kind not in MERGING.values()}
    kind = names.get(wanted.lower())
    if kind is None:
        hint = nearest(wanted.lower(), names) or "there are 'set', 'bag' and 'add_wins'"
        raise source.error(node, f"there are no semantics {wanted!r}", hint=hint, word="semantics")
    if (kind is Semantics.KEYED) != keyed:
        hint = "leave out the one that is not meant"
        problem = "a PRIMARY KEY makes a relation keyed" if keyed else "a keyed relation has a PRIMARY KEY"
        raise source.error(node, f"semantics = {wanted!r}: {problem}", hint=hint, word="semantics")
    return kind


def _merging(source: Source, node: exp.Expr, wanted: str, *, keyed: bool) -> Semantics:
    """WITH (merge = 'column' | 'max' | 'min')."""
    kind = MERGING.get(wanted.lower())
    if kind is None:
        hint = nearest(wanted.lower(), MERGING) or "there are 'column', 'max' and 'min'"
        raise source.error(node, f"there is no merge {wanted!r}", hint=hint, word="merge")
    if not keyed:
        raise source.error(
            node,
            f"merge = {wanted!r}: rows are merged where they have one key",
            hint="declare a PRIMARY KEY, or leave merge out",
            word="merge",
        )
    return kind


def _owner(source: Source, node: exp.Expr, owner: str | None, fields: dict[str, Field]) -> str | None:
    if owner is None:
        return None
    if owner not in fields:
        hint = nearest(owner, fields) or f"the columns are {', '.join(fields)}"
        raise source.error(node, f"owner: there is no column {owner}", hint=hint, word="owner")
    if fields[owner].type.kind is not Kind.TEXT:
        raise source.error(
            node, f"owner: {owner} is {fields[owner].type}; the name of a site is TEXT", word="owner"
        )
    return owner

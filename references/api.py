"""The API reference: the public names with their signatures and docstrings, from `inspect`."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from references.markdown import generated, table

__all__ = ["page"]

CLASSES = [
    ("everview", "Program"),
    ("everview", "Site"),
    ("everview", "AsyncSite"),
    ("everview.async_site", "Changes"),
    ("everview.tables.table", "Table"),
    ("everview", "Provenance"),
    ("everview.planner.why.answer", "Witness"),
    ("everview.planner.why.answer", "Proof"),
    ("everview", "SyncReport"),
    ("everview.site", "Watch"),
    ("everview.site", "ChangeLog"),
    ("everview.site", "Logged"),
    ("everview.site", "Backup"),
    ("everview.hub", "Hub"),
    ("everview.hub", "RefreshReport"),
]
"""What the contract names, and what its methods return."""

MODULES = {
    "everview.crdt": "aggregates ([guide](../ALGEBRA.md#computational-crdts-aggregates-that-travel))",
    "everview.windowed": "windowed processors ([guide](../WINDOWS.md))",
    "everview.streams": "pipelines of computational CRDTs ([guide](../STREAMS.md))",
    "everview.testing": "law checks and the simulator ([guide](../ALGEBRA.md#checking-your-own-types))",
}


def page() -> str:
    """The whole page."""
    about = (
        "The public names with their signatures and docstrings, written from the code. "
        "[A device](../DEVICE.md) and [the hub](../HUB.md) are the guides. "
        "Everything else in the package may change."
    )
    lines = generated("Python reference", about)
    for home, name in CLASSES:
        lines += _class(home, getattr(importlib.import_module(home), name))
    lines += _errors(importlib.import_module("everview.errors"))
    for name, what in MODULES.items():
        lines += _module(importlib.import_module(name), what)
    return "\n".join(lines).rstrip() + "\n"


def _class(home: str, cls: type) -> Iterator[str]:
    public = "everview" if home == "everview" or cls.__name__ in ("Hub", "RefreshReport") else ""
    yield from [f"## {cls.__name__}", ""]
    yield from [_told(cls), ""]
    if public:
        yield from [f"`{public}.{cls.__name__}`", ""]
    fields = _fields(cls)
    if fields:
        yield from table(("attribute", "type", ""), fields)
    for name, member in _members(cls):
        if isinstance(member, property):
            yield from [f"### {cls.__name__}.{name}", "", _told(member.fget), ""]
        else:
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            yield from [f"### {cls.__name__}.{name}()", "", "```py", _signature(cls, name, member), "```", ""]
            yield from [_told(function), ""]


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties, in the order in which they are written."""
    for name, member in vars(cls).items():
        if name.startswith("_") or name in _field_names(cls):
            continue
        if isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member):
            yield name, member


def _field_names(cls: type) -> set[str]:
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)}
    return set(getattr(cls, "_fields", ()))


def _fields(cls: type) -> list[tuple[str, str, str]]:
    """Of a dataclass or a named tuple, its fields; what is written below a field says what it is."""
    hints = getattr(cls, "__annotations__", {})
    names = [name for name in hints if name in _field_names(cls)]
    source = inspect.getsource(cls)
    rows = []
    for name in names:
        found = re.search(rf'^    {name}: [^\n]*\n    """(.*?)"""', source, re.DOTALL | re.MULTILINE)
        rows.append((f"`{name}`", f"`{hints[name]}`", " ".join(found[1].split()) if found else ""))
    return rows


def _signature(cls: type, name: str, member: Any) -> str:
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    shape = inspect.signature(function)
    given = list(shape.parameters.values())
    if not isinstance(member, staticmethod):
        given = given[1:]
    owner = cls.__name__ if isinstance(member, classmethod | staticmethod) else cls.__name__.lower()
    return f"{owner}.{name}{_bare(shape.replace(parameters=given))}"


def _bare(shape: inspect.Signature) -> str:
    """The signature as it is written: annotations are texts, and are shown without quotes."""
    parts, star = [], False
    for one in shape.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or one.kind is one.VAR_POSITIONAL
        mark = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
        kind = f": {_type(one.annotation)}" if one.annotation is not one.empty else ""
        default = f" = {one.default!r}" if one.default is not one.empty else ""
        parts.append(f"{mark}{one.name}{kind}{default}")
    back = f" -> {_type(shape.return_annotation)}" if shape.return_annotation is not shape.empty else ""
    whole = f"({', '.join(parts)}){back}"
    if len(whole) <= 90:
        return whole
    return "(\n    " + ",\n    ".join(parts) + f",\n){back}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _told(thing: Any) -> str:
    """A docstring, its paragraphs unwrapped."""
    text = inspect.getdoc(thing)
    if not text:
        raise AssertionError(f"{thing} has no docstring")
    return "\n\n".join(
        part if part.startswith("    ") or "::" in part else " ".join(part.split())
        for part in text.split("\n\n")
    )


def _errors(module: ModuleType) -> Iterator[str]:
    yield from [
        "## Errors",
        "",
        "All derive from `everview.EverviewError`. Nothing is half-applied when one is raised.",
        "",
    ]
    rows = []
    for name in module.__all__:
        cls = getattr(module, name)
        own = [
            one for one in inspect.signature(cls.__init__).parameters if one not in ("self", "args", "kwargs")
        ]
        rows.append(
            (f"`{name}`", f"`{cls.__base__.__name__}`", _told(cls), ", ".join(f"`{one}`" for one in own))
        )
    yield from table(("error", "is a", "when", "has"), rows)


def _module(module: ModuleType, what: str) -> Iterator[str]:
    yield from [f"## {module.__name__}", "", f"{what[0].upper()}{what[1:]}.", ""]
    rows = []
    for name in sorted(module.__all__):
        member = getattr(module, name)
        text = inspect.getdoc(member) or ""
        rows.append((f"`{name}`", " ".join(text.split("\n\n")[0].split())))
    yield from table(("name", ""), rows)

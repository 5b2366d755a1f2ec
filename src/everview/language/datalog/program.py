"""A Datalog text as the parts of a program: relations, views, a hash, and the files that fill relations."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from everview.language.datalog.ast import Directive
from everview.language.datalog.compiler import compile_text
from everview.language.datalog.parser import parse
from everview.language.relations import Relation, View

__all__ = ["Read", "read_datalog"]


@dataclass(frozen=True, slots=True)
class Read:
    """What a text declares."""

    relations: dict[str, Relation]
    views: dict[str, View]
    hash: str
    directives: tuple[Directive, ...]


def read_datalog(text: str) -> Read:
    """Read and check a program; ProgramError with line and column if it cannot be."""
    tree = parse(text)
    compiled = compile_text(tree)
    # What a program says is a set of statements: places, comments and spaces are not part of it.
    said = sorted(repr(part) for part in (*tree.types, *tree.declarations, *tree.directives, *tree.rules))
    digest = hashlib.sha256("\n".join(["datalog", *said]).encode()).hexdigest()
    return Read(compiled.relations, compiled.views, digest, tree.directives)

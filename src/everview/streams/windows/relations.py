"""The relations that hold a group's records, for the program of every site that runs or reads processors.

They are sets, not keyed relations: a second value for an entry must not replace the first, it must be seen.
The same row written again, by a processor that does its work again or by one that runs twice, is no news.
"""

from __future__ import annotations

from typing import Final

from everview.errors import DataError
from everview.language.program import Program

__all__ = ["ENTRIES", "FLOORS", "MESSAGES", "OUTPUTS", "RELATIONS", "require_relations"]

ENTRIES: Final = "windowed_entries"
FLOORS: Final = "windowed_floors"
OUTPUTS: Final = "windowed_outputs"
MESSAGES: Final = "windowed_messages"

RELATIONS: Final = f"""
CREATE TABLE {ENTRIES} (
    stream TEXT NOT NULL, window_number BIGINT NOT NULL, processor TEXT NOT NULL,
    next_message BIGINT NOT NULL, state BLOB NOT NULL, joins TEXT NOT NULL, leaves BOOLEAN NOT NULL, mark TEXT
);
CREATE TABLE {FLOORS} (stream TEXT NOT NULL, window_number BIGINT NOT NULL, members TEXT NOT NULL);
CREATE TABLE {OUTPUTS} (
    stream TEXT NOT NULL, processor TEXT NOT NULL, message BIGINT NOT NULL, number BIGINT NOT NULL,
    output TEXT NOT NULL
);
CREATE TABLE {MESSAGES} (
    stream TEXT NOT NULL, processor TEXT NOT NULL, asked BIGINT NOT NULL, message BIGINT NOT NULL,
    content BLOB NOT NULL
);
"""
"""Their declarations: add this text to a program, or make a program of it alone."""


def require_relations(program: Program) -> None:
    """Refuse a program that has not these relations, columns and all."""
    declared = Program.parse(RELATIONS)
    for name in declared.relations:
        found = program.relations.get(name)
        if found is None or found.columns != declared.relations[name].columns:
            raise DataError(
                f"the site's program has no relation {name} as processors need it; "
                "add everview.windowed.RELATIONS to its text",
                relation=name,
            )

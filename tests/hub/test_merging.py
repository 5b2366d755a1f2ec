"""A hub does not merge rows, and says so before it makes anything."""

import pytest

from everview.errors import ProgramError
from everview.hub.tables import catalog
from everview.language.program import Program


@pytest.mark.parametrize("merge", ["column", "max", "min"])
def test_a_program_that_merges_rows_is_refused(merge: str) -> None:
    program = Program.parse(
        f"CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT) WITH (merge = '{merge}')"
    )
    with pytest.raises(ProgramError, match="a hub does not merge rows"):
        catalog(program)

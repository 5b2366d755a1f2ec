"""Errors of Datalog programs point at the offending word, name the rule, and say what to write instead."""

import re
from pathlib import Path

import pytest

from everview.errors import ProgramError
from everview.language.program import Program

FIXTURE = Path(__file__).parents[1] / "fixtures" / "datalog_errors.txt"


def cases():
    for block in FIXTURE.read_text(encoding="utf-8").strip().split("\n\n"):
        text, _, expected = block.partition("\n----\n")
        yield pytest.param(text, expected, id=" ".join(text.splitlines()[4:])[:90])


@pytest.mark.parametrize(("text", "expected"), list(cases()))
def test_program_is_refused_with_place_and_hint(text, expected):
    with pytest.raises(ProgramError) as refused:
        Program.parse(text, language="datalog")
    error = refused.value
    assert str(error) == expected
    place = re.match(r"line (\d+), column (\d+): ", expected)
    assert (error.line, error.column) == (int(place[1]), int(place[2]))
    assert not text.splitlines()[error.line - 1][error.column - 1].isspace()


def test_an_unknown_language_is_refused():
    with pytest.raises(ProgramError, match="written in 'sql' or 'datalog', not in 'prolog'"):
        Program.parse("", language="prolog")


def test_nesting_without_end_is_an_error_of_the_text():
    deep = "(" * 5_000 + "1" + ")" * 5_000
    with pytest.raises(ProgramError):
        Program.parse(f".decl p(a: number)\np({deep}).", language="datalog")

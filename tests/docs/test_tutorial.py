"""The tutorial, typed in line by line: real processes in an empty folder show what it says."""

from pathlib import Path

import pytest
from tests.docs.page import Block, File, Typed, story
from tests.docs.reader import Reader

PAGE = Path(__file__).parents[2] / "docs" / "TUTORIAL.md"
PORTS = ("8440", "8441")


@pytest.mark.spark  # it starts one of its own
@pytest.mark.timeout(900)  # some thirty processes, on a machine that does other things besides
def test_the_tutorial_is_true(tmp_path):
    with Reader(tmp_path, PORTS) as reader:
        reader.follow(story(PAGE))


def test_every_block_of_the_tutorial_is_typed():
    blocks = PAGE.read_text(encoding="utf-8").count("\n```") // 2
    assert len(story(PAGE)) == blocks


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (Typed("echo one", ["two"]), "the terminal shows\none"),
        (Typed("echo one", ["one", "more"]), "the terminal shows\none"),
        (Typed("printf 'one\\ntwo\\n'", ["one"]), "the terminal shows\none\ntwo"),
        (Typed("false", []), "Ann: $ false"),
        (Typed("echo error: none", ["error: none"]), "Ann: \\$ echo"),
    ],
)
def test_a_page_that_is_wrong_is_found_out(tmp_path, typed, told):
    with Reader(tmp_path) as reader, pytest.raises(AssertionError, match=told.replace("$ f", "\\$ f")):
        reader.follow([Block("Ann", [typed], again=False)])


def test_words_with_dots_name_what_stands_there(tmp_path):
    first = [Typed("mkdir x && cd x"), Typed("echo secret: $((40 + 2))", ["secret: 4x…"])]
    second = [Typed("test 4x… = 42"), Typed("echo in $(basename $PWD) 4x…", ["in x …"])]
    with Reader(tmp_path) as reader:
        reader.follow([File("f", "text"), Block("Ann", first, again=False)])
        reader.follow([Block("Ann", second, again=False)])
        assert (tmp_path / "f").read_text() == "text"

"""The how-to pages, typed in: each in an empty folder, in terminals of its own."""

from pathlib import Path

import pytest
from tests.docs.page import Block, story
from tests.docs.reader import Reader

FOLDER = Path(__file__).parents[2] / "docs" / "howto"
TYPED = ["backup.md", "nat.md", "stick.md", "view.md"]


@pytest.mark.parametrize("name", TYPED)
def test_a_page_is_true(tmp_path, name):
    with Reader(tmp_path, ("8440",)) as reader:
        reader.follow(story(FOLDER / name))


def test_every_page_with_something_to_type_is_typed():
    pages = [page.name for page in FOLDER.glob("*.md") if any(isinstance(p, Block) for p in story(page))]
    assert sorted(pages) == TYPED

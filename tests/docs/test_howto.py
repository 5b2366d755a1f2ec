"""The how-to pages, typed in: each in an empty folder, in terminals of its own."""

from pathlib import Path

import pytest
from tests.docs.page import Block, story
from tests.docs.quick import Quick
from tests.docs.reader import Reader

FOLDER = Path(__file__).parents[2] / "docs" / "howto"
TYPED = ["backup.md", "nat.md", "stick.md", "view.md"]


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    found = Quick(tmp_path_factory.mktemp("bin"))
    yield found
    found.close()


@pytest.mark.parametrize("name", TYPED)
def test_a_page_is_true(tmp_path, quick, name):
    with Reader(tmp_path, ("8440",), quick.folder) as reader:
        reader.follow(story(FOLDER / name))


def test_every_page_with_something_to_type_is_typed():
    pages = [page.name for page in FOLDER.glob("*.md") if any(isinstance(p, Block) for p in story(page))]
    assert sorted(pages) == TYPED

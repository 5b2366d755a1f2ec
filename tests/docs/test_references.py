"""The references are what the code would write now; drawings are whole, and fetch nothing."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from references import FOLDER, PAGES
from references import sql as sql_reference
from references.api import CLASSES

import everview as ev
from everview.language.functions import FUNCTIONS

DOCS = Path(__file__).parents[2] / "docs"
DRAWINGS = sorted(DOCS.glob("explain/*.svg"))


@pytest.mark.parametrize("name", list(PAGES))
def test_a_reference_is_current(name):
    """If not: `make references`."""
    assert (FOLDER / name).read_text(encoding="utf-8") == PAGES[name]()


def test_every_function_is_in_the_reference():
    page = (FOLDER / "sql.md").read_text(encoding="utf-8")
    assert [f.name for f in FUNCTIONS.values() if f"`{f.sql}`".replace("|", "\\|") not in page] == []


def test_an_example_that_the_compiler_does_not_take_is_noticed(monkeypatch):
    monkeypatch.setattr(sql_reference, "ACCEPTED", {"Queries": [("wrong", "SELECT nosuch FROM r")]})
    with pytest.raises(ev.ProgramError, match="nosuch"):
        sql_reference.page()
    monkeypatch.setattr(sql_reference, "ACCEPTED", {})
    monkeypatch.setattr(sql_reference, "REFUSED", ["SELECT a FROM r"])
    with pytest.raises(AssertionError, match="the compiler takes SELECT a FROM r"):
        sql_reference.page()


def test_the_contracts_classes_are_in_the_reference():
    named = {name for _, name in CLASSES}
    public = {name for name in ev.__all__ if name[0].isupper() and not name.endswith("Error")}
    assert public | {"Hub", "RefreshReport"} <= named


@pytest.mark.parametrize("path", DRAWINGS, ids=lambda p: p.name)
def test_a_drawing_is_whole_and_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    root = ET.fromstring(text)
    space = {"s": "http://www.w3.org/2000/svg"}
    assert root.find("s:title", space).text
    assert root.find("s:desc", space).text
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    assert len(text) < 6_000


def test_every_explanation_has_its_drawing_and_its_paper():
    papers = ("SAC 2022", "CloudDP 2013", "PaPoC 2024", "Windowed Conflict-Free", "Maintaining Distributed")
    shown = set()
    for page in DOCS.glob("explain/*.md"):
        text = page.read_text(encoding="utf-8")
        (drawing,) = re.findall(r"!\[.+\]\(([\w-]+\.svg)\)", text)
        shown.add(drawing)
        assert any(paper in text for paper in papers), page.name
    assert shown == {path.name for path in DRAWINGS}

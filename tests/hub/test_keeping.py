"""How views are kept, as the documentation has it."""

from pathlib import Path

from everview.hub.keeping import keeping_table

DOCS = Path(__file__).parents[2] / "docs" / "HUB.md"


def test_the_documentation_has_the_table():
    assert keeping_table() in DOCS.read_text()

"""Every promise names tests, and they exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "GUARANTEES.md"
TEST = re.compile(r"`(tests/[\w/.]+?(?:\.py(?:::\w+)*)?)`")


def promises():
    """The rows of the tables: what is promised, and the tests named."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("|") and not re.match(r"\| promised|\|---", line):
            what, _, tests = (cell.strip() for cell in line.strip("|").split("|"))
            yield what, TEST.findall(tests), tests


def exists(name: str) -> bool:
    path, *inside = name.split("::")
    found = ROOT / path
    if not inside:
        return found.is_file() or any(found.glob("**/test_*.py"))
    if not found.is_file():
        return False
    body = ast.parse(found.read_text(encoding="utf-8")).body
    for part in inside:
        one = next((node for node in body if getattr(node, "name", None) == part), None)
        if one is None:
            return False
        body = getattr(one, "body", [])
    return True


@pytest.mark.parametrize(("what", "tests", "cell"), list(promises()))
def test_a_promise_is_shown_by_tests_that_exist(what, tests, cell):
    assert tests, what
    assert TEST.sub("", cell).strip(" ,") == ""  # nothing but names of tests
    assert [name for name in tests if not exists(name)] == []


def test_tests_named_elsewhere_on_the_page_exist():
    assert [name for name in TEST.findall(PAGE.read_text(encoding="utf-8")) if not exists(name)] == []


def test_a_name_that_is_wrong_would_be_found():
    assert len(list(promises())) > 30
    assert exists("tests/docs/test_guarantees.py::exists")
    assert not exists("tests/docs/test_guarantees.py::test_nosuch")
    assert not exists("tests/docs/test_nosuch.py")
    assert not exists("tests/docs/nosuch")

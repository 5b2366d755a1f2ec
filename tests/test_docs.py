"""The documents are true: their examples run, and what they name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


SPARK = ("HUB.md", "SPARK.md", "STREAMS.md")
EXAMPLES = [
    pytest.param(
        page, id=str(page.relative_to(ROOT)), marks=[pytest.mark.spark] if page.name in SPARK else []
    )
    for page in PAGES
    if PYTHON.search(page.read_text())
]


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_run(page):
    """The examples of a page share their names, in order, as a reader would type them."""
    names = {"__name__": "example"}
    for example in PYTHON.findall(page.read_text()):
        exec(compile(example, str(page), "exec"), names)


def test_the_readme_example_is_about_twenty_lines():
    example, *_ = PYTHON.findall((ROOT / "README.md").read_text())
    lines = [line for line in example.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        if path.startswith("http"):
            continue
        linked = (page.parent / path) if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, target


def test_make_targets_named_in_the_documents_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        for target in re.findall(r"`(?:\$ )?make ([.a-z-]+)", page.read_text()):
            assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), (page.name, target)


def test_the_tree_speaks_of_the_project_alone():
    """No address of a package registry and no path of somebody's machine."""
    registry = re.compile(r"https?://[\w.:-]+/(simpl[e]|package[s])/|index[-]url")
    machine = re.compile(r"(^|[\s\"'=(])/(home|root|work|Users)/\w")
    code = [*ROOT.glob("src/**/*.py"), *ROOT.glob("benchmarks/*.py")]
    for path in [*PAGES, *ROOT.glob("*.t*"), ROOT / "Makefile", *code]:
        if path.is_file():
            text = path.read_text()
            assert not registry.search(text), path
            assert not machine.search(text), path


def test_every_page_is_in_the_site():
    listed = set(re.findall(r"[\w/-]+\.md\b", (ROOT / "mkdocs.yml").read_text()))
    docs = ROOT / "docs"
    assert listed == {str(page.relative_to(docs)) for page in docs.glob("**/*.md")}

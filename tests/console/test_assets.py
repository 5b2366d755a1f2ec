"""The page itself: what browsers are told of it, and that it needs nothing from elsewhere."""

import re
from importlib import resources

import pytest

STATIC = resources.files("everview.console") / "static"
FILES = sorted(file.name for file in STATIC.iterdir())


@pytest.fixture
def client(serve):
    return serve()().client


def test_the_page_is_there_without_a_token(serve):
    client = serve(tokens=True)().client
    assert client.get("/").url.path == client.get("/console").url.path == "/console/"
    for name in FILES:
        answer = client.get(f"/console/{name}")
        assert answer.content == (STATIC / name).read_bytes()
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_browsers_are_told_to_fetch_nothing_from_elsewhere(client):
    for path in ("/console/", "/console/app.js", "/console/nothing"):
        policy = client.get(path).headers["content-security-policy"]
        parts = dict(part.strip().partition(" ")[::2] for part in policy.split(";"))
        assert parts["default-src"] == "'none'"
        assert parts["script-src"] == parts["style-src"] == parts["connect-src"] == "'self'"
        assert parts["frame-ancestors"] == parts["form-action"] == parts["base-uri"] == "'none'"
        assert parts["require-trusted-types-for"] == "'script'"
        assert "unsafe" not in policy


def test_what_is_not_there(client):
    for path in (
        "/console/nothing.js",
        "/console/..%2Fapi.py",
        "/console/../api.py",
        "/console/static/app.js",
    ):
        assert client.get(path).status_code == 404


def test_a_file_that_has_not_changed_is_not_sent_again(client):
    first = client.get("/console/app.js")
    assert client.get("/console/app.js", headers={"If-None-Match": first.headers["etag"]}).status_code == 304


@pytest.mark.parametrize("name", FILES)
def test_files_name_no_other_host_and_make_no_markup_of_text(name):
    text = (STATIC / name).read_text()
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}
    made = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|DOMParser"
    )
    assert not made.search(text)
    assert not re.search(r"\bstyle=|\bon\w+=\"|javascript:", text)
    for module in re.findall(r'from "(.*)"', text):
        assert module.removeprefix("./") in FILES


def test_every_file_ships():
    """What the wheel takes: all files of the package that are not ignored."""
    assert {"index.html", "style.css", "app.js", "icon.svg"} <= set(FILES)

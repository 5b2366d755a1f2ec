"""What a server says to whoever has no token: nothing of the store, the program or the members."""

import itertools
import re
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from everview import Program, Site
from everview.console import Console, SiteSubject
from everview.server import Listener, SiteService, Tokens
from everview.server.app import application

OPEN = {"/v1/live", "/", "/console", "/console/", "/console/{name}"}
"""What docs/SERVING.md says to need no token."""
FILES = ("index.html", "app.js", "style.css", "nosuch.js", "..%2Fpages.py")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
ZEBRA = """
    CREATE TABLE zebra_relation (zebra_column TEXT);
    CREATE MATERIALIZED VIEW zebra_view AS SELECT zebra_column FROM zebra_relation;
"""
EMPTY = "CREATE TABLE t (a BIGINT)"
PAGE = Path(__file__).parents[2] / "docs" / "SERVING.md"


def served(site, folder):
    """A server with a console and tokens; and the addresses that it has."""
    path = folder / f"{site.name}.toml"
    path.write_text(
        "[[token]]\nsite = 'zebra_device'\ntoken = 'zebra-token-zebra'\nread = '*'\nwrite = '*'\n"
    )
    access, console = Tokens(path, program=site.program), Console(SiteSubject(site), writes=True)
    service = SiteService(site.replica)
    routes = application(site.replica, access, service=service, pages=console).routes
    assert all(isinstance(route, Route) for route in routes)
    return Listener(site.replica, access, service=service, pages=console), {route.path for route in routes}


@pytest.fixture
def ask():
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture
def servers(tmp_path):
    """One with rows and members, one with nothing at all."""
    with (
        Site.open(":memory:", Program.parse(ZEBRA), name="zebra_site") as full,
        Site.open(":memory:", Program.parse(ZEBRA), name="zebra_member") as member,
        Site.open(":memory:", Program.parse(EMPTY), name="plain") as empty,
    ):
        full.insert("zebra_relation", [("zebra_row",)])
        member.sync(full)
        (one, paths), (other, _) = served(full, tmp_path), served(empty, tmp_path)
        with one, other:
            yield one.address, other.address, paths, full.replica.incarnation


def test_the_page_says_which_these_are():
    """In the table of the section, and no others."""
    section = PAGE.read_text().partition("\n## Without a token\n")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (.*?) \|", section, re.MULTILINE)
    said = {path for cell in first for path in re.findall(r"`GET (.*?)`", cell)}
    assert {path.replace("FILE", "{name}") for path in said} == OPEN


def test_only_these_addresses_answer_without_a_token(servers, ask):
    full, _, paths, _ = servers
    assert paths >= OPEN | {"/v1/exchange", "/v1/changes", "/v1/health", "/v1/metrics", "/v1/console/rows"}
    for path, method in itertools.product(sorted(paths - OPEN), METHODS):
        for headers in ({}, {"Authorization": "Bearer zebra-token-zebrb"}):
            answer = ask.request(method, full + path, headers=headers)
            assert answer.status_code in (401, 405), (method, path)
    for path in sorted(OPEN - {"/console/{name}"}):
        assert ask.get(full + path).status_code in (200, 204, 307), path


def test_what_they_answer_is_the_same_whatever_is_served(servers, ask):
    """So it tells nothing of what is served; and it has none of its names."""
    full, empty, paths, incarnation = servers
    found = sorted((paths | {"/nosuch"}) - {"/console/{name}"}) + [f"/console/{name}" for name in FILES]
    for path, method in itertools.product(found, METHODS):
        answers = [ask.request(method, address + path, content=b"x") for address in (full, empty)]
        one, other = (
            (answer.status_code, answer.content, {k: v for k, v in answer.headers.items() if k != "date"})
            for answer in answers
        )
        assert one == other, (method, path)
        text = str(one)
        assert "zebra" not in text, (method, path)
        assert incarnation not in text
    live = ask.get(full + "/v1/live")
    assert (live.status_code, live.content) == (204, b"")


def test_with_a_token_the_names_are_told(servers, ask):
    full, _, _, incarnation = servers
    headers = {"Authorization": "Bearer zebra-token-zebra"}
    assert incarnation in ask.get(full + "/v1/health", headers=headers).text
    assert "zebra_view" in ask.get(full + "/v1/console/about", headers=headers).text

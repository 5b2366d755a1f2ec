"""Debian's chromium, driven by Playwright; real `everview` processes with real sites, over loopback.

Run by `make browser`. The `demo` is the real one, played once, on whose stores every function of the console
is driven; a `mission` is a smaller one, for what the demo has not: bags, NULLs, negation, tokens. Whatever
page a test opens, it must ask no other host, and log no error.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from tests.browser.demo import Demo
from tests.browser.processes import process

from everview import Program, Site
from everview.server.tokens import hash_of

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
WORDS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
PATIENCE_MS = 20_000  # on a machine that has other things to do
ALL, GUEST = "boss-boss-boss-boss", "guest-guest-guest-guest"

PROGRAM = """\
CREATE TABLE sighting (drone TEXT NOT NULL, sector BIGINT NOT NULL, what TEXT);
CREATE TABLE sector (sector BIGINT PRIMARY KEY, name TEXT NOT NULL, team TEXT);
CREATE TABLE path (a BIGINT, b BIGINT);
CREATE TABLE blocked (a BIGINT, b BIGINT);
CREATE TABLE note (word TEXT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW open_path AS
    SELECT a, b FROM path WHERE NOT EXISTS (SELECT 1 FROM blocked x WHERE x.a = path.a AND x.b = path.b);
CREATE MATERIALIZED VIEW reachable AS
    WITH RECURSIVE reach AS (
        SELECT a, b FROM open_path
        UNION
        SELECT reach.a, open_path.b FROM reach JOIN open_path ON reach.b = open_path.a
    ) SELECT a, b FROM reach;
CREATE MATERIALIZED VIEW alert AS
    SELECT DISTINCT s.sector, t.name, t.team FROM sighting s JOIN sector t ON s.sector = t.sector
    WHERE s.what IN ('tent', 'person', 'signal');
CREATE MATERIALIZED VIEW busy AS SELECT sector, count(*) AS sightings FROM sighting GROUP BY sector;
CREATE MATERIALIZED VIEW quiet AS
    SELECT sector, name FROM sector WHERE sector NOT IN (SELECT sector FROM sighting);
"""
TOKENS = f"""
[[token]]
site = "boss"
sha256 = "{hash_of(ALL)}"
read = "*"
write = "*"
metrics = true

[[token]]
site = "guest"
sha256 = "{hash_of(GUEST)}"
read = ["alert", "sector"]
"""


class Mission:
    """A command post that is served, and drones that come and go, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "rescue.sql").write_text(PROGRAM)
        (folder / "tokens.toml").write_text(TOKENS)
        self.program = Program.parse(PROGRAM)
        self.console = ""
        self.server: subprocess.Popen[str] | None = None
        with Site.open(folder / "post.db", self.program, name="command-post") as post:
            names = ["Ridge", "Old mill", "North lake", "Quarry", "Pine wood", "Ferry"]
            post.insert(
                "sector", [(n + 1, name, ["alpha", "beta", None][n % 3]) for n, name in enumerate(names)]
            )
            post.insert("path", [(1, 2), (2, 3), (3, 4), (1, 3), (4, 5), (5, 6)])
            post.insert("note", [("radio check",)] * 3)
        for number in (1, 2, 3):
            with self.drone(number) as drone:
                seen = [("tent", 0), ("person", 1), ("trees", 2), ("tent", 3)]
                drone.insert(
                    "sighting", [(f"drone-{number}", (number + k) % 5 + 1, what) for what, k in seen]
                )
                if number == 2:
                    drone.insert("blocked", [(3, 4)])

    @property
    def address(self) -> str:
        parts = urlsplit(self.console)
        return f"{parts.scheme}://{parts.netloc}"

    def drone(self, number: int) -> Site:
        return Site.open(self.folder / f"drone-{number}.db", self.program, name=f"drone-{number}")

    def sync(self, *numbers: int) -> None:
        for number in numbers:
            with self.drone(number) as drone:
                drone.sync(self.address)

    def sees(self, number: int, *rows: tuple[object, ...]) -> None:
        """A drone writes, and comes by."""
        with self.drone(number) as drone:
            drone.insert("sighting", rows)
            drone.sync(self.address)


@pytest.fixture(scope="session")
def mission(tmp_path_factory):
    """Served without tokens, and rows may be written; all drones have come by once."""
    found = Mission(tmp_path_factory.mktemp("mission"))
    words = ["serve", "--store", "post.db", "--port", "0", "--insecure", "--allow-write"]
    with process(*words, cwd=found.folder) as (server, console):
        found.server, found.console = server, console
        found.sync(1, 2, 3)
        yield found


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The demo, played to its end; its tests are one group, so that it is played once."""
    with Demo(tmp_path_factory.mktemp("demo")) as played:
        for name in ("hub", "post"):
            played.begin(name)
        yield played


@pytest.fixture(scope="session")
def chromium():
    if not Path(CHROMIUM).exists():
        pytest.exit(f"there is no {CHROMIUM}: `make browser` installs it, or set CHROMIUM=…", returncode=1)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=WORDS)
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium, monkeypatch) -> Callable[..., Page]:
    """Open a page of a console; whatever it does, it asks nobody else and logs nothing wrong."""
    asked, wrong, contexts = [], [], []
    expected: list[str] = []

    def start(
        address: str, *, width: int = 1320, height: int = 860, dark: bool = False, may: tuple[str, ...] = ()
    ):
        expected.extend(may)
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            has_touch=width < 600,
        )
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        host = urlsplit(address).netloc
        context.on("request", lambda request: asked.append((host, request.url)))
        page.on("websocket", lambda socket: asked.append((host, socket.url)))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        page.goto(address)
        return page

    yield start
    for context in contexts:
        context.close()
    assert asked
    assert {url for host, url in asked if urlsplit(url).netloc != host} == set()
    assert [text for text in wrong if not any(word in text for word in expected)] == []


def go(page: Page, path: str) -> Page:
    """Another part of the page."""
    page.evaluate("path => { location.hash = path }", path)
    return page

"""A site with rows and views of all sorts; and a console that shows it, as a server has it."""

import httpx
import pytest

from everview import Program, Site
from everview.console import Console, SiteSubject
from everview.server import Listener, SiteService, Tokens

PROGRAM = """
    CREATE TABLE sighting (drone TEXT, sector BIGINT NOT NULL, what TEXT);
    CREATE TABLE sector (sector BIGINT PRIMARY KEY, name TEXT);
    CREATE TABLE path (a BIGINT, b BIGINT);
    CREATE TABLE secret (word TEXT);
    CREATE TABLE note (word TEXT) WITH (semantics = 'bag');
    CREATE MATERIALIZED VIEW alert AS
        SELECT DISTINCT s.sector, t.name FROM sighting s JOIN sector t ON s.sector = t.sector
        WHERE what = 'tent';
    CREATE MATERIALIZED VIEW busy AS SELECT sector, count(*) AS n FROM sighting GROUP BY sector;
    CREATE MATERIALIZED VIEW named AS
        SELECT t.name, count(*) AS n FROM sighting s JOIN sector t ON s.sector = t.sector GROUP BY t.name;
    CREATE MATERIALIZED VIEW open_path AS SELECT a, b FROM path WHERE a <> b;
    CREATE MATERIALIZED VIEW reach AS WITH RECURSIVE r AS (
        SELECT a, b FROM open_path UNION SELECT r.a, p.b FROM r JOIN open_path p ON r.b = p.a
    ) SELECT a, b FROM r;
    CREATE MATERIALIZED VIEW leak AS SELECT s.sector, x.word FROM sighting s, secret x;
"""
ALL, SOME, WATCH = "all-all-all-all-all", "some-some-some-some", "watch-watch-watch-watch"
TOKENS = f"""
[[token]]
site = "boss"
token = "{ALL}"
read = "*"
write = "*"
metrics = true

[[token]]
site = "guest"
token = "{SOME}"
read = ["sighting", "sector", "alert", "leak"]
write = ["sighting"]

[[token]]
site = "prometheus"
token = "{WATCH}"
metrics = true
"""


class Asked:
    """Asks a console, with a token."""

    def __init__(self, client, token):
        self.client = client
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path, **query):
        return self.client.get(f"/v1/console/{path}", params=query, headers=self.headers)

    def post(self, path, **body):
        return self.client.post(f"/v1/console/{path}", json=body, headers=self.headers)

    def ok(self, path, **query):
        return self._found(self.get(path, **query))

    def told(self, path, **body):
        return self._found(self.post(path, **body))

    @staticmethod
    def _found(answer):
        assert answer.status_code == 200, answer.text
        assert answer.headers["cache-control"] == "no-store"
        return answer.json()


@pytest.fixture
def site():
    with Site.open(":memory:", Program.parse(PROGRAM), name="post") as found:
        found.insert("sector", [(1, "Ridge"), (2, "Mill")])
        found.insert("sighting", [("d1", 1, "tent"), ("d2", 1, "tent"), ("d2", 2, "tree")])
        found.insert("path", [(1, 2), (2, 3), (3, 3)])
        found.insert("note", [("x",), ("x",), ("<script>alert(1)</script>",)])
        found.insert("secret", [("sesame",)])
        yield found


@pytest.fixture
def serve(site, tmp_path, monkeypatch):
    """Start a console, with tokens or without; return how to ask it."""
    monkeypatch.setattr("everview.server.heads.LOOK_SECONDS", 0.02)
    started = []

    def start(*, tokens=False, writes=False, subject=None):
        path = tmp_path / "tokens.toml"
        path.write_text(TOKENS)
        access = Tokens(path, list(site.program.names())) if tokens else None
        console = Console(subject or SiteSubject(site), writes=writes)
        listener = Listener(site.replica, access, service=SiteService(site.replica), pages=console).start()
        client = httpx.Client(base_url=listener.address, follow_redirects=True)
        started.append((listener, client))
        return lambda token="": Asked(client, token)

    yield start
    for listener, client in started:
        client.close()
        listener.stop()

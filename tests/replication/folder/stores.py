"""Sites over one folder."""

from everview.engines.sqlite.rows import serving
from everview.engines.sqlite.store import Store
from everview.language.program import Program
from everview.replication.transports.folder.transport import FolderTransport
from everview.site import Site

PROGRAM = Program.parse("""
    CREATE TABLE s (a BIGINT, b TEXT);
    CREATE TABLE k (a BIGINT PRIMARY KEY, b TEXT);
    CREATE TABLE g (a BIGINT NOT NULL) WITH (semantics = 'bag');
    CREATE TABLE w (a BIGINT NOT NULL) WITH (semantics = 'add_wins');
    CREATE MATERIALIZED VIEW v AS SELECT s.a, k.b FROM s JOIN k ON s.a = k.a;
""")


def opened(name, path=":memory:", *, program=PROGRAM, hosts=None):
    return Site(Store(str(path), program, name, hosts=hosts))


def visit(folder, *sites):
    return [FolderTransport(folder).sync(site.replica) for site in sites]


def assert_equal(*sites):
    first, *others = [{name: site.rows(name) for name in "skgwv"} for site in sites]
    assert all(other == first for other in others)
    for site in sites:
        check(site)
    return [a for a, _ in first["s"]]


def check(site):
    """The digests are those of the rows, and no peer's were others."""
    connection, store = site._store.writer.connection, site._store
    for name, stored in site.replica.shares.items():
        number = store.ledger.partition(connection, name).number
        kept = serving.digest_of(connection, stored, number, serving.head(connection).version)
        assert kept == serving.sum_rows(connection, stored.all_rows()), name
    assert connection.execute("SELECT * FROM everview_alarms").fetchall() == []


def newcomer(folder):
    site = opened("newcomer")
    visit(folder, site)
    return site


def files(folder, site=None):
    where = folder if site is None else folder / site.replica.incarnation
    return sorted(path for path in where.rglob("*") if path.is_file())


def write(site, *numbers):
    rows = {"s": "x", "k": site.name, "g": None, "w": None}
    with site.transaction():
        for name, value in rows.items():
            site.insert(name, [(n,) if value is None else (n, value) for n in numbers])


def erase(site, *numbers):
    with site.transaction():
        for name in "skgw":
            site.delete(name, [(n, "x") if name in "sk" else (n,) for n in numbers])

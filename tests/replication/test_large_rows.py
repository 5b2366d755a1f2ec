"""Rows of any size that a store accepts reach every other site, in pages of bounded size."""

import random
import tracemalloc
from contextlib import contextmanager
from itertools import pairwise

import pytest
from tests.replication.sites import World, talk

import everview as ev
from everview.engines.sqlite import places
from everview.engines.sqlite.derivations import sending
from everview.language import sizes
from everview.replication import budget, oversized
from everview.replication.wire import LARGEST_MESSAGE, LIMIT, decode
from everview.server import Listener
from everview.server.app import Limits

PROGRAM = ev.Program.parse("""
    CREATE TABLE docs (id BIGINT NOT NULL, body TEXT NOT NULL);
    CREATE TABLE notes (id BIGINT, body TEXT);
    CREATE TABLE photos (id TEXT PRIMARY KEY, image BLOB);
    CREATE TABLE logs (line TEXT) WITH (semantics = 'bag');
    CREATE TABLE tags (tag TEXT) WITH (semantics = 'add_wins');
    CREATE TABLE owned (site TEXT NOT NULL, body TEXT, n BIGINT) WITH (owner = 'site', semantics = 'bag');
    CREATE MATERIALIZED VIEW shouted AS SELECT upper(body) AS body, id FROM docs;
    CREATE MATERIALIZED VIEW paired AS
        SELECT n.body, p.id FROM notes AS n JOIN photos AS p ON p.id = CAST(n.id % 2 AS TEXT);
    CREATE MATERIALIZED VIEW lines AS SELECT line FROM logs UNION ALL SELECT tag FROM tags;
    CREATE MATERIALIZED VIEW summed AS SELECT body, sum(n) AS n FROM owned GROUP BY body;
    CREATE MATERIALIZED VIEW listed WITH (authority = 'a') AS
        SELECT body, count(*) AS n FROM docs GROUP BY body;
""")
RELATIONS = ("docs", "notes", "photos", "logs", "tags", "owned")
VIEWS = ("shouted", "paired", "lines", "summed", "listed")
PAGE = 3_000


@pytest.fixture
def world():
    return World()


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(budget.Budget.__init__, "__defaults__", (budget.PAGE_ROWS, PAGE))


def text(chance, most=2_000):
    """Often with a beginning that others have, too, and longer than what travels of a place."""
    begin = chance.choice(["", "", "x" * 1_500, "é" * 1_500])
    return begin + "".join(chance.choices("abcdeüß€🙂", k=chance.choice([0, 5, most])))


def fill(site, seed, rows=12):
    chance = random.Random(seed)
    with site.transaction():
        for n in range(rows):
            site.insert("docs", [(n, text(chance))])
            site.insert("notes", [(n, chance.choice([None, text(chance)]))])
            site.insert("photos", [(chance.choice(["0", "1", text(chance)]), chance.randbytes(n * 300))])
            site.insert("logs", [(text(chance),)] * 2)
            site.insert("tags", [(text(chance),)])
            site.insert("owned", [(site.name, text(chance), n)])


@contextmanager
def reached(way, site, tmp_path):
    """What others sync with to reach a site, and what they do to it."""
    if way == "http":
        with Listener(site.replica) as listener:
            yield listener.address
    else:
        yield site if way == "memory" else tmp_path / "stick"


def meet(way, one, other, at):
    """Both have everything of each other."""
    for site in (one, other) * 3 if way == "folder" else (one, one):
        site.sync(at)


def conversation(one, other):
    """The messages of a sync, one after the other."""
    exchange = one.replica.exchange("other")
    message = exchange.open()
    while message is not None:
        yield decode(message)
        answer = other.replica.answer(message)
        yield decode(answer)
        message = exchange.receive(answer)


def weight(message):
    rows = (
        []
        if message.page is None
        else [row for section in message.page.sections for row in zip(*section.columns, strict=True)]
    )
    return [
        sum(
            len(cell.encode() if isinstance(cell, str) else cell)
            for cell in row
            if isinstance(cell, str | bytes)
        )
        for row in rows
    ]


# Pages.


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("way", ["memory", "folder", "http"])
def test_rows_of_all_kinds_and_sizes_go_both_ways(world, tmp_path, way):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    fill(a, 1)
    fill(b, 2)
    with reached(way, b, tmp_path) as at:
        meet(way, a, b, at)
    for name in (*RELATIONS, *VIEWS):
        assert a.rows(name) == b.rows(name), name
    assert len(a.rows("logs")) == 48
    a.execute("DELETE FROM docs WHERE id % 2 = 0")
    b.execute("DELETE FROM photos")
    b.execute("UPDATE notes SET body = body || body WHERE id < 5")
    a.execute("DELETE FROM logs")
    with reached(way, b, tmp_path) as at:
        meet(way, a, b, at)
    for name in (*RELATIONS, *VIEWS):
        assert a.rows(name) == b.rows(name), name


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("way", ["memory", "folder", "http"])
@pytest.mark.parametrize("view", VIEWS)
def test_views_over_long_texts_reach_sites_without_their_inputs(world, tmp_path, way, view):
    a, reader = world.site("a", program=PROGRAM), world.site("reader", program=PROGRAM, hosts={view})
    last = world.site("last", program=PROGRAM, hosts={view})
    fill(a, 3)
    with reached(way, a, tmp_path) as at:
        meet(way, reader, a, at)
    assert reader.rows(view) == a.rows(view) != []
    a.execute("DELETE FROM docs WHERE id < 6")
    a.execute("DELETE FROM notes WHERE id < 3")
    fill(a, 4)
    with reached(way, a, tmp_path) as at:
        meet(way, reader, a, at)
    assert reader.rows(view) == a.rows(view)
    if view != "paired":  # is passed on by who has only the view
        last.sync(reader)
        assert last.rows(view) == a.rows(view)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("hosts", [None, *({view} for view in VIEWS)])
def test_a_page_has_as_many_bytes_as_it_may_or_one_row(world, hosts):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM, hosts=hosts)
    fill(a, 5)
    pages = [sizes for message in conversation(b, a) if (sizes := weight(message))]
    assert len(pages) > 3
    # What is one driver's may be a row beyond it; of short rows one by one no more than their cells count.
    assert all(sum(sizes) <= PAGE or len(sizes) == 1 or sum(sizes) - max(sizes) <= PAGE for sizes in pages)
    assert all(b.rows(name) == a.rows(name) for name in (hosts or RELATIONS))


@pytest.mark.usefixtures("small_pages")
def test_places_are_short_however_long_the_keys(world):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    a.insert("docs", [(1, "same" * 5_000 + str(n)) for n in range(9)])
    a.insert("photos", [("key" * 5_000 + str(n), b"") for n in range(9)])
    pages = [m.page for m in conversation(b, a) if m.page is not None and not m.page.done]
    assert len(pages) >= 10
    assert all(len(page.reached) < 3 * places.LONGEST for page in pages)
    assert all(one.reached != other.reached for one, other in pairwise(pages))
    assert b.rows("docs") == a.rows("docs")
    assert b.rows("photos") == a.rows("photos")


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("hosts", [None, {"shouted"}, {"paired"}, {"lines"}, {"summed"}, {"listed"}])
@pytest.mark.parametrize("seed", range(3))
def test_much_happens_between_pages(world, hosts, seed):
    """Also to the very row at which a page ended, and whose key was cut off."""
    chance = random.Random(seed)
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM, hosts=hosts)
    fill(a, seed, rows=6)
    names = tuple(hosts or RELATIONS)
    for _ in range(2):
        for message in conversation(b, a):
            if message.page is not None and not message.page.done and chance.random() < 0.4:
                kind = chance.choice(RELATIONS)
                if chance.random() < 0.6 and (rows := a.rows(kind)):
                    some = chance.sample(rows, min(3, len(rows)))
                    a.delete(kind, [row[:1] if kind == "photos" else row for row in some])
                    if chance.random() < 0.7:
                        a.insert(kind, some)
                else:
                    a.insert("docs", [(chance.randrange(99), text(chance))])
    b.sync(a)
    for name in names:
        assert b.rows(name) == a.rows(name), name


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("last", ["photos", "notes"])
def test_what_one_row_derives_with_many_is_told_in_parts(world, monkeypatch, last):
    """In bytes with texts, and in cells without."""
    program = ev.Program.parse("""
        CREATE TABLE people (id BIGINT PRIMARY KEY, name TEXT);
        CREATE TABLE letters (id BIGINT PRIMARY KEY, who BIGINT, body TEXT);
        CREATE MATERIALIZED VIEW post AS
            SELECT p.name, l.body FROM people AS p JOIN letters AS l ON l.who = p.id;
        CREATE MATERIALIZED VIEW numbers AS
            SELECT p.id, l.id AS letter FROM people AS p JOIN letters AS l ON l.who = p.id;
    """)
    monkeypatch.setattr(sending, "_MOST_CELLS", 40)
    a = world.site("a", program=program)
    many = [(n, 1, f"{n} " * 300) for n in range(50)]
    a.insert("people" if last == "notes" else "letters", [(1, "Ann")] if last == "notes" else many)
    a.insert("letters" if last == "notes" else "people", many if last == "notes" else [(1, "Ann")])
    for view in ("post", "numbers"):
        b = world.site("b", program=program, hosts={view})
        sizes = []
        for step, message in enumerate(conversation(b, a)):
            sizes.append(sum(weight(message)))
            if step == 8:
                a.delete("letters", [(7,)])
                a.insert("letters", [(8, 1, "another")])
        assert max(sizes) < 3 * PAGE
        b.sync(a)
        assert b.rows(view) == a.rows(view)
        assert len(b.rows(view)) == 49


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("busy", [False, True])
def test_versions_from_the_future_come_in_pages_too(world, busy):
    ahead = world.site("ahead", program=PROGRAM, skew=3_600)
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    a.insert("photos", [(str(n), bytes(500)) for n in range(9)])
    ahead.insert("photos", [(f"{'long' * 600}{n}", bytes(700)) for n in range(20)])
    a.sync(ahead)
    assert len(a.rows("photos")) == 9
    pages = []
    for step, message in enumerate(conversation(b, a)):
        pages.append(sum(weight(message)))
        if busy and step < 30:
            a.insert("photos", [(f"new {step}", bytes(100))])
    assert max(pages) <= 2 * PAGE + 6_000
    assert len([size for size in pages if size]) >= 8
    b.sync(a)
    assert b.rows("photos") == a.rows("photos")
    world.seconds += 4_000
    for site in (a, b):
        site.replica.tick()
    assert b.rows("photos") == a.rows("photos")
    assert sum(row[0].startswith("long") for row in b.rows("photos")) == 20


@pytest.mark.usefixtures("small_pages")
def test_a_transfer_goes_on_where_it_broke_off(world, tmp_path):
    a = world.site("a", program=PROGRAM)
    b = world.site("b", tmp_path / "b.db", program=PROGRAM, hosts={"docs"})
    a.insert("docs", [(n, f"{n} " * 800) for n in range(30)])
    exchange = b.replica.exchange("a")
    message = exchange.open()
    for _ in range(12):
        message = exchange.receive(a.replica.answer(message))
    assert b.rows("docs") == []
    b.close()
    b = world.site("b", tmp_path / "b.db", program=PROGRAM)
    report = b.sync(a)
    assert 0 < report.received_rows < 20
    assert b.rows("docs") == a.rows("docs")


# With the limits as they are.


def test_75_megabytes_in_one_relation(world, tmp_path):
    program = ev.Program.parse("CREATE TABLE photos (id BIGINT PRIMARY KEY, image BLOB);")
    a = world.site("a", tmp_path / "a.db", program=program)
    b = world.site("b", tmp_path / "b.db", program=program)
    c = world.site("c", tmp_path / "c.db", program=program)
    for start in range(0, 1_500, 100):
        a.insert("photos", [(n, n.to_bytes(2) * 25_000) for n in range(start, start + 100)])
    tracemalloc.start()
    try:
        b.sync(a)
        a.sync(tmp_path / "stick")
        c.sync(tmp_path / "stick")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 9 * budget.PAGE_BYTES
    counted = "SELECT count(*) AS n FROM photos"
    assert b.query(counted) == c.query(counted) == [{"n": 1_500}]
    assert b.sync(a).received_rows == 0


def test_34_megabytes_over_http_both_ways(world):
    program = ev.Program.parse("CREATE TABLE photos (id BIGINT PRIMARY KEY, image BLOB);")
    a, server, c = (world.site(name, program=program) for name in ("a", "server", "c"))
    chance = random.Random(0)
    a.insert("photos", [(n, chance.randbytes(17_000)) for n in range(2_000)])
    with Listener(server.replica) as listener:
        assert a.sync(listener.address).sent_rows == 2_000
        assert c.sync(listener.address).received_rows == 2_000
    assert c.rows("photos") == a.rows("photos")


# The largest row.


def test_limits_agree():
    """A row that is accepted fits into a message behind a page, and a message into every transport."""
    assert sizes.LARGEST_ROW + budget.PAGE_BYTES <= oversized.LARGEST_PAGE < LIMIT
    assert Limits().body_bytes >= LARGEST_MESSAGE > LIMIT
    assert Limits().held_bytes >= LARGEST_MESSAGE


def test_the_largest_rows_travel_and_hold_up_nothing(world):
    program = ev.Program.parse("""
        CREATE TABLE docs (id BIGINT NOT NULL, body TEXT NOT NULL);
        CREATE TABLE photos (id BIGINT PRIMARY KEY, image BLOB);
    """)
    a, server = world.site("a", program=program), world.site("server", program=program)
    size, chance = sizes.LARGEST_ROW, random.Random(0)
    a.insert("docs", [(1, "ü" * (size // 2)), (2, "short"), (3, "x" * size)])
    a.insert("photos", [(1, chance.randbytes(size)), (2, bytes(size)), (3, b"short")])
    with Listener(server.replica) as listener:
        a.sync(listener.address)
    assert server.rows("docs") == a.rows("docs")
    assert server.rows("photos") == a.rows("photos")


@pytest.mark.parametrize("large", [b"x" * (sizes.LARGEST_ROW + 1), bytes(33 << 20)], ids=["one", "many"])
def test_a_row_that_is_too_large_to_travel_is_refused(world, large):
    site = world.site("a", program=PROGRAM)
    with pytest.raises(ev.DataError, match=r"photos\.image.*16,777,216.*elsewhere") as caught:
        site.insert("photos", [("1", b"short"), ("2", large)])
    assert (caught.value.relation, caught.value.column) == ("photos", "image")
    assert f"{len(large):,}" in str(caught.value)
    assert len(str(caught.value)) < 400
    with pytest.raises(ev.DataError, match=r"photos\.image"):
        site.execute("INSERT INTO photos VALUES ('3', ?)", [large])
    assert site.rows("photos") == []


def test_a_row_that_an_update_makes_too_large_is_refused(world):
    site = world.site("a", program=PROGRAM)
    site.insert("notes", [(1, "é" * (5 << 20))])
    with pytest.raises(ev.DataError, match=r"notes\.body"):
        site.execute("UPDATE notes SET body = body || body")
    assert len(site.rows("notes")[0][1]) == 5 << 20


def test_the_row_as_a_whole_counts(world):
    program = ev.Program.parse("CREATE TABLE r (a TEXT, b TEXT, c BLOB);")
    site, half = world.site("a", program=program), sizes.LARGEST_ROW // 2
    assert site.insert("r", [("x" * half, None, bytes(half))]) == 1
    with pytest.raises(
        ev.DataError, match=r"r\.c is too long: it has 8,388,609 of the row's 16,777,217 bytes"
    ):
        site.insert("r", [("y" * half, "", bytes(half + 1))])


@pytest.fixture
def unlimited(monkeypatch):
    """A store from before there was a limit."""
    monkeypatch.setattr(sizes, "LARGEST_ROW", 1 << 40)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("way", ["memory", "folder", "http"])
def test_rows_from_before_there_was_a_limit_travel(world, tmp_path, way):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    large = random.Random(0).randbytes(33 << 20) if way == "http" else bytes(33 << 20)
    a.insert("photos", [("1", large), ("2", b"short"), ("3", bytes(7 << 20))])
    a.insert("logs", [("another relation",)])
    with reached(way, b, tmp_path) as at:
        a.sync(at)
        if way == "folder":
            b.sync(at)
    assert b.rows("photos") == a.rows("photos")
    assert b.rows("logs") == a.rows("logs")


@pytest.mark.usefixtures("unlimited")
def test_a_row_that_no_message_has_room_for_is_named(world, tmp_path):
    a, b = world.site("a", program=PROGRAM), world.site("b", program=PROGRAM)
    a.insert("photos", [("holiday", bytes(LIMIT))])
    for sync in (lambda: b.sync(a), lambda: a.sync(b), lambda: a.sync(tmp_path / "stick")):
        with pytest.raises(ev.SyncError, match=r"photos has 67,1.* bytes.*'holiday'.*delete") as caught:
            sync()
        assert not caught.value.retry
        assert len(str(caught.value)) < 500
    a.execute("DELETE FROM photos")
    a.insert("logs", [("another relation",)])
    talk(a, b)
    assert b.rows("logs") == [("another relation",)]

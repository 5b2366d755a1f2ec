"""Partitions: what a site that hosts values says, is told, takes and refuses."""

import datetime as dt
import itertools
import logging
import time

import pytest

import everview as ev
from everview.engines.sqlite.environment import Environment
from everview.engines.sqlite.partitions import hosts_of
from everview.engines.sqlite.store import Store
from everview.engines.sqlite.writing import Writing
from everview.errors import WireError
from everview.language.partitions import covers, includes, is_text, meet
from everview.replication.rights.rights import Rights
from everview.replication.transports.memory import MemoryTransport
from everview.server.access import Tokens

TAGS = itertools.count(1)

PROGRAM = ev.Program.parse("""
CREATE TABLE orders (region TEXT, id BIGINT, what TEXT, PRIMARY KEY (region, id)) PARTITION BY (region);
CREATE TABLE log (day DATE, level BIGINT, text TEXT) PARTITION BY (day, level);
CREATE TABLE plain (x BIGINT);
CREATE MATERIALIZED VIEW totals AS SELECT region, count(*) AS n FROM orders GROUP BY region;
CREATE MATERIALIZED VIEW told WITH (authority = 'hub') AS
    SELECT region, count(*) AS n FROM orders GROUP BY region;
""")


def hosting(*values, name="site", path=":memory:"):
    return ev.Site.open(path, PROGRAM, name=name, hosts={"orders": {"region": list(values)}, "totals": ...})


@pytest.fixture
def hub():
    with ev.Site.open(":memory:", PROGRAM, name="hub") as site:
        site.insert("orders", [("eu", 1, "a"), ("us", 1, "b")])
        yield site


def test_a_site_has_the_rows_of_its_values_and_its_views_are_over_them(hub):
    site = hosting("eu")
    assert site.sync(hub).received_rows == 1
    assert site.rows("orders") == [("eu", 1, "a")]
    assert site.rows("totals") == [("eu", 1)]
    assert site.status()["values"] == {"orders": ["region = eu"]}
    assert "values" not in hub.status()
    assert "hosts region = eu. Views here are over those rows alone" in site.explain("totals")
    assert "hosts region = eu" in site.explain("orders")
    assert "hosts all values" in hub.explain("orders")


def test_a_row_that_moves_is_a_deletion_and_an_insertion_in_one_commit(hub):
    eu, us = hosting("eu"), hosting("us")
    eu.sync(hub)
    us.sync(hub)
    hub.execute("UPDATE orders SET region = 'us', id = 7 WHERE region = 'eu'")
    assert eu.sync(hub).received_rows == us.sync(hub).received_rows == 1
    assert eu.rows("orders") == []
    assert us.rows("orders") == [("us", 1, "b"), ("us", 7, "a")]


@pytest.mark.parametrize(
    "write",
    [
        lambda site: site.insert("orders", [("eu", 2, "c"), ("us", 2, "c")]),
        lambda site: site.delete("orders", [("us", 1)]),
        lambda site: site.execute("INSERT INTO orders VALUES ('us', 2, 'c')"),
        lambda site: site.execute("UPDATE orders SET region = 'us' WHERE id = 1"),
    ],
)
def test_what_is_not_hosted_is_not_written_and_nothing_is_half_done(hub, write):
    site = hosting("eu")
    site.sync(hub)
    with pytest.raises(ev.DataError, match="does not host region = us") as caught:
        write(site)
    assert (caught.value.relation, caught.value.column, caught.value.value) == ("orders", "region", "us")
    assert site.rows("orders") == [("eu", 1, "a")]
    assert site.rows("totals") == [("eu", 1)]


def test_values_come_and_go(hub, tmp_path):
    path = tmp_path / "site.db"
    with hosting("eu", path=path) as site:
        site.sync(hub)
        with pytest.raises(ev.DataError, match="nothing would be left"):
            site.drop("orders", {"region": ["eu"]})
    with ev.Site.open(path, hosts={"orders": {"region": ["us"]}}) as site:
        assert site.status()["values"] == {"orders": ["region = eu", "region = us"]}
        assert site.sync(hub).received_rows == 1
        changes = []
        site.watch("totals", changes.append)
        site.drop("orders", {"region": ["eu"]})
        assert changes == [[(("eu", 1), -1)]]
        assert site.rows("orders") == [("us", 1, "b")]
        assert site.rows("totals") == [("us", 1)]
    # It has forgotten the value and how far it had read the hub: the rows come again, though nothing changed.
    with ev.Site.open(path, hosts={"orders": {"region": ["eu"]}}) as site:
        assert site.sync(hub).received_rows == 1
        assert len(site.rows("orders")) == 2
    with ev.Site.open(path) as site:
        assert len(site.status()["values"]["orders"]) == 2
    with ev.Site.open(path, hosts=["orders"]) as site:
        assert "values" not in site.status()
        with pytest.raises(ev.DataError, match="hosted whole"):
            site.drop("orders", {"region": ["eu"]})


def test_who_drops_what_it_wrote_goes_on_as_another(hub, tmp_path):
    path = tmp_path / "site.db"
    with hosting("eu", "us", path=path) as site:
        site.insert("orders", [("eu", 5, "mine"), ("us", 5, "mine")])
        site.sync(hub)
        before = site.status()["incarnation"]
        site.drop("orders", {"region": ["eu"]})
        assert site.status()["incarnation"] != before
    with ev.Site.open(path, hosts={"orders": {"region": ["eu"]}}) as site:
        site.insert("orders", [("eu", 6, "written before it has read")])
        site.sync(hub)
        assert site.rows("orders") == hub.rows("orders")
        assert len(hub.rows("orders")) == 5
        assert site.status()["replication"]["alarms"] == []


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        ({"orders": {"country": ["eu"]}}, "partitioned by region, not by country"),
        ({"orders": {"region": "eu"}}, "list the values"),
        ({"orders": {"region": [1]}}, "1 is no TEXT"),
        ({"orders": {"region": []}}, "choose from 1 to"),
        ({"orders": ["eu"]}, "say which values of region"),
        ({"plain": {"x": [1]}}, "not declared with PARTITION BY"),
        ({"totals": {"region": ["eu"]}}, "totals is hosted whole"),
        ({"nothing": ...}, "no relation or view nothing"),
        ({"totals"}, "host orders as well"),
    ],
)
def test_what_cannot_be_hosted_is_refused(hosts, says):
    with pytest.raises(ev.DataError, match=says):
        ev.Site.open(":memory:", PROGRAM, hosts=hosts)


def test_a_published_view_needs_no_values(hub):
    with ev.Site.open(":memory:", PROGRAM, hosts={"told"}) as site:
        site.sync(hub)
        assert site.rows("told") == [("eu", 1), ("us", 1)]


def test_a_column_that_is_left_out_may_have_any_value(hub):
    days = [dt.date(2026, 1, day) for day in (1, 2)]
    hub.insert("log", [(day, level, "x") for day in days for level in (1, 2)])
    with ev.Site.open(":memory:", PROGRAM, hosts={"log": {"day": days[:1]}}) as site:
        site.sync(hub)
        assert site.rows("log") == [(days[0], 1, "x"), (days[0], 2, "x")]
        with pytest.raises(ev.DataError, match="does not host day = 2026-01-02, level = 1"):
            site.insert("log", [(days[1], 1, "y")])
        with pytest.raises(ev.DataError, match="was not chosen"):
            site.drop("log", {"day": days[:1], "level": [1]})


def test_what_a_command_line_says():
    said = ["totals", "orders/region=eu,us", "log/day=2026-01-01/level=1", "orders/region=asia"]
    found = hosts_of(PROGRAM, said)
    assert found["totals"] is ...
    assert found["orders"] == {"region": ["eu", "us", "asia"]}
    assert list(found["log"]) == ["day", "level"]
    for wrong in ("orders/region", "orders/x=1", "plain/x=1", "log/day=never"):
        with pytest.raises(ev.DataError):
            hosts_of(PROGRAM, [wrong])


def test_choices():
    orders, log = PROGRAM.relations["orders"], PROGRAM.relations["log"]
    assert is_text(orders, '["eu"]')
    assert not is_text(orders, '[ "eu"]')
    assert not is_text(orders, "[1]")
    assert not is_text(orders, "")
    assert is_text(PROGRAM.relations["plain"], "")
    assert is_text(log, "[1,2]")
    assert not is_text(log, "[1.0,2]")
    assert not is_text(log, "[true,2]")
    some = frozenset(["[1,{}]", "[2,3]"])
    assert covers(some, "[1,9]")
    assert covers(some, "[2,3]")
    assert not covers(some, "[2,4]")
    assert includes(None, some)
    assert includes(some, frozenset(["[1,4]"]))
    assert not includes(some, None)
    assert meet(some, frozenset(["[{},3]"])) == {"[2,3]"}
    assert meet(None, some) == some


# Rights.


def limited(*values, reads=None, writes=None, name="site"):
    return Rights(name, reads, writes, parts=(("orders", frozenset(f'["{value}"]' for value in values)),))


def test_a_token_may_be_limited_to_values(hub):
    site = ev.Site.open(":memory:", PROGRAM, name="site")
    peer = MemoryTransport(hub.replica, "hub", limited("eu"))
    site.insert("orders", [("eu", 2, "mine"), ("us", 2, "mine")])
    report = site.sync(peer)
    assert site.rows("orders") == [("eu", 1, "a"), ("eu", 2, "mine"), ("us", 2, "mine")]
    assert hub.rows("orders") == [("eu", 1, "a"), ("eu", 2, "mine"), ("us", 1, "b")]
    site.sync(MemoryTransport(hub.replica, "hub", limited("eu", "us")))
    assert hub.rows("orders") == site.rows("orders")
    assert len(site.rows("orders")) == 4
    assert report.told_denied() == "reading orders; writing orders"


def test_a_reader_makes_no_partitions(hub):
    site = hosting("eu", "nowhere")
    peer = MemoryTransport(hub.replica, "hub", Rights(writes=frozenset()))
    site.insert("orders", [("nowhere", 1, "x")])
    count = "SELECT count(*) FROM everview_partitions"
    site.sync(peer)
    before = hub._store.writer.connection.execute(count).fetchone()
    site.sync(peer)
    assert hub._store.writer.connection.execute(count).fetchone() == before
    assert hub.rows("orders") == [("eu", 1, "a"), ("us", 1, "b")]


def test_rows_under_another_value_are_refused(hub):
    stored = hub._store.engine.relations["orders"]
    stored.check_value([["eu", "eu"], [1, 2], ["a", "b"], [0, 0]], '["eu"]')
    with pytest.raises(WireError, match="another partition"):
        stored.check_value([["eu", "us"], [1, 2], ["a", "b"], [0, 0]], '["eu"]')


# Many values.


def test_of_ten_thousand_values_ten_that_changed_are_talked_about(tmp_path, caplog):
    caplog.set_level(logging.ERROR)
    text = "CREATE TABLE t (customer BIGINT, id BIGINT, PRIMARY KEY (customer, id)) PARTITION BY (customer);"
    program, path = ev.Program.parse(text), tmp_path / "one.db"
    with ev.Site.open(path, program, name="one") as one:
        one.insert("t", [(customer, 0) for customer in range(10_000)])
        one.backup(tmp_path / "backup.db")
        two = ev.Site.restore(tmp_path / "backup.db", tmp_path / "two.db", name="two")
        two.sync(one)
        two.sync(one)
        changed = range(0, 10_000, 1_000)
        one.insert("t", [(customer, 1) for customer in changed])
        began = time.process_time()
        report = two.sync(one)
        took = time.process_time() - began
        assert report.received_rows == 10
        assert two.rows("t") == one.rows("t")
        assert report.sent_bytes + report.received_bytes < 1_500
        assert took < 0.25
        two.sync(one)
        assert two.sync(one).received_bytes < 300
        two.close()


# Beside the rest.


def test_rows_that_were_changed_behind_its_back_are_read_again(hub):
    site = ev.Site.open(":memory:", PROGRAM, name="site")
    site.sync(hub)
    connection, table = site._store.writer.connection, site._store.engine.relations["orders"].table.name
    connection.execute(f"UPDATE {table} SET c2 = 'wrong' WHERE c0 = 'us'")
    connection.execute("UPDATE everview_partitions SET summed = 0")
    hub.insert("orders", [("us", 2, "c"), ("eu", 2, "d")])
    site.sync(hub)
    (alarm,) = site.status()["replication"]["alarms"]
    assert (alarm["relation"], alarm["partition"]) == ("orders", '["us"]')
    site.repair("orders", hub)
    assert site.rows("orders") == hub.rows("orders")
    assert site.status()["replication"]["alarms"] == []


def test_a_changed_program_leaves_the_values_that_are_hosted(hub, tmp_path):
    path = tmp_path / "site.db"
    with hosting("eu", path=path) as site:
        site.sync(hub)
        rows = site.rows("orders")
    wider = PROGRAM.text.replace("what TEXT,", "what TEXT, more BIGINT,")
    ev.Site.migrate(path, ev.Program.parse(wider), hosts={"orders": {"region": ["asia"]}})
    with ev.Site.open(path) as site:
        assert site.rows("orders") == [(*row, None) for row in rows]
        assert site.status()["values"] == {"orders": ["region = asia", "region = eu"]}
        hub.insert("orders", [("eu", 9, "later"), ("asia", 9, "later"), ("us", 9, "later")])
        assert site.sync(hub).received_rows == 2
    refused = ev.Program.parse(PROGRAM.text.replace("PARTITION BY (region)", ""))
    with pytest.raises(ev.ProgramError, match="partitioned by region, and would be"):
        ev.Site.migrate(path, refused)


def test_tombstones_of_partitioned_sets_are_forgotten(tmp_path):
    text = "CREATE TABLE t (a BIGINT, b BIGINT) WITH (retention = '1 second') PARTITION BY (a);"
    program, now = ev.Program.parse(text), [1_800_000_000_000_000]
    environment = Environment(lambda: now[0], lambda: next(TAGS), lambda: f"{next(TAGS):016x}")
    store = Store(":memory:", program, "one", environment=environment)
    writing = Writing(store)
    relation, table = program.relations["t"], store.engine.relations["t"].table.name
    with writing.transaction():
        writing.insert(relation, [(1, 1), (1, 2), (2, 1)])
    with writing.transaction():
        writing.delete(relation, [(1, 1), (2, 1)])
    for _ in range(4):
        now[0] += 3_000_000
        with writing.transaction():
            writing.insert(relation, [(3, now[0])])
    left = store.writer.connection.execute(f"SELECT c0, c1 FROM {table} WHERE NOT cl & 1").fetchall()
    assert left == []
    store.close()


def test_a_tokens_file_limits_values(tmp_path):
    path = tmp_path / "tokens.toml"
    entry = '[[token]]\nsite = "phone"\ntoken = "0123456789abcdef"\nread = "*"\nwrite = "*"\n'
    path.write_text(entry + 'values = { orders = { region = ["eu"] } }\n')
    rights = Tokens(path, program=PROGRAM).rights("Bearer 0123456789abcdef")
    assert rights.covers("orders", '["eu"]')
    assert not rights.covers("orders", '["us"]')
    assert rights.covers("plain", "")
    assert rights.are_limited
    for wrong in ('{ orders = { what = ["eu"] } }', "{ nothing = { a = [1] } }", '"eu"'):
        path.write_text(f"{entry}values = {wrong}\n")
        with pytest.raises(ev.DataError, match="token 1"):
            Tokens(path, program=PROGRAM)


def test_what_may_only_be_inserted_is_not_deleted_in_any_value(hub):
    site = hosting("eu", "us")
    rights = Rights("site", None, frozenset(), inserts=frozenset({"orders"}))
    peer = MemoryTransport(hub.replica, "hub", rights)
    site.sync(peer)
    site.delete("orders", [("us", 1)])
    site.insert("orders", [("eu", 2, "mine")])
    for _ in range(2):
        site.sync(peer)
    assert hub.rows("orders") == site.rows("orders") == [("eu", 1, "a"), ("eu", 2, "mine"), ("us", 1, "b")]
    assert site.status()["replication"]["alarms"] == []

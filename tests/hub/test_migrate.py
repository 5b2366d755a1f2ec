"""A hub goes over to a changed program: its relations stay, its views are what a new hub would compute."""

import shutil

import pytest
from tests.hub.s3 import bucket

import everview as ev
from everview.hub import evolving
from everview.hub.files import open_files
from everview.hub.history import History
from everview.hub.reading import SnapshotReader, read_schema

A = "CREATE TABLE a (x BIGINT NOT NULL, y TEXT);"
K = "CREATE TABLE k (id BIGINT PRIMARY KEY, v TEXT);"
B = "CREATE TABLE b (n BIGINT) WITH (semantics = 'bag');"
Z = "CREATE TABLE z (q BIGINT);"
JOINED = "CREATE MATERIALIZED VIEW joined AS SELECT a.x, k.v FROM a JOIN k ON a.x = k.id;"
COUNTS = "CREATE MATERIALIZED VIEW counts AS SELECT y, count(*) AS n FROM a GROUP BY y;"
TOP = "CREATE MATERIALIZED VIEW top WITH (authority = 'hub') AS SELECT x FROM a WHERE x > {};"
OLD = ev.Program.parse(A + K + B + JOINED + COUNTS + TOP.format(0))
NEW = ev.Program.parse(
    Z
    + K
    + B
    + A
    + JOINED.replace("k.v", "k.v AS name, a.y")
    + TOP.format(1)
    + "CREATE MATERIALIZED VIEW nothing AS SELECT count(*) AS n FROM z;"
    + "CREATE MATERIALIZED VIEW always AS SELECT 1 AS one;"
    + "CREATE MATERIALIZED VIEW bags AS SELECT DISTINCT n FROM b;"
)


def contents(hub):
    return {name: hub.rows(name) for name in hub.program.names()}


def fill(hub):
    hub.insert("a", [(1, "p"), (2, "q"), (4, "q")])
    hub.insert("k", [(1, "one"), (2, "two")])
    hub.insert("b", [(1,), (1,), (2,)])
    hub.refresh()


def test_a_hub_with_sites(tmp_path, spark):
    with (
        ev.Hub.open(tmp_path / "hub", OLD, spark=spark) as hub,
        ev.Site.open(":memory:", OLD, name="s") as site,
    ):
        fill(hub)
        site.insert("a", [(3, "r")])
        site.sync(hub)
        hub.refresh()
        site.sync(hub)
        assert site.rows("top") == [(1,), (2,), (3,), (4,)]
        hub.insert("a", [(9, "w")])  # not refreshed before it goes over
        site.insert("k", [(3, "three")])
        site.delete("a", [(1, "p")])
        site.sync(hub)
        with pytest.raises(ev.StoreError, match="open"):
            ev.Hub.migrate(tmp_path / "hub", NEW, spark=spark)
    planned = ev.Hub.migrate(tmp_path / "hub", NEW, dry_run=True)
    assert (planned.added, planned.new_views) == (("z",), ("nothing", "always", "bags"))
    assert (planned.changed_views, planned.dropped_views) == (("joined", "top"), ("counts",))
    with pytest.raises(ev.StoreError, match=r"everview migrate FOLDER --program FILE"):
        ev.Hub.open(tmp_path / "hub", NEW, spark=spark)
    ev.Hub.migrate(tmp_path / "hub", NEW, spark=spark)
    with (
        ev.Hub.open(tmp_path / "hub", NEW, spark=spark) as hub,
        ev.Site.open(":memory:", OLD, name="t") as old,
    ):
        assert hub.rows("joined") == [(1, "one", "p"), (2, "two", "q")]  # as of the last refresh
        assert hub.rows("nothing") == [(0,)]
        assert hub.rows("always") == [(1,)]
        hub.refresh()
        assert hub.rows("joined") == [(2, "two", "q"), (3, "three", "r")]
        assert hub.rows("bags") == [(1,), (2,)]
        hub.insert("z", [(7,)])
        hub.refresh()
        old.sync(hub)  # who still runs the old program
        assert old.rows("a") == hub.rows("a")
        assert old.rows("top") == []  # there it says something else
        with ev.Site.open(":memory:", NEW, name="new") as new:
            new.sync(hub)
            assert {name: new.rows(name) for name in NEW.names()} == contents(hub)
        check_the_past(tmp_path / "hub", hub)


def check_the_past(folder, hub):
    """What there was under the old program is read by it: changed views, dropped ones, those that stayed."""
    assert hub.rows("a", at=1) == [(1, "p"), (2, "q"), (4, "q")]
    assert hub.rows("joined", at=1) == [(1, "one"), (2, "two")]  # with the columns that it had then
    assert hub.table("joined", at=2).columns == ["x", "v"]
    assert hub.rows("counts", at=2) == [("p", 1), ("q", 2), ("r", 1)]
    assert hub.rows("top", at=2) == [(1,), (2,), (3,), (4,)]
    assert hub.rows("top", at=3) == [(2,), (3,), (4,)]  # the migration itself
    why = hub.why("counts", ("q", 2), at=1)
    assert [dict(witness.values) for witness in why.tuples()] == [{"x": 2, "y": "q"}, {"x": 4, "y": "q"}]
    with pytest.raises(
        ev.DataError, match="earlier program, which did not have z: there were a, k, b, joined"
    ):
        hub.rows("z", at=2)
    with pytest.raises(ev.DataError, match=f"refresh 99 is not retained: 1 to {hub.refreshed} are"):
        hub.rows("a", at=99)
    files, options = open_files(folder), {"refresh": "2"}  # as Spark's format does, without a job
    schema, refresh = read_schema(files, "counts", options)
    reader = SnapshotReader(files, "counts", options, refresh, schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    found = [(row["y"], row["n"]) for batch in batches for row in batch.to_pylist()]
    assert sorted(found) == hub.rows("counts", at=2)
    with pytest.raises(
        ev.DataError, match=r"refresh 2 .* went over to another program, under which 3 to \d+ are"
    ):
        History(files).at(2)  # as a stream of changes does
    hub.vacuum()
    assert hub.rows("counts", at=1) == [("p", 1), ("q", 2)]


def test_what_a_hub_cannot_do_is_refused(tmp_path, spark):
    ev.Hub.open(tmp_path / "hub", OLD, spark=spark).close()
    with pytest.raises(ev.ProgramError, match="k would be dropped"):
        ev.Hub.migrate(tmp_path / "hub", ev.Program.parse(A + B), spark=spark)
    with pytest.raises(ev.StoreError, match="no hub at"):
        ev.Hub.migrate(tmp_path / "none", OLD, spark=spark)
    ev.Hub.migrate(tmp_path / "hub", NEW, spark=spark)  # before its first refresh
    with ev.Hub.open(tmp_path / "hub", NEW, spark=spark) as hub:
        fill(hub)
        assert hub.rows("joined") == [(1, "one", "p"), (2, "two", "q")]
        assert hub.rows("nothing") == [(0,)]


def test_a_relation_gets_columns(tmp_path, spark):
    wide = "CREATE TABLE {} ({}, more TEXT, last BIGINT){};"
    wider = ev.Program.parse(
        Z
        + wide.format("a", "x BIGINT NOT NULL, y TEXT", "")
        + wide.format("k", "id BIGINT PRIMARY KEY, v TEXT", "")
        + wide.format("b", "n BIGINT", " WITH (semantics = 'bag')")
        + "CREATE MATERIALIZED VIEW lasts AS SELECT a.x, k.last, a.more FROM a JOIN k ON a.x = k.id;"
    )
    with (
        ev.Hub.open(tmp_path / "hub", OLD, spark=spark) as hub,
        ev.Site.open(":memory:", OLD, name="s") as site,
    ):
        fill(hub)
        hub.publish()
        site.sync(hub)
        site.delete("a", [(4, "q")])
        site.delete("k", [(2,)])
        site.sync(hub)
        hub.insert("a", [(5, "r")])
    with pytest.raises(ev.StoreError, match="waits for a refresh"):
        ev.Hub.migrate(tmp_path / "hub", wider, spark=spark)
    with ev.Hub.open(tmp_path / "hub", OLD, spark=spark) as hub:
        hub.refresh()
    ev.Hub.migrate(tmp_path / "hub", wider, spark=spark)
    with (
        ev.Hub.open(tmp_path / "hub", wider, spark=spark) as hub,
        ev.Site.open(":memory:", wider, name="t") as new,
    ):
        assert hub.rows("a") == [(1, "p", None, None), (2, "q", None, None), (5, "r", None, None)]
        assert hub.rows("a", at=1) == [(1, "p"), (2, "q"), (4, "q")]
        assert hub.rows("k") == [(1, "one", None, None)]
        assert hub.rows("b") == [(1, None, None), (1, None, None), (2, None, None)]
        new.sync(hub)
        new.insert("k", [(1, "uno", "m", 7), (5, "five", None, 9)])
        new.delete("a", [(1, "p", None, None)])  # known by the same id as before
        new.insert("a", [(1, "p", "new", None)])
        new.delete("b", [(1, None, None)])
        new.sync(hub)
        hub.delete("a", [(2, "q", None, None)])
        hub.refresh()
        new.sync(hub)
        assert contents(hub) == {name: new.rows(name) for name in wider.names()}
        assert hub.rows("lasts") == [(1, 7, "new"), (5, 9, None)]
        hub.publish()


def test_a_migration_that_was_cut_short_is_begun_again(tmp_path, spark, monkeypatch):
    with (
        ev.Hub.open(tmp_path / "hub", OLD, spark=spark) as hub,
        ev.Site.open(":memory:", OLD, name="s") as site,
    ):
        fill(hub)
        site.sync(hub)

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evolving, "commit", fail)
        with pytest.raises(KeyboardInterrupt):
            ev.Hub.migrate(tmp_path / "hub", NEW, spark=spark)
    with ev.Hub.open(tmp_path / "hub", OLD, spark=spark) as hub:
        assert hub.rows("counts") == [("p", 1), ("q", 2)]  # the gate has gone over, the hub has not
    ev.Hub.migrate(tmp_path / "hub", NEW, spark=spark)
    with (
        ev.Hub.open(tmp_path / "hub", NEW, spark=spark) as hub,
        ev.Site.open(":memory:", NEW, name="t") as site,
    ):
        site.sync(hub)
        assert site.rows("a") == hub.rows("a")


def test_in_an_object_store_by_three_machines_each_of_which_is_lost(spark, tmp_path):
    """The gate lies on the driver's machine: what it has become is in the store once it is made."""
    with bucket(tmp_path / "s3", page=3) as s3, ev.Site.open(":memory:", OLD, name="s") as site:
        options = {name: s3.options(gate_folder=str(tmp_path / name)) for name in ("one", "two", "three")}
        with ev.Hub.open(s3.uri(), OLD, spark=spark, options=options["one"]) as hub:
            fill(hub)
            site.sync(hub)
            site.insert("k", [(4, "four")])
            site.delete("a", [(1, "p")])
            site.sync(hub)  # not refreshed before it goes over
        shutil.rmtree(tmp_path / "one")
        for kind in ("slow down", "cut", "lose", "unsure"):
            s3.fail(kind, times=10**6, chance=0.03)
        ev.Hub.migrate(s3.uri(), NEW, spark=spark, options=options["two"])
        s3.heal()
        shutil.rmtree(tmp_path / "two")
        with (
            ev.Hub.open(s3.uri(), NEW, spark=spark, options=options["three"]) as hub,
            ev.Site.open(":memory:", NEW, name="t") as new,
        ):
            assert hub.rows("joined", at=1) == [(1, "one"), (2, "two")]
            assert hub.rows("joined") == [(1, "one", "p"), (2, "two", "q")]
            hub.refresh()
            assert hub.rows("joined") == [(2, "two", "q"), (4, "four", "q")]
            for _ in range(2):  # to its peers the gate was put back from a backup: it joins them anew
                site.sync(hub)  # who still runs the old program
                new.sync(hub)
                hub.refresh()
            new.sync(hub)
            assert {name: new.rows(name) for name in NEW.names()} == contents(hub)
            assert [(2, "q"), (4, "q")] == site.rows("a") == hub.rows("a")

"""A hub is a peer like any site, in process and in a folder, whatever is killed or put back."""

import shutil
import signal
import subprocess
import sys
import time

import pytest
from tests.hub.kills import ROOT
from tests.hub.peers import PROGRAM, Worlds, check_views, contents, moved
from tests.hub.quick import quickly

from everview.errors import DataError, StoreError
from everview.hub import Hub
from everview.hub import peering as peering_module
from everview.hub import store as store_module
from everview.hub.files import LocalFiles
from everview.hub.gate import Gate
from everview.language.program import Program
from everview.site import Site


class KilledError(BaseException):
    pass


def opened(folder, spark, program=PROGRAM, name="hub"):
    return quickly(Hub.open(folder, program, spark=spark, name=name))


def test_random_histories(spark, tmp_path):
    """The last refresh but one is left to the executors."""
    with opened(tmp_path / "hub", spark) as hub:
        worlds = Worlds(hub, tmp_path, seed=3)
        worlds.own()
        worlds.refresh()
        for _ in range(45):
            worlds.step()
        for action in (worlds.own, worlds.own, worlds.write, worlds.write, worlds.sync):
            action()
        driver_rows, hub._store.driver_rows = hub._store.driver_rows, 4
        worlds.refresh()
        hub._store.driver_rows = driver_rows
        worlds.settle()
        worlds.close()


STAGES = {
    "own writes in the gate": (peering_module, "export", "before"),
    "exported": (peering_module, "export", "after"),
    "told": (Gate, "tell", "after"),
    "before the record": (store_module, "commit", "before"),
    "after the record": (store_module, "commit", "after"),
    "before it is forgotten": (Gate, "forget", "before"),
}
MAKING = {
    "filled": (peering_module, "fill", "after"),
    "named": (LocalFiles, "copy", "after"),
    "before its record": (store_module, "commit", "before"),
}


def ending(patch, owner, name, when):
    """Have a refresh end before or after a function is called, as a kill would end it."""
    function = getattr(owner, name)

    def passed(*arguments, **named):
        if when == "after":
            function(*arguments, **named)
        raise KilledError

    patch.setattr(owner, name, passed)


def test_ended_at_every_stage(spark, tmp_path, monkeypatch):
    """Own writes and those of a site are there once, also in a bag, wherever the hub before was killed."""
    store, wanted = tmp_path / "hub", [(0, "own")]
    with opened(store, spark) as hub:
        hub.insert("m", wanted)
        hub.refresh()
    for stage in MAKING.values():
        with opened(store, spark) as hub, monkeypatch.context() as patch:
            ending(patch, *stage)
            with pytest.raises(KilledError):
                hub.transport()
    with Site.open(":memory:", PROGRAM, name="a") as site:
        for name, stage in STAGES.items():
            wanted += [(len(wanted), "own"), (len(wanted), "site")]
            with opened(store, spark) as hub, monkeypatch.context() as patch:
                hub.insert("m", wanted[-2:-1])
                site.insert("m", wanted[-1:])
                site.sync(hub)
                ending(patch, *stage)
                with pytest.raises(KilledError):
                    hub.refresh()
            with opened(store, spark) as hub:
                hub.refresh()
                assert hub.rows("m") == sorted(wanted), name
                site.sync(hub)
                assert contents(site) == contents(hub), name
                assert moved(site.sync(hub)) == (0, 0), name
                assert hub.refresh().changes == {}, name


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_killed_between_gate_and_record(spark, tmp_path):
    """A process of its own, killed when the gate has all and the record is about to be made."""
    store, folder = tmp_path / "hub", tmp_path / "folder"
    with opened(store, spark) as hub, Site.open(":memory:", PROGRAM, name="a") as site:
        hub.insert("m", [(1, "old"), (1, "old")])
        hub.refresh()
        hub.sync(folder)
        site.sync(folder)
        site.insert("m", [(1, "site"), (1, "site")])
        site.insert("k", [(2, "site")])
        site.sync(folder)
        before = contents(hub)
        hub.close()
        command = [sys.executable, "-m", "tests.hub.peers", str(store), str(folder), "hub", "commit"]
        assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
        with opened(store, spark) as again:
            assert contents(again) == before
            again.refresh()
            assert again.rows("m") == [(1, "old"), (1, "own"), (1, "site"), (1, "site")]
            assert again.rows("k") == [(1, "own"), (2, "site")]
            check_views(again)
            assert again.refresh().changes == {}
            again.sync(folder)
            site.sync(folder)
            assert contents(site) == contents(again)


def test_a_gate_that_is_missing_or_put_back(spark, tmp_path):
    """Nothing is guessed and nothing is lost; the user says what counts."""
    store, kept = tmp_path / "hub", tmp_path / "kept"
    with Site.open(":memory:", PROGRAM, name="a") as site:
        with opened(store, spark) as hub:
            hub.insert("k", [(1, "one")])
            hub.insert("m", [(1, "hub")])
            hub.refresh()
            site.sync(hub)
        shutil.copytree(store / "gate", kept)
        with opened(store, spark) as hub:
            hub.insert("s", [(1, "alone")])
            site.insert("s", [(2, "site")])
            site.insert("m", [(1, "site")])
            site.insert("k", [(1, "two")])
            site.sync(hub)
            hub.refresh()
            shown = contents(hub)
        shutil.rmtree(store / "gate")
        shutil.copytree(kept, store / "gate")
        with opened(store, spark) as hub:
            for refused in (hub.refresh, hub.transport, lambda: hub.sync(tmp_path / "folder")):
                with pytest.raises(StoreError, match="does not go with the last refresh"):
                    refused()
            assert contents(hub) == shown
            hub.insert("s", [(3, "waits")])
            hub.adopt_gate()
            assert hub.rows("s") == [(3, "waits")]
            assert hub.rows("m") == [(1, "hub")]
            assert hub.rows("k") == [(1, "one")]
            site.sync(hub)
            hub.refresh()
            assert hub.rows("s") == [(2, "site"), (3, "waits")]  # alone was in the lost file alone
            assert hub.rows("m") == [(1, "hub"), (1, "site")]
            assert hub.rows("k") == [(1, "two")]
            assert contents(site) == contents(hub)
        (store / "gate" / "gate.db").write_bytes(b"not a database" * 100)
        with opened(store, spark) as hub, pytest.raises(StoreError, match="cannot be opened"):
            hub.refresh()
        shutil.rmtree(store / "gate")
        with opened(store, spark) as hub:
            shown = contents(hub)
            with pytest.raises(StoreError, match="is missing"):
                hub.refresh()
            with pytest.raises(StoreError, match="is missing"):
                hub.adopt_gate()
            site.delete("s", [(2, "site")])
            site.insert("k", [(1, "three")])
            hub.insert("s", [(4, "waits")])
            hub.rebuild_gate()
            assert contents(hub) == shown
            site.sync(hub)
            hub.refresh()
            site.sync(hub)
            assert hub.rows("k") == [(1, "three")]
            assert hub.rows("s") == [(3, "waits"), (4, "waits")]
            assert len(hub.rows("m")) == 4  # as docs/HUB.md says of bags: what both have counts twice
            assert contents(site) == contents(hub)
            check_views(hub)


OWNED = Program.parse("""
CREATE TABLE r (n BIGINT, o TEXT) WITH (owner = 'o');
CREATE TABLE k (n BIGINT PRIMARY KEY, o TEXT) WITH (owner = 'o');
""")


def test_rows_that_only_their_owner_writes(spark, tmp_path):
    """With a gate and without; a key's row that is another's is neither replaced nor deleted."""
    with opened(tmp_path / "hub", spark, OWNED) as hub, Site.open(":memory:", OWNED, name="a") as site:
        for _ in range(2):
            for rows in ([(1, "hub"), (2, "a")], [(1, None)]):
                for write in (hub.insert, hub.delete):
                    with pytest.raises(DataError, match="only that site writes such rows; this one is 'hub'"):
                        write("r", rows)
                frame = spark.createDataFrame(rows, "n BIGINT, o STRING")
                with pytest.raises(DataError, match="only that site writes such rows; this one is 'hub'"):
                    hub.insert("r", frame)
            hub.insert("r", spark.createDataFrame([(1, "hub")], "n BIGINT, o STRING"))
            hub.insert("k", [(1, "hub")])
            hub.refresh()
            assert hub.rows("r") == hub.rows("k") == [(1, "hub")]
            hub.transport()
        site.insert("k", [(2, "a")])
        site.sync(hub)
        hub.insert("k", [(3, "hub"), (2, "hub")])
        hub.delete("k", [(2,)])
        hub.delete("k", [(1,)])
        report = hub.refresh()
        assert [rejected.reason.partition(",")[0] for rejected in report.rejected] == ["k.o is 'a'"] * 2
        assert hub.rows("k") == [(2, "a")]
        site.sync(hub)
        assert site.rows("k") == [(2, "a")]
        assert site.rows("r") == [(1, "hub")]


def test_syncs_and_refreshes_at_once(spark, tmp_path):
    """A site comes and goes while a hub runs, which heeds what is pushed; another hub is a peer too."""
    with opened(tmp_path / "hub", spark) as hub, Site.open(":memory:", PROGRAM, name="a") as site:
        hub.transport()
        with hub.run("100 milliseconds"):
            for number in range(15):
                site.insert("m", [(number, "a")])
                site.sync(hub)
                hub.insert("m", [(number, "hub")])
                site.delete("m", [(number - 3, "a"), (number - 5, "hub")])
            while len(site.rows("m")) < len(hub.rows("m")) or (14, "hub") not in site.rows("m"):
                site.sync(hub)
            site.insert("s", [(1, "pushed")])
            site.sync(hub)
            while hub.rows("s") != [(1, "pushed")]:
                time.sleep(0.02)
        assert contents(site) == contents(hub)
        for name in ("a", "hub"):
            (witness,) = hub.why("m", (14, name)).tuples()
            assert witness.origin == name
        with opened(tmp_path / "other", spark) as other:
            other.insert("w", [(1,)])
            other.refresh()
            other.sync(hub)
            for one in (other, hub):
                one.refresh()
            assert contents(other) == contents(hub)
            assert moved(hub.sync(other)) == (0, 0)
        with site.transaction(), pytest.raises(StoreError, match="a transaction is open"):
            hub.sync(site)

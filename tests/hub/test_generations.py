"""A gate whose machine may be lost: what was acknowledged is in the store."""

import shutil

import pytest
from tests.hub.gates import run
from tests.hub.peers import PROGRAM, contents, moved
from tests.hub.quick import quickly
from tests.hub.s3 import bucket
from tests.hub.shipped import FarWorld

from everview.errors import StoreError, SyncError
from everview.hub import Hub, generations
from everview.site import Site


@pytest.mark.filterwarnings("ignore:what the gate had noted is still there")
@pytest.mark.parametrize("seed", [1])
def test_random_histories_with_lost_machines_and_failing_uploads(tmp_path, seed, monkeypatch):
    monkeypatch.setattr(generations, "LEAST_LOG", 100_000)  # several generations
    run(tmp_path / "hub", seed, FarWorld)


def test_a_push_that_is_not_in_the_store_is_not_acknowledged_when_it_is_made_again(tmp_path):
    world = FarWorld(tmp_path / "hub", 1)
    site = world.sites[0]
    site.insert("s", [(1, "x")])
    world.files.faults = 1.0
    for _ in range(3):
        with pytest.raises((StoreError, SyncError), match="stored"):
            site.sync(world.transport())
    world.files.faults = 0.0
    site.sync(world.transport())
    world.check_store()
    world.end()
    world.close()


def test_a_log_that_sqlite_has_started_over_is_a_new_generation(tmp_path):
    """A checkpoint by hand lets the next commit write from the log's beginning."""
    world = FarWorld(tmp_path / "hub", 1)
    site = world.sites[0]
    for number in range(4):
        site.insert("s", [(number, "x")])
        world.sync(site)
        with world.gate._store.exclusive():
            world.gate._store.writer.connection.execute("PRAGMA wal_checkpoint(RESTART)")
        world.check_store()
    world.end()
    world.close()


def test_a_file_of_an_earlier_time_is_not_believed(tmp_path):
    """The disk of the machine went back, and with it the note of its generation."""
    world = FarWorld(tmp_path / "hub", 1)
    site = world.sites[0]
    site.insert("s", [(1, "x")])
    world.sync(site)
    earlier = tmp_path / "earlier"
    shutil.copytree(world.machine, earlier)
    site.insert("s", [(2, "x")])
    world.sync(site)
    before = world.peering
    shutil.rmtree(world.machine)
    shutil.copytree(earlier, world.machine)
    world.open()
    before.close()
    world.refresh(crash=False)
    assert world.model.rows("s") == [(1, "x"), (2, "x")]
    world.end()
    world.close()


def test_pieces_of_a_generation_that_never_had_a_head_are_removed(tmp_path):
    world = FarWorld(tmp_path / "hub", 1)
    world.files.create(f"{generations.FOLDER}/{'0' * 32}/copy-{0:012}", b"left")
    world.reopen()
    names = world.files.list(generations.FOLDER)
    assert len(names) == 2
    assert "0" * 32 not in names
    world.close()


@pytest.fixture
def s3(tmp_path):
    with bucket(tmp_path / "s3") as found:
        yield found


def test_a_hub_in_an_object_store_and_sites(spark, s3, tmp_path):
    """Two machines, one after the other; the first is lost with what the sites had pushed to it."""

    def opened(machine):
        options = s3.options(gate_folder=str(tmp_path / machine))
        return quickly(Hub.open(s3.uri(), PROGRAM, spark=spark, options=options))

    with Site.open(":memory:", PROGRAM, name="a") as a, Site.open(":memory:", PROGRAM, name="b") as b:
        with opened("first") as hub:
            hub.insert("m", [(1, "hub")])
            hub.refresh()
            a.sync(hub)
            a.insert("m", [(1, "a"), (1, "a")])
            a.insert("k", [(1, "a")])
            s3.fail("lose", method="PUT", key="gate/kept", times=1)
            a.sync(hub)
            b.sync(hub)
            assert contents(a) == contents(b)
        shutil.rmtree(tmp_path / "first")
        with opened("second") as hub:
            hub.refresh()
            assert hub.rows("m") == [(1, "a"), (1, "a"), (1, "hub")]
            assert hub.rows("k") == [(1, "a")]
            b.insert("s", [(7, "b")])
            for _ in range(2):
                for site in (b, a):
                    site.sync(hub)
                hub.refresh()
            assert contents(a) == contents(b) == contents(hub)
            assert moved(a.sync(hub)) == (0, 0)
        with opened("second") as hub:  # the same machine goes on with its file
            assert hub.refresh().changes == {}
            assert moved(a.sync(hub)) == (0, 0)


@pytest.mark.parametrize("stored", [False, True])
def test_a_generation_of_which_nobody_knows_whether_it_counts(tmp_path, monkeypatch, stored):
    """The file goes on in either case, and nothing has to be restored."""
    world = FarWorld(tmp_path / "hub", 1)
    world.sites[0].insert("s", [(1, "x")])
    world.sync(world.sites[0])
    create = world.files.create

    def failing(path, content):
        if path.endswith(".head"):
            if stored:
                create(path, content)
            raise StoreError("who knows")
        return create(path, content)

    world.peering.close()
    with monkeypatch.context() as patch:
        patch.setattr(world.files, "create", failing)
        with pytest.raises(StoreError, match="who knows"):
            world.open()
    world.open()
    assert not world.lost
    world.check_store()
    world.end()
    world.close()

"""Views of stores that are over: what only a view had heard of goes, and nothing else does."""

import shutil

import pytest
from tests.replication.sites import World, talk

HIDDEN = ("-wal", "-shm")


@pytest.fixture
def world():
    return World()


class Laptop:
    """A store in a file that can be put back to an earlier day."""

    def __init__(self, world, path, **options):
        self._world, self._path, self._options = world, path, options
        self.site = world.site(path.stem, path, **options)

    def keep(self):
        self.site.backup(self._path.with_suffix(".kept"))

    def put_back(self):
        """As `cp backup.db store.db` does; what lies beside the file stays."""
        self.site.close()
        for suffix in HIDDEN:
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        shutil.copyfile(self._path.with_suffix(".kept"), self._path)
        self.site = self._world.site(self._path.stem, self._path, **self._options)
        return self.site


def incarnation(site):
    return site.status()["incarnation"]


def unsound(site):
    """The views that it would tell others not to rely on."""
    gossip = site.replica.tell(None).gossip
    return {name for name in gossip.floors if "#" in name}


@pytest.fixture
def lost(world, tmp_path):
    """A server, a laptop that lost a row, and a screen that alone has heard of it."""
    server, screen = world.site("server"), world.site("screen", hosts={"joined"})
    laptop = Laptop(world, tmp_path / "laptop.db")
    server.insert("k", [(1, "one"), (2, "two")])
    talk(server, laptop.site, screen)
    laptop.site.insert("r", [(1, "kept")])
    talk(server, laptop.site, screen)
    laptop.keep()
    laptop.site.insert("r", [(2, "lost")])
    screen.sync(laptop.site)
    assert screen.rows("joined") == [(1, "one"), (2, "two")]
    return server, laptop.put_back(), screen


def test_a_row_that_only_a_view_had_heard_of_goes_with_its_store(lost):
    server, laptop, screen = lost
    before = incarnation(screen)
    laptop.sync(server)
    screen.sync(server)
    assert screen.rows("joined") == server.rows("joined") == laptop.rows("joined") == [(1, "one")]
    assert incarnation(screen) != before
    assert not unsound(screen)
    laptop.insert("r", [(2, "again")])
    talk(*lost)
    assert screen.rows("joined") == [(1, "one"), (2, "two")]


def test_it_goes_whomever_the_view_meets_first(lost):
    server, laptop, screen = lost
    screen.sync(laptop)
    talk(*lost)
    assert screen.rows("joined") == server.rows("joined") == [(1, "one")]


def test_a_view_that_has_no_more_than_there_is_goes_on_as_it_was(world, lost):
    server, laptop, _ = lost
    other = world.site("other", hosts={"joined"})
    other.sync(server)
    before = incarnation(other)
    laptop.sync(server)
    other.sync(server)
    assert other.rows("joined") == [(1, "one")]
    assert incarnation(other) == before
    assert not unsound(other)


def test_views_that_know_only_each_other_do_not_give_it_back(world, lost):
    server, laptop, screen = lost
    between = world.site("between", hosts={"joined"})
    between.sync(server)
    laptop.sync(server)
    for _ in range(3):
        between.sync(server)
        screen.sync(between)
    assert screen.rows("joined") == between.rows("joined") == [(1, "one")]


def test_what_somebody_else_has_stays(world, lost):
    server, laptop, screen = lost
    witness = world.site("witness")
    witness.insert("r", [(2, "lost")])  # as it happens the same row
    talk(witness, server, laptop, screen)
    assert screen.rows("joined") == server.rows("joined") == [(1, "one"), (2, "two")]


def test_a_store_that_is_gone_for_good_and_given_up(world):
    server, drone, screen = world.site("server"), world.site("drone"), world.site("screen", hosts={"joined"})
    server.insert("k", [(1, "one")])
    talk(server, drone, screen)
    drone.insert("r", [(1, "unheard")])
    screen.sync(drone)
    screen.sync(server)
    assert screen.rows("joined") == [(1, "one")]  # it may yet come back, and tell it
    assert server.rows("joined") == []
    server.expire("drone")
    screen.sync(server)
    assert screen.rows("joined") == server.rows("joined") == []
    drone.sync(server)  # it comes back after all
    screen.sync(server)
    assert screen.rows("joined") == server.rows("joined") == [(1, "one")]


def test_by_files(world, lost, tmp_path):
    server, laptop, screen = lost
    folder = tmp_path / "folder"
    for _ in range(4):
        for site in (server, laptop, screen):
            site.sync(folder)
    assert screen.rows("joined") == server.rows("joined") == [(1, "one")]


def test_the_confirmation_is_as_good_as_who_gave_it(world, tmp_path):
    """Who had the row as well, and had written nothing itself, loses it, too: then it goes after all."""
    server, author = world.site("server"), world.site("author")
    screen, witness = world.site("screen", hosts={"joined"}), Laptop(world, tmp_path / "witness.db")
    server.insert("k", [(1, "one")])
    talk(server, author, witness.site, screen)
    witness.keep()
    author.insert("r", [(1, "x")])
    screen.sync(author)
    witness.site.sync(author)
    screen.expire("author")
    before = incarnation(screen)
    assert unsound(screen)
    screen.sync(witness.site)
    assert not unsound(screen)
    assert (incarnation(screen), screen.rows("joined")) == (before, [(1, "one")])
    witness.put_back()
    witness.site.sync(server)
    screen.sync(server)
    assert screen.rows("joined") == server.rows("joined") == []

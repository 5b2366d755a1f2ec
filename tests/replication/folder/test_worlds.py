"""Random worlds over a folder that loses, doubles, tears and renames files, and processes that die."""

import random
from contextlib import suppress

import pytest
from tests.replication.folder.stores import assert_equal, check, erase, files, newcomer, opened, visit, write

from everview.replication.transports.folder import framed
from everview.replication.transports.folder import transport as folders
from everview.replication.transports.folder.transport import FolderTransport


class Death(BaseException):
    """The process dies here."""


def spoil(folder, rng):
    there = files(folder) if folder.exists() else []
    if not there:
        return
    path, other = rng.choice(there), rng.choice(there).with_name(f"{rng.randrange(50):08d}.more")
    data = bytearray(path.read_bytes())
    match rng.randrange(5):
        case 0:
            path.unlink()
        case 1:
            path.write_bytes(data[: rng.randrange(len(data) + 1)])
        case 2 if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        case 3:
            path.rename(path.with_name(other.name))
        case _:  # perhaps as if it were another's
            other.write_bytes(data)


def die_at_some_step(site, folder, rng, monkeypatch):
    """A visit that ends where a file is written, taken or removed."""
    left = iter(range(rng.randrange(8)))

    def step(*_arguments):
        if next(left, None) is None:
            raise Death

    with monkeypatch.context() as patch, suppress(Death):
        patch.setattr(framed.os, "fsync", step)
        patch.setattr(folders.Shelves, "remove", step)
        FolderTransport(folder).sync(site.replica, on_progress=step)


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_lost_or_comes_twice(seed, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "MANY", 3)
    monkeypatch.setattr(folders, "LIGHT", 3000)
    rng, folder = random.Random(seed), tmp_path / "stick"
    sites = [opened(f"s{number}") for number in range(rng.choice([2, 3, 4]))]
    ways = {site: FolderTransport(folder) for site in sites}
    for _ in range(50):
        site, chance = rng.choice(sites), rng.random()
        if chance < 0.45:
            rng.choice([write, write, erase])(site, *rng.sample(range(5), rng.choice([1, 1, 2])))
        elif chance < 0.80:
            (ways[site] if rng.random() < 0.7 else FolderTransport(folder)).sync(site.replica)
        elif chance < 0.88:
            die_at_some_step(site, folder, rng, monkeypatch)
        elif chance < 0.95:
            spoil(folder, rng)
        elif (other := rng.choice(sites)) is not site:
            site.sync(other)
        check(site)
    for _ in range(4):
        visit(folder, *sites)
    before = {path: path.read_bytes() for path in files(folder)}
    assert not any(report.sent_rows or report.received_rows for report in visit(folder, *sites))
    assert {path: path.read_bytes() for path in files(folder)} == before
    assert_equal(newcomer(folder), *sites)

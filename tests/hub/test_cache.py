"""Copies on this machine: whole, shared by processes, bounded, and replaceable at any time."""

import json
import mmap
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from everview.errors import StoreError
from everview.hub.files.cache import Cache

SIZE = 1000
ROOT = Path(__file__).parent.parent.parent


def content(name):
    return random.Random(name).randbytes(SIZE)


class Origin:
    """Where copies are made from; it counts them."""

    def __init__(self):
        self.brought = []

    def get(self, cache, name):
        def bring(file):
            self.brought.append(name)
            file.write(content(name))

        return Path(cache.get(name, bring))


def there(folder):
    return [path for path in folder.iterdir() if len(path.name) == 64]


def test_a_copy_is_made_once_and_again_when_it_was_lost(tmp_path):
    cache, origin = Cache(tmp_path / "cache", 10 * SIZE), Origin()
    for _ in range(3):
        assert origin.get(cache, "a").read_bytes() == content("a")
    assert origin.brought == ["a"]
    origin.get(cache, "a").unlink()
    assert origin.get(cache, "a").read_bytes() == content("a")
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    (tmp_path / "cache").rmdir()
    assert origin.get(cache, "a").read_bytes() == content("a")
    assert origin.brought == ["a"] * 3


def test_what_nobody_asked_for_longest_goes_first(tmp_path):
    cache, origin = Cache(tmp_path, 3 * SIZE), Origin()
    for place, name in enumerate("abc"):
        os.utime(origin.get(cache, name), (1000 + place, 1000 + place))
    origin.get(cache, "a")  # asked for now
    origin.get(cache, "d")
    assert len(there(tmp_path)) == 3
    for name in "acd":
        origin.get(cache, name)
    assert origin.brought == ["a", "b", "c", "d"]
    origin.get(cache, "b")
    assert origin.brought[-1] == "b"


def test_a_copy_that_goes_while_it_is_mapped_can_be_read_on(tmp_path):
    cache, origin = Cache(tmp_path, SIZE), Origin()
    with origin.get(cache, "a").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    path = origin.get(cache, "b")
    assert there(tmp_path) == [path]
    assert mapped[:] == content("a")
    mapped.close()


def test_a_file_that_is_larger_than_the_bound_is_there_until_the_next_comes(tmp_path):
    cache, origin = Cache(tmp_path, 1), Origin()
    assert origin.get(cache, "a").exists()
    assert origin.get(cache, "b").exists()
    assert len(there(tmp_path)) == 1


def test_unasked_it_leaves_most_of_the_disk_alone(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 10 * SIZE})
    monkeypatch.setattr("everview.hub.files.cache.shutil.disk_usage", lambda folder: usage)
    cache, origin = Cache(tmp_path), Origin()
    for name in "abcdef":
        origin.get(cache, name)
    assert len(there(tmp_path)) == 2  # a fifth of 10 free, and of those that are in use


def test_what_breaks_off_leaves_nothing(tmp_path):
    def breaking(file):
        file.write(b"half")
        raise StoreError("gone")

    with pytest.raises(StoreError, match="gone"):
        Cache(tmp_path).get("a", breaking)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("lock")] == []
    assert Origin().get(Cache(tmp_path), "a").read_bytes() == content("a")


def test_a_folder_of_somebody_elses_is_not_used(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cache_folder"):
        Origin().get(Cache(tmp_path / "file"), "a")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        Origin().get(Cache(tmp_path / "link"), "a")


def test_of_many_threads_one_brings_it_and_the_others_wait(tmp_path):
    cache, origin = Cache(tmp_path), Origin()
    begun = threading.Event()

    def bring(file):
        origin.brought.append("a")
        begun.set()
        time.sleep(0.05)  # the others have time to come
        file.write(content("a"))

    found = []
    threads = [
        threading.Thread(target=lambda: found.append(Path(cache.get("a", bring)).read_bytes()))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert begun.is_set()
    assert origin.brought == ["a"]
    assert found == [content("a")] * 6


def ask(folder, seed):
    """Map random files of a cache that has room for few of them; which were not what they are."""
    cache, origin, rng = Cache(folder, 4 * SIZE), Origin(), random.Random(seed)
    wrong = []
    for _ in range(150):
        name = rng.choice("abcdefgh")
        try:
            with origin.get(cache, name).open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:  # gone before it was mapped
            continue
        if mapped[:] != content(name):
            wrong.append(name)
        mapped.close()
    return [len(wrong), len(origin.brought)]


def test_processes_share_it_while_it_overflows(tmp_path):
    command = [sys.executable, "-m", "tests.hub.test_cache", str(tmp_path)]
    processes = [
        subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for seed in range(3)
    ]
    found = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    assert [wrong for wrong, _ in found] == [0, 0, 0]
    assert sum(brought for _, brought in found) > 8  # some went, and were brought again
    assert len(there(tmp_path)) <= 4
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_a_killed_process_left_goes_in_time(tmp_path):
    cache, origin = Cache(tmp_path, SIZE), Origin()
    old, young = tmp_path / f".{0:032x}", tmp_path / f".{1:032x}"
    for draft in (old, young):
        draft.write_bytes(b"half")
    os.utime(old, (1000, 1000))
    origin.get(cache, "a")
    assert not old.exists()
    assert young.exists()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(Path(sys.argv[1]), int(sys.argv[2]))))

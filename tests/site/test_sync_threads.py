"""Syncs while others write: what is committed in the middle of an exchange is neither lost nor torn."""

import threading

import pytest

import everview as ev

PROGRAM = """
CREATE TABLE r (n BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE bag (n BIGINT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW total AS SELECT count(*) AS c, sum(n) AS s FROM r;
"""


@pytest.fixture
def sites():
    program = ev.Program.parse(PROGRAM)
    found = [ev.Site.open(":memory:", program, name=name) for name in "ab"]
    yield found
    for site in found:
        site.close()


@pytest.mark.parametrize("step", ["hear", "take"])
@pytest.mark.parametrize("who", [0, 1])
def test_a_commit_between_any_two_steps_of_an_exchange_is_not_lost(sites, monkeypatch, step, who):
    """A page is read in one step and sent in another; what is told with it must not be newer than it."""
    numbers = iter(range(100, 200))
    writer = sites[who]
    for site in sites:
        owner = site.replica if step == "hear" else site.replica.questions
        original = getattr(owner, step)

        def late(*arguments, original=original, **options):
            writer.insert("r", [(next(numbers),)])
            return original(*arguments, **options)

        monkeypatch.setattr(owner, step, late)
    for turn in range(3):
        sites[0].insert("r", [(turn,)])
        sites[1].insert("r", [(10 + turn,)])
        sites[0].sync(sites[1])
    monkeypatch.undo()
    sites[0].sync(sites[1])
    assert sites[0].rows("r") == sites[1].rows("r")
    assert len(sites[0].rows("r")) == 6 + next(numbers) - 100


def test_many_threads_sync_and_write(sites):
    """Both directions at once, with writers in between; afterwards one sync makes them equal."""
    a, b = sites
    errors = []

    def run(work):
        try:
            for i in range(25):
                work(i)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            errors.append(error)

    works = [
        lambda i: a.insert("r", [(i,)]),
        lambda i: b.insert("r", [(1000 + i,)]),
        lambda i: a.execute("INSERT INTO bag VALUES (?)", [i]),
        lambda i: b.insert("k", [(i % 3, i)]),
        lambda _: a.sync(b),
        lambda _: b.sync(a),
    ]
    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    a.sync(b)
    for name in a.program.names():
        assert a.rows(name) == b.rows(name)
    assert a.rows("total") == [(50, sum(range(25)) + sum(range(1000, 1025)))]
    assert a.rows("bag") == [(i,) for i in range(25)]

"""Sites that share a folder, with files lost and torn: what was written is delayed, and never lost."""

import random

import pytest
from tests.site.checks import assert_fresh

import everview as ev

PROGRAM = """
CREATE TABLE s (a BIGINT, b TEXT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE bag (a BIGINT) WITH (semantics = 'bag');
CREATE TABLE aw (a BIGINT) WITH (semantics = 'add_wins');
CREATE MATERIALIZED VIEW joined AS SELECT s.b, k.n FROM s JOIN k ON s.a = k.id;
CREATE MATERIALIZED VIEW counts AS SELECT a, count(*) AS c FROM bag GROUP BY a;
"""


def write(site, rng, number):
    """One commit; the bag's row is new, so that a row counted twice or never shows."""
    key = rng.randrange(6)
    with site.transaction():
        site.insert("bag", [(number,)])
        match rng.randrange(5):
            case 0:
                site.insert("s", [(key, rng.choice("xyz"))])
            case 1:
                site.delete("s", [(key, rng.choice("xyz"))])
            case 2:
                site.insert("k", [(key, rng.randrange(9))])
            case 3:
                site.insert("aw", [(key,)])
            case _:
                site.delete("aw", [(key,)])


def harm(folder, rng):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    if files:
        victim = rng.choice(files)
        if rng.random() < 0.5:
            victim.unlink()
        else:
            victim.write_bytes(victim.read_bytes()[: rng.randrange(victim.stat().st_size + 1)])


@pytest.mark.parametrize("seed", range(12))
def test_sites_that_share_a_folder_converge(tmp_path, seed):
    rng = random.Random(seed)
    program = ev.Program.parse(PROGRAM)
    stick = tmp_path / "stick"
    names = "abc"[: rng.choice([2, 3])]
    sites = [ev.Site.open(":memory:", program, name=name) for name in names]
    written = []
    for number in range(40):
        site = rng.choice(sites)
        if rng.random() < 0.7:
            write(site, rng, number)
            written.append((number,))
        site.sync(stick)
        if rng.random() < 0.2:
            harm(stick, rng)
    for _ in range(6):
        for site in sites:
            site.sync(stick)
    for name in program.relations:
        assert len({tuple(site.rows(name)) for site in sites}) == 1, name
    assert sites[0].rows("bag") == written
    for site in sites:
        assert_fresh(site)
        report = site.sync(stick)
        assert (report.sent_rows, report.received_rows) == (0, 0)
        site.close()

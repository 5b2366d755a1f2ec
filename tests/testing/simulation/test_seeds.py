"""500 worlds: 495 with faults, and 5 without any but with over 100,000 rows each."""

import random
from collections import Counter

import pytest
from tests.testing.simulation.folders import REGRESSIONS

from everview.engines.reference import evaluate_views
from everview.testing import Simulation
from everview.testing.simulation import load_case
from everview.testing.simulation.generate import generate_case
from everview.testing.simulation.programs import LARGE, large_views, parsed
from everview.testing.simulation.reach import Reach
from everview.testing.simulation.world import World

CHUNK = 15


@pytest.mark.parametrize("first", range(0, 495, CHUNK))
def test_worlds_with_faults(first):
    for seed in range(first, first + CHUNK):
        Simulation(seed).run()


@pytest.mark.parametrize("first", range(10_000, 10_600, 300))
def test_worlds_whose_sites_host_different_parts(first):
    seeds = [seed for seed in range(first, first + 300) if is_spread(generate_case(seed))]
    assert len(seeds) > 5
    for seed in seeds:
        Simulation(seed).run()


def is_spread(case):
    """Whether some site hosts a part, and is not linked with the one that has everything."""
    first = case.places[0].name
    near = {name for link in case.links if first in link for name in link}
    return any(place.hosts and place.name not in near for place in case.places)


def test_who_can_be_fed(tmp_path):
    path = next(path for path in REGRESSIONS if path.stem == "fed-by-who-hosts-the-view")
    world = World(load_case(path.read_text()), tmp_path)
    s0, s1, s2 = world.devices.values()
    reach = Reach([s0, s1, s2], world.network.links)
    assert [reach.is_fed(s2, name) for name in ("v0", "v1")] == [False, True]
    assert all(reach.is_fed(s0, name) for name in ("n", "v0", "v1"))
    assert reach.is_fed(s1, "v1")
    assert not Reach([s0, s1, s2], {"s0": {"s1"}, "s1": {"s0"}, "s2": set()}).is_fed(s2, "v1")
    world.close()


def test_the_views_of_large_worlds_are_written_out_as_the_reference_has_them():
    rng = random.Random(0)
    for _ in range(50):
        s = {(rng.randrange(9), rng.randrange(20)) for _ in range(rng.randrange(30))}
        k = {a: (a, rng.choice([None, 1, 2])) for a in range(rng.randrange(5))}
        tables = {"s": sorted(s), "k": list(k.values())}
        views = evaluate_views(parsed(LARGE), tables)
        wanted = {name: Counter(view.rows) for name, view in views.items()}
        assert large_views({name: Counter(rows) for name, rows in tables.items()}) == wanted


@pytest.mark.parametrize("seed", range(5))
def test_large_worlds_without_faults(seed):
    result = Simulation(seed, large=True).run()
    assert result.counts["rows loaded"] > 100_000


def test_a_world_without_faults_is_quiet():
    counts = Counter()
    for seed in range(5):
        counts += Simulation(seed, faults=()).run().counts
    assert counts["writes"] > 20
    assert not [what for what in counts if what.startswith(("messages lost", "crashes", "restored"))]


@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_once_went_wrong(path):
    Simulation(case=load_case(path.read_text())).run()

"""View = defining query after every statement: random programs and histories, and what they cover."""

from functools import partial
from pathlib import Path

import pytest

from everview.testing.fuzz import (
    ANEW,
    BY_CHANGE,
    BY_SIZE,
    CONSTRUCTS,
    Coverage,
    EngineStore,
    SiteStore,
    check_case,
    failure,
    generate_case,
    minimise,
    parse_case,
    write_case,
)

PAIRS = 2040
CHUNKS = 20
HISTORIES = 2
"""How many seeds in a row share a program."""
LEAST = 6
"""In how many views each construct must see its rows change, so that it is really looked at."""

STRATEGIES = (BY_SIZE, BY_CHANGE, BY_SIZE, ANEW)
"""How a commit is carried through the circuits of one program after the other."""

REGRESSIONS = sorted((Path(__file__).parents[2] / "regressions" / "fuzz").glob("*.txt"))


@pytest.fixture
def shared(tmp_path_factory, request):
    """A folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(request.config, "workerinput") else base) / "fuzz"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_view_is_its_query(chunk, shared, record_property):
    coverage = Coverage()
    size = PAIRS // CHUNKS
    for seed in range(chunk * size, (chunk + 1) * size):
        case = generate_case(seed)
        assert len(case.history) >= 10
        strategy = STRATEGIES[seed // HISTORIES % len(STRATEGIES)]
        check = partial(check_case, store=partial(EngineStore, strategy=strategy))
        try:
            coverage.add(case, check(case))
        except Exception as error:  # noqa: BLE001 - whatever is raised, the case is to be seen
            small = minimise(case, check)
            title = failure(small, check) or ""
            pytest.fail(f"seed {seed}, {strategy}: {error}\n\n{write_case(small, title=title)}")
    record_property("fuzz coverage", coverage.to_json())
    (shared / f"{chunk}.part").write_text(coverage.to_json())
    (shared / f"{chunk}.part").rename(shared / f"{chunk}.json")
    done = list(shared.glob("*.json"))
    if len(done) == CHUNKS:  # the last chunk to end sees what all have covered
        whole = sum((Coverage.from_json(path.read_text()) for path in done), Coverage())
        assert whole.pairs - whole.cut >= 2000
        assert {name: whole.changed[name] for name in CONSTRUCTS if whole.changed[name] < LEAST} == {}
        assert set(whole.checked) <= set(CONSTRUCTS)
        assert sum(whole.refusals.values()) <= PAIRS // 100


@pytest.mark.parametrize("chunk", range(4))
def test_a_site_shows_queries_and_tells_what_its_views_are(chunk):
    for seed in range(PAIRS + chunk * 20, PAIRS + (chunk + 1) * 20):
        check_case(generate_case(seed), SiteStore)


class Remade(EngineStore):
    """Its views are made anew, over all rows, whenever somebody has written and looks."""

    is_old = False

    def insert(self, relation, rows):
        self.is_old = True
        return super().insert(relation, rows)

    def delete(self, relation, rows):
        self.is_old = True
        return super().delete(relation, rows)

    def rows(self, name):
        if self.is_old:
            self.is_old = False
            self.remake()
        return super().rows(name)


@pytest.mark.parametrize("strategy", [BY_CHANGE, ANEW], ids=["change", "anew"])
@pytest.mark.parametrize("chunk", range(2))
def test_views_made_over_many_relations_at_once_are_their_queries(chunk, strategy):
    for seed in range(PAIRS + chunk * 20, PAIRS + (chunk + 1) * 20):
        check_case(generate_case(seed), partial(Remade, strategy=strategy))


@pytest.mark.parametrize("strategy", [BY_SIZE, BY_CHANGE, ANEW], ids=["size", "change", "anew"])
@pytest.mark.parametrize("path", REGRESSIONS, ids=lambda path: path.stem)
def test_what_failed_once_passes(path, strategy):
    check_case(parse_case(path.read_text()), partial(EngineStore, strategy=strategy))

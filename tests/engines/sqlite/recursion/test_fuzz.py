"""Recursive views are what the reference says, after every statement: random rules, facts and histories."""

import pytest

from everview.engines.sqlite.circuits.recursion import variants
from everview.engines.sqlite.circuits.recursion.rounds import Rounds
from everview.engines.sqlite.circuits.recursion.variants import ClauseVariants
from everview.testing.fuzz import SiteStore, stores
from everview.testing.fuzz.datalog import check_rules, rule_case

PAIRS = 1000
CHUNKS = 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_recursive_view_is_what_the_reference_says(chunk):
    size = PAIRS // CHUNKS
    changed = sum(len(check_rules(rule_case(seed))) for seed in range(chunk * size, (chunk + 1) * size))
    assert changed > 2 * size  # views that never change show nothing


def test_a_site_keeps_recursive_views_through_transactions():
    for seed in range(PAIRS, PAIRS + 20):
        check_rules(rule_case(seed), SiteStore)


def none_of(_self, *_given):
    return iter(())


def met_only(sign):
    real = ClauseVariants._met

    def met(self, absence, wanted):
        return real(self, absence, wanted) if wanted == sign else iter(())

    return met


def judged_late(self, connection):
    """Rows are deleted before it is asked what they supported."""
    for sql in self.doubts:
        connection.execute(sql)
    for sql in self.judgements:
        connection.execute(sql)
    for table in self.tables:
        names = ", ".join((*table.columns, "r"))
        connection.execute(f"INSERT INTO {table.gone} ({names}) SELECT {names} FROM {table.last}")
        connection.execute(table.delete(table.last))
        connection.execute(f"DELETE FROM {table.doubtful}")
        connection.execute(f"DELETE FROM {table.last}")
    return True


MUTANTS = {
    "what goes never comes back": (ClauseVariants, "returns", none_of, 10),
    "any derivation supports a row, also in a circle": (ClauseVariants, "_before", none_of, 10),
    "what a row supported is not doubted": (ClauseVariants, "doubts_of", none_of, 10),
    "new rows take nothing away by negation": (ClauseVariants, "_met", met_only("<"), 360),
    "rows that go add nothing by negation": (ClauseVariants, "_met", met_only(">"), 369),
    "negation is not looked at": (ClauseVariants, "_absent", none_of, 70),
    "only one round of deletion": (Rounds, "_shrink", judged_late, 10),
    "views above do not hear of what went": (Rounds, "_report_gone", lambda *_: None, 4),
}


@pytest.fixture
def compiled_anew():
    """Circuits that were compiled by others, or by a mutant, are not used again."""
    stores._compiled.cache_clear()
    yield
    stores._compiled.cache_clear()


@pytest.mark.parametrize("name", MUTANTS)
@pytest.mark.usefixtures("compiled_anew")
def test_a_broken_engine_is_found_out(name, monkeypatch):
    owner, attribute, broken, seed = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, broken)
    with pytest.raises(AssertionError, match="after statement"):
        check_rules(rule_case(seed))


@pytest.mark.usefixtures("compiled_anew")
def test_rows_that_two_inputs_lose_at_once_matter(monkeypatch):
    monkeypatch.setattr(variants, "combinations", lambda places, size: [(p,) for p in places if size == 1])
    with pytest.raises(AssertionError, match="after statement"):
        check_rules(rule_case(101))

"""Random located programs, with bodies over up to three places, against the rules as they were written."""

import random

import pytest
from tests.located.test_cores import MODES, compare, settle

from everview.errors import LimitError
from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse
from everview.testing.located.random_rules import ARITY, NODES, random_facts, random_rules


def run(mode, seed):
    """One program with one history; return how many rules join places, None if it has too many proofs."""
    rng = random.Random(f"{mode} {seed}")
    text = random_rules(rng, recursive=mode == "provenance")
    world = MODES[mode](text, NODES, rng)
    pool = [(relation, tuple(row)) for relation, row in random_facts(rng)]
    base = set()
    try:
        for _ in range(8):
            fact, present = rng.choice(pool), rng.random() < 0.7
            (base.add if present else base.discard)(fact)
            world.write(fact, present)
            for _ in range(rng.choice([0, 2, 6])):
                world.step()
        settle(world)
    except LimitError:
        return None
    compare(world, text, base)
    return len(localise(parse(text)).declarations) - len(ARITY)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_random_programs_hold_what_their_text_says(mode):
    sent = [run(mode, seed) for seed in range(60)]
    assert sum(count is not None for count in sent) > 50
    assert sum(bool(count) for count in sent) > 30, "most of them join places"

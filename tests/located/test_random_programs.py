"""Random located programs, with bodies over up to three places, against the rules as they were written."""

import random

import pytest
from tests.located.test_cores import MODES, compare, settle

from everview.errors import LimitError, ProgramError
from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse

DECLARED = """
.decl e(@a: symbol, b: symbol)
.decl f(@a: symbol, b: symbol, c: symbol)
.decl p(@a: symbol, b: symbol)
.decl q(@a: symbol, b: symbol)
"""
ARITY = {"e": 2, "f": 3, "p": 2, "q": 2}
NODES = "abc"


def rule(rng, head, relations):
    """A rule for `head` over some relations, or None if it cannot be located."""
    atoms = []
    for relation in rng.choices(relations, k=rng.choice([1, 2, 2, 3])):
        terms = [rng.choice(["x", "y", "z", "w"]) for _ in range(ARITY[relation])]
        if rng.random() < 0.15:
            terms[rng.randrange(len(terms))] = f'"{rng.choice(NODES)}"'
        if rng.random() < 0.1:
            terms[-1] = "_"
        atoms.append(f"{relation}(@{', '.join(terms)})")
    body = ", ".join(atoms)
    bound = [name for name in "xyzw" if name in body]
    if not bound:
        return None
    conditions = [f"{rng.choice(bound)} != {rng.choice(bound)}"] if rng.random() < 0.2 else []
    body = ", ".join([*atoms, *conditions])
    text = f"{head}(@{rng.choice(bound)}, {rng.choice(bound)}) :- {body}.\n"
    try:
        localise(parse(DECLARED + text))
    except ProgramError as error:
        if "leads to all the others" not in str(error):
            raise
        return None
    return text


def program(rng, *, recursive):
    readable = {"p": ["e", "f", "p", "q"] if recursive else ["e", "f"], "q": ["e", "f", "p"]}
    if recursive:
        readable["q"].append("q")
    rules = []
    while len(rules) < 4:
        head = ("p", "q")[len(rules) % 2]
        found = rule(rng, head, readable[head] if len(rules) > 1 else ["e", "f", *readable[head]])
        rules += [found] if found else []
    return DECLARED + "".join(rules)


def run(mode, seed):
    """One program with one history; return how many rules join places, None if it has too many proofs."""
    rng = random.Random(f"{mode} {seed}")
    text = program(rng, recursive=mode == "provenance")
    world = MODES[mode](text, NODES, rng)
    pool = [("e", tuple(rng.choice(NODES) for _ in range(2))) for _ in range(4)]
    pool += [("f", tuple(rng.choice(NODES) for _ in range(3))) for _ in range(2)]
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

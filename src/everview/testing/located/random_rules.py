"""Random located programs: four rules over two base relations, with bodies over up to three places."""

from __future__ import annotations

import random

from everview.errors import ProgramError
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


def random_rule(rng: random.Random, head: str, relations: list[str]) -> str | None:
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


def random_rules(rng: random.Random, *, recursive: bool) -> str:
    """A program of four rules."""
    readable = {"p": ["e", "f", "p", "q"] if recursive else ["e", "f"], "q": ["e", "f", "p"]}
    if recursive:
        readable["q"].append("q")
    rules: list[str] = []
    while len(rules) < 4:
        head = ("p", "q")[len(rules) % 2]
        found = random_rule(rng, head, readable[head] if len(rules) > 1 else ["e", "f", *readable[head]])
        rules += [found] if found else []
    return DECLARED + "".join(rules)


def random_facts(rng: random.Random) -> list[tuple[str, list[str]]]:
    """Some base facts of such a program."""
    pool = [("e", [rng.choice(NODES) for _ in range(2)]) for _ in range(4)]
    return pool + [("f", [rng.choice(NODES) for _ in range(3)]) for _ in range(2)]

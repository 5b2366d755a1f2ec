"""Rules that live at places, as a program: a few lines of Datalog, their localisation, and the oracle.

An atom's first term is where its facts live. A rule can fire only where all facts of its body are, so a rule
over several places is cut into rules of one place each: what the places before have found is sent on as a new
relation. It is sent forwards, to a place that is named in what was found; PSN's own rewriting asks for a fact
that points back, and misses (1, 3) on the directed path 1 → 2 → 3.
"""

import re
from dataclasses import dataclass
from itertools import permutations

SHORTCUTS = {"backwards": "the facts of the next place are sent back over a link the other way (PSN §2.2)"}


@dataclass(frozen=True)
class Atom:
    """A relation and its terms, the place first; a fact is an atom without variables, as a plain tuple."""

    name: str
    terms: tuple

    @property
    def place(self):
        return self.terms[0]

    @property
    def variables(self):
        return {term for term in self.terms if is_variable(term)}

    def __str__(self):
        return f"{self.name}(@{', '.join(self.terms)})"


@dataclass(frozen=True)
class Rule:
    head: Atom
    body: tuple

    def __str__(self):
        return f"{self.head} :- {', '.join(map(str, self.body))}."


def is_variable(term):
    return term[0].isupper()


def parse(text):
    """The rules of a text such as `p(@X, Y) :- q(@X, Z), r(@Z, Y).`; upper case is variable."""
    rules = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        head, *body = [
            Atom(name, tuple(term.strip(" @") for term in terms.split(",")))
            for name, terms in re.findall(r"(\w+)\(([^)]*)\)", line)
        ]
        rules.append(Rule(head, tuple(body)))
    return tuple(rules)


def localise(rules, shortcuts=frozenset()):
    """The same program with every body at one place."""
    made = []
    for number, rule in enumerate(rules, 1):
        made += _backwards(rule, number) if "backwards" in shortcuts else _localised(rule, number)
    return tuple(made)


def _localised(rule, number):
    places = list(dict.fromkeys(atom.place for atom in rule.body))
    for order in permutations(places):
        found, known = [], set()
        for place in order:
            if found and is_variable(place) and place not in known:
                break  # nothing found so far says where that is
            found.append(place)
            known |= set().union(*(atom.variables for atom in rule.body if atom.place == place))
        else:
            return _cut(rule, number, order)
    raise ValueError(f"no place of {rule} leads to all the others")


def _cut(rule, number, order):
    groups = [[atom for atom in rule.body if atom.place == place] for place in order]
    made, sent = [], None
    for step, group in enumerate(groups):
        body = tuple(([sent] if sent else []) + group)
        if step == len(groups) - 1:
            made.append(Rule(rule.head, body))
            break
        later = [rule.head, *(atom for group in groups[step + 1 :] for atom in group)]
        needed = set().union(*(atom.variables for atom in later))
        have = dict.fromkeys(term for atom in body for term in atom.terms if is_variable(term))
        to = order[step + 1]
        sent = Atom(
            f"{rule.head.name}_{number}_{step + 1}", (to, *(v for v in have if v in needed and v != to))
        )
        made.append(Rule(sent, body))
    return made


def _backwards(rule, number):
    """What the paper prints: r2-1 and r2-2, over link(@Z, S)."""
    if len({atom.place for atom in rule.body}) == 1:
        return [rule]
    here, there = rule.body
    sent = Atom(f"{rule.head.name}_{number}_1", (here.place, *there.terms))
    back = Atom(here.name, (there.place, here.place))
    return [Rule(sent, (there, back)), Rule(rule.head, (here, sent))]


def match(atom, fact, bound):
    """The bindings under which an atom is a fact, beyond those given; None if it cannot be."""
    name, *values = fact
    if name != atom.name or len(values) != len(atom.terms):
        return None
    bound = dict(bound)
    for term, value in zip(atom.terms, values, strict=True):
        if (bound.setdefault(term, value) if is_variable(term) else term) != value:
            return None
    return bound


def instance(atom, bound):
    return (atom.name, *(bound[term] if is_variable(term) else term for term in atom.terms))


def fixpoint(rules, base):
    """The oracle: centralised, semi-naive, on sets. Each round joins what the last found with the rest."""
    known, new = set(), set(base)
    while new:
        old, known = known, known | new
        found = set()
        for rule in rules:
            for driver in range(len(rule.body)):
                sources = [known] * driver + [new] + [old] * (len(rule.body) - driver - 1)
                found |= set(_heads(rule, sources))
        new = found - known
    return known


def _heads(rule, sources):
    bindings = [{}]
    for atom, facts in zip(rule.body, sources, strict=True):
        bindings = [b for bound in bindings for fact in facts if (b := match(atom, fact, bound)) is not None]
    return (instance(rule.head, bound) for bound in bindings)

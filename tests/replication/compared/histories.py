"""Random histories: steps that depend on nothing but the seed."""

import itertools
import random

from tests.replication.compared.world import MOST, Compared

BASES = ("B", "K", "R", "W")
SKEWS = (0, 0, 0, 30, 149, -149)
"""No two differ by 60 s, nor by that and a multiple of the 4 s that a step takes at least."""


HAPPENINGS = ("files", "newcomer", "copy", "restore", "rewind", "expire", "views", "pages")


HOSTS = (("v",), ("j",), ("j", "v"))
"""Views without their inputs. Whoever holds relations here holds all four: of one that is in another group
the model ignores all that its sender tells, and the store only what concerns it.
"""


def history(seed):
    """The options and steps of a run in which some of these things happen."""
    rng = random.Random(seed)
    number = rng.choice([2, 3, 3, 4])
    skewed = rng.random() < 0.3
    happens = {what for what in HAPPENINGS if rng.random() < 0.35}
    if "views" in happens:
        happens -= {"files"}  # a view is in a file only if somebody has asked for it
    options = {"views": "views" in happens, "page_rows": rng.choice([1, 2]) if "pages" in happens else 1000}

    def newcomer(n):
        hosts = BASES
        if "views" in happens and n and rng.random() < 0.5:
            hosts = rng.choice(HOSTS)
        return ("newcomer", f"s{n}", hosts, rng.choice(SKEWS) if skewed else 0)

    steps = [newcomer(n) for n in range(number)]
    focus = rng.choice([*BASES, BASES, BASES, "RK", "BW"])
    if "views" in happens:
        focus = rng.choice(["RK", "RW", "R", "K", "RKW"])
    width, depth = rng.choice([1, 2]), rng.choice([1, 2, 3])
    moves = {"write": 8, "fetch": 7, "sync": 2, "collect": 3, "wait": 1, "crash": 1, "tidy up": 1}
    moves |= {"publish": 3, "find": 6} if "files" in happens else {}
    moves |= {what: 2 for what in ("newcomer", "copy", "expire", "restore", "rewind") if what in happens}
    moves |= {"backup": 3} if happens & {"restore", "rewind"} else {}
    for _ in range(rng.randint(12, 40)):
        (what,) = rng.choices(list(moves), list(moves.values()))
        site, other = rng.randrange(number), rng.randrange(number)
        if what == "write":
            steps.append((what, site, _operations(rng, focus, width, depth)))
        elif what == "fetch":
            steps.append((what, site, other))
            if rng.random() < 0.5:
                steps.append((what, other, site))
        elif what == "sync":
            steps.append((what, site, other))
        elif what == "tidy up":
            steps += _tidy_up(rng, number)
        elif what == "wait":
            steps.append((what, rng.choice([4, 40, 120])))
        elif what == "find":
            steps.append((what, site, rng.randrange(100)))
        elif what == "publish":
            steps.append((what, site, rng.random() < 0.6))
        elif what in ("newcomer", "copy"):
            if number < MOST:
                steps.append(newcomer(number) if what == "newcomer" else (what, site, f"s{number}"))
                number += 1
        elif what == "expire":
            if other:  # nobody gives the first up
                steps.append((what, site, other))
        elif what in ("restore", "rewind"):
            if site:
                steps.append((what, site))
        else:
            steps.append((what, site))
    return options, steps


def _tidy_up(rng, number):
    """Most sites meet, and forget what they can: some may be away."""
    here = rng.sample(range(number), rng.choice([number, number, number - 1]))
    collect = [("collect", one) for one in here]
    once, back = (
        [("sync", one, other) for one, other in itertools.pairwise(way)] for way in (here, here[-2::-1])
    )
    return [*once, *back, *collect, *once, *collect]


def _operations(rng, focus, width, depth):
    """At most one of a tuple, or of a key, in one transaction."""
    found = {}
    for _ in range(rng.choice([1, 1, 2, 3])):
        relation = rng.choice(focus)
        row = (rng.randrange(width), rng.randrange(depth))
        operation = rng.choice(["insert", "insert", "delete"] if relation in "RW" else ["insert", "delete"])
        found[relation, row[0] if relation == "K" else row] = (operation, relation, row)
    return list(found.values())


def run(seed, folder):
    """Live a random history on both sides; return what happened."""
    options, steps = history(seed)
    return live(steps, folder, seed=seed, **options)


def live(steps, folder, shortcuts=frozenset(), **options):
    """Live these steps on both sides, the model with these shortcuts; return what happened."""
    world = Compared(folder, shortcuts, **options)
    try:
        for step in steps:
            if world.is_over():
                world.count("over early")
                break
            world.happen(*step)
    finally:
        for site in world.real:
            site.stop()
    return world.counts

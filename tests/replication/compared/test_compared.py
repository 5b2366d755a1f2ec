"""The store does what the model does, step by step; where one of the two lacks a rule, that is noticed."""

import pytest
from tests.replication.compared.histories import BASES, live, run
from tests.replication.compared.world import DifferentError, quiet
from tests.testing.simulation.mutants import collected_at_once, covered_rows_accepted, own_rows_only

HISTORIES = 20


@pytest.fixture(autouse=True)
def _quiet():
    quiet()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_the_store_does_what_the_model_does(seed, tmp_path):
    run(seed, tmp_path)


def newcomers(number):
    return [("newcomer", f"s{n}", BASES, 0) for n in range(number)]


def viewer(number):
    return ("newcomer", f"s{number}", ("j", "v"), 0)


FOUND = {
    "a store that has only collected is opened again": [*newcomers(1), ("collect", 0), ("crash", 0)],
    "a copy of a store that never wrote has no rows of a stranger": [
        *newcomers(3),
        ("copy", 0, "s3"),
        ("fetch", 0, 2),
        ("fetch", 3, 1),
        ("sync", 0, 3),
    ],
    "nor has one of which a row was deleted that was not there": [
        *newcomers(3),
        ("write", 2, [("delete", "B", (0, 0))]),
        ("copy", 2, "s3"),
        ("fetch", 1, 2),
        ("sync", 3, 0),
        ("sync", 0, 1),
    ],
    "a copy in no group believes nothing of its original": [
        *newcomers(2),
        ("fetch", 1, 0),
        ("write", 0, [("insert", "R", (0, 0))]),
        ("write", 0, [("delete", "R", (0, 0))]),
        ("copy", 0, "s2"),
        ("fetch", 0, 2),
        ("sync", 1, 2),
        ("collect", 1),
    ],
    "who was given up lists nobody in the group that it was in": [
        *newcomers(2),
        ("fetch", 1, 0),
        ("expire", 0, 1),
        ("copy", 0, "s2"),
        ("fetch", 1, 2),
    ],
    "who has all pages of a cut has told so, however many there were": [
        *newcomers(1),
        viewer(1),
        ("write", 0, [("insert", "W", (0, 0))]),
        ("write", 0, [("delete", "W", (0, 0)), ("insert", "R", (0, 0))]),
        ("fetch", 1, 0),
        ("collect", 0),
    ],
    "or another has, whom it told": [
        *newcomers(2),
        viewer(2),
        ("write", 0, [("insert", "R", (0, 1))]),
        ("write", 0, [("delete", "R", (0, 1))]),
        ("fetch", 2, 0),
        ("fetch", 1, 0),
        ("fetch", 0, 1),
        ("collect", 0),
    ],
    "who was put back has told so, however many pages there were": [
        *newcomers(2),
        viewer(2),
        ("backup", 2),
        ("write", 1, [("insert", "R", (1, 0)), ("insert", "R", (0, 0))]),
        ("fetch", 2, 1),
        ("fetch", 0, 1),
        ("restore", 2),
        ("fetch", 2, 0),
    ],
    "a view that has met two groups waits for the one that it is in": [
        *newcomers(3),
        viewer(3),
        ("fetch", 1, 2),
        ("fetch", 3, 0),
        ("fetch", 3, 2),
        ("write", 0, [("insert", "K", (0, 1))]),
        ("write", 0, [("delete", "K", (0, 1))]),
        ("fetch", 3, 0),
        ("collect", 0),
        ("collect", 3),
        ("fetch", 3, 0),
        ("collect", 0),
    ],
    "nobody waits for a view in another group, which starts empty when it comes": [
        *newcomers(3),
        viewer(3),
        ("fetch", 3, 2),
        ("fetch", 1, 0),
        ("fetch", 2, 0),
        ("write", 0, [("insert", "R", (0, 1))]),
        ("write", 0, [("delete", "R", (0, 1))]),
        ("sync", 1, 0),
        ("sync", 2, 0),
        ("sync", 1, 0),
        ("collect", 0),
    ],
}
"""Where the two once differed."""

FORGETFUL = [
    *newcomers(2),
    ("write", 0, [("insert", "R", (0, 0)), ("insert", "W", (0, 0))]),
    ("sync", 0, 1),
    ("write", 1, [("delete", "R", (0, 0)), ("delete", "W", (0, 0))]),
    ("sync", 0, 1),
    ("collect", 0),
    ("collect", 1),
]
"""A row is deleted, and forgotten by both."""

SHORTCUTS = {
    "restart at 1": [*FORGETFUL, ("write", 0, [("insert", "R", (0, 0))])],
    "collect at once": [*FORGETFUL[:-3], ("collect", 1)],
    "floor stays": [
        *FORGETFUL,
        ("newcomer", "s2", BASES, 0),
        ("sync", 2, 0),
        ("write", 2, [("insert", "R", (0, 0))]),
    ],
    "own rows only": [
        *newcomers(3),
        ("write", 0, [("insert", "K", (0, 0))]),
        ("sync", 0, 1),
        ("sync", 1, 2),
    ],
    "add-wins reuse": [*FORGETFUL[:-3], ("write", 1, [("insert", "W", (0, 0))])],
    "one group": [*newcomers(4), ("sync", 0, 1), ("sync", 2, 3), ("fetch", 0, 2)],
    "keep incarnation": [*newcomers(2), ("sync", 0, 1), ("copy", 0, "s2")],
    "unlisted join": [*newcomers(2), ("fetch", 0, 1)],
    "no lift": [
        *FORGETFUL,
        ("newcomer", "s2", BASES, 0),
        ("write", 2, [("insert", "R", (0, 0))]),
        ("sync", 2, 0),
    ],
    "views do not count": [
        *newcomers(1),
        ("newcomer", "s1", ("v",), 0),
        ("write", 0, [("insert", "R", (0, 0))]),
        ("sync", 0, 1),
        ("write", 0, [("delete", "R", (0, 0))]),
        ("collect", 0),
    ],
    "ignore clocks": [
        *newcomers(1),
        ("newcomer", "s1", BASES, -149),
        ("sync", 0, 1),
        ("write", 0, [("insert", "K", (0, 0))]),
        ("write", 0, [("delete", "K", (0, 0))]),
        ("sync", 0, 1),
        ("collect", 0),
    ],
}
"""Shortcut → a history in which the model does, with it, what the store does not do."""


@pytest.mark.parametrize("page_rows", [1, 1000])
@pytest.mark.parametrize("found", sorted(FOUND))
def test_where_they_once_differed_they_do_the_same(found, page_rows, tmp_path):
    live(FOUND[found], tmp_path, views=True, page_rows=page_rows)


@pytest.mark.parametrize("shortcut", sorted(SHORTCUTS))
def test_a_shortcut_of_the_model_is_noticed(shortcut, tmp_path):
    for folder in ("right", "short"):
        (tmp_path / folder).mkdir()
    live(SHORTCUTS[shortcut], tmp_path / "right", views=True)
    with pytest.raises(DifferentError):
        live(SHORTCUTS[shortcut], tmp_path / "short", frozenset([shortcut]), views=True)


MUTANTS = {
    own_rows_only: SHORTCUTS["own rows only"],
    collected_at_once: SHORTCUTS["collect at once"],
    covered_rows_accepted: [*FORGETFUL[:-2], ("publish", 0, True), *FORGETFUL[-2:], ("find", 1, 0)],
}
"""A rule that the store leaves out → a history in which it then does not do what the model does."""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_rule_that_the_store_leaves_out_is_noticed(mutant, tmp_path, monkeypatch):
    for folder in ("right", "short"):
        (tmp_path / folder).mkdir()
    live(MUTANTS[mutant], tmp_path / "right")
    mutant(monkeypatch.setattr)
    with pytest.raises(DifferentError):
        live(MUTANTS[mutant], tmp_path / "short")

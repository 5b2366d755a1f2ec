"""Localised programs as text: what is sent where, and what cannot be."""

import pytest

from everview.errors import ProgramError
from everview.language.datalog.localising import localise
from everview.language.datalog.parser import parse

LINK = (
    ".decl link(@s: symbol, d: symbol)\n.decl node(@x: symbol, n: number)\n.decl p(@x: symbol, y: symbol)\n"
)


def rules(text):
    return [line for line in str(localise(parse(LINK + text))).splitlines() if not line.startswith(".decl")]


def test_a_rule_at_one_place_stays_as_it_is():
    assert rules("p(@d, s) :- link(@s, d), node(@s, n), n > 3.") == [
        "p(@d, s) :- link(@s, d), node(@s, n), n > 3."
    ]


def test_a_link_is_sent_where_it_leads():
    assert rules("p(@s, d) :- link(@s, z), p(@z, d).") == [
        "link_at_z(@z, s) :- link(@s, z).",
        "p(@s, d) :- link_at_z(@z, s), p(@z, d).",
    ]


def test_the_order_of_a_body_does_not_matter():
    assert rules("p(@s, d) :- p(@z, d), link(@s, z).") == [
        "link_at_z(@z, s) :- link(@s, z).",
        "p(@s, d) :- link_at_z(@z, s), p(@z, d).",
    ]


def test_what_is_written_is_sent_rather_than_what_is_derived():
    both_ways = "p(@s, z) :- p(@z, s), link(@s, z)."
    assert rules(both_ways)[0] == "link_at_z(@z, s) :- link(@s, z)."


def test_a_chain_of_places_hands_on_what_is_needed_later():
    assert rules("p(@a, e) :- link(@a, b), node(@b, n), link(@b, c), link(@c, e), n != 7.") == [
        "link_at_b(@b, a) :- link(@a, b).",
        "link_at_b_at_c(@c, a) :- link_at_b(@b, a), node(@b, n), link(@b, c), n != 7.",
        "p(@a, e) :- link_at_b_at_c(@c, a), link(@c, e).",
    ]


def test_conditions_are_checked_as_early_as_they_can_be():
    text = "p(@s, d) :- link(@s, z), s != z, node(@z, n), m = n + 1, m < 5, link(@z, d), s < d."
    assert rules(text) == [
        "link_at_z(@z, s) :- link(@s, z), s != z.",
        "p(@s, d) :- link_at_z(@z, s), node(@z, n), link(@z, d), m = n + 1, m < 5, s < d.",
    ]


def test_what_a_later_condition_needs_is_sent_too():
    text = """
    .decl size(@x: symbol, n: number)
    p(@s, z) :- link(@s, z), size(@s, n), size(@z, m), n < m.
    """
    assert rules(text) == [
        "link_at_z(@z, s, n) :- link(@s, z), size(@s, n).",
        "p(@s, z) :- link_at_z(@z, s, n), size(@z, m), n < m.",
    ]


def test_a_place_may_be_computed_or_named():
    assert rules('p(@s, d) :- link(@s, d), z = s, node(@z, n), n != 1, node(@"hub", 3).') == [
        "link_at_z(@z, s, d) :- link(@s, d), z = s.",
        'link_at_z_at_hub(@"hub", s, d) :- link_at_z(@z, s, d), node(@z, n), n != 1.',
        'p(@s, d) :- link_at_z_at_hub(@"hub", s, d), node(@"hub", 3).',
    ]


def test_what_two_rules_send_alike_is_sent_once():
    found = rules("p(@s, d) :- link(@s, z), p(@z, d). p(@u, u) :- link(@u, v), node(@v, 1).")
    assert found == [
        "link_at_z(@z, s) :- link(@s, z).",
        "p(@s, d) :- link_at_z(@z, s), p(@z, d).",
        "p(@u, u) :- link_at_z(@v, u), node(@v, 1).",
    ]


def test_what_two_rules_need_of_the_same_body_is_told_apart():
    text = """
    .decl wide(@s: symbol, a: symbol, b: symbol, z: symbol)
    p(@s, a) :- wide(@s, a, b, z), node(@z, 1).
    p(@s, b) :- wide(@s, a, b, z), node(@z, 2).
    """
    assert rules(text) == [
        "wide_at_z(@z, s, a) :- wide(@s, a, b, z).",
        "p(@s, a) :- wide_at_z(@z, s, a), node(@z, 1).",
        "wide_at_z_2(@z, s, b) :- wide(@s, a, b, z).",
        "p(@s, b) :- wide_at_z_2(@z, s, b), node(@z, 2).",
    ]


def test_what_is_printed_can_be_read_and_is_localised():
    text = LINK + "p(@s, d) :- link(@s, z), p(@z, d), node(@z, n), n * (2 + n) > -4."
    once = str(localise(parse(text)))
    assert str(localise(parse(once))) == once
    assert ".decl link_at_z(@z: symbol, s: symbol)" in once


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "p(@x, y) :- link(@x, x), link(@y, y).",
            r"no place of p\(@x, y\) .* leads to all the others \(x, y\)",
        ),
        ("p(@x, y) :- link(@x, z).", "y is in no atom of the body"),
        ("p(@x, y) :- link(@x, y), n > 3.", "n is in no atom of the body"),
        ("p(@x, y) :- link(@x, y), !p(@x, y).", "a negation in a rule of located relations"),
        ("p(@x, y) :- link(@x, y), 3 < count : { node(@x, _) }.", "an aggregate in a rule"),
        ("node(@x, count<y>) :- link(@x, y).", "an aggregate in a rule"),
        ('p(@"a", "b").', "is a fact, and facts of located relations are written where they live"),
        ("q(@x, y) :- link(@x, y).", "q is not declared"),
        ("p(@x) :- link(@x, x).", "p has 2 columns, not 1"),
        ("p(x, @y) :- link(@x, y).", "p lives where its column x says"),
        ("p(@x, y) :- link(@x, y), link(@_, y).", "the place of link is not a name or a variable"),
        (
            "p(@a, a) :- p(@a, b), p(@b, c), p(@c, d), p(@d, e), p(@e, f), p(@f, g), p(@g, a).",
            "joins 7 places, more than 6",
        ),
    ],
)
def test_what_cannot_be_located_is_refused_and_named(text, says):
    with pytest.raises(ProgramError, match=says) as caught:
        rules(text)
    assert caught.value.line is not None
    assert caught.value.column is not None

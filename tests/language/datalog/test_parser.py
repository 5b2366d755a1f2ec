"""The tree of a Datalog text."""

from decimal import Decimal

import pytest

from everview.language.datalog.ast import (
    Aggregate,
    Anonymous,
    Atom,
    Comparison,
    Constant,
    Fold,
    Negation,
    Operation,
    Rule,
    Variable,
    atoms_of,
)
from everview.language.datalog.parser import parse

X, Y, Z = map(Variable, "xyz")


def rule(text):
    (found,) = parse(text).rules
    return found


def test_rules_have_heads_and_bodies():
    assert rule("p(x, 1) :- q(x, _), !r(x), x < 2 + y * 3.") == Rule(
        Atom("p", (X, Constant(1))),
        (
            Atom("q", (X, Anonymous())),
            Negation(Atom("r", (X,))),
            Comparison("<", X, Operation("+", (Constant(2), Operation("*", (Y, Constant(3)))))),
        ),
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("-12", -12),
        ("0x1F", 31),
        ("0b101", 5),
        ("1.50", Decimal("1.50")),
        ('"a\\"b\\n\\\\"', 'a"b\n\\'),
        ("true", True),
    ],
)
def test_constants(text, value):
    assert rule(f"p({text}).").head.arguments == (Constant(value),)


def test_operators_bind_as_usual():
    two, three = Constant(2), Constant(3)
    assert rule("p(x - y - z).").head.arguments == (Operation("-", (Operation("-", (X, Y)), Z)),)
    assert rule("p(-x ^ 2).").head.arguments == (Operation("neg", (Operation("^", (X, two)),)),)
    assert rule("p((x + 2) % 3).").head.arguments == (Operation("%", (Operation("+", (X, two)), three)),)


def test_alternatives_are_several_rules():
    found = parse("a(x), b(x) :- (p(x) ; q(x), r(x)), s(x).").rules
    bodies = [[atom.relation for atom in one.body] for one in found]
    assert [one.head.relation for one in found] == ["a", "a", "b", "b"]
    assert bodies == [["p", "s"], ["q", "r", "s"]] * 2


def test_a_parenthesis_is_a_group_or_a_term():
    (first, second) = rule("p(x) :- (q(x)), (x + 1) * 2 > (3).").body
    assert first == Atom("q", (X,))
    assert second.right == Constant(3)


def test_aggregates_have_bodies_and_folds_do_not():
    found = rule("p(x, min<y>) :- q(x, y), z = count : { r(x, _), x > 1 }, 3 = sum (y + 1) : s(y).")
    assert found.head.arguments[1] == Fold("min", Y)
    one, other = (literal.right for literal in found.body[1:])
    assert one == Aggregate("count", None, (Atom("r", (X, Anonymous())), Comparison(">", X, Constant(1))))
    assert other == Aggregate("sum", Operation("+", (Y, Constant(1))), (Atom("s", (Y,)),))
    assert [(atom.relation, complete) for atom, complete in atoms_of(found)] == [
        ("q", True),
        ("s", True),
        ("r", True),
    ]


def test_min_of_terms_is_a_function():
    assert rule("p(min(x, 2)).").head.arguments == (Operation("min", (X, Constant(2))),)


def test_locations_are_kept():
    text = parse(".decl link(@s: symbol, d: symbol)\nreach(@s, d) :- link(@s, z), reach(@z, d).")
    assert text.declarations[0].location == 0
    (found,) = text.rules
    assert [found.head.location, *(atom.location for atom in found.body)] == [0, 0, 0]


def test_declarations_types_and_directives():
    text = parse(
        ".type Node <: symbol // a name\n.decl e(a: Node, n: decimal(10,2)) inline\n"
        '.input e(IO="file", filename="e.csv", delimiter=",")\n.output e /* all\nof it */\n'
    )
    assert [(alias.name, alias.type) for alias in text.types] == [("Node", "symbol")]
    assert [(c.name, c.type) for c in text.declarations[0].columns] == [("a", "Node"), ("n", "decimal(10,2)")]
    kinds = [(directive.kind, dict(directive.options)) for directive in text.directives]
    assert kinds == [("input", {"IO": "file", "filename": "e.csv", "delimiter": ","}), ("output", {})]


def test_places_are_kept_but_do_not_count():
    first, second = parse("p(x) :- q(x).\n  p(x) :- q(x).").rules
    assert first == second
    assert (second.place.line, second.place.column) == (2, 3)
    assert (second.body[0].place.line, second.body[0].place.column) == (2, 11)

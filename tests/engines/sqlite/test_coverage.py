"""Every function with every signature, and every cast, agrees with the reference at every edge."""

import itertools
import random

import pytest
from tests.engines.sqlite.edge_values import DECIMAL_TYPES, TYPES, draw, edges
from tests.engines.sqlite.harness import Bench, assert_agree

from everview.language.casts import can_cast
from everview.language.expressions import Call, Cast, Column, Literal
from everview.language.functions import FUNCTIONS, NoSignatureError, resolve
from everview.language.types import BIGINT, BLOB, BOOLEAN, DATE, DOUBLE, TEXT, TIMESTAMP, Kind, decimal_type

PLAIN = {kind.kind: kind for kind in (BOOLEAN, BIGINT, DOUBLE, TEXT, BLOB, DATE, TIMESTAMP)}
MOST_ROWS = 800


def typings():
    """(function, types of the arguments, type of the call): each signature, each DECIMAL by itself."""
    for name, function in FUNCTIONS.items():
        if function.unified is not None:
            arities = range(function.arity[0], (function.arity[1] or 4) + 1)
            kinds = [TEXT] if name == "concat" else TYPES
            yield from ((name, (kind,) * n, *_result(name, (kind,) * n)) for kind in kinds for n in arities)
            continue
        for signature in function.signatures:
            choices = [
                DECIMAL_TYPES if kind is Kind.DECIMAL else [PLAIN[kind]] for kind in signature.parameters
            ]
            for types in itertools.product(*choices):
                yield from ((name, types, result) for result in _result(name, types))


def _result(name, types):
    try:
        targets, result = resolve(name, types)
    except NoSignatureError:
        return []
    assert targets == types
    return [result]


CASES = [case for case in typings() if len(case) == 3]


def grid(types, rng):
    """All combinations of edge values if they are few, else a sample with drawn values among them."""
    columns = [edges(kind) for kind in types]
    rows = list(itertools.islice(itertools.product(*columns), 200_000))
    if len(rows) > MOST_ROWS:
        rows = rng.sample(rows, MOST_ROWS)
    return rows + [tuple(draw(rng, kind) for kind in types) for _ in range(100)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_agrees_with_the_reference(name):
    mine = [case for case in CASES if case[0] == name]
    assert {tuple(t.kind for t in types) for _, types, _ in mine} >= {
        signature.parameters for signature in FUNCTIONS[name].signatures
    }
    for _, types, result in mine:
        rng = random.Random(f"{name}{types}")
        few = 1 if len([t for t in types if t.kind is Kind.DECIMAL]) < 2 else 8
        bench = Bench(types, grid(types, rng)[::few])
        columns = tuple(Column(index, kind) for index, kind in enumerate(types))
        assert_agree(bench, Call(name, columns, result))
        # The same with some arguments written out, and with arguments that are not mere columns.
        for _ in range(4 if few == 1 else 1):
            mixed = tuple(
                Literal(draw(rng, column.type), column.type) if rng.random() < 0.6 else column
                for column in columns
            )
            assert_agree(bench, Call(name, mixed, result), strict_rows=6)
        wrapped = tuple(Call("coalesce", (column, column), column.type) for column in columns)
        assert_agree(bench, Call(name, wrapped, result), strict_rows=6)


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_cast_agrees_with_the_reference(source):
    rng = random.Random(str(source))
    rows = [(value,) for value in edges(source)] + [(draw(rng, source),) for _ in range(200)]
    bench = Bench([source], rows)
    column = Column(0, source)
    for target in TYPES:
        if can_cast(source, target):
            assert_agree(bench, Cast(column, target))
            assert_agree(bench, Cast(Call("coalesce", (column, column), source), target), strict_rows=6)


@pytest.mark.parametrize("name", ["+", "-", "*", "/", "%"])
def test_integers_among_decimals_agree_with_the_reference(name):
    """`price * quantity`: the cast to DECIMAL is left out where the integer behind it will do."""
    rng = random.Random(name)
    wide = decimal_type(19, 0)
    for other in DECIMAL_TYPES:
        types = [BIGINT, other]
        bench = Bench(types, rng.sample(grid(types, rng), 150))
        whole, broken = Cast(Column(0, BIGINT), wide), Column(1, other)
        wider = Cast(broken, decimal_type(38, other.digits[1]))
        for arguments in [(whole, broken), (broken, whole), (whole, whole), (wider, whole), (wider, broken)]:
            for result in _result(name, tuple(argument.type for argument in arguments)):
                assert_agree(bench, Call(name, arguments, result), strict_rows=8)


@pytest.mark.parametrize("name", ["like", "ilike"])
def test_written_patterns_agree_with_the_reference(name):
    texts = [value for value in edges(TEXT) if value is not None]
    bench = Bench([TEXT], [(text,) for text in [*texts, "[", "a[c", "a[b]c", "a*c", "x[A]", None]])
    patterns = [
        "[",
        "a[c",
        "%[%",
        "a[b]c",
        "[a]",
        "a*c",
        "?",
        "%]",
        "a\\",
        "\\%",
        "a\\_c",
        "A_C",
        "%é",
        "x%A%",
    ]
    for pattern, escape in itertools.product(patterns, ["\\", "", "a", "%"]):
        written = (Column(0, TEXT), Literal(pattern, TEXT), Literal(escape, TEXT))
        assert_agree(bench, Call(name, written, BOOLEAN), strict_rows=4)


def test_replace_by_null_is_null_even_where_nothing_is_looked_for():
    bench = Bench([TEXT, TEXT, TEXT], [("a", "", None), ("a", "a", None), ("a", "", "b"), (None, "", "b")])
    arguments = tuple(Column(index, TEXT) for index in range(3))
    assert_agree(bench, Call("replace", arguments, TEXT))

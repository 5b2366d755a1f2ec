import pytest
from hypothesis import given
from hypothesis import strategies as st

from everview.algebra import operators as op
from everview.algebra.indexed_zset import IndexedZSet, IndexedZSets
from everview.algebra.zset import ZSet, ZSets
from everview.errors import DataError
from everview.testing import LawViolation, check_bilinear, check_group, check_linear

rows = st.tuples(st.integers(0, 2), st.integers(0, 2))
zsets = st.dictionaries(rows, st.integers(-3, 3), max_size=5).map(ZSet)
relations = st.lists(rows, max_size=8).map(ZSet.of)
FIRST, SECOND = (lambda r: r[0]), (lambda r: r[1])


def natural_join(a, b):
    return op.join_on(a, b, SECOND, FIRST, lambda x, y: (*x, y[1]))


def test_zsets_are_an_abelian_group():
    check_group(ZSets(), zsets)
    check_group(IndexedZSets(), zsets.map(lambda z: IndexedZSet.index(z, FIRST)))


@pytest.mark.parametrize(
    "linear",
    [
        lambda z: op.map_rows(z, FIRST),
        lambda z: op.filter_rows(z, lambda r: r[0] > 0),
        lambda z: op.union_all(z, z),
        lambda z: IndexedZSet.index(z, SECOND).flatten(),
    ],
    ids=["map", "filter", "union all", "index"],
)
def test_linear_operators_are_linear(linear):
    check_linear(linear, zsets, domain=ZSets(), codomain=ZSets())


def test_join_is_bilinear():
    check_bilinear(natural_join, st.tuples(zsets, zsets), left=ZSets(), right=ZSets(), codomain=ZSets())


@pytest.mark.parametrize(
    "other",
    [op.distinct, lambda z: op.group_aggregate(z, FIRST, lambda k, g: (k, len(g)))],
    ids=["distinct", "group"],
)
def test_distinct_and_grouping_are_not_linear(other):
    with pytest.raises(LawViolation, match="linear"):
        check_linear(other, zsets, domain=ZSets(), codomain=ZSets())


def test_a_join_with_itself_is_not_linear():
    with pytest.raises(LawViolation, match="linear"):
        check_linear(lambda z: natural_join(z, z), zsets, domain=ZSets(), codomain=ZSets())


@given(relations, relations, zsets, zsets)
def test_the_change_of_a_join(a, b, da, db):
    assert natural_join(a + da, b + db) - natural_join(a, b) == (
        natural_join(da, b) + natural_join(a + da, db)
    )


@given(relations, relations)
def test_operators_agree_with_python_on_multisets(a, b):
    left, right = list(_expand(a)), list(_expand(b))
    assert op.distinct(a) == ZSet.of(set(left))
    assert op.union(a, b) == ZSet.of(set(left) | set(right))
    assert op.difference(a, b) == ZSet.of(set(left) - set(right))
    assert op.union_all(a, b) == ZSet.of(left + right)
    rest = list(left)
    for row in right:
        if row in rest:
            rest.remove(row)
    assert op.difference_all(a, b) == ZSet.of(rest)
    assert natural_join(a, b) == ZSet.of([(*x, y[1]) for x in left for y in right if x[1] == y[0]])
    counts = op.group_aggregate(a, FIRST, lambda k, g: (k, sum(w for _, w in g.items())))
    assert counts == ZSet.of([(k, sum(r[0] == k for r in left)) for k in {r[0] for r in left}])


def _expand(zset):
    return (row for row, weight in zset.items() for _ in range(weight))


def test_a_group_that_empties_is_gone_and_may_come_back():
    def count(z):
        return op.group_aggregate(z, FIRST, lambda k, g: (k, sum(w for _, w in g.items())))

    one = ZSet.of([("g", 1)])
    assert count(one) == ZSet.of([("g", 1)])
    assert count(one - one) == ZSet()
    assert count(one - one + one) == count(one)


def test_an_update_is_a_deletion_and_an_insertion():
    table = ZSet.of(["old"]) + (ZSet.of(["new"]) - ZSet.of(["old"]))
    assert table == ZSet.of(["new"])
    assert table.is_positive()
    assert not (-table).is_positive()
    assert "old" not in table
    assert table["old"] == 0


@pytest.mark.parametrize("weights", [{"r": 1.0}, {"r": True}, {"r": "1"}, [([], 1)], [(float("nan"), 1)]])
def test_bad_rows_and_weights_are_refused(weights):
    with pytest.raises(DataError):
        ZSet(weights)


def test_mixed_operands_are_refused():
    for use in (lambda z: z + 1, lambda z: z - {}, lambda z: IndexedZSet.index(z, FIRST) + z):
        with pytest.raises(TypeError):
            use(ZSet.of([(0, 0)]))

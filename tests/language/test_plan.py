"""Plan nodes are checked when built, and can be walked and rewritten."""

import pytest

from everview.language.aggregates import AggregateCall, Frame, SortKey, WindowCall
from everview.language.correlation import outer_columns, replace_outer, scans_of
from everview.language.expressions import (
    TRUE,
    And,
    Call,
    Case,
    Cast,
    Column,
    Exists,
    InList,
    InSubquery,
    IsDistinct,
    IsNull,
    Literal,
    Not,
    Or,
    OuterColumn,
    ScalarSubquery,
    can_fail,
    children,
    columns_of,
    conjunction,
    is_nullable,
    map_children,
    shift,
    transform,
)
from everview.language.plan import (
    Aggregate,
    Distinct,
    Except,
    Field,
    Filter,
    Intersect,
    Join,
    JoinKind,
    Project,
    Scan,
    TopK,
    UnionAll,
    Values,
    Window,
    expressions_of,
    map_expressions,
    map_inputs,
    rewrite,
    walk_plan,
)
from everview.language.program import Program
from everview.language.types import BIGINT, BOOLEAN, DOUBLE, TEXT

T = Scan("t", (Field("a", BIGINT, nullable=False), Field("b", TEXT)))
A, B = Column(0, BIGINT, "a"), Column(1, TEXT, "b")
ONE = Literal(1, BIGINT)
IS_ONE = Call("=", (A, ONE), BOOLEAN)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Filter(T, A),
        lambda: Filter(T, Call("=", (Column(2, BIGINT), ONE), BOOLEAN)),
        lambda: Filter(T, Exists(Filter(T, Call("=", (A, OuterColumn(1, 2, BIGINT)), BOOLEAN)))),
        lambda: Project(T, (Column(-1, BIGINT),), ("x",)),
        lambda: Project(T, (A,), ("x", "y")),
        lambda: Join(JoinKind.INNER, T, T, Call("=", (A, Column(4, BIGINT)), BOOLEAN)),
        lambda: UnionAll(()),
        lambda: UnionAll((T, Project(T, (A,), ("a",)))),
        lambda: Intersect(T, Project(T, (A, A), ("a", "b")), all=True),
        lambda: Except(T, Project(T, (A, A), ("a", "b")), all=True),
        lambda: Values((Field("a", BIGINT),), ((Literal("x", TEXT),),)),
        lambda: Values((Field("a", BIGINT),), ((A,),)),
        lambda: Aggregate(T, (Column(5, BIGINT),), (), ("k",)),
        lambda: Aggregate(T, (), (AggregateCall("count", Column(9, TEXT)),), ("n",)),
        lambda: TopK(T, (), (), Literal(-1, BIGINT), None),
        lambda: TopK(T, (), (), Literal("x", TEXT), None),
        lambda: TopK(T, (SortKey(Column(7, TEXT)),), (), None, None),
        lambda: Window(T, (WindowCall("rank", (), (Column(8, TEXT),), (), (), None, BIGINT),), ("r",)),
        lambda: WindowCall("rank", (), (), (), (), Frame("rows", None, None), BIGINT),
        lambda: WindowCall("sum", (A,), (), (), (), None, BIGINT),
        lambda: WindowCall("median", (A,), (), (), (), None, BIGINT),
        lambda: Frame("range", -1, 0),
        lambda: Frame("rows", 2, 1),
        lambda: AggregateCall("median", A),
        lambda: AggregateCall("count", None, distinct=True),
        lambda: AggregateCall("count", None, filter=A),
        lambda: Call("nope", (), BIGINT),
        lambda: Call("+", (A, B), BIGINT),
        lambda: Call("=", (A, B), BOOLEAN),
        lambda: Cast(Literal(True, BOOLEAN), DOUBLE),
        lambda: And((A,)),
        lambda: Or((A,)),
        lambda: Not(A),
        lambda: IsDistinct(A, B),
        lambda: InList(A, ()),
        lambda: InList(A, (B,)),
        lambda: Case(((A, A),), A),
        lambda: Case(((TRUE, A),), B),
        lambda: Case((), A),
        lambda: ScalarSubquery(T),
        lambda: InSubquery(A, T),
        lambda: InSubquery(B, Project(T, (A,), ("a",))),
        lambda: OuterColumn(0, 0, BIGINT),
    ],
)
def test_parts_that_do_not_fit_are_refused(build):
    with pytest.raises((ValueError, TypeError)):
        build()


EVERY_NODE = (
    Program.parse("""
    CREATE TABLE t (a BIGINT NOT NULL, b TEXT);
    CREATE TABLE u (a BIGINT NOT NULL, c TEXT);
    CREATE MATERIALIZED VIEW v AS
      SELECT b, n, row_number() OVER (PARTITION BY b ORDER BY n) AS r FROM (
        SELECT b, count(*) AS n FROM t LEFT JOIN u ON t.a = u.a AND c LIKE 'x%' WHERE t.a > 1 GROUP BY b
        UNION ALL VALUES ('p', 3)
        INTERSECT ALL SELECT DISTINCT c, a FROM u
        EXCEPT SELECT b, a FROM t
      ) AS s
      WHERE b IN (SELECT c FROM u WHERE u.a = s.n AND EXISTS (SELECT 1 FROM t WHERE t.a = s.n OR t.a = u.a))
      ORDER BY n LIMIT 3
""")
    .views["v"]
    .plan
)


def test_rewriting_with_the_identity_gives_the_same_plan():
    kinds = {type(node) for node in walk_plan(EVERY_NODE)}
    assert kinds == {
        Scan,
        Values,
        Filter,
        Project,
        Join,
        UnionAll,
        Distinct,
        Intersect,
        Except,
        Aggregate,
        TopK,
        Window,
    }
    assert rewrite(EVERY_NODE, lambda node: node) == EVERY_NODE
    for node in walk_plan(EVERY_NODE):
        assert map_inputs(node, lambda child: child) == node
        same = map_expressions(node, lambda e: transform(e, lambda part: map_children(part, lambda c: c)))
        assert same == node
        assert same.schema == node.schema


def test_map_expressions_reaches_all_of_them():
    for node in walk_plan(EVERY_NODE):
        seen = []

        def note(expression, seen=seen):
            seen.append(expression)
            return expression

        map_expressions(node, note)
        assert sorted(map(repr, seen)) == sorted(map(repr, expressions_of(node)))


def test_rewriting_changes_what_it_is_told_to():
    renamed = rewrite(EVERY_NODE, lambda node: Scan("other", node.schema) if isinstance(node, Scan) else node)
    assert set(scans_of(EVERY_NODE)) == {"t", "u"}
    assert {node.name for node in walk_plan(renamed) if isinstance(node, Scan)} == {"other"}


def test_outer_columns_are_counted_from_where_they_are_seen():
    inner = Filter(T, Call("=", (A, OuterColumn(2, 5, BIGINT)), BOOLEAN))
    middle = Filter(T, And((Exists(inner), Call("=", (A, OuterColumn(1, 3, BIGINT)), BOOLEAN))))
    assert sorted((c.depth, c.index) for c in outer_columns(inner)) == [(2, 5)]
    assert sorted((c.depth, c.index) for c in outer_columns(middle)) == [(1, 3), (1, 5)]
    assert columns_of(Exists(middle)) == {3, 5}
    moved = shift(Exists(middle), 10)
    assert columns_of(moved) == {13, 15}
    with pytest.raises(ValueError, match="cannot read"):
        replace_outer(middle, lambda column: ONE)


def test_nullability():
    fields = T.schema
    assert not is_nullable(A, fields)
    assert is_nullable(B, fields)
    assert not is_nullable(IS_ONE, fields)
    assert is_nullable(Call("/", (A, ONE), BIGINT), fields)
    assert not is_nullable(Call("coalesce", (B, Literal("", TEXT)), TEXT), fields)
    assert is_nullable(Case(((IS_ONE, B),), Literal("", TEXT)), fields)
    assert not is_nullable(IsNull(B), fields)
    assert not is_nullable(Cast(A, DOUBLE), fields)
    assert is_nullable(Cast(B, BIGINT), fields)
    nullable = {kind: [field.nullable for field in Join(kind, T, T, TRUE).schema] for kind in JoinKind}
    assert nullable == {
        JoinKind.INNER: [False, True, False, True],
        JoinKind.LEFT: [False, True, True, True],
        JoinKind.RIGHT: [True, True, False, True],
        JoinKind.FULL: [True, True, True, True],
        JoinKind.SEMI: [False, True],
        JoinKind.ANTI: [False, True],
    }


def test_what_can_fail():
    assert can_fail(Call("/", (A, ONE), BIGINT))
    assert can_fail(Not(Call("=", (Cast(B, BIGINT), ONE), BOOLEAN)))
    assert not can_fail(And((IS_ONE, IsNull(B), Call("=", (Cast(A, DOUBLE), Literal(1.0, DOUBLE)), BOOLEAN))))


def test_conjunctions_are_flat():
    assert conjunction([]) == TRUE
    assert conjunction([TRUE, IS_ONE]) == IS_ONE
    assert conjunction([IS_ONE, And((IsNull(A), IsNull(B)))]) == And((IS_ONE, IsNull(A), IsNull(B)))


def test_names_of_columns_do_not_count():
    assert Column(0, BIGINT, "x") == Column(0, BIGINT, "y")
    assert children(IS_ONE) == (A, ONE)

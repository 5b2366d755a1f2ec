"""Why a recursive row is there: one proof, of least height, as a tree and as base rows."""

import random
from collections import deque

import pytest

import everview as ev

PROGRAM = ev.Program.parse(
    """
    CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL, colour TEXT);
    CREATE TABLE closed (x BIGINT NOT NULL);
    CREATE MATERIALIZED VIEW reach AS
        WITH RECURSIVE t(x, y) AS (
            SELECT a, b FROM edge
            UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a
            WHERE NOT EXISTS (SELECT 1 FROM closed WHERE closed.x = e.a)
        ) SELECT x AS source, y AS target FROM t;
    CREATE MATERIALIZED VIEW far AS SELECT target, count(*) AS n FROM reach GROUP BY target;
    CREATE MATERIALIZED VIEW both AS
        SELECT DISTINCT r.source FROM reach r JOIN reach s ON r.target = s.source WHERE s.target = r.source;
    """
)


TREE = """
reach(1, 4)
  t(1, 3)
    t(1, 2)
      edge(1, 2)
    edge(2, 3, "g")
  edge(3, 4, NULL)
"""
MUTUAL = """
even("n2")
  odd("n1")
    even("n0")
      start("n0")
    e("n0", "n1")
  e("n1", "n2")
"""


@pytest.fixture
def site():
    with ev.Site.open(":memory:", PROGRAM, name="s0") as site:
        yield site


def test_a_proof_is_a_tree(site):
    site.insert("edge", [(1, 2, "r"), (2, 3, "g"), (3, 1, "b"), (1, 9, "r"), (9, 3, "r"), (3, 4, None)])
    why = site.why("reach", (1, 4))
    assert str(why.proof) == TREE.strip()
    assert why.proof.height == 3
    assert [leaf.row[:2] for leaf in why.proof.leaves()] == [(1, 2), (2, 3), (3, 4)]
    assert str(why) == "t1·t2·t3"
    assert [(w.relation, w.values["a"], w.values["b"]) for w in why.tuples()] == [
        ("edge", 1, 2),
        ("edge", 2, 3),
        ("edge", 3, 4),
    ]


def test_a_recursion_within_a_larger_view():
    """Also where it is kept from parts that others send."""
    program = ev.Program.parse("""
        CREATE TABLE edge (a BIGINT NOT NULL, b BIGINT NOT NULL);
        CREATE TABLE shown (x BIGINT NOT NULL, name TEXT NOT NULL);
        CREATE MATERIALIZED VIEW named AS
            WITH RECURSIVE
            t(x, y) AS (SELECT a, b FROM edge UNION SELECT t.x, e.b FROM t JOIN edge e ON t.y = e.a),
            u(x) AS (SELECT x FROM t WHERE y = 4 UNION SELECT t.y FROM u JOIN t ON t.x = u.x WHERE t.y <> 4)
            SELECT u.x, shown.name, count(*) AS n FROM u JOIN t ON t.x = u.x JOIN shown ON shown.x = t.y
            GROUP BY u.x, shown.name;
    """)
    with (
        ev.Site.open(":memory:", program, name="s0") as site,
        ev.Site.open(":memory:", program, name="s1", hosts={"named"}) as screen,
    ):
        site.insert("edge", [(1, 2), (2, 3), (3, 4), (7, 3)])
        site.insert("shown", [(3, "hut")])
        screen.sync(site)
        for place in (site, screen):
            assert place.rows("named") == [(1, "hut", 1), (2, "hut", 1), (7, "hut", 1)]
            for source, edges in ((1, {1, 2, 3}), (7, {3, 7})):
                tuples = place.why("named", (source, "hut", 1)).tuples()
                assert {t.values["a"] for t in tuples if t.relation == "edge"} == edges
                assert [t.values for t in tuples if t.relation == "shown"] == [{"x": 3, "name": "hut"}]


def test_an_absent_row_has_no_proof(site):
    site.insert("edge", [(1, 2, "r")])
    why = site.why("reach", (2, 1))
    assert not why
    assert why.proof is None
    assert str(why) == "0"


def test_what_reads_a_recursion_has_its_base_rows(site):
    site.insert("edge", [(1, 2, "r"), (2, 1, "r")])
    why = site.why("far", (1, 2))
    assert {w.values["a"] for w in why.tuples()} == {1, 2}
    assert why.proof is None
    assert len(site.why("both", (1,)).monomials) == 1


def distance(edges, closed, start, end):
    """How many edges lead from one node to another, without going on from a closed node but the first."""
    after = {}
    for a, b, _ in edges:
        after.setdefault(a, []).append(b)
    waiting, seen = deque((b, 1) for b in after.get(start, ())), set()
    while waiting:
        node, steps = waiting.popleft()
        if node == end:
            return steps
        if node not in seen and node not in closed:
            seen.add(node)
            waiting += [(b, steps + 1) for b in after.get(node, ())]
    return None


@pytest.mark.parametrize("seed", range(3))
def test_proofs_are_of_least_height_and_hold_by_themselves(site, seed):
    rng = random.Random(seed)
    edges = sorted({(rng.randrange(12), rng.randrange(12), None) for _ in range(24)})
    closed = {rng.randrange(12) for _ in range(2)}
    site.insert("edge", edges)
    site.insert("closed", [(x,) for x in closed])
    for source, target in rng.sample(site.rows("reach"), 12):
        why = site.why("reach", (source, target))
        assert why.proof.height == distance(edges, closed, source, target)
        (monomial,) = why.monomials
        used = [(w.values["a"], w.values["b"], None) for w in why.tuples()]
        assert len(used) == len(monomial)
        with ev.Site.open(":memory:", PROGRAM) as other:
            other.insert("edge", used)
            other.insert("closed", [(x,) for x in closed])
            assert (source, target) in other.rows("reach")
            for left_out in used:
                other.delete("edge", [left_out])
                assert (source, target) not in other.rows("reach")
                other.insert("edge", [left_out])


def test_mutual_recursion_in_datalog():
    text = """
    .decl e(a: symbol, b: symbol)
    .decl start(a: symbol)
    .decl odd(a: symbol)
    .decl even(a: symbol)
    start("n0").
    even(x) :- start(x).
    odd(y) :- even(x), e(x, y).
    even(y) :- odd(x), e(x, y).
    """
    with ev.Site.open(":memory:", ev.Program.parse(text, language="datalog")) as site:
        site.insert("e", [("n0", "n1"), ("n1", "n2"), ("n2", "n0")])
        why = site.why("even", ("n2",))
        assert str(why.proof) == MUTUAL.strip()
        assert len(why.tuples()) == 2


def test_a_deep_proof():
    program = ev.Program.parse(
        ".decl e(a: number, b: number)\n.decl r(a: number)\nr(0).\nr(y) :- r(x), e(x, y).", language="datalog"
    )
    with ev.Site.open(":memory:", program) as site:
        site.insert("e", [(n, n + 1) for n in range(150)])
        why = site.why("r", (150,))
        assert why.proof.height == 150
        assert len(why.tuples()) == 150
        assert str(why.proof).count("\n") == 300

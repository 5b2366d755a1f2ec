"""Branches, cuts and the choice how a view is kept, against the reference engine."""

from __future__ import annotations

import pytest
from tests.planner.compare import typed

from everview.engines.reference import evaluate
from everview.language.plan import Filter
from everview.language.program import Program
from everview.planner.branches import MOST_BRANCHES, branches_of
from everview.planner.cut import plan_of
from everview.planner.exchange import Exchange, Way
from everview.testing.fuzz import generate_case
from everview.testing.fuzz.model import Model

TABLES = """
CREATE TABLE r (a BIGINT, b BIGINT, c TEXT);
CREATE TABLE s (b BIGINT, d BIGINT);
CREATE TABLE k (id BIGINT PRIMARY KEY, n BIGINT);
CREATE TABLE g (x BIGINT) WITH (semantics = 'bag');
"""


def exchange(views, hosts):
    program = Program.parse(TABLES + views)
    return Exchange(program, hosts)


def kept(query, *, hosts=()):
    found = exchange(f"CREATE MATERIALIZED VIEW v AS {query};", {"v", *hosts})
    return found.views["v"], found


def core_rows(core, tables):
    return evaluate(plan_of(core), tables).rows


def test_all_inputs_here_is_a_local_circuit():
    view, _ = kept("SELECT a FROM r", hosts={"r"})
    assert view.way is Way.LOCAL
    assert view.why == "this site hosts all that it reads: r"


def test_a_view_in_between_that_is_not_hosted_is_written_out():
    found = exchange(
        "CREATE MATERIALIZED VIEW u AS SELECT a, b FROM r; CREATE MATERIALIZED VIEW v AS SELECT a FROM u;",
        {"r", "v"},
    )
    assert found.views["v"].way is Way.LOCAL
    assert found.views["v"].why == "this site hosts all that it is made from: r"


def test_a_view_over_a_received_view_is_local():
    found = exchange(
        "CREATE MATERIALIZED VIEW u AS SELECT a, b FROM r;"
        "CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM u GROUP BY a;",
        {"u", "v"},
    )
    assert found.views["u"].way is Way.RECEIVED
    assert found.views["v"].way is Way.LOCAL


@pytest.mark.parametrize(
    ("query", "branches"),
    [
        ("SELECT a FROM r", [("r",)]),
        ("SELECT r.a, s.d FROM r JOIN s ON r.b = s.b WHERE s.d > 1", [("r", "s")]),
        ("SELECT x.a FROM r AS x JOIN r AS y ON x.a = y.b", [("r", "r")]),
        ("SELECT a FROM r UNION ALL SELECT b FROM s", [("r",), ("s",)]),
        ("SELECT a FROM r UNION ALL SELECT a FROM r", [("r",), ("r",)]),
        (
            "SELECT u.a, k.n FROM (SELECT a FROM r UNION ALL SELECT d FROM s) AS u JOIN k ON k.id = u.a",
            [("r", "k"), ("s", "k")],
        ),
    ],
)
def test_monotone_views_travel_as_branches(query, branches):
    view, _ = kept(query)
    assert view.way is Way.RECEIVED
    (core,) = view.cores
    found = [tuple(sorted(atom.name for atom in branch.atoms)) for branch in core.branches]
    assert sorted(found) == sorted(tuple(sorted(names)) for names in branches)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT a FROM r",
        "SELECT a, count(*) AS n FROM r WHERE b > 0 GROUP BY a",
        "SELECT a FROM r EXCEPT SELECT d FROM s",
        "SELECT r.a, x.d FROM r LEFT JOIN (SELECT b, d FROM s WHERE d > 1) AS x ON r.b = x.b",
        "SELECT a FROM r UNION SELECT d FROM s",
        "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
    ],
)
def test_what_is_not_monotone_is_cut(query):
    view, found = kept(query)
    assert view.way is Way.CUT
    assert view.cores or view.hidden
    assert set(found.cores) == {core.name for core in view.cores}


def test_a_bag_is_derived_from_like_any_relation():
    view, found = kept("SELECT x + 1 AS y FROM g WHERE x > 0")
    assert view.way is Way.RECEIVED
    assert [core.inputs for core in view.cores] == [("g",)]
    assert (view.hidden, found.hidden) == ((), ())


def test_a_whole_relation_is_its_own_stream():
    view, found = kept("SELECT d, b FROM s")
    assert (view.cores, found.hidden) == ((), ("s",))


def test_a_core_over_held_relations_is_computed_here():
    view, _ = kept("SELECT b FROM r WHERE a > 1 EXCEPT SELECT d FROM s WHERE b > 1", hosts={"r"})
    assert [core.inputs for core in view.cores] == [("s",)]


def test_constants_stay_at_home():
    view, _ = kept("SELECT a FROM r UNION ALL SELECT 7")
    assert view.way is Way.CUT
    (core,) = view.cores
    assert len(core.branches) == 1


def test_names_do_not_depend_on_what_is_hosted():
    query = "SELECT b FROM r WHERE a > 1 EXCEPT SELECT d FROM s WHERE b > 1"
    both, _ = kept(query)
    one, _ = kept(query, hosts={"r"})
    assert [core.name for core in one.cores] == [core.name for core in both.cores if core.inputs == ("s",)]
    assert len({core.name for core in both.cores}) == 2


def test_a_site_that_holds_the_inputs_offers_what_another_receives():
    query = "SELECT b FROM r WHERE a > 1 EXCEPT SELECT d FROM s WHERE b > 1"
    view, _ = kept(query)
    program = Program.parse(TABLES + f"CREATE MATERIALIZED VIEW v AS {query};")
    assert {c.name for c in Exchange(program, {"r", "s"}).offered()} == {c.name for c in view.cores}
    assert {c.inputs for c in Exchange(program, {"r"}).offered()} == {("r",)}


def passes(query, relation, row):
    """Whether the liveness of a row travels."""
    view, found = kept(query)
    (core,) = view.cores
    condition = core.passing(found.program.relations[relation])
    scan = next(atom for branch in core.branches for atom in branch.atoms if atom.name == relation)
    return bool(evaluate(Filter(scan, condition), {relation: [row]}).rows)


def test_predicates_on_one_table_narrow_the_liveness():
    query = "SELECT r.a FROM r JOIN s ON r.b = s.b WHERE r.a > 3 AND s.d = 1 AND r.a < s.d + 9"
    assert passes(query, "r", (4, 0, "x"))
    assert not passes(query, "r", (3, 0, "x"))
    assert not passes(query, "s", (1, 2))


def test_either_position_lets_a_row_pass():
    query = "SELECT x.c FROM r AS x JOIN r AS y ON x.b = y.a WHERE x.a = 1 AND y.a = 2"
    assert passes(query, "r", (1, 0, "x"))
    assert passes(query, "r", (2, 0, "x"))
    assert not passes(query, "r", (3, 0, "x"))


def test_of_a_keyed_relation_only_the_key_narrows():
    assert passes("SELECT id FROM k WHERE n = 1", "k", (1, 2))
    assert not passes("SELECT id FROM k WHERE n = 1 AND id = 5", "k", (1, 1))
    assert passes("SELECT id FROM k WHERE n = 1 AND id = 5", "k", (5, 2))


def test_too_many_branches_are_cut_further_down():
    united = " UNION ALL ".join(["SELECT a, b FROM r WHERE a > 0"] * 9)
    view, _ = kept(f"SELECT x.a FROM ({united}) AS x JOIN ({united}) AS y ON x.b = y.a")
    assert view.way is Way.CUT
    assert all(len(core.branches) <= MOST_BRANCHES for core in view.cores)


def test_projections_over_projections_have_a_bound():
    query = "SELECT a + 0 AS a FROM r"
    for _ in range(16):
        query = f"SELECT a + a AS a FROM ({query}) AS x"
    program = Program.parse(TABLES + f"CREATE MATERIALIZED VIEW v AS {query};")
    assert branches_of(program.views["v"].plan) is None


def test_random_programs_are_the_same_over_their_cores():
    """The cut plan over its cores has the rows of the view; cores are unions of their branches."""
    travelled = cut = 0
    for seed in range(0, 240, 2):
        case = generate_case(seed)
        model = Model(case.program)
        for statement in case.history:
            for write in statement:
                getattr(model, write.action)(write.relation, write.rows)
        tables = {name: model.rows(name) for name in case.program.relations}
        if sum(map(len, tables.values())) > 40:
            continue
        for name, view in case.program.views.items():
            known = dict(tables)
            for read in case.program.views:
                if read == name:
                    break
                known[read] = evaluate(case.program.views[read].plan, known).rows
            wanted = evaluate(view.plan, known).rows
            here = Exchange(case.program, {name}).views[name]
            cores = {core.name: core_rows(core, tables) for core in here.cores}
            assert typed(evaluate(here.plan, tables | cores).rows) == typed(wanted), (seed, name)
            travelled += here.way is Way.RECEIVED
            cut += here.way is Way.CUT and bool(here.cores)
    assert travelled > 20
    assert cut > 100


PUBLISHED = """
CREATE MATERIALIZED VIEW p WITH (authority = 'hub') AS SELECT b, count(*) AS n FROM r GROUP BY b;
CREATE MATERIALIZED VIEW over AS SELECT n FROM p WHERE b > 0;
CREATE MATERIALIZED VIEW both AS SELECT s.d, p.n FROM s JOIN p ON s.b = p.b;
"""


def published(hosts, name):
    return Exchange(Program.parse(TABLES + PUBLISHED), hosts, name)


def test_what_another_site_publishes_is_received_also_with_all_its_inputs_here():
    found = published({"r", "p"}, "device")
    assert found.views["p"].way is Way.PUBLISHED
    assert found.views["p"].why == "published by hub; needs no base rows"
    assert found.published == {"p": False}


def test_its_authority_keeps_it_like_any_view():
    assert published({"r", "p"}, "hub").views["p"].way is Way.LOCAL
    assert published({"p"}, "hub").views["p"].way is Way.CUT
    assert published({"r", "p"}, "hub").published == {"p": True}


def test_a_view_over_a_published_one_is_local_and_brings_it_along():
    found = published({"over"}, "device")
    assert found.views["over"].way is Way.LOCAL
    assert found.views["over"].why == "this site has all that it is made from: p"
    assert found.views["p"].way is Way.PUBLISHED
    assert not found.held


def test_an_authority_that_hosts_a_view_over_its_own_keeps_and_publishes_that_too():
    for hosts in ({"r", "over"}, {"over"}):
        found = published(hosts, "hub")
        assert found.views.keys() == {"over", "p"}
        assert found.published == {"p": True}
    assert published({"r", "over"}, "hub").views["p"].way is Way.LOCAL
    assert published({"over"}, "hub").views["p"].way is Way.CUT
    assert published({"r"}, "hub").published == {}


def test_a_cut_takes_a_published_view_as_it_is_at_every_site():
    for name in ("device", "hub"):
        found = published({"both"}, name)
        assert found.views["both"].way is Way.CUT
        assert found.views["both"].hidden == ("p", "s")
        assert "s" in found.hidden
        assert "p" in found.views
    one, other = (published({"r", "s"}, name).offered() for name in ("device", "hub"))
    assert {core.name for core in one} == {core.name for core in other}


HIDDEN = """
CREATE MATERIALIZED VIEW w AS SELECT a FROM r;
CREATE MATERIALIZED VIEW v AS SELECT a, b, c, count(*) OVER (PARTITION BY b) AS n FROM r;
CREATE MATERIALIZED VIEW e AS SELECT b FROM r WHERE a > 1 EXCEPT SELECT d FROM s WHERE b > 1;
"""


def test_a_view_is_kept_as_if_it_were_the_only_one_hosted_whatever_another_needs_whole():
    both = exchange(HIDDEN, {"v", "w", "e"})
    assert both.hidden == ("r",)
    for view in ("w", "v", "e"):
        alone = exchange(HIDDEN, {view}).views[view]
        assert both.views[view] == alone
    assert both.views["w"].way is Way.RECEIVED
    assert both.views["w"].why == "this site does not host r, and the view is monotone"
    assert [core.inputs for core in both.views["e"].cores] == [("r",), ("s",)]


def test_what_is_hosted_is_computed_from_also_where_another_relation_is_hidden():
    found = exchange(HIDDEN, {"v", "e", "s"})
    assert [core.inputs for core in found.views["e"].cores] == [("r",)]


def test_who_holds_a_relation_hidden_offers_what_it_also_receives():
    found = exchange(HIDDEN, {"v", "w"})
    assert found.cores.keys() <= {core.name for core in found.offered()}

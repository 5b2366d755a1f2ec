"""What Datalog programs say, evaluated by the reference and by SQLite."""

import time

import pytest

import everview as ev
from everview.engines.reference.evaluate import evaluate_views
from everview.errors import DataError
from everview.language.program import Program

GRAPH = """
.decl edge(a: number, b: number)
.decl node(a: number)
node(x), node(y) :- edge(x, y).
"""
EDGES = [(1, 2), (2, 3), (3, 1), (3, 4)]


def rows(text, view, edges=EDGES):
    program = Program.parse(GRAPH + text, language="datalog")
    wanted = sorted(evaluate_views(program, {"edge": edges})[view].rows)
    with ev.Site.open(":memory:", program) as site:
        site.insert("edge", edges)
        assert site.rows(view) == wanted
    return wanted


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("p(x, y) :- edge(x, y), x < y.", [(1, 2), (2, 3), (3, 4)]),
        ("p(x, y) :- edge(x, z), edge(z, y), x != y.", [(1, 3), (2, 1), (2, 4), (3, 2)]),
        ("p(y, 7) :- edge(3, y).", [(1, 7), (4, 7)]),
        ("p(x, n) :- edge(x, x + 1), n = x * 10.", [(1, 10), (2, 20), (3, 30)]),
        ("p(x, y) :- node(x), node(y), !edge(x, y), x + y = 4.", [(1, 3), (2, 2)]),
        ("p(x, x) :- node(x), !edge(x, _).", [(4, 4)]),
        ("p(x, n) :- node(x), n = count : { edge(x, _) }.", [(1, 1), (2, 1), (3, 2), (4, 0)]),
        ("p(x, n) :- node(x), n = sum y : { edge(x, y), y > 1 }.", [(1, 2), (2, 3), (3, 4), (4, 0)]),
        ("p(x, n) :- node(x), n = max y : { edge(x, y) }.", [(1, 2), (2, 3), (3, 4)]),
        ("p(x, count<y>) :- edge(x, y).", [(1, 1), (2, 1), (3, 2)]),
        ("p(min<y>, x) :- edge(x, y).", [(1, 3), (2, 1), (3, 2)]),
        ("p(count : { edge(_, _) }, sum<y>) :- edge(3, y).", [(4, 5)]),
        ("p(count<*>, 0) :- edge(9, _).", []),
        ("p(x, 10 / (x - 1)) :- node(x).", [(2, 10), (3, 5), (4, 3)]),
        ("p(max(x, 2), min(x, 2)) :- node(x).", [(2, 1), (2, 2), (3, 2), (4, 2)]),
        ("p(1, 2). p(3, 2 + 2). p(1, 2).", [(1, 2), (3, 4)]),
        ("p(x, y) :- edge(x, y). p(x, y) :- p(x, z), p(z, y), x < z, y != 1.",
         [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 1), (3, 4)]),
    ],
)  # fmt: skip
def test_rules(rules, expected):
    assert rows(f".decl p(a: number, b: number)\n{rules}", "p") == expected


def test_mutual_recursion_and_strata():
    text = """
    .decl odd(a: number, b: number)
    .decl even(a: number, b: number)
    .decl apart(a: number, b: number)
    .decl furthest(a: number, n: number)
    odd(x, y) :- edge(x, y).
    odd(x, y) :- even(x, z), edge(z, y).
    even(x, y) :- odd(x, z), edge(z, y).
    apart(x, y) :- node(x), node(y), !odd(x, y), !even(x, y).
    furthest(x, n) :- node(x), n = count : { apart(x, _) }.
    """
    path = [(1, 2), (2, 3), (3, 4)]
    assert rows(text, "odd", path) == [(1, 2), (1, 4), (2, 3), (3, 4)]
    assert rows(text, "even", path) == [(1, 3), (2, 4)]
    assert rows(text, "furthest", path) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_types_of_sql_and_of_souffle():
    text = """
    .type Name <: symbol
    .decl t(n: Name, d: date, x: float, m: decimal(10,2), ok: boolean)
    .decl late(n: symbol, k: number)
    .decl long(s: symbol)
    late(n, strlen(n)) :- t(n, d, x, m, true), d >= "2024-02-29", x < 2, m != 1.5.
    long(cat(n, "!", substr(n, 0, 1))) :- t(n, _, _, _, _).
    """
    program = Program.parse(text, language="datalog")
    with ev.Site.open(":memory:", program) as site:
        site.execute(
            "INSERT INTO t VALUES ('ada', '2024-03-01', 1.5, 2, true), ('bo', '2023-01-01', 1, 1, true)"
        )
        assert site.rows("late") == [("ada", 3)]
        assert site.rows("long") == [("ada!a",), ("bo!b",)]


def test_a_program_is_loaded_by_its_suffix_and_known_again_in_its_store(tmp_path):
    source = tmp_path / "reach.dl"
    source.write_text(
        GRAPH + ".decl p(a: number, b: number)\np(x, y) :- edge(x, y).\np(x, y) :- p(x, z), edge(z, y)."
    )
    program = Program.load(source)
    with ev.Site.open(tmp_path / "s.db", program) as site:
        site.insert("edge", [(1, 2), (2, 3)])
    with ev.Site.open(tmp_path / "s.db", program) as site:
        assert site.rows("p") == [(1, 2), (1, 3), (2, 3)]
        site.delete("edge", [(1, 2)])
        assert site.rows("p") == [(2, 3)]


def test_the_hash_is_of_what_is_said():
    one = Program.parse(".decl p(a: number)\np(1).\np(2).", language="datalog")
    same = Program.parse("// a comment\np(2). p( 1 ).\n\n.decl p(a:number)", language="datalog")
    other = Program.parse(".decl p(a: number)\np(1).", language="datalog")
    assert one == same
    assert one.hash != other.hash


def test_fact_files_fill_relations(tmp_path):
    text = """
    .decl e(a: number, s: symbol)
    .input e
    .decl f(a: number)
    .input f(filename="f.csv", delimiter=",")
    """
    program = Program.parse(text + ".output e\n", language="datalog")
    (tmp_path / "e.facts").write_text("1\tone\n-2\ttwo words\n")
    (tmp_path / "f.csv").write_text("7\n")
    assert dict(program.facts(tmp_path)) == {"e": [(1, "one"), (-2, "two words")], "f": [(7,)]}
    assert program.outputs == ("e",)
    (tmp_path / "e.facts").write_text("1\n")
    with pytest.raises(DataError, match=r"e\.facts, line 1: e has 2 columns, here are 1"):
        dict(program.facts(tmp_path))
    (tmp_path / "e.facts").write_text("1\tone\nx\ttwo\n")
    with pytest.raises(DataError, match=r"e\.facts, line 2: column a of e: .*x"):
        dict(program.facts(tmp_path))
    (tmp_path / "e.facts").unlink()
    with pytest.raises(DataError, match="cannot read the facts of e"):
        dict(program.facts(tmp_path))


def test_a_thousand_rules_are_read_in_time():
    chain = "\n".join(
        f".decl p{i}(a: number, b: number)\np{i}(x, y) :- p{i - 1}(x, z), edge(z, y), x != {i}."
        for i in range(1, 1001)
    )
    text = f"{GRAPH}.decl p0(a: number, b: number)\np0(x, y) :- edge(x, y).\n{chain}"
    start = time.process_time()
    program = Program.parse(text, language="datalog")
    assert time.process_time() - start < 10
    assert len(program.views) == 1002


def test_one_relation_may_have_many_rules():
    many = "\n".join(f"p(x, {i}) :- edge(x, {i})." for i in range(510))
    found = rows(f".decl p(a: number, b: number)\n{many}", "p")
    assert found == sorted(EDGES)

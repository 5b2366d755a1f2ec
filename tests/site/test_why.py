"""Why: Streams' Table 2 as SQL, and what an answer carries."""

import datetime as dt
import math
from decimal import Decimal

import pytest

import everview as ev

TABLE_2 = """
CREATE TABLE r (a TEXT, b TEXT, c TEXT);
CREATE MATERIALIZED VIEW r1 AS SELECT DISTINCT a, b FROM r;
CREATE MATERIALIZED VIEW r2 AS SELECT DISTINCT b, c FROM r;
CREATE MATERIALIZED VIEW r3 AS SELECT DISTINCT r1.a, r2.c FROM r1 JOIN r2 ON r1.b = r2.b;
"""
BASE = {"t1": ("a1", "b", "c1"), "t2": ("a1", "b", "c2"), "t3": ("a2", "b", "c2")}


@pytest.fixture
def site(open_site):
    site = open_site(TABLE_2, name="s0")
    site.insert("r", BASE.values())
    return site


def in_the_papers_names(why):
    """The provenance with the names that the paper gives to its base tuples."""
    paper = {row: name for name, row in BASE.items()}
    named = {witness.id: paper[tuple(witness.values.values())] for witness in why.tuples()}
    return {frozenset(named[id_] for id_ in monomial) for monomial in why.monomials}


@pytest.mark.parametrize(
    ("view", "row", "monomials"),
    [
        ("r1", ("a1", "b"), ["t1", "t2"]),
        ("r1", ("a2", "b"), ["t3"]),
        ("r2", ("b", "c1"), ["t1"]),
        ("r2", ("b", "c2"), ["t2", "t3"]),
        ("r3", ("a1", "c1"), ["t1"]),
        ("r3", ("a1", "c2"), ["t1 t3", "t2"]),
        ("r3", ("a2", "c1"), ["t1 t3"]),
        ("r3", ("a2", "c2"), ["t3"]),
        ("r", ("a1", "b", "c1"), ["t1"]),
        ("r3", ("a2", "c9"), []),
        ("r", ("a2", "b", "c1"), []),
    ],
)
def test_table_2(site, view, row, monomials):
    why = site.why(view, row)
    assert in_the_papers_names(why) == {frozenset(monomial.split()) for monomial in monomials}


def test_it_prints_as_in_the_paper(site):
    assert str(site.why("r3", ("a1", "c2"))) == "t1·t3 + t2"
    assert str(site.why("r3", ("a9", "c2"))) == "0"
    assert repr(site.why("r3", ("a1", "c2"))) == "<Provenance t1·t3 + t2>"


def test_witnesses_carry_values_and_origin(site):
    first, second, third = site.why("r3", {"a": "a1", "c": "c2"}).tuples()
    assert [witness.label for witness in (first, second, third)] == ["t1", "t2", "t3"]
    assert dict(first.values) == {"a": "a1", "b": "b", "c": "c1"}
    assert {witness.relation for witness in (first, second, third)} == {"r"}
    assert {witness.origin for witness in (first, second, third)} == {"s0"}
    assert isinstance(first.id, bytes)
    assert len(first.id) == 16


def test_it_follows_deletes(site):
    site.delete("r", [BASE["t2"]])
    assert in_the_papers_names(site.why("r3", ("a1", "c2"))) == {frozenset({"t1", "t3"})}
    site.delete("r", [BASE["t3"]])
    assert str(site.why("r3", ("a1", "c2"))) == "0"
    site.insert("r", [BASE["t2"]])
    assert in_the_papers_names(site.why("r3", ("a1", "c2"))) == {frozenset({"t2"})}


def test_equal_answers_are_equal(site):
    assert site.why("r1", ("a2", "b")) == site.why("r3", ("a2", "c2"))
    assert site.why("r1", ("a2", "b")) != site.why("r1", ("a1", "b"))
    assert hash(site.why("r1", ("a2", "b"))) == hash(site.why("r3", ("a2", "c2")))


@pytest.mark.parametrize("row", [("a1",), ("a1", 5), {"x": "a1"}, "a1"])
def test_a_row_that_does_not_fit_is_a_data_error(site, row):
    with pytest.raises(ev.DataError):
        site.why("r3", row)


def test_rows_of_every_type_are_found(open_site):
    site = open_site(
        "CREATE TABLE v (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(6,2), l DECIMAL(30,4), t TEXT, x BLOB, "
        "d DATE, s TIMESTAMP); CREATE MATERIALIZED VIEW same AS SELECT DISTINCT * FROM v;"
        "CREATE MATERIALIZED VIEW sums AS SELECT sum(f) AS f, avg(n) AS n, sum(l) AS l, max(s) AS s FROM v;"
    )
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    rows = [
        (
            True,
            -(2**63),
            math.nan,
            Decimal("-0.01"),
            Decimal("-1.0001"),
            "x'y",
            b"\x00",
            dt.date(1, 1, 1),
            noon,
        ),
        (False, 0, 0.1, Decimal("1.00"), Decimal(99999999999999999999999999), "", b"", None, None),
        (None, None, math.inf, None, None, None, None, None, None),
        (None, None, -math.inf, None, None, None, None, None, None),
        (None, None, 5e-324, None, None, None, None, None, None),
    ]
    site.insert("v", rows)
    for row in site.rows("same"):
        (witness,) = site.why("same", row).tuples()
        assert repr(tuple(witness.values.values())) == repr(row)
    (total,) = site.rows("sums")
    assert len(site.why("sums", total).tuples()) == 5

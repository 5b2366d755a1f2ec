"""Worked examples of Streams: Table 2, and the valuation of Section 7."""

from everview.algebra.causal_length import CausalLengths
from everview.algebra.provenance import Provenance

BASE = {("a1", "b", "c1"): "t1", ("a1", "b", "c2"): "t2", ("a2", "b", "c2"): "t3"}


def project(relation, *columns):
    """π̃ on an augmented relation: tuples that become equal add their provenance."""
    projected = {}
    for row, p in relation.items():
        short = tuple(row[c] for c in columns)
        projected[short] = projected.get(short, Provenance.ZERO) + p
    return projected


def natural_join(left, right):
    """R̃1(AB) ⋈ R̃2(BC): provenances multiply."""
    return {(*x, y[1]): p * q for x, p in left.items() for y, q in right.items() if x[1] == y[0]}


def table_2():
    r = {row: Provenance.of(id_) for row, id_ in BASE.items()}
    r1, r2 = project(r, 0, 1), project(r, 1, 2)
    return r1, r2, project(natural_join(r1, r2), 0, 2)


def test_table_2():
    r1, r2, r3 = table_2()
    assert {row: str(p) for row, p in r1.items()} == {("a1", "b"): "t1 + t2", ("a2", "b"): "t3"}
    assert {row: str(p) for row, p in r2.items()} == {("b", "c1"): "t1", ("b", "c2"): "t2 + t3"}
    assert {row: str(p) for row, p in r3.items()} == {
        ("a1", "c1"): "t1",
        ("a1", "c2"): "t1·t3 + t2",
        ("a2", "c1"): "t1·t3",
        ("a2", "c2"): "t3",
    }


def test_section_7_all_four_tuples_are_present():
    _, _, r3 = table_2()
    lengths = CausalLengths({"t1": 1, "t2": 2, "t3": 3})
    assert [p.present(lengths) for p in r3.values()] == [True] * 4


def test_every_valuation_agrees_with_recomputing_the_view_over_the_present_tuples():
    _, _, r3 = table_2()
    for l1 in range(4):
        for l2 in range(4):
            for l3 in range(4):
                lengths = CausalLengths({"t1": l1, "t2": l2, "t3": l3})
                present = [row for row, id_ in BASE.items() if lengths.is_present(id_)]
                recomputed = {(a, c) for a, b, _ in present for _, b2, c in present if b == b2}
                assert {row for row, p in r3.items() if p.present(lengths)} == recomputed

"""Sketches: what they say is near the truth, and follows from the values alone."""

import math
import random
import struct
from collections import Counter
from statistics import fmean

import pytest

from everview.algebra.sketch_text import (
    at_step,
    counts_text,
    distinct,
    is_counts_text,
    is_marks_text,
    mark,
    marks_text,
    percentile,
    read_counts,
    read_marks,
    step,
)


def doubles(chance, count):
    found = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(count)]
    return [x for x in found if not math.isnan(x)] + [0.0, 5e-324, -5e-324, math.inf, -math.inf, 1.0, -1.0]


def test_marks_and_steps_are_the_same_everywhere():
    assert [mark(text) for text in ("", "a", "ä", "1")] == [108545, 6532, 67585, 100737]
    assert [step(x) for x in (0.0, 1.0, -1.0, 1.5, 2.0, 5e-324)] == [0, 137473, -137473, 137537, 137601, 1]
    assert [step(x) for x in (-math.inf, math.inf, math.nan)] == [-268545, 268545, 268546]


def test_steps_go_with_the_order_of_doubles_and_are_a_128th_wide():
    found = sorted(doubles(random.Random(1), 5_000))
    assert [step(x) for x in found] == sorted(step(x) for x in found)
    for x in found:
        near = at_step(step(x))
        assert step(near) == step(x)
        assert near == x or (abs(near) < abs(x) < abs(near) * (1 + 1 / 128))
    assert all(at_step(step(x)) == x for x in range(-256, 257))


@pytest.mark.parametrize("size", [0, 1, 10, 100, 700, 3_000, 20_000])
def test_the_number_of_different_values_is_within_its_error(size):
    errors = []
    for turn in range(12 if size < 5_000 else 3):
        text = marks_text(mark(f"{turn} {number}") for number in range(size))
        assert len(text) <= 2_049
        errors.append((distinct(text) - size) / max(size, 1))
    assert abs(fmean(errors)) < 0.023 * 3
    assert all(abs(error) < 0.023 * 5 for error in errors)
    assert errors[0] == 0 or size > 5


@pytest.mark.parametrize("seed", range(6))
def test_percentiles_are_a_128th_below_the_exact_ones(seed):
    chance = random.Random(seed)
    spread = [
        lambda: chance.gauss(0, 100),
        lambda: float(chance.randrange(5)),
        lambda: chance.lognormvariate(0, 9),
    ]
    values = sorted(spread[seed % 3]() for _ in range(chance.choice([1, 2, 10, 1_000])))
    text = counts_text(Counter(map(step, values)))
    for part in (0, 0.001, 0.25, 0.5, 0.9, 0.999, 1):
        exact = values[max(1, math.ceil(part * len(values))) - 1]
        assert percentile(text, part) == at_step(step(exact))


def test_texts_are_read_again_and_others_are_not():
    chance = random.Random(5)
    for size in (0, 1, 5, 680, 690, 5_000):
        marks = [mark(str(chance.random())) for _ in range(size)]
        text = marks_text(marks)
        assert is_marks_text(text)
        assert marks_text(read_marks(text)) == text
        assert {found >> 6: found for found in sorted(marks)} == {
            found >> 6: found for found in read_marks(text)
        }
        counts = Counter(map(step, doubles(chance, size)))
        assert read_counts(counts_text(counts)) == counts
        assert is_counts_text(counts_text(counts))
    for text in (
        "0",
        "000",
        "W01",
        "00s",
        "011011",
        "021011",
        "=",
        "=" + "s" * 2048,
        "=" + "0" * 2047,
        " 01",
    ):
        assert not is_marks_text(text), text
    for text in (
        "",
        ";",
        "1",
        "1;0",
        "1;-1",
        "2,1;1,1",
        "1,1;1,1",
        "1,2;1",
        "1;1;1",
        "268547;1",
        "-268546;1",
        "1;1 ",
    ):
        assert not is_counts_text(text), text
    with pytest.raises(ValueError, match="not a sketch"):
        distinct("?")
    with pytest.raises(ValueError, match="not a sketch"):
        percentile("?", 0.5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        percentile("1;1", math.nan)


def test_slots_that_are_full_count_too():
    with pytest.raises(OverflowError):
        distinct(marks_text(slot << 6 | 53 for slot in range(2048)))
    assert 10**18 < distinct(marks_text(slot << 6 | 51 for slot in range(2048))) < 2**63
    half = marks_text(
        [*(slot << 6 | 53 for slot in range(0, 2048, 2)), *(slot << 6 | 1 for slot in range(1, 2048, 2))]
    )
    assert 2_048 < distinct(half) < 10_000

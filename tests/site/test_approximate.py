"""Approximate aggregates at sites: near the exact ones, deletes too; the same from sketches alone."""

import math
import random

import pytest

import everview as ev
from everview.errors import ProgramError

PROGRAM = ev.Program.parse("""
    CREATE TABLE visit (site TEXT NOT NULL, id BIGINT, place TEXT, who BIGINT, seconds DOUBLE)
        WITH (owner = 'site', semantics = 'bag');
    CREATE MATERIALIZED VIEW about AS SELECT place, approx_count_distinct(who) AS people,
        approx_percentile(seconds, 0.5) AS median, approx_percentile(seconds, 0.95) AS most
        FROM visit GROUP BY place;
    CREATE MATERIALIZED VIEW exactly AS SELECT place, count(DISTINCT who) AS people FROM visit GROUP BY place;
    CREATE MATERIALIZED VIEW overall AS SELECT approx_count_distinct(who) AS people,
        approx_percentile(seconds, 0.5) FILTER (WHERE place = 'x') AS median FROM visit;
""")


def draw(chance, site, count):
    return [
        (site.name, n, chance.choice("xyz"), chance.randrange(2_000), math.exp(chance.gauss(0, 2)))
        for n in range(count)
    ]


def exact(values, part):
    values = sorted(values)
    return values[max(1, math.ceil(part * len(values))) - 1]


def check(site):
    rows = site.rows("visit")
    exactly = dict(site.rows("exactly"))
    about = site.rows("about")
    assert {place for place, *_ in about} == set(exactly)
    for place, people, median, most in about:
        assert abs(people - exactly[place]) <= max(1, 0.023 * 5 * exactly[place])
        seconds = [row[4] for row in rows if row[2] == place]
        for found, part in ((median, 0.5), (most, 0.95)):
            assert found <= exact(seconds, part) < found * (1 + 1 / 128)
    assert site.query(
        "SELECT place, approx_count_distinct(who) AS n FROM visit GROUP BY place ORDER BY place"
    ) == [{"place": place, "n": people} for place, people, *_ in about]


@pytest.mark.parametrize("seed", range(2))
def test_views_are_near_the_truth_after_every_write_and_sketches_say_the_same(seed):
    chance = random.Random(seed)
    north, south = (ev.Site.open(":memory:", PROGRAM, name=name) for name in ("north", "south"))
    reader = ev.Site.open(":memory:", PROGRAM, name="reader", hosts={"about", "overall"})
    kept = {site: [] for site in (north, south)}
    for turn in range(5):
        for site, rows in list(kept.items()):
            new = draw(chance, site, chance.choice([3, 300, 1_000]))
            site.insert("visit", new)
            rows.extend(new)
            gone = chance.sample(rows, chance.choice([0, 1, len(rows) // 2, len(rows)]) if turn else 0)
            site.delete("visit", gone)
            left = set(gone)
            kept[site] = [row for row in rows if row not in left]
            check(site)
        north.sync(south)
        check(north)
        reader.sync(chance.choice([north, south]))
        for view in ("about", "overall"):
            assert reader.rows(view) == north.rows(view) == south.rows(view)
    for site, rows in kept.items():
        site.delete("visit", rows)
    north.sync(south)
    reader.sync(north)
    assert (reader.rows("about"), reader.rows("overall")) == ([], [(0, None)])
    assert (south.rows("about"), south.rows("overall")) == ([], [(0, None)])


def test_what_travels_grows_with_groups_and_not_with_rows():
    chance = random.Random(1)
    sent = []
    for count in (2_000, 10_000):
        site = ev.Site.open(":memory:", PROGRAM, name="north")
        reader = ev.Site.open(":memory:", PROGRAM, name="reader", hosts={"about"})
        site.insert("visit", draw(chance, site, count))
        sent.append(reader.sync(site).received_bytes)
        assert reader.rows("about") == site.rows("about")
    assert sent[1] < 2 * sent[0] < 20_000


def test_percentiles_of_one_column_share_a_sketch():
    assert PROGRAM.views["about"].plan.input.schema[2:] == PROGRAM.views["about"].plan.input.schema[2:3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("approx_count_distinct(*)", "takes one argument"),
        ("approx_count_distinct(who, 2)", "takes one argument"),
        ("approx_count_distinct(DISTINCT who)", "DISTINCT is not supported"),
        ("approx_percentile(seconds)", "a number and a part from 0 to 1"),
        ("approx_percentile(seconds, 1.5)", "written as a number from 0 to 1"),
        ("approx_percentile(seconds, who)", "written as a number from 0 to 1"),
        ("approx_percentile(place, 0.5)", "does not take a TEXT"),
        ("approx_count_distinct(who) OVER ()", "there is no window function approx_count_distinct"),
        ("median(seconds)", "there is no function median"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ProgramError, match=message):
        PROGRAM.bind_query(f"SELECT {call} FROM visit")

"""Spark's built-in sketch functions read and merge the bytes of our sketches, and we read theirs."""

import pytest

from everview import crdt


def sketch(replica):
    return bytearray(replica.lattice.total(replica.state()))


def test_spark_merges_our_distinct_counts_with_its_own(spark):
    ours = crdt.DistinctCount("device")
    ours.add(*range(6_000))
    words = crdt.DistinctCount("device")
    words.add(*(f"w{i}" for i in range(50)))
    spark.createDataFrame(
        [(sketch(ours), sketch(words))], "numbers binary, words binary"
    ).createOrReplaceTempView("o")
    both, text = spark.sql(
        """
        SELECT hll_sketch_estimate(hll_union(o.numbers, n.sketch)),
               hll_sketch_estimate(hll_union(o.words, w.sketch))
        FROM o, (SELECT hll_sketch_agg(id) AS sketch FROM range(4000, 10000)) AS n,
                (SELECT hll_sketch_agg('w' || id) AS sketch FROM range(25, 75)) AS w
        """
    ).collect()[0]
    assert both == pytest.approx(10_000, rel=0.05)
    assert text == 75


def test_we_merge_a_distinct_count_of_sparks(spark):
    theirs = spark.sql("SELECT hll_sketch_agg(id) FROM range(4000, 10000)").collect()[0][0]
    ours = crdt.DistinctCount("device")
    ours.add(*range(6_000))
    ours.contribute(bytes(theirs))
    assert ours.value == pytest.approx(10_000, rel=0.05)


def test_spark_and_we_merge_each_others_quantiles(spark):
    ours = crdt.Quantiles("device")
    ours.add(*range(5_000))
    spark.createDataFrame([(sketch(ours),)], "ours binary").createOrReplaceTempView("o")
    median, theirs = spark.sql(
        """
        SELECT kll_sketch_get_quantile_double(kll_sketch_merge_double(o.ours, s.sketch), 0.5), s.sketch
        FROM o, (SELECT kll_sketch_agg_double(CAST(id AS DOUBLE)) AS sketch FROM range(5000, 10000)) AS s
        """
    ).collect()[0]
    assert median == pytest.approx(5_000, abs=300)
    ours.contribute(bytes(theirs))
    assert ours.value[0] == pytest.approx(5_000, abs=300)

"""The fuzzer itself: seeds repeat, files read back, differences are seen, failing cases become small."""

import os
import subprocess
import sys

import pytest

from everview.errors import DataError
from everview.testing.fuzz import (
    Coverage,
    Difference,
    EngineStore,
    check_case,
    failure,
    generate_case,
    minimise,
    parse_case,
    write_case,
)

CASE = """-- a title
CREATE TABLE r (a BIGINT, b TEXT, c DOUBLE PRECISION, d BYTEA, PRIMARY KEY (a));
CREATE TABLE s (a BIGINT) WITH (semantics = 'bag');
CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM r GROUP BY b;
CREATE MATERIALIZED VIEW w AS SELECT a FROM s;

-- history
insert r (1, 'it''s; (a, b) and', 'NaN', '\\x00ff'), (2, NULL, 0.5, NULL);
insert s (1), (1), (2);
delete r (1, NULL, NULL, NULL) and insert r (1, 'NULL', '5e-324', '\\x');
"""


def check_with(store):
    return lambda case: check_case(case, store)


class Forgetful(EngineStore):
    """Loses the deletions of a row that is there twice."""

    def delete(self, relation, rows):
        return super().delete(relation, list(dict.fromkeys(rows)))


class Untyped(EngineStore):
    """Shows whole doubles as ints, which Python takes for equal."""

    def rows(self, name):
        def shown(value):
            return int(value) if isinstance(value, float) and value.is_integer() else value

        return [tuple(map(shown, row)) for row in super().rows(name)]


def test_a_seed_gives_the_same_case_in_every_process():
    script = "from everview.testing.fuzz import *; print(*(write_case(generate_case(s)) for s in range(40)))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1


def test_a_case_reads_back_as_it_was_written():
    for seed in range(100):
        case = generate_case(seed)
        again = parse_case(write_case(case, title="one line\nand another"))
        assert repr(again.history) == repr(case.history)
        assert again.program == case.program


def test_the_format_of_a_case():
    case = parse_case(CASE)
    check_case(case)
    assert [len(statement) for statement in case.history] == [1, 1, 2]
    assert case.history[0][0].rows[0][1] == "it's; (a, b) and"
    assert case.history[2][1].rows == ((1, "NULL", 5e-324, b""),)
    assert write_case(case) == CASE


@pytest.mark.parametrize(
    "history", ["insert r", "insert q (1);", "insert r (1;", "upsert s (1);", "insert s (1) or"]
)
def test_a_history_that_is_none_is_refused(history):
    with pytest.raises(DataError):
        parse_case(CASE + history)


def test_a_text_without_history_is_refused():
    with pytest.raises(DataError, match="-- history"):
        parse_case("CREATE TABLE r (a BIGINT);")


def test_a_wrong_count_and_a_wrong_bag_are_differences():
    text = CASE + "delete s (1), (1);\n"
    with pytest.raises(Difference, match=r"after statement 4:\ndelete s returned 1, not 2") as found:
        check_case(parse_case(text), Forgetful)
    assert "w has too much (1,), and lacks nothing" in str(found.value)


def test_equal_values_of_other_types_are_differences():
    with pytest.raises(Difference):
        check_case(parse_case(CASE.replace("0.5", "2.0")), Untyped)


def test_a_failing_case_becomes_small():
    for seed in range(1000):
        case = generate_case(seed)
        if failure(case, check_with(Forgetful)):
            break
    small = minimise(case, check_with(Forgetful))
    assert failure(small, check_with(Forgetful)) == failure(case, check_with(Forgetful))
    assert len(small.program.relations) == 1
    assert len(small.program.views) == 0
    assert sum(len(write.rows) for statement in small.history for write in statement) == 4
    assert failure(parse_case(write_case(small)), check_with(Forgetful))


def test_queries_become_small():
    class Positive(EngineStore):
        def rows(self, name):
            found = super().rows(name)
            return [row for row in found if row != (3,)] if name == "v" else found

    text = """CREATE TABLE r (a BIGINT, b TEXT);
CREATE MATERIALIZED VIEW u AS SELECT b FROM r;
CREATE MATERIALIZED VIEW v AS SELECT coalesce(a + 1, 3) AS x FROM r WHERE (b IS NULL OR a > 1) LIMIT 9;

-- history
insert r (2, 'x'), (5, 'y');
"""
    small = minimise(parse_case(text), check_with(Positive))
    assert small.program.text.count("\n") == 2
    assert "WHERE" not in small.program.text
    assert "LIMIT" not in small.program.text
    assert list(small.program.views) == ["v"]


def test_a_case_that_passes_stays_as_it_is():
    case = generate_case(0)
    assert failure(case) is None
    assert minimise(case) is case


def test_coverage_adds_up_and_reads_back():
    coverage = Coverage()
    for seed in range(4):
        case = generate_case(seed)
        coverage.add(case, check_case(case))
    twice = coverage + Coverage.from_json(coverage.to_json())
    assert twice.pairs == 8
    assert twice.checked["function ="] == 2 * coverage.checked["function ="]
    assert all(coverage.changed[name] <= coverage.checked[name] for name in coverage.changed)
    assert "views three deep" in coverage.table(columns=2)

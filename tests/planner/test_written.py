"""What follows from a program alone is worked out once, and forgotten with it."""

import gc

from everview.language.program import Program
from everview.planner import written
from everview.planner.exchange import Exchange
from everview.planner.written import written_of

TEXT = """
CREATE TABLE r (a BIGINT, b BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT DISTINCT a FROM r WHERE b > 1;
CREATE MATERIALIZED VIEW w AS SELECT a, count(*) AS n FROM v GROUP BY a;
"""


def test_sites_of_a_program_share_it():
    program = Program.parse(TEXT)
    assert written_of(program) is written_of(program)
    everywhere, elsewhere = Exchange(program, {"r", "v", "w"}), Exchange(program, {"w"})
    assert everywhere.views["w"].plan is written_of(program).plans["w"]
    assert elsewhere.views["w"].plan != everywhere.views["w"].plan
    assert Exchange(program, {"w"}).views == elsewhere.views
    assert [*everywhere.all_cores.values()] == [*elsewhere.all_cores.values()]


def test_equal_programs_may_spell_names_in_their_own_ways():
    program, other = Program.parse(TEXT), Program.parse(TEXT.replace(" v ", " V "))
    assert program == other
    assert written_of(program) is not written_of(other)
    assert [*written_of(other).plans] == [*other.views]


def test_it_goes_with_its_program():
    gc.collect()
    before = len(written._WRITTEN)
    program = Program.parse(TEXT)
    written_of(program)
    assert len(written._WRITTEN) == before + 1
    del program
    gc.collect()
    assert len(written._WRITTEN) == before

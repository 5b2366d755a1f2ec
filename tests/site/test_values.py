"""The eight types at the door: what fits, in which form it comes back, and what is refused."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from tests.site.checks import typed

import everview as ev

PROGRAM = """
CREATE TABLE v (b BOOLEAN, i BIGINT, f DOUBLE, n DECIMAL(6,2), t TEXT, x BLOB, d DATE, s TIMESTAMP);
CREATE TABLE long (n DECIMAL(38,10));
CREATE MATERIALIZED VIEW same AS SELECT * FROM v;
"""
UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


@pytest.fixture
def site(open_site):
    return open_site(PROGRAM)


FITS = [
    ("b", True, True),
    ("b", False, False),
    ("i", 2**63 - 1, 2**63 - 1),
    ("i", -(2**63), -(2**63)),
    ("f", 1.5, 1.5),
    ("f", 2, 2.0),
    ("f", -0.0, 0.0),
    ("f", math.nan, math.nan),
    ("f", -math.inf, -math.inf),
    ("f", 5e-324, 5e-324),
    ("n", Decimal("12.3"), Decimal("12.30")),
    ("n", 7, Decimal("7.00")),
    ("n", Decimal("-9999.99"), Decimal("-9999.99")),
    ("n", Decimal("-0"), Decimal("0.00")),
    ("n", Decimal("1E+2"), Decimal("100.00")),
    ("t", "", ""),
    ("t", "naïve 𝄞 'quoted' \\ ?", "naïve 𝄞 'quoted' \\ ?"),
    ("t", "NaN", "NaN"),
    ("x", b"", b""),
    ("x", b"\x00\xff", b"\x00\xff"),
    ("d", dt.date(1, 1, 1), dt.date(1, 1, 1)),
    ("d", dt.date(9999, 12, 31), dt.date(9999, 12, 31)),
    ("s", dt.datetime(2024, 2, 29, 12, 0, 0, 1), dt.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC)),  # noqa: DTZ001
    ("s", dt.datetime(2024, 1, 1, tzinfo=EAST), dt.datetime(2023, 12, 31, 18, 30, tzinfo=UTC)),
    ("s", dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(1, 1, 1, tzinfo=UTC)),
    ("s", dt.datetime.max, dt.datetime.max.replace(tzinfo=UTC)),  # noqa: DTZ901
]


@pytest.mark.parametrize(("column", "given", "back"), FITS, ids=lambda value: str(value)[:12])
def test_what_fits_comes_back_in_its_one_form(site, column, given, back):
    assert site.insert("v", [{column: given}]) == 1
    assert site.insert("v", [{column: back}]) == 0
    for found in (site.query(f"SELECT {column} FROM v"), site.query(f"SELECT {column} FROM same")):
        assert typed([(found[0][column],)]) == typed([(back,)])
    # The same value as a parameter finds the row again.
    assert len(site.query(f"SELECT 1 AS one FROM v WHERE {column} = ?", [given])) == 1
    assert site.delete("v", [{column: given}]) == 1


REFUSED = [
    ("b", 1),
    ("b", "true"),
    ("i", True),
    ("i", 1.0),
    ("i", "1"),
    ("i", 2**63),
    ("i", -(2**63) - 1),
    ("i", Decimal(1)),
    ("f", True),
    ("f", "1.5"),
    ("f", Decimal("1.5")),
    ("f", 10**400),
    ("n", 1.5),
    ("n", True),
    ("n", Decimal("0.001")),
    ("n", 10000),
    ("n", Decimal("NaN")),
    ("n", Decimal("Infinity")),
    ("n", "1"),
    ("t", 1),
    ("t", b"x"),
    ("t", "\0"),
    ("t", "\ud800"),
    ("x", "x"),
    ("x", bytearray(b"x")),
    ("d", dt.datetime(2024, 1, 1)),  # noqa: DTZ001
    ("d", "2024-01-01"),
    ("s", dt.date(2024, 1, 1)),
    ("s", 0),
    ("s", dt.datetime(1, 1, 1, tzinfo=EAST)),
]


@pytest.mark.parametrize(("column", "given"), REFUSED, ids=lambda value: str(value)[:12])
def test_nothing_else_converts(site, column, given):
    with pytest.raises(ev.DataError) as caught:
        site.insert("v", [{}, {column: given}])
    error = caught.value
    assert (error.relation, error.column) == ("v", column)
    assert repr(error.value) == repr(given)
    assert error.expected
    assert site.rows("v") == []
    if column != "n" or not Decimal(given).is_finite() or isinstance(given, (bool, float, str)):
        # A comparison takes any DECIMAL; of all others a parameter is checked like a cell.
        with pytest.raises(ev.DataError):
            site.query(f"SELECT 1 AS one FROM v WHERE {column} = ?", [given])


def test_long_decimals(site):
    top = Decimal("9" * 28 + "." + "9" * 10)
    values = [top.copy_negate(), Decimal("-1E-10"), Decimal("0E-10"), Decimal("1E-10"), top]
    site.insert("long", [(value,) for value in values])
    assert [row[0] for row in site.rows("long")] == values
    with pytest.raises(ev.DataError):
        site.insert("long", [(10**28,)])

"""Rows out of a site: as HTML in a notebook, as Arrow, as pandas."""

import datetime as dt
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest

import everview as ev
from everview.tables.html import tree
from everview.tables.table import SHOWN_ROWS

EVERYTHING = """
    CREATE TABLE every (
        n BIGINT NOT NULL, d DOUBLE, m DECIMAL(10,2), b BOOLEAN, t TEXT, x BLOB, day DATE, at TIMESTAMP
    );
    CREATE MATERIALIZED VIEW some AS SELECT n, t FROM every WHERE b;
"""
NOON = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
FULL = (2**62 + 1, float("nan"), Decimal("1.50"), True, "<b>&'\"", b"\0\xff", dt.date(2026, 6, 1), NOON)
EMPTY = (7, None, None, None, None, None, None, None)


@pytest.fixture
def site(open_site):
    site = open_site(EVERYTHING, name="lab <1>")
    site.insert("every", [FULL, EMPTY])
    return site


def parsed(html):
    """The HTML as a tree: it is well formed, and nothing of a value has become part of it."""
    return ET.fromstring(f"<div>{html}</div>")


def cells(html):
    found = parsed(html)
    return [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]


def test_a_table_is_the_rows_of_a_view_a_relation_or_a_query(site):
    assert site.table("every").rows == site.rows("every")
    some = site.table("some")
    assert (some.name, some.columns, list(some), len(some), some[0]) == (
        "some",
        ("n", "t"),
        [(FULL[0], FULL[4])],
        1,
        (FULL[0], FULL[4]),
    )
    asked = site.table("SELECT t AS text, n FROM some WHERE n > ?", [1])
    assert (asked.name, asked.columns, asked.rows) == ("", ("text", "n"), [(FULL[4], FULL[0])])
    assert repr(some) == "<Table of some: 1 row, n BIGINT NOT NULL, t TEXT>"


def test_what_there_is_not_is_said(site, open_site):
    with pytest.raises(ev.DataError, match="there is no relation or view nosuch"):
        site.table("nosuch")
    with pytest.raises(ev.DataError, match="takes a SELECT"):
        site.table("DELETE FROM every")
    with pytest.raises(ev.ProgramError, match="two columns n"):
        site.table("SELECT n, n FROM every")
    part = open_site(EVERYTHING, hosts={"some"})
    with pytest.raises(ev.DataError, match="every is not hosted here"):
        part.table("every")


def test_arrow_has_the_same_types_and_values(site):
    table = site.table("every").arrow()
    assert table.schema == pa.schema(
        [
            pa.field("n", pa.int64(), nullable=False),
            ("d", pa.float64()),
            ("m", pa.decimal128(10, 2)),
            ("b", pa.bool_()),
            ("t", pa.string()),
            ("x", pa.binary()),
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
        ]
    )
    empty, full = (tuple(row.values()) for row in table.to_pylist())
    assert empty == EMPTY
    assert full[1] != full[1]  # NaN, and no NULL
    assert (full[0], *full[2:]) == (FULL[0], *FULL[2:])
    site.delete("every", [FULL, EMPTY])
    assert site.table("every").arrow().schema == table.schema


def test_pandas_keeps_whole_numbers_and_tells_null_from_nan(site):
    frame = site.table("every").pandas()
    assert list(frame.columns) == ["n", "d", "m", "b", "t", "x", "day", "at"]
    assert [str(kind) for kind in frame.dtypes[["n", "d", "b"]]] == ["Int64", "Float64", "boolean"]
    assert frame["n"].tolist() == [7, 2**62 + 1]
    assert frame["d"].isna().iloc[0]
    assert frame["d"].array._mask.tolist() == [True, False]  # the second is a NaN that is there
    assert frame["b"].iloc[0] is pd.NA
    assert frame["m"].iloc[1] == Decimal("1.50")
    assert frame["day"].iloc[1] == dt.date(2026, 6, 1)
    assert frame["at"].iloc[1] == pd.Timestamp(NOON)
    site.insert("every", [(8, 1.5, None, False, "x", None, None, None)])
    site.delete("every", [EMPTY])
    assert [str(kind) for kind in site.table("every").pandas().dtypes[["n", "d", "b"]]] == [
        "Int64",
        "Float64",
        "boolean",
    ]


@pytest.mark.parametrize(("method", "missing"), [("arrow", "pyarrow"), ("pandas", "pandas")])
def test_without_the_extra_it_says_what_to_install(method, missing):
    script = (
        f"import sys; sys.modules[{missing!r}] = None; import everview as ev;"
        "site = ev.Site.open(':memory:', ev.Program.parse('CREATE TABLE r (n BIGINT)'));"
        f"site.insert('r', [(1,)]); table = site.table('r'); print(table.rows); table.{method}()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "[(1,)]\n"
    last = done.stderr.splitlines()[-1]
    assert last.endswith(
        f"MissingDependencyError: table.{method}() needs {missing}: "
        "pip install 'everview[notebook]'; table.rows does without"
    )


def test_a_table_in_a_notebook(site):
    html = site.table("every")._repr_html_()
    header, empty, full = cells(html)
    assert header == ["n", "d", "m", "b", "t", "x", "day", "at"]
    assert empty == ["7", *["NULL"] * 7]
    assert full == [
        str(FULL[0]),
        "NaN",
        "1.50",
        "true",
        "<b>&'\"",
        "00ff",
        "2026-06-01",
        "2026-06-01T12:00:00Z",
    ]
    assert "<b>" not in html
    assert html.endswith("<p><small>2 rows</small></p>")


def test_a_long_table_says_how_much_it_leaves_out(open_site):
    site = open_site("CREATE TABLE r (n BIGINT);")
    site.insert("r", [(n,) for n in range(SHOWN_ROWS + 5)])
    html = site.table("r")._repr_html_()
    assert len(cells(html)) == SHOWN_ROWS + 1
    assert "25 rows; 5 more" in html


def test_names_are_escaped_too(open_site):
    site = open_site('CREATE TABLE r ("<i>" BIGINT);', name="<script>")
    site.insert("r", [(1,)])
    for html in (site._repr_html_(), site.table("r")._repr_html_(), site.why("r", (1,))._repr_html_()):
        parsed(html)
        assert not re.search("<i>|<script>", html)


def test_a_site_in_a_notebook(site):
    html = site._repr_html_()
    assert "lab &lt;1&gt; at :memory:" in html
    header, every, some = cells(html)
    assert header == ["", "name", "rows", "columns"]
    assert every[:3] == ["relation", "every", "2"]
    assert every[3].startswith("n BIGINT NOT NULL, d DOUBLE")
    assert some == ["view", "some", "1", "n BIGINT NOT NULL, t TEXT"]
    with site.transaction():
        site.insert("every", [(9, *EMPTY[1:])])
        assert cells(site._repr_html_())[1][2] == "3"


def test_provenance_in_a_notebook(site):
    html = site.why("some", (FULL[0], FULL[4]))._repr_html_()
    assert parsed(html)[0].find("strong").text == "t1"
    (_, (label, relation, row, origin)) = cells(html)
    assert (label, relation, origin) == ("t1", "every", "lab <1>")
    assert row.startswith(f"n={FULL[0]}, d=NaN, m=1.50, b=true, t=<b>&'\"")
    absent = site.why("some", (1, "x"))._repr_html_()
    assert "there is no such row" in absent


def test_a_proof_in_a_notebook(open_site):
    site = open_site("""
        CREATE TABLE link (a TEXT, b TEXT);
        CREATE MATERIALIZED VIEW reach AS
            WITH RECURSIVE t(a, b) AS (
                SELECT a, b FROM link UNION SELECT t.a, link.b FROM t JOIN link ON t.b = link.a
            ) SELECT a, b FROM t;
    """)
    site.insert("link", [("<i>", "b"), ("b", "c")])
    why = site.why("reach", ("<i>", "c"))
    lists = parsed(why._repr_html_()).findall("ul")
    texts = [item.text for item in lists[0].iter("li")]
    assert texts == ["reach(<i>, c)", "t(<i>, b)", "link(<i>, b)", "link(b, c)"]


def test_a_tree_is_as_deep_as_its_lines():
    made = parsed(tree([(0, "a"), (1, "b"), (2, "c"), (1, "d"), (0, "e")]))
    outer = made.find("ul")
    assert [item.text for item in outer] == ["a", "e"]
    assert [item.text for item in outer[0].find("ul")] == ["b", "d"]
    assert outer[0].find("ul")[0].find("ul")[0].text == "c"

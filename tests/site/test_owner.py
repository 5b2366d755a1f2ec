"""Rows that only their owner writes: checked at the door, and against what is there."""

import pytest

import everview as ev

PROGRAM = """
CREATE TABLE s (site TEXT, a BIGINT) WITH (owner = 'site');
CREATE TABLE k (id BIGINT PRIMARY KEY, site TEXT, n BIGINT) WITH (owner = 'site');
CREATE TABLE bag (site TEXT, a BIGINT) WITH (owner = 'site', semantics = 'bag');
CREATE MATERIALIZED VIEW n AS SELECT site, count(*) AS n FROM k GROUP BY site;
"""


@pytest.fixture
def site(open_site):
    return open_site(PROGRAM, name="s0")


@pytest.mark.parametrize("name", ["s", "bag"])
def test_only_rows_that_name_this_site_are_written(site, name):
    assert site.insert(name, [("s0", 1)]) == 1
    for write in (site.insert, site.delete):
        for row in [("s1", 1), (None, 1)]:
            with pytest.raises(ev.DataError) as caught:
                write(name, [("s0", 2), row])
            assert (caught.value.relation, caught.value.column) == (name, "site")
            assert caught.value.value == row[0]
    with pytest.raises(ev.DataError):
        site.execute(f"UPDATE {name} SET site = 's1'")
    with pytest.raises(ev.DataError):
        site.execute(f"INSERT INTO {name} VALUES ('s1', 1)")
    assert site.rows(name) == [("s0", 1)]
    assert site.delete(name, [("s0", 1)]) == 1


def test_a_keyed_row_of_this_site_is_deleted_by_key(site):
    site.insert("k", [(1, "s0", 1), (2, "s0", 2), (3, "s0", 3)])
    assert site.delete("k", [(1,), (2, "s0", 2)]) == 2
    assert site.execute("DELETE FROM k") == 1


def test_a_keyed_row_of_another_site_stays(open_site, tmp_path):
    """The file is opened under another name, so that there are rows which are not its own."""
    open_site(PROGRAM, tmp_path / "k.db", name="s1").insert("k", [(1, "s1", 1)])
    site = open_site(None, tmp_path / "k.db", name="s0")
    site.insert("k", [(2, "s0", 2)])
    for write in (
        lambda: site.insert("k", [(3, "s0", 3), (1, "s0", 1)]),
        lambda: site.delete("k", [(2,), (1,)]),
        lambda: site.delete("k", [(1, "s0", 1)]),
        lambda: site.execute("DELETE FROM k"),
        lambda: site.execute("UPDATE k SET n = 0"),
        lambda: site.execute("UPDATE k SET id = 1 WHERE id = 2"),
    ):
        with pytest.raises(ev.DataError) as caught:
            write()
        assert (caught.value.column, caught.value.value) == ("site", "s1")
        assert site.rows("k") == [(1, "s1", 1), (2, "s0", 2)]
        assert site.rows("n") == [("s0", 1), ("s1", 1)]

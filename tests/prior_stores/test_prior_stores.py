"""Every store of a prior format still opens: its rows are there, its views fresh, and work goes on."""

import shutil
from pathlib import Path

import pytest
from tests.prior_stores.create import VIEWS, fill
from tests.site.checks import assert_fresh

import everview as ev
from everview.engines.sqlite.migrations import FORMAT

STORES = sorted(Path(__file__).parent.glob("*.db"))
RECEIVED = sorted(Path(__file__).parent.glob("received/format_?.db"))


def test_there_is_one_of_every_format():
    assert [path.stem for path in STORES] == [f"format_{number}" for number in range(1, FORMAT + 1)]
    assert [path.stem for path in RECEIVED] == [f"format_{number}" for number in range(2, FORMAT + 1)]


@pytest.mark.parametrize("stored", STORES, ids=lambda path: path.stem)
def test_it_still_opens(stored, tmp_path):
    path = shutil.copy(stored, tmp_path / "site.db")
    with ev.Site.open(path) as site:
        lines = [f"{name}: {site.rows(name)!r}" for name in site.program.names()]
        assert lines == stored.with_suffix(".rows.txt").read_text(encoding="utf-8").splitlines()
        assert site.name == "old"
        assert_fresh(site)
        site.execute("UPDATE reading SET value = 3.5 WHERE sensor = 'b'")
        site.execute("DELETE FROM click WHERE n = 1")
        fill(site)
        assert_fresh(site)
    with ev.Site.open(path) as site:
        assert_fresh(site)


@pytest.mark.parametrize("stored", RECEIVED, ids=lambda path: path.stem)
def test_views_without_their_relations_go_on_as_well(stored, tmp_path):
    viewer_path = shutil.copy(stored, tmp_path / "viewer.db")
    holder_path = shutil.copy(stored.with_name(f"{stored.stem}_sender.db"), tmp_path / "holder.db")
    with ev.Site.open(viewer_path) as viewer, ev.Site.open(holder_path) as holder:
        names = [name for name in viewer.program.names() if name in VIEWS]
        lines = [f"{name}: {viewer.rows(name)!r}" for name in names]
        assert lines == stored.with_suffix(".rows.txt").read_text(encoding="utf-8").splitlines()
        for name in names:  # before they meet: then a copy takes a new incarnation, and its views start empty
            row = viewer.rows(name)[0]
            assert viewer.why(name, row) == holder.why(name, row)
        for change in (
            "DELETE FROM reading WHERE sensor = 'a'",
            "UPDATE sensor SET place = 'attic' WHERE id = 'b'",
            "DELETE FROM tag",
        ):
            holder.execute(change)
            viewer.sync(holder)
            assert {name: viewer.rows(name) for name in names} == {name: holder.rows(name) for name in names}
        fill(holder)
        viewer.sync(holder)
        assert {name: viewer.rows(name) for name in names} == {name: holder.rows(name) for name in names}
        third = ev.Site.open(":memory:", viewer.program, hosts=VIEWS)
        third.sync(viewer)
        assert {name: third.rows(name) for name in names} == {name: holder.rows(name) for name in names}
        third.close()

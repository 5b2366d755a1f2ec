"""Every store of a prior format still opens: its rows are there, its views fresh, and work goes on."""

import shutil
from pathlib import Path

import pytest
from tests.prior_stores.create import fill
from tests.site.checks import assert_fresh

import everview as ev
from everview.engines.sqlite.migrations import FORMAT

STORES = sorted(Path(__file__).parent.glob("*.db"))


def test_there_is_one_of_every_format():
    assert [path.stem for path in STORES] == [f"format_{number}" for number in range(1, FORMAT + 1)]


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

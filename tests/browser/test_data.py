"""Rows, plans, provenance and what would vanish, on a served site that drones write to over HTTP."""

import json
import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import go
from tests.browser.reading import as_shown, cells, difference, turned

from everview import Site


def test_relations_and_views_with_their_rows(mission, browse):
    page = browse(mission.console + "#/data")
    expect(page.locator(".item")).to_have_count(10)
    go(page, "#/data/sector")
    expect(page.locator("h1")).to_have_text("sector")
    expect(page.locator("#rows-count")).to_have_text("6 rows")
    assert cells(page)[:3] == [
        ("1", "Ridge", "alpha"),
        ("2", "Old mill", "beta"),
        ("3", "North lake", "NULL"),
    ]
    go(page, "#/data/note")
    expect(page.locator("#rows-count")).to_have_text("3 rows (1 different)")
    assert cells(page) == [("radio check", "× 3")]
    go(page, "#/data/nowhere")
    expect(page.locator(".empty-title")).to_have_text("There is no nowhere here")


def test_rows_are_live(mission, browse):
    page = browse(mission.console + "#/data/busy")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    before = cells(page)
    assert not page.locator("tr.fresh").count()
    mission.sees(1, ("drone-1", 77, "trees"))
    expect(page.locator("tr[data-row]", has_text="77")).to_have_class("fresh")
    assert set(cells(page)) == {*before, ("77", "1")}
    expect(page.locator('[data-table="busy"] .item-count')).to_have_text(str(len(before) + 1))


def test_a_plan_and_what_the_last_commit_did_to_each_operator(mission, browse):
    page = browse(mission.console + "#/data/alert/plan")
    expect(page.locator("#plan-change")).to_contain_text("counted from now on")
    boxes = page.locator("g.box")
    expect(boxes).to_have_count(7)
    assert boxes.locator(".box-title").first.text_content() == "alert"
    expect(page.locator(".count")).to_have_count(0)
    mission.sees(2, ("drone-2", 6, "signal"), ("drone-2", 6, "trees"))
    expect(page.locator('[data-box="sighting"] .count')).to_have_text("+2")
    told = (
        "boxes => boxes.map(b => [b.dataset.box, [...b.querySelectorAll('.count')].map(c => c.textContent)])"
    )
    counts = dict(boxes.evaluate_all(told))
    for one in ("alert", "distinct", "project", "inner join", "filter"):
        assert counts[one] == ["+1"], one
    assert counts["sector"] == ["0"]
    expect(page.locator("#plan-change")).to_contain_text(re.compile(r"with commit \d+"))
    page.locator("summary").click()
    expect(page.locator("pre")).to_contain_text("alert is kept by a local circuit")
    go(page, "#/data/reachable/plan")
    expect(page.locator('[data-box="fixpoint"]')).to_be_visible()
    expect(page.locator("path.edge")).to_have_count(8)


def test_why_a_row_is_there_down_to_sites(mission, browse):
    page = browse(mission.console + "#/data/alert")
    page.locator("tr[data-row]", has_text="Old mill").click()
    expect(page.locator("#why h2")).to_have_text("Why is alert(2, Old mill, beta) there?")
    expect(page.locator("[data-node=row]")).to_have_count(1)
    with Site.open(mission.folder / "post.db") as post:
        found = post.why("alert", (2, "Old mill", "beta"))
    expect(page.locator("[data-node=way]")).to_have_count(len(found.monomials))
    expect(page.locator("[data-node=tuple]")).to_have_count(len(found.tuples()))
    sites = {node.text_content() for node in page.locator("[data-node=site] text").all()}
    assert sites == {witness.origin for witness in found.tuples()}
    assert "?row=" in page.url
    page.reload()  # a link to it can be kept
    expect(page.locator("#why h2")).to_be_visible()
    page.locator("#why button", has_text="Close").click()
    expect(page.locator("#why")).to_be_hidden()


def test_a_recursive_row_has_a_proof_down_to_sites(mission, browse):
    page = browse(mission.console + "#/data/reachable?row=" + '%5B"4"%2C"6"%5D')
    expect(page.locator("#why-sentence")).to_contain_text("One smallest proof")
    expect(page.locator("[data-node=tuple]")).to_have_count(2)
    expect(page.locator("[data-node=site]")).to_have_count(1)
    titles = [node.text_content() for node in page.locator("[data-node=way] .node-title").all()]
    assert titles.count("open_path") == 2


def test_a_row_that_is_gone(mission, browse):
    page = browse(mission.console + "#/data/alert?row=" + '%5B"99"%2C"Nowhere"%2Cnull%5D')
    expect(page.locator("#why .empty-title")).to_contain_text("not there")
    for nonsense in ("7", '["1"]', "[1,2,3]", "{", '{"a":1}'):
        go(page, f"#/data/alert?row={nonsense}")
        expect(page.locator("#why")).to_be_hidden()
        expect(page.locator("tr[data-row]").first).to_be_visible()


@pytest.mark.parametrize(
    ("view", "text", "tuple_text"),
    [("alert", "Quarry", "Quarry"), ("reachable", "1", "path"), ("busy", "3", "sighting")],
)
def test_what_would_vanish_is_what_vanishes(mission, browse, tmp_path, view, text, tuple_text):
    """The page's answer, against deleting the row in a copy of the store."""
    page = browse(mission.console + f"#/data/{view}")
    page.locator("tr[data-row]", has_text=text).first.click()
    node = page.locator("[data-node=tuple]", has_text=tuple_text).first
    with page.expect_request("**/without") as asked:
        node.click()
    expect(page.locator("#vanish-said")).to_be_visible()
    body = json.loads(asked.value.post_data)
    with Site.open(mission.folder / "post.db") as post:
        post.backup(tmp_path / "copy.db")
    with Site.restore(tmp_path / "copy.db", tmp_path / "trial.db") as trial:
        names = list(trial.program.names())
        before = {name: trial.rows(name) for name in names}
        kinds = [field.type.kind.value for field in trial.program.schema(body["relation"])]
        row = [int(cell) if kind == "BIGINT" else cell for cell, kind in zip(body["row"], kinds, strict=True)]
        assert trial.delete(body["relation"], [row]) == 1
        wanted = {
            name: difference(as_shown(before[name]), as_shown(trial.rows(name)))
            for name in names
            if before[name] != trial.rows(name)
        }
    assert turned(page) == wanted
    assert mission.server.poll() is None


def test_empty_states_help(mission, browse):
    page = browse(mission.console + "#/data/quiet")
    expect(page.locator(".empty-title").or_(page.locator("tr[data-row]")).first).to_be_visible()
    go(page, "#/refreshes")
    expect(page.locator(".empty-title")).to_have_text("A site has no refreshes")

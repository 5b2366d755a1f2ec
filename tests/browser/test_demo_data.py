"""The demo's program and terrain: windows that close, owners, recursion, a view of an authority."""

from importlib import resources

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import go, process

from everview import Program, Site
from everview.demo.terrain import DAWN, DRONES, ON_DRONES, STEP, paths, sectors, units

SEEN = (3, 6, 7, 11)


@pytest.fixture(scope="module")
def rescue(tmp_path_factory):
    """A command post that hosts everything, a drone that hosts no sectors; both served."""
    folder = tmp_path_factory.mktemp("rescue")
    text = resources.files("everview.demo").joinpath("rescue.sql").read_text()
    (folder / "rescue.sql").write_text(text)
    program = Program.parse(text)
    with (
        Site.open(folder / "post.db", program, name="post") as post,
        Site.open(folder / "drone-1.db", program, name=DRONES[0], hosts=ON_DRONES) as drone,
    ):
        post.insert("sectors", sectors())
        post.insert("paths", paths())
        post.insert("units", units())
        for _ in range(2):
            drone.sync(post)
        rows = [
            (DRONES[0], DAWN + n * STEP, sector, what)
            for sector in SEEN[:2]
            for n, what in enumerate(("tent", "torch", "scarf"))
        ]
        drone.insert("sightings", rows)
        for _ in range(2):
            drone.sync(post)
        assert {row[1] for row in drone.rows("orders")} == set(SEEN[:2])
    words = ["serve", "--port", "0", "--insecure", "--store"]
    with (
        process(*words, "post.db", cwd=folder) as (_, post_console),
        process(*words, "drone-1.db", cwd=folder) as (_, drone_console),
    ):
        yield post_console, drone_console


def test_the_post(rescue, browse):
    page = browse(rescue[0] + "#/map")
    expect(page.locator("[data-site=drone-1]")).to_be_visible()
    names = ["reachable", "seen", "priority", "orders", "flown", "sectors", "paths", "units", "sightings"]
    go(page, "#/data/orders")
    expect(page.locator(".item-name")).to_have_text([*names, "everview_late_sightings"])
    page.locator("tr[data-row]", has_text="Mill").first.click()
    expect(page.locator("[data-node=site]")).to_have_count(2)
    page.locator("[data-node=tuple]", has_text="sightings").first.click()  # another's row: only tried
    expect(page.locator("#vanish-said")).to_contain_text("This row would vanish")
    turned = {turn.inner_text().split()[0] for turn in page.locator(".turn h4").all()}
    assert turned == {"sightings", "seen", "priority", "orders"}
    page.locator("[data-node=tuple]", has_text="units").click()
    expect(page.locator("#vanish h3")).to_contain_text("units(")
    for view in names[:5]:
        go(page, f"#/data/{view}/plan")
        expect(page.locator("g.box, .empty-title, .trouble").first).to_be_visible()
        assert not page.locator(".trouble").count(), view
    go(page, "#/data/reachable")
    page.locator("tr[data-row]").last.click()
    expect(page.locator("#why-sentence")).to_contain_text("One smallest proof")
    expect(page.locator("[data-node=site]").first).to_be_visible()


def test_a_drone_that_has_no_row_of_sectors(rescue, browse):
    page = browse(rescue[1] + "#/data/orders", may=("409",))
    expect(page.locator("tr[data-row]").first).to_be_visible()
    page.locator("tr[data-row]").first.click()
    expect(page.locator("[data-node=site]").first).to_be_visible()
    page.locator("[data-node=tuple]", has_text="sectors").first.click()
    expect(page.locator("#vanish .trouble")).to_contain_text("ask at a site that hosts its relation")
    page.locator("[data-node=tuple]", has_text="sightings").first.click()  # of these it has the rows
    expect(page.locator("#vanish-said")).to_contain_text("This row would vanish")
    go(page, "#/data/orders/plan")
    expect(page.locator("g.box").first).to_be_visible()
    page.locator("summary").click()
    expect(page.locator("pre")).to_contain_text("orders")

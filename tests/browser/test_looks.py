"""Keyboard only, phones, light and dark, on what the demo leaves; and pictures to be looked at.

With EVERVIEW_SHOTS=FOLDER the pictures are kept there.
"""

import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import go

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.timeout(900)]

SHOTS = os.environ.get("EVERVIEW_SHOTS", "")
if SHOTS:
    Path(SHOTS).mkdir(exist_ok=True)

PAGES = {
    "map": ("post", "#/map", "#verdict"),
    "rows": ("post", "#/data/sightings", "tr[data-row]"),
    "plan": ("post", "#/data/orders/plan", "g.box"),
    "why": ("post", "#/data/orders?row=", "[data-node=site]"),
    "proof": ("post", '#/data/reachable?row=["11"]', "[data-node=site]"),
    "site-refreshes": ("post", "#/refreshes", ".empty-title"),
    "hub-map": ("hub", "#/map", "#verdict"),
    "refreshes": ("hub", "#/refreshes", "[data-refresh]"),
    "hub-plan": ("hub", "#/data/priority/plan", "g.box"),
    "hub-why": ("hub", "#/data/orders?row=", "[data-node=site]"),
    "drone-plan": ("drone-4", "#/data/orders/plan", "g.box"),
}


@pytest.fixture(scope="module")
def reported(demo):
    """The hub has had something to take in since it is served."""
    demo.sees("drone-2", 4, "rope", "tent")
    demo.report()
    return demo


def path_of(demo, name):
    """Where a page is; of an order that many base rows stand for, its row."""
    site, path, _ = PAGES[name]
    if not path.endswith("row="):
        return path
    order = max(demo.rows(site if site != "hub" else "post")["orders"], key=lambda row: row[3])
    return path + quote(json.dumps([str(value) for value in order]))


def test_keyboard_only(demo, browse):
    page = browse(demo.console("post"))
    expect(page.locator("#verdict")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("reachable")
    page.keyboard.press("Tab")  # to the link that skips, then the tabs, the list, …
    focused = []
    for _ in range(40):
        focused.append(
            page.evaluate("document.activeElement.dataset.table ?? document.activeElement.tagName")
        )
        if focused[-1] == "orders":
            break
        page.keyboard.press("Tab")
    assert focused[-1] == "orders", focused
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("orders")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    for _ in range(40):
        if page.evaluate("document.activeElement.dataset.row !== undefined"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    row = page.evaluate("document.activeElement.dataset.row")
    assert row == page.locator("tr[data-row]").nth(1).get_attribute("data-row")
    page.keyboard.press("Enter")
    expect(page.locator("#why h2")).to_be_focused()
    expect(page.locator("[data-node=site]").first).to_be_visible()
    for _ in range(10):
        if page.evaluate("document.activeElement.dataset.node === 'tuple'"):
            break
        page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement.querySelector('rect')).strokeWidth")
    assert outline == "3px"
    page.keyboard.press("Enter")
    expect(page.locator("#vanish-said")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#why")).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.row") == row  # back where it was
    page.keyboard.press("3")
    expect(page.locator("h1")).to_have_text("Refreshes")
    page.go_back()
    expect(page.locator("h1")).to_have_text("orders")


READABLE = "h1, h2, p, a, th, td, button, summary, .item-count, .chip, .live, dt, dd"
CONTRAST = """words => {
    const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = (colour) => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data];
    };
    const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    const parts = [0.2126, 0.7152, 0.0722];
    const light = (found) => parts.reduce((sum, part, at) => sum + part * linear(found[at] / 255), 0);
    const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const found = rgb(getComputedStyle(one).backgroundColor);
            if (found[3] > 250) return found;
        }
        return [255, 255, 255, 255];
    };
    const shown = (one) => one.offsetParent && one.textContent.trim();
    const seen = (one) => shown(one) && !one.disabled && one.className !== "null";
    const contrast = (one) => {
        const [ink, paper] = [light(rgb(getComputedStyle(one).color)), light(behind(one))];
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    };
    return [...document.querySelectorAll(words)].filter(seen).filter(one => contrast(one) < 4.5)
        .map(one => [one.tagName, one.className, one.textContent.trim().slice(0, 30), contrast(one)]);
}"""


SMALL = """[...document.querySelectorAll('button, .tabs a, .item')].filter(e => e.offsetParent)
    .map(e => e.getBoundingClientRect().height).filter(height => height < 28)"""


@pytest.mark.parametrize("kind", ["light", "dark", "phone", "phone-dark"])
def test_every_page_is_readable(reported, browse, kind):
    """Light and dark, on a screen and on a phone, which never has to be scrolled sideways as a whole.

    Pictures are not compared: people look at them, and some are kept in docs/.
    """
    phone, dark = kind.startswith("phone"), kind.endswith("dark")
    width, height = (360, 740) if phone else (1360, 880)
    pages = {
        site: browse(reported.console(site), width=width, height=height, dark=dark)
        for site in ("post", "hub", "drone-4")
    }
    for name, (site, _, there) in PAGES.items():
        page = pages[site]
        go(page, path_of(reported, name))
        expect(page.locator(there).first).to_be_visible(timeout=60_000)
        assert page.evaluate(CONTRAST, READABLE) == [], name
        if there == "g.box":
            view = page.locator(there).first.bounding_box()  # in sight, however wide the plan below it is
            assert view["x"] >= 0
            assert view["x"] + view["width"] <= width, name
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(17, 22, 20)") is dark
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if phone:
            assert page.evaluate(SMALL) == [], name
            assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 16
        if name.endswith("why"):
            page.locator("[data-node=tuple]", has_text="sightings").first.click()
            expect(page.locator("#vanish-said")).to_be_visible(timeout=60_000)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        if SHOTS:
            picture(reported, page, name, kind)


def picture(demo, page, name, kind):
    """With something to show in it."""
    if name == "map":
        demo.gather()
    if name == "plan":
        demo.sees("drone-3", 2, "boot", "rope", "tent", "flare")
        expect(page.locator('[data-box="priority"] .count').first).to_be_visible()
    if name == "refreshes":
        page.locator("[data-refresh] summary").first.click()
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(5, 5)
    if name.endswith("why"):
        clip = page.locator("#vanish").bounding_box()
        page.screenshot(path=Path(SHOTS) / f"console-{name}-vanish-{kind}.png", full_page=True, clip=clip)
    whole = kind.startswith("phone") or name == "proof"
    page.screenshot(path=Path(SHOTS) / f"console-{name}-{kind}.png", full_page=whole)

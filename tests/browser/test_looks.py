"""Keyboard only, phones, light and dark; and pictures to be looked at, in the folder EVERVIEW_SHOTS."""

import itertools
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Mission, go
from tests.browser.processes import process

PAGES = {
    "map": ("#/map", "#verdict"),
    "rows": ("#/data/sighting", "tr[data-row]"),
    "plan": ("#/data/alert/plan", "g.box"),
    "why": ('#/data/alert?row=["2","Old mill","beta"]', "[data-node=site]"),
    "refreshes": ("#/refreshes", ".empty-title"),
}


def test_keyboard_only(mission, browse):
    page = browse(mission.console)
    expect(page.locator("#verdict")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator("h1")).to_have_text("open_path")
    page.keyboard.press("Tab")  # to the link that skips, then the tabs, the list, …
    focused = []
    for _ in range(40):
        focused.append(
            page.evaluate("document.activeElement.dataset.table ?? document.activeElement.tagName")
        )
        if focused[-1] == "alert":
            break
        page.keyboard.press("Tab")
    assert focused[-1] == "alert", focused
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("alert")
    for _ in range(40):
        if page.evaluate("document.activeElement.dataset.row !== undefined"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    row = page.evaluate("document.activeElement.dataset.row")
    assert "Old mill" in row
    page.keyboard.press("Enter")
    expect(page.locator("#why h2")).to_be_focused()
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
    expect(page.locator("h1")).to_have_text("alert")


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_it_without_scrolling_sideways(mission, browse, name):
    path, there = PAGES[name]
    page = browse(mission.console + path, width=360, height=740)
    expect(page.locator(there).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    small = page.evaluate(
        "[...document.querySelectorAll('button, .tabs a, .item')].filter(e => e.offsetParent)"
        ".map(e => e.getBoundingClientRect().height).filter(height => height < 28)"
    )
    assert small == []
    assert page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)") >= 16


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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_light_and_dark_are_readable(mission, browse, dark):
    page = browse(mission.console, dark=dark)
    for path, there in PAGES.values():
        go(page, path)
        expect(page.locator(there).first).to_be_visible()
        assert page.evaluate(CONTRAST, READABLE) == [], path
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(17, 22, 20)") is dark


def test_pictures(browse, tmp_path):
    """Not compared by this test: people look at them, and some are kept in docs/."""
    folder = Path(os.environ.get("EVERVIEW_SHOTS", tmp_path))
    folder.mkdir(exist_ok=True)
    mission, flights = Mission(tmp_path), itertools.count()
    with process("serve", "--store", "post.db", "--port", "0", "--insecure", cwd=tmp_path) as (_, console):
        mission.console = console
        mission.sync(1, 2, 3)
        for kind, width, height in (("dark", 1360, 880), ("light", 1360, 880), ("phone", 390, 844)):
            page = browse(console, width=width, height=height, dark=kind == "dark")
            for name, (path, there) in PAGES.items():
                go(page, path)
                expect(page.locator(there).first).to_be_visible()
                if name == "plan":  # with something to show in it
                    mission.sees(3, *((f"drone-3.{next(flights)}", 6, what) for what in ("signal", "trees")))
                    expect(page.locator('[data-box="sighting"] .count')).to_have_text("+2")
                if name == "why":
                    page.locator("[data-node=tuple]").first.click()
                    expect(page.locator("#vanish-said")).to_be_visible()
                    page.evaluate("scrollTo(0, 0)")
                    page.mouse.move(5, 5)
                file = folder / f"console-{name}-{kind}.png"
                page.screenshot(path=file, full_page=kind == "phone")
                assert file.stat().st_size > 5_000
            page.context.close()

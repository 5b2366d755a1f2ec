"""A hub on Spark that sites push to: its refreshes with stage times, its plans, rows and provenance."""

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import PATIENCE_MS, Mission, go, process


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    mission = Mission(tmp_path_factory.mktemp("hub"))
    words = [
        "hub",
        "--store",
        "hub",
        "--program",
        "rescue.sql",
        "--master",
        "local[2]",
        "--port",
        "0",
        "--insecure",
    ]
    with process(*words, "--allow-write", cwd=mission.folder) as (_, console):
        mission.console = console
        yield mission


@pytest.mark.timeout(200)
def test_a_hub(hub, browse):
    page = browse(hub.console + "#/refreshes")
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    try:
        expect(page.locator(".empty-title")).to_have_text("No refresh has taken anything in yet")
        hub.sync(1, 2)
        refresh = page.locator("[data-refresh]")
        expect(refresh.first).to_be_visible()
        expect(refresh.first.locator(".stage-compute").first).to_be_attached()
        refresh.first.locator("summary").click()
        expect(refresh.first).to_contain_text(re.compile(r"compute.*\d (ms|s)"))
        expect(refresh.first).to_contain_text("sighting")
        expect(page.locator(".facts")).to_contain_text("running")
        go(page, "#/data/busy")
        expect(page.locator("tr[data-row]").first).to_be_visible()
        go(page, "#/data/busy/plan")
        expect(page.locator('[data-box="busy"] .count').first).to_be_visible()
        expect(page.locator("#plan-change")).to_contain_text("with refresh")
        go(page, "#/data/busy")
        page.locator("tr[data-row]").first.click()
        expect(page.locator("[data-node=site]").first).to_be_visible()
        page.locator("[data-node=tuple]").first.click()
        expect(page.locator("#vanish-said")).to_contain_text("This row would vanish")
        go(page, "#/data/note")
        page.locator("#insert").click()
        page.locator("#field-0").fill("from the console")
        page.keyboard.press("Enter")
        expect(page.locator("tr[data-row]", has_text="from the console")).to_be_visible()  # after a refresh
        go(page, "#/map")
        expect(page.locator("g.site-self")).to_contain_text("this hub")
        expect(page.locator("g.site")).to_have_count(3)
    finally:
        expect.set_options(timeout=PATIENCE_MS)

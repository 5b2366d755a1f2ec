"""The map of sites with lag and liveness, and whether any differs."""

import itertools
import json

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import Mission, go
from tests.browser.processes import process


def test_the_map_and_that_none_differs(mission, browse):
    page = browse(mission.console + "#/map")
    expect(page.locator("g.site")).to_have_count(4)
    assert page.locator("g.site-self .site-name").text_content() == "command-post"
    for _ in range(3):  # what each has got is known here when it comes again
        mission.sync(1, 2, 3)
    expect(page.locator("[data-member=drone-3] td").nth(1)).to_have_text("has everything")
    expect(page.locator("#verdict")).to_contain_text("No site is known to differ")
    expect(page.locator("g.lag")).to_have_count(0)
    expect(page.locator("g.site-fresh")).to_have_count(3)
    mission.sees(3, ("drone-3", 5, "trees"))
    expect(page.locator("[data-member=drone-1] td").nth(1)).to_have_text("1 commit behind")
    expect(page.locator("g.lag").first).to_be_visible()


@pytest.mark.parametrize("width", [1320, 700])
def test_however_many_sites_there_are_none_is_drawn_over_another(mission, browse, width):
    page = browse(mission.console + "#/map", width=width)
    expect(page.locator("g.site").first).to_be_visible()
    one = page.evaluate("fetch('/v1/console/sites').then(answer => answer.json())")
    told = {}
    page.route("**/v1/console/sites", lambda route: route.fulfill(body=told["sites"]))
    for number in (1, 2, 3, 5, 8, 9, 10, 13, 17, 20, 30):
        some = [
            one["sites"][0] | {"incarnation": f"{at:016}", "name": f"drone-{at}", "lag": 12}
            for at in range(number)
        ]
        told["sites"] = json.dumps(one | {"sites": some, "all_sites": number})
        page.reload()
        expect(page.locator("[data-member]")).to_have_count(number)
        boxes = page.locator("g.site rect").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(b => [b.left, b.top, b.right, b.bottom])"
        )
        assert len(boxes) == 1 + min(number, 20)
        over = [
            (a, b)
            for a, b in itertools.combinations(boxes, 2)
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        ]
        assert over == [], number
        assert all(left >= 0 and right <= width for left, _, right, _ in boxes)


def test_a_site_that_has_met_nobody(browse, tmp_path):
    found = Mission(tmp_path)
    with process("serve", "--store", "post.db", "--port", "0", "--insecure", cwd=tmp_path) as (_, console):
        page = browse(console)
        expect(page.locator(".empty-title")).to_have_text("command-post has met no other site")
        expect(page.locator("#main code")).to_contain_text("everview sync")
        go(page, "#/data/busy")
        expect(page.locator(".empty-title")).to_have_text("busy has no rows")
        expect(page.locator("#main")).to_contain_text("It is made from sighting")
        found.console = console
        found.sync(1)
        go(page, "#/map")
        expect(page.locator("[data-site=drone-1]")).to_be_visible()
        page.context.close()


def test_a_server_that_goes_and_comes_back(browse, tmp_path):
    Mission(tmp_path)
    words = ["serve", "--store", "post.db", "--insecure", "--port"]
    with process(*words, "0", cwd=tmp_path) as (_, console):
        page = browse(console + "#/data/sector", may=("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_"))
        expect(page.locator("#rows-count")).to_have_text("6 rows")
    expect(page.locator("#banner")).to_contain_text("The server does not answer")
    expect(page.locator("#live")).to_have_text("no answer")
    expect(page.locator("#rows-count")).to_have_text("6 rows")  # what was shown stays
    port = console.rpartition(":")[2].split("/")[0]
    with process(*words, port, cwd=tmp_path):
        expect(page.locator("#live")).to_contain_text("live")
        expect(page.locator("#banner")).to_be_hidden()
        page.context.close()

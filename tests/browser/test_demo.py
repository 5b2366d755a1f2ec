"""Every function of the console on what the demo leaves: its sites, served by the commands that it prints.

Windows that close, owners, recursion, views that are hosted without their relations, one that the hub
publishes. What the page says is compared with the stores, and with what plain SQLite makes of their rows.
"""

import ipaddress
import json
import re
import subprocess
import sys

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import go
from tests.browser.reading import as_shown, cells, difference, turned
from tests.browser.sockets import sockets_of

from everview.console.cells import row_of
from everview.demo.terrain import DRONES, RELATIONS, TEAMS, VIEWS

pytestmark = [pytest.mark.xdist_group("demo"), pytest.mark.timeout(900)]

LISTED = [*VIEWS, *RELATIONS, "everview_late_sightings"]


def test_what_the_demo_prints_can_be_typed(demo):
    words = [words for words in demo.commands if words[0] not in ("serve", "hub")]
    assert [one[0] for one in words] == ["query", "why", "explain", "status"]
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "everview", *one],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for one in words
    ]
    for one, process in zip(words, begun, strict=True):
        told, wrong = process.communicate()
        assert (process.returncode, wrong) == (0, ""), one
        assert len(told.splitlines()) > 1


def test_the_map_with_lag(demo, browse):
    page = browse(demo.console("post") + "#/map")
    expect(page.locator("g.site")).to_have_count(9)
    assert page.locator("g.site-self .site-name").text_content() == "post"
    demo.gather()
    for name in (*DRONES, *TEAMS):
        expect(page.locator(f"[data-member={name}] td").nth(1)).to_have_text("has everything")
        expect(page.locator(f"[data-site={name}]")).to_have_class("site site-fresh")
    expect(page.locator("[data-member=hub] td").nth(3)).to_contain_text(
        "dialled from here, http://127.0.0.1:"
    )
    expect(page.locator("[data-member=drone-4] td").nth(3)).to_have_text("comes here")
    expect(page.locator("[data-member=drone-4] td").last).to_contain_text("sightings")
    demo.report()
    demo.gather()
    expect(page.locator("#verdict")).to_contain_text("No site is known to differ")
    expect(page.locator("g.lag")).to_have_count(0)
    demo.sees("drone-3", 3, "boot")
    for name in ("team-1", "drone-1"):
        expect(page.locator(f"[data-member={name}] td").nth(1)).to_have_text("1 commit behind")
    expect(page.locator("[data-member=drone-3] td").nth(1)).to_have_text("has everything")  # it wrote it
    expect(page.locator("g.lag").first).to_have_text("−1")


def test_relations_and_views_with_their_rows(demo, browse):
    page = browse(demo.console("post") + "#/data")
    expect(page.locator(".item-name")).to_have_text(LISTED)
    kept, plain = demo.rows(), demo.recomputed()
    for name in LISTED:
        expect(page.locator(f"[data-table={name}] .item-count")).to_have_text(str(len(kept[name])))
        go(page, f"#/data/{name}")
        expect(page.locator("h1")).to_have_text(name)
        expect(page.locator("tr[data-row]").first.or_(page.locator(".detail .empty-title"))).to_be_visible()
        assert cells(page) == as_shown(kept[name]), name
        if name in VIEWS and name != "flown":  # that one is the hub's, as of when they last met
            shown = [row[:3] for row in cells(page)] if name == "seen" else cells(page)
            assert sorted(shown) == sorted(map(texts, plain[name])), name


def test_rows_are_live_as_drones_report(demo, browse):
    page = browse(demo.console("post") + "#/data/priority")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    before = cells(page)
    assert not page.locator("tr.fresh").count()
    demo.sees("drone-1", 5, "boot", "rope", "tent", "flare")
    expect(page.locator("tr[data-row]", has_text="Birch Wood")).to_have_class("fresh")
    assert set(cells(page)) == {*before, ("5", "Birch Wood", "4")}
    expect(page.locator("[data-table=priority] .item-count")).to_have_text(str(len(before) + 1))
    go(page, "#/data/seen")
    expect(page.locator("tr[data-row]", has_text="false")).not_to_have_count(
        0
    )  # not every drone has closed it


def test_plans_with_what_a_commit_did_to_each_operator(demo, browse):
    page = browse(demo.console("post") + "#/data/orders/plan")
    expect(page.locator("#plan-change")).to_contain_text("counted from now on")
    assert page.locator(".box-title").all_text_contents() == [
        *("orders", "project", "inner join", "inner join", "priority", "reachable", "filter", "units")
    ]
    expect(page.locator(".count")).to_have_count(0)
    before = demo.rows()
    demo.sees("drone-2", 9, "boot", "rope", "tent")
    expect(page.locator("#plan-change")).to_contain_text(re.compile(r"with commit \d+"))
    more = len(demo.rows()["orders"]) - len(before["orders"])
    assert more > 0
    told = (
        "boxes => boxes.map(b => [b.dataset.box, [...b.querySelectorAll('.count')].map(c => c.textContent)])"
    )
    assert page.locator("g.box").evaluate_all(told) == [
        ["orders", [f"+{more}"]],
        ["project", [f"+{more}"]],
        ["inner join", [f"+{more}"]],
        ["inner join", ["+1"]],
        ["priority", ["+1"]],
        ["reachable", ["0"]],
        ["filter", ["0"]],
        ["units", ["0"]],
    ]
    expect(page.locator("path.edge-moved")).to_have_count(4)
    page.locator("summary").click()
    expect(page.locator("pre")).to_contain_text("orders is kept by a local circuit")
    for view in VIEWS:
        go(page, f"#/data/{view}/plan")
        expect(page.locator(f'[data-box="{view}"]').first).to_be_visible()
        assert not page.locator(".trouble").count(), view
    expect(page.locator("g.box").last).to_contain_text("published by hub")


def test_why_a_row_is_there_down_to_base_rows_and_sites(demo, browse):
    page = browse(demo.console("post") + "#/data/orders")
    row = page.locator("tr[data-row]", has_text="Saddle").first
    asked = json.loads(row.get_attribute("data-row"))
    row.click()
    expect(page.locator("#why h2")).to_have_text(f"Why is orders({', '.join(asked)}) there?")
    expect(page.locator("[data-node=row]")).to_have_count(1)
    with demo.site("post") as post:
        found = post.why("orders", row_of("orders", post.program.schema("orders"), asked))
        shown = {
            (witness.relation, *as_shown([witness.values.values()])[0], witness.origin)
            for witness in found.tuples()
        }
    expect(page.locator("#why-sentence")).to_contain_text(f"It stands on {len(shown)} base rows together")
    base = page.locator("[data-node=tuple], [data-node=system]")
    expect(base).to_have_count(len(shown))
    listed = page.locator("#why tr[data-tuple]").evaluate_all(
        "rows => rows.map(row => [row.cells[1].innerText, row.cells[2].innerText])"
    )
    assert {(text, origin) for text, origin in listed} == {
        (f"{relation}({', '.join(values)})", origin) for relation, *values, origin in shown
    }
    sites = {node.text_content() for node in page.locator("[data-node=site] text").all()}
    assert sites == {origin for *_, origin in shown}
    assert {*DRONES, "post", "team-1"} <= sites
    go(page, "#/data/reachable")
    page.locator("tr[data-row]", has_text="12").click()
    expect(page.locator("#why-sentence")).to_contain_text("One smallest proof")
    titles = page.locator("[data-node=way] .node-title").all_text_contents()
    assert set(titles) == {"reached"}  # and every base row is one node
    expect(page.locator("[data-node=tuple]", has_text="Camp")).to_have_count(1)


@pytest.mark.parametrize("name", ["post", "hub"])
def test_what_would_vanish_is_what_plain_sqlite_computes(demo, browse, name):
    """At the site it is tried in a transaction, also on a row that another owns; at the hub on a copy."""
    demo.report()
    page = browse(demo.console(name) + "#/data/orders")
    patiently = expect(page.locator("#rows-count"))
    patiently.to_have_text(f"{len(demo.rows()['orders'])} rows", timeout=60_000)  # a hub's, after a refresh
    views = [view for view in VIEWS if view != "flown" or name == "hub"]  # the hub computes it, nobody else
    for view, of, kind in (
        ("orders", "Saddle", "sightings"),
        ("orders", "Saddle", "units"),
        ("reachable", "2", "paths"),
    ):
        go(page, f"#/data/{view}")
        page.locator("tr[data-row]", has_text=of).first.click()
        expect(page.locator("#why h2")).to_contain_text(f"{view}(")
        with page.expect_request("**/without") as asked:
            page.locator("[data-node=tuple]", has_text=kind).first.click()
        expect(page.locator("#vanish-said")).to_contain_text("This row would")
        body = json.loads(asked.value.post_data)
        with demo.site("post") as post:
            row = row_of(kind, post.program.schema(kind), body["row"])
        before, after = demo.recomputed(), demo.recomputed((kind, row))
        wanted = {view: difference(map(texts, before[view]), map(texts, after[view])) for view in views}
        wanted[kind] = [("−1", *as_shown([row])[0])]
        told = turned(page)
        if "seen" in told:
            told["seen"] = [one[:4] for one in told["seen"]]
        assert told == {name: rows for name, rows in wanted.items() if rows}


def texts(row):
    """A row that plain SQLite has computed, as the page shows it."""
    return tuple(re.sub(r"^(\S+) (\S+)\+00:00$", r"\1T\2Z", str(cell)) for cell in row)


def test_a_drone_that_has_no_row_of_sectors(demo, browse):
    page = browse(demo.console("drone-4") + "#/data/orders", may=("409",))
    expect(page.locator(".item-name")).to_have_text(
        ["orders", "flown", "sightings", "everview_late_sightings"]
    )
    page.locator("tr[data-row]", has_text="Saddle").first.click()
    expect(page.locator("[data-node=site]").first).to_be_visible()
    page.locator("[data-node=tuple]", has_text="sectors").first.click()
    expect(page.locator("#vanish .trouble")).to_contain_text("ask at a site that hosts its relation")
    page.locator("[data-node=tuple]", has_text="sightings").first.click()  # of these it has the rows
    expect(page.locator("#vanish-said")).to_contain_text("This row would")
    go(page, "#/data/orders/plan")
    expect(page.locator("g.box").first).to_be_visible()
    expect(page.locator("g.box", has_text="comes from other sites")).to_have_count(4)
    page.locator("summary").click()
    expect(page.locator("pre")).to_contain_text("orders is cut")


def test_a_hub_with_its_refreshes_and_their_stages(demo, browse):
    page = browse(demo.console("hub") + "#/refreshes")
    expect(page.locator(".facts")).to_contain_text("running")
    demo.sees("drone-1", 8, "rope", "tent")
    demo.report()
    refresh = page.locator("[data-refresh]").first
    expect(refresh).to_be_visible(timeout=60_000)
    expect(refresh.locator(".stage-compute").first).to_be_attached()
    refresh.locator("summary").click()
    expect(refresh).to_contain_text(re.compile(r"compute.*\d (ms|s)"))
    expect(page.locator(".refresh-body").first).to_contain_text("sightings")
    go(page, "#/data/sightings")
    wanted = as_shown(demo.rows()["sightings"])
    expect(page.locator("#rows-count")).to_have_text(f"{len(wanted)} rows", timeout=60_000)
    assert cells(page) == wanted
    plain = demo.recomputed()
    for view in VIEWS:
        go(page, f"#/data/{view}")
        expect(page.locator("#rows-count")).to_have_text(f"{len(plain[view])} rows")
        shown = [row[:3] for row in cells(page)] if view == "seen" else cells(page)
        assert sorted(shown) == sorted(map(texts, plain[view])), view
    go(page, "#/data/flown/plan")
    expect(page.locator('[data-box="flown"] .count').first).to_be_visible()
    expect(page.locator("#plan-change")).to_contain_text("with refresh")
    go(page, "#/data/orders")
    page.locator("tr[data-row]", has_text="Saddle").first.click()
    expect(page.locator("[data-node=site]", has_text="drone-1")).to_be_visible()
    go(page, "#/map")
    expect(page.locator("g.site-self")).to_contain_text("this hub")
    expect(page.locator("g.site")).to_have_count(9)
    expect(page.locator("[data-member=post] td").nth(3)).to_have_text("comes here")
    expect(page.locator("[data-member=drone-1] td").nth(3)).to_have_text("through others")


def test_what_a_hub_has_too_many_rows_for_is_said_with_where_to_ask(demo, browse):
    """The server's words are those of `tests/hub/test_console.py`; here it is what becomes of them."""
    page = browse(demo.console("hub") + "#/data/units", may=("422",))
    said = "the relations of hub have more than 20,000 rows together; ask a site"
    told = json.dumps({"code": "limit", "error": said})
    page.route("**/without", lambda route: route.fulfill(status=422, body=told))
    page.locator("tr[data-row]").first.click()
    page.locator("[data-node=tuple]").click()
    expect(page.locator("#vanish .card")).to_contain_text("There is too much to tell here")
    expect(page.locator("#vanish .card")).to_contain_text(f"T{said[1:]}.")
    assert not page.locator("#vanish .trouble, #vanish button").count()


def test_a_row_is_written_at_the_hub_and_is_there_after_a_refresh(demo, browse):
    page = browse(demo.console("hub") + "#/data/units")
    page.locator("#insert").click()
    for number, text in enumerate(("team-9", "4", "true")):
        page.locator(f"#field-{number}").fill(text)
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-row]", has_text="team-9")).to_be_visible(timeout=60_000)
    page.locator("tr[data-row]", has_text="team-9").click()
    page.locator("#delete").click()
    page.locator("#delete-now").click()
    expect(page.locator("tr[data-row]", has_text="team-9")).to_have_count(0, timeout=60_000)


def test_no_process_has_asked_another_machine(demo):
    """Neither those that played the demo nor those that serve what it left; and who listens does so here.

    Of Python it is noted whom it asks; of Java, which the hub starts, it is seen at this moment.
    """
    asked = set(demo.asked.read_text().split())
    assert "127.0.0.1" in asked
    assert {host for host in asked if host not in ("127.0.0.1", "localhost", "::1")} == set()
    for name in ("hub", "post"):
        demo.console(name)
    ends = sockets_of(*demo.processes)
    assert len(ends) > 2
    nobody = ("0.0.0.0", "::")  # who listens has nobody at the other end yet
    here = {end for end, _ in ends} | {other for _, other in ends if other not in nobody}
    assert {one for one in here if not ipaddress.ip_address(one).is_loopback} == set()

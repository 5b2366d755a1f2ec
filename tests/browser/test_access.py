"""Tokens, what each may see, writing, and rows that would like to be markup."""

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import ALL, GUEST, Mission, go
from tests.browser.processes import process

from everview import Site

HOSTILE = [
    "<img src=x onerror=window.hacked=1>",
    "</script><script>window.hacked=1</script>",
    '"><svg onload=window.hacked=1>',
    "javascript:window.hacked=1",
    "{{constructor.constructor('window.hacked=1')()}}",
    "<style>body{display:none}</style>",
]
REFUSED = ("401 (Unauthorized)", "403 (Forbidden)")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guarded")
    Mission(folder)
    words = ["serve", "--store", "post.db", "--port", "0", "--tokens", "tokens.toml"]
    with process(*words, cwd=folder) as (_, console):
        yield console


def test_a_token_is_asked_for(guarded, browse):
    page = browse(guarded, may=REFUSED)
    expect(page.locator("h1")).to_have_text("A token, please")
    expect(page.locator("#token")).to_be_focused()
    page.keyboard.type("wrong-wrong-wrong-wrong")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("does not know this token")
    page.keyboard.type(ALL)
    page.keyboard.press("Enter")
    expect(page.locator("#who")).to_contain_text("token of boss")
    expect(page.locator("#tabs a")).to_have_count(3)
    page.reload()  # it stays in this tab
    expect(page.locator("#who")).to_contain_text("token of boss")
    other = page.context.new_page()  # and is in no other
    other.goto(guarded)
    expect(other.locator("h1")).to_have_text("A token, please")
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("A token, please")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_token_in_the_address_is_taken_out_of_it(guarded, browse):
    page = browse(f"{guarded}#token={ALL}")
    expect(page.locator("#who")).to_contain_text("token of boss")
    assert ALL not in page.url
    assert ALL not in page.evaluate("JSON.stringify([document.cookie, Object.entries(localStorage)])")


def test_a_token_sees_what_it_may_read(guarded, browse):
    page = browse(f"{guarded}#token={GUEST}", may=REFUSED)
    expect(page.locator("#who")).to_contain_text("token of guest")
    go(page, "#/data")
    assert page.locator(".item-name").all_inner_texts() == ["alert", "sector"]
    expect(page.locator(".list")).to_contain_text("8 more, which this token may not read")
    go(page, "#/data/sighting")
    expect(page.locator(".detail .empty-title")).to_have_text("There is no sighting here")
    go(page, "#/data/alert/plan")
    expect(page.locator(".trouble")).to_contain_text("its plan is not shown")
    assert not page.locator("#insert").count()


def test_read_only_unless_said(guarded, browse):
    page = browse(f"{guarded}#token={ALL}", may=REFUSED)
    expect(page.locator("#tabs a")).to_have_count(3)
    go(page, "#/data/sector")
    expect(page.locator("tr[data-row]").first).to_be_visible()
    assert not page.locator("#insert").count()
    answer = page.evaluate(
        """token => fetch('/v1/console/insert', {
            method: 'POST',
            body: '{"relation": "path", "row": ["1", "1"]}',
            headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + token},
        }).then(answer => answer.json())""",
        ALL,
    )
    assert answer["code"] == "read_only"


def test_rows_are_inserted_and_deleted_by_keyboard(mission, browse):
    page = browse(mission.console + "#/data/sector", may=("422",))
    page.locator("#insert").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#field-0")).to_be_focused()
    for text in ("forty", "Lighthouse"):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("dialog .said")).to_contain_text("sector.sector cannot be 'forty'")
    page.locator("#field-0").fill("40")
    page.locator("#null-2").focus()
    page.keyboard.press("Space")
    page.locator("#field-0").focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)
    row = page.locator("tr[data-row]", has_text="Lighthouse")
    expect(row).to_contain_text("NULL")
    with Site.open(mission.folder / "post.db") as post:
        assert (40, "Lighthouse", None) in post.rows("sector")
    row.focus()
    page.keyboard.press("Enter")
    page.locator("#delete").focus()
    page.keyboard.press("Enter")
    page.locator("#delete-now").focus()
    page.keyboard.press("Enter")
    expect(page.locator("tr[data-row]", has_text="Lighthouse")).to_have_count(0)
    with Site.open(mission.folder / "post.db") as post:
        assert not any(row[0] == 40 for row in post.rows("sector"))


def test_hostile_rows_and_names_stay_text(browse, tmp_path):
    """In rows, headings, pictures, titles and on the map: in cells, and in the names of sites."""
    mission = Mission(tmp_path)
    with Site.open(tmp_path / "post.db", mission.program) as post:
        post.insert("note", [(word,) for word in HOSTILE])
        post.insert("sector", [(90 + n, word, word) for n, word in enumerate(HOSTILE)])
        post.insert("sighting", [(word, 90 + n, "tent") for n, word in enumerate(HOSTILE)])
    with process("serve", "--store", "post.db", "--port", "0", "--insecure", cwd=tmp_path) as (_, console):
        mission.console = console
        with Site.open(tmp_path / "evil.db", mission.program, name=HOSTILE[0]) as evil:
            evil.insert("note", [("from afar",)])
            evil.sync(mission.address)
        page = browse(console + "#/map")
        expect(page.locator("#map")).to_contain_text(HOSTILE[0])
        go(page, "#/data/note")
        for word in HOSTILE:
            expect(page.locator("tr[data-row]", has_text=word)).to_have_count(1)
        page.locator("tr[data-row]", has_text="from afar").click()
        expect(page.locator("#why table")).to_contain_text(HOSTILE[0])
        go(page, "#/data/alert")
        for n in range(len(HOSTILE)):
            page.locator("tr[data-row]", has_text=str(90 + n)).click()
            expect(page.locator("#why h2")).to_contain_text(str(90 + n))
            page.locator("[data-node=tuple]").first.click()
            expect(page.locator("#vanish-said")).to_be_visible()
            page.keyboard.press("Escape")
        go(page, "#/data/alert/plan")
        expect(page.locator("g.box").first).to_be_visible()
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 1
        assert page.locator("svg svg, #main script, #main style, #main img").count() == 0
        page.context.close()

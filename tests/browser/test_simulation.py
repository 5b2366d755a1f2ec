"""A simulator's run with its fault timeline, shown by `everview console`."""

import msgspec
from playwright.sync_api import expect
from tests.browser.processes import process

from everview.testing.worlds import dump_case, random_case, timeline
from everview.testing.worlds.steps import Load


def test_a_run_with_its_faults(browse, tmp_path):
    case = random_case(0)
    (tmp_path / "simulation-0.json").write_text(dump_case(case))
    run = timeline(case)
    faults = [step["number"] for step in run["steps"] if step["fault"]]
    with process("console", "simulation-0.json", "--port", "0", cwd=tmp_path) as (_, console):
        page = browse(console)
        expect(page.locator("h1")).to_have_text("World 0")
        assert "token" not in page.url
        expect(page.locator("#tabs a")).to_have_text(["Simulation"])
        expect(page.locator("#outcome")).to_contain_text(
            f"All sites agree after {len(case.steps)} steps, {len(faults)} faults"
        )
        expect(page.locator("g.step")).to_have_count(len(run["steps"]))
        assert [
            int(row.get_attribute("data-fault")) for row in page.locator("tr[data-fault]").all()
        ] == faults
        lanes = [lane.text_content() for lane in page.locator(".lane-name").all()]
        assert lanes == [*(lane["name"] for lane in run["lanes"]), "network"]
        step = page.locator("#step dd").first
        expect(step).to_have_text(str(faults[0]))
        page.locator("#timeline").focus()
        page.keyboard.press("PageDown")
        expect(step).to_have_text(str(faults[1]))
        page.keyboard.press("ArrowRight")
        expect(step).to_have_text(str(faults[1] + 1))
        page.keyboard.press("Home")
        expect(step).to_have_text("0")
        page.locator("g.step").nth(5).click()
        expect(step).to_have_text("5")
        page.locator("tr[data-fault]").last.click()
        expect(step).to_have_text(str(faults[-1]))
        page.context.close()


def test_a_run_that_went_wrong(browse, tmp_path):
    """A case whose last step is about a relation that there is not, which stands for any defect."""
    case = random_case(0)
    broken = Load(site=case.places[0].name, verb="insert", relation="no_such_relation", start=0, count=3)
    wrong = msgspec.structs.replace(case, steps=[*case.steps[:20], broken])
    (tmp_path / "broken.json").write_text(dump_case(wrong))
    with process("console", "broken.json", "--port", "0", cwd=tmp_path) as (_, console):
        page = browse(console)
        expect(page.locator("#outcome")).to_contain_text("Something is wrong at step 20")
        expect(page.locator("#outcome")).to_contain_text("no_such_relation")
        expect(page.locator("rect.broken")).to_have_count(1)
        expect(page.locator("#step dd").first).to_have_text("20")
        page.context.close()

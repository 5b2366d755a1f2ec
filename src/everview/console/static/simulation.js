// A simulator's run: a lane for each site, time from left to right, faults in red; one step is looked at.

import { get } from "./api.js";
import { h, put, s } from "./dom.js";
import { empty, loading } from "./states.js";
import { count } from "./words.js";

const NARROW = 20; // steps are at least so wide, and at most so
const WIDE = 46;
const LANE = 46;
const LEFT = 84;
const TOP = 30;
const NETWORK = "network";

export function simulationPage(main) {
  const place = h("div", {}, loading());
  put(main, place);
  let run = null;
  let at = 0;
  let STEP = NARROW;

  function draw() {
    STEP = Math.max(NARROW, Math.min((main.clientWidth - LEFT - 100) / run.steps.length, WIDE));
    put(place, heading(run), outcome(run), h("div", { class: "scroll timeline", tabindex: "0", role: "slider", "aria-label": "The steps of the run",
      "aria-valuemin": 0, "aria-valuemax": run.steps.length - 1, "aria-valuenow": at, id: "timeline",
      on: { keydown: steer } }, drawing()), legend(), detail(), faults(), h("details", { class: "words" },
      h("summary", { text: "The program" }), h("pre", { text: run.program })));
  }

  function choose(number) {
    at = Math.max(0, Math.min(number, run.steps.length - 1));
    const scrolled = document.getElementById("timeline")?.scrollLeft ?? 0;
    const focused = document.activeElement?.id;
    draw();
    const strip = document.getElementById("timeline");
    strip.scrollLeft = scrolled;
    const x = LEFT + at * STEP;
    if (x < scrolled + LEFT || x > scrolled + strip.clientWidth - 2 * STEP) strip.scrollLeft = x - strip.clientWidth / 2;
    if (focused === "timeline") strip.focus({ preventScroll: true });
  }

  function steer(event) {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: run.steps.length - 1, PageDown: nextFault(1), PageUp: nextFault(-1) }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      choose(to);
    }
  }

  function nextFault(way) {
    for (let look = at + way; look >= 0 && look < run.steps.length; look += way) if (run.steps[look].fault) return look;
    return at;
  }

  function drawing() {
    const lanes = [...run.lanes.map((lane) => lane.name), NETWORK];
    const y = (name) => TOP + LANE * Math.max(lanes.indexOf(name), 0) + LANE / 2;
    const x = (number) => LEFT + number * STEP + STEP / 2;
    const [width, height] = [LEFT + run.steps.length * STEP + 16, TOP + LANE * lanes.length + 10];
    const index = new Map(run.steps.map((step, place_) => [step.number, place_]));
    const ruler = run.steps.flatMap((step, number) => (number % 5 ? [] : [s("text", { x: x(number), y: 18, class: "tick", "text-anchor": "middle", text: step.number })]));
    const bars = run.lanes.map((lane) => {
      const from = index.get(lane.from) ?? 0;
      const to = lane.to === null ? run.steps.length - 1 : index.get(lane.to) ?? run.steps.length - 1;
      return s("line", { x1: x(from) - STEP / 2, x2: x(to) + STEP / 2, y1: y(lane.name), y2: y(lane.name), class: "lane" });
    });
    const names = lanes.map((name) => s("text", { x: 8, y: y(name) + 4, class: name === NETWORK ? "lane-name quiet" : "lane-name", text: name }));
    const cuts = run.steps.flatMap((step, number) => (step.down ?? []).map(([from, to]) =>
      s("rect", { x: x(number) - STEP / 2, width: STEP, y: Math.min(y(from), y(to)), height: Math.abs(y(to) - y(from)), class: "cut" })));
    const marks = run.steps.map((step, number) => mark(step, number, x(number), y));
    const broken = run.failure && run.failure.step >= 0 && s("rect", { x: x(index.get(run.failure.step) ?? run.steps.length - 1) - STEP / 2, y: TOP,
      width: STEP, height: LANE * lanes.length, class: "broken" });
    const cursor = s("rect", { x: x(at) - STEP / 2, y: TOP, width: STEP, height: LANE * lanes.length, rx: 4, class: "cursor" });
    return s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "picture", "aria-hidden": "true" },
      cursor, broken, ruler, bars, cuts, marks, names);
  }

  function mark(step, number, x, y) {
    const lanes = step.sites.filter((name) => run.lanes.some((lane) => lane.name === name));
    const rows = lanes.length ? lanes : step.do === "heal" ? run.lanes.map((lane) => lane.name) : [NETWORK];
    const kind = step.fault ? "fault" : step.do;
    const ends = rows.map(y);
    const parts = rows.length > 1 && ["sync", "dial", "copy", "permit", "partition"].includes(step.do)
      ? [s("line", { x1: x, x2: x, y1: Math.min(...ends), y2: Math.max(...ends), class: `meet mark-${kind}` })] : [];
    const shapes = rows.map((name) => (step.fault
      ? s("path", { d: `M${x - 5},${y(name) - 5} L${x + 5},${y(name) + 5} M${x - 5},${y(name) + 5} L${x + 5},${y(name) - 5}`, class: "cross" })
      : s("circle", { cx: x, cy: y(name), r: step.do === "write" || step.do === "load" ? 5.5 : 4, class: `mark mark-${kind}` })));
    return s("g", { class: "step", "data-step": step.number, on: { click: () => choose(number) } },
      s("title", { text: `${step.number}: ${words(step)}` }),
      s("rect", { x: x - STEP / 2, y: TOP, width: STEP, height: LANE * (run.lanes.length + 1), class: "hit" }), parts, shapes);
  }

  function detail() {
    const step = run.steps[at];
    const facts = [["step", step.number], ["what", words(step)], ["virtual time", step.at === undefined ? "" : `${step.at.toLocaleString("en")} s`],
      ["came about", Object.entries(step.happened ?? {}).map(([name, number]) => `${number} ${name}`).join(", ") || "nothing more"],
      ["commits", Object.entries(step.heads ?? {}).map(([name, head]) => `${name} ${head}`).join(", ")],
      ["cut off", (step.down ?? []).map(([from, to]) => `${from} → ${to}`).join(", ") || "nobody"]];
    return h("div", { class: "card", id: "step", "aria-live": "polite" }, h("dl", { class: "pairs" }, facts.filter(([, value]) => value !== "").map(([label, value]) =>
      [h("dt", { text: label }), h("dd", { text: value })])));
  }

  function faults() {
    const found = run.steps.filter((step) => step.fault);
    if (!found.length) return h("p", { class: "quiet", text: "No step of this run is a fault." });
    return h("section", {}, h("h2", { text: "Faults" }), h("div", { class: "scroll" }, h("table", { class: "rows facts-table", "aria-label": "Faults" },
      h("thead", {}, h("tr", {}, h("th", { class: "number", text: "step" }), h("th", { class: "number", text: "time" }), h("th", { class: "wide", text: "what" }))),
      h("tbody", {}, found.map((step) => h("tr", { tabindex: "0", "data-fault": step.number, on: {
        click: () => choose(run.steps.indexOf(step)),
        keydown: (event) => { if (event.key === "Enter") choose(run.steps.indexOf(step)); },
      } }, h("td", { class: "number", text: step.number }), h("td", { class: "number", text: step.at === undefined ? "" : `${step.at.toLocaleString("en")} s` }),
      h("td", { class: "long", text: words(step) })))))));
  }

  return {
    async go() {
      const found = await get("simulation");
      if (!found.run) {
        put(place, empty("No run to show", ["Point the console at one: ", h("code", { text: "everview console simulation-17.json" }), "."]));
        return;
      }
      run = found.run;
      at = run.failure ? run.steps.length - 1 : Math.max(run.steps.findIndex((step) => step.fault), 0);
      draw();
    },
    key(event) {
      if (run && event.target === document.body) steer(event);
    },
  };
}

function heading(run) {
  return h("h1", {}, `World ${run.seed}`);
}

function outcome(run) {
  const faults = run.steps.filter((step) => step.fault).length;
  if (!run.failure) {
    return h("p", { class: "verdict verdict-yes", id: "outcome" }, h("span", { class: "verdict-sign", "aria-hidden": "true", text: "✓" }),
      h("span", {}, h("strong", { text: "All sites agree" }), ` after ${count(run.length, "step")}, ${count(faults, "fault")} among them, and a healing.`));
  }
  const where = run.failure.step < run.length ? `at step ${run.failure.step}` : "when the world had healed";
  return h("p", { class: "verdict verdict-bad", id: "outcome" }, h("span", { class: "verdict-sign", "aria-hidden": "true", text: "✕" }),
    h("span", {}, h("strong", { text: `Something is wrong ${where}` }), `: ${run.failure.problem}`));
}

function legend() {
  const item = (kind, text) => h("span", { class: "legend-item" }, h("span", { class: `swatch round swatch-${kind}` }), text);
  return h("p", { class: "legend quiet" }, item("write", "a write"), item("meet", "sites meet"), item("other", "something else"), item("fault", "a fault"),
    item("cut", "a link that is down"), h("span", {}, h("kbd", { text: "←" }), h("kbd", { text: "→" }), " step, ", h("kbd", { text: "Page ↓" }), " next fault"));
}

function words(step) {
  const [one, other] = step.sites;
  const more = step.more;
  const crash = more.crash && more.fate !== "lost" ? `; ${more.victim || one || "the receiver"} dies in the middle of it` : "";
  const fate = { lost: "is lost", doubled: "arrives twice", arrives: "arrives" }[more.fate ?? "arrives"];
  const known = {
    write: () => `${one} ${(more.operations ?? []).map(([act, relation, row]) => `${act}s ${relation}(${row.join(", ")})`).join(", ")}`,
    load: () => `${one} ${more.verb ?? "insert"}s ${more.count} rows of ${more.relation}`,
    sync: () => `${one} syncs with ${other}`,
    dial: () => `${one} dials ${other}`,
    deliver: () => `a message ${fate}`,
    visit: () => `${one} visits the folder`,
    lose: () => `a file in the folder is ${more.how ?? "lost"}`,
    forget: () => `${one} forgets removals, but for the last ${more.keep ?? 0} of each relation`,
    set: () => `${one}’s clock is set ${more.skew} s ahead`,
    lie: () => `the liar dials ${one}, and changes what it says`,
    wait: () => `${more.seconds} s pass`,
    crash: () => `${one} crashes and starts again`,
    backup: () => `${one} is backed up`,
    restore: () => `${one} is put back from its backup, ${more.how ?? "in place"}`,
    copy: () => `${one}’s file is copied, and used as ${other ?? "another site"}`,
    arrive: () => `${one} arrives${other ? ` near ${other}` : ""}`,
    leave: () => `${one} is gone for good`,
    partition: () => `from ${one} to ${other} ${step.fault ? "nothing gets through any more" : "messages get through again"}`,
    permit: () => `${one} changes what ${other} may read and write`,
    heal: () => "all faults end; everyone syncs until nothing moves",
  };
  return (known[step.do]?.() ?? step.do) + crash;
}

// Refreshes of a hub: how long each took, stage by stage, and what it changed.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { empty, loading } from "./states.js";
import { ago, bytes, count, seconds } from "./words.js";

const STAGES = ["screen", "export", "compute", "commit", "tidy", "vacuum", "publish"];
const MEANS = {
  screen: "what has arrived is looked at", export: "what changed in the gate is written out", compute: "Spark",
  commit: "the record", tidy: "small files are merged", vacuum: "old files go", publish: "Delta tables",
};

export function refreshesPage(main) {
  const place = h("div", {}, loading());
  put(main, h("h1", { text: "Refreshes" }), place);
  let text = "";
  const open = new Set();

  async function look() {
    const found = await get("refreshes");
    const now = JSON.stringify([found, Math.floor(Date.now() / 5000)]);
    if (now === text) return;
    text = now;
    put(place, found.refreshes === null ? none() : [facts(found), under(found), list(found)]);
  }

  function none() {
    return empty("A site has no refreshes", "Its views are right after every commit, in the same transaction.",
      ["A hub brings its views up to date in refreshes; its console, served by ", h("code", { text: "everview hub" }), ", shows them here."]);
  }

  function list(found) {
    if (!found.refreshes.length) {
      return empty(found.refresh ? "No refresh since the hub was started" : "No refresh has taken anything in yet",
        "One is made as soon as a site pushes something, or the hub is written to.");
    }
    const longest = Math.max(...found.refreshes.map(total));
    const known = [...new Set(found.refreshes.flatMap((one) => Object.keys(one.stages)))];
    const stages = [...STAGES.filter((name) => known.includes(name)), ...known.filter((name) => !STAGES.includes(name))];
    return [h("p", { class: "legend quiet" }, stages.map((name) => h("span", { class: "legend-item", title: MEANS[name] ?? "" },
      h("span", { class: `swatch stage-${stageClass(name)}` }), name))),
    h("ol", { class: "refreshes" }, found.refreshes.map((one) => line(one, stages, longest)))];
  }

  function line(one, stages, longest) {
    const sum = total(one);
    const bar = h("div", { class: "bar", role: "img", "aria-label": stages.filter((name) => one.stages[name]).map((name) =>
      `${name} ${seconds(one.stages[name])}`).join(", ") }, stages.filter((name) => one.stages[name]).map((name) => {
      const part = h("span", { class: `stage stage-${stageClass(name)}`, title: `${name}: ${seconds(one.stages[name])}` });
      part.style.flexGrow = String(one.stages[name] / longest);
      return part;
    }));
    const rest = h("span", {});
    rest.style.flexGrow = String(Math.max(1 - sum / longest, 0));
    bar.append(rest);
    const moved = Object.entries(one.changes);
    const details = h("details", { "data-refresh": one.refresh, open: open.has(one.refresh) },
      h("summary", {}, h("span", { class: "refresh-number", text: `#${one.refresh}` }), bar,
        h("span", { class: "refresh-time", text: seconds(sum) }),
        h("span", { class: "quiet refresh-more", text: `${count(one.arrivals, "arrival")} · ${count(one.jobs, "job")} · ${ago(one.ended_us)}` })),
      h("div", { class: "refresh-body" },
        h("table", { class: "rows narrow" }, h("thead", {}, h("tr", {}, h("th", { text: "stage" }), h("th", { text: "time" }), h("th", { text: "what it is" }))),
          h("tbody", {}, stages.filter((name) => one.stages[name] !== undefined).map((name) => h("tr", {},
            h("td", { text: name }), h("td", { class: "number", text: seconds(one.stages[name]) }), h("td", { class: "quiet", text: MEANS[name] ?? "" }))))),
        moved.length ? h("table", { class: "rows narrow" }, h("thead", {}, h("tr", {}, ["table", "came", "went"].map((name) => h("th", { text: name })))),
          h("tbody", {}, moved.map(([name, change]) => h("tr", {}, h("td", { text: name }),
            h("td", { class: "number", text: `+${change.appeared.toLocaleString("en")}` }), h("td", { class: "number", text: `−${change.disappeared.toLocaleString("en")}` })))))
          : h("p", { class: "quiet", text: "Nothing that this token may read was changed." }),
        one.rejected.map((reject) => h("p", { class: "said", text: `${reject.name} was set aside: ${reject.reason}` }))));
    details.addEventListener("toggle", () => (details.open ? open.add(one.refresh) : open.delete(one.refresh)));
    return h("li", {}, details);
  }

  const timer = setInterval(() => look().catch(() => {}), 2000);
  return { go: look, news: look, leave: () => clearInterval(timer) };
}

const total = (one) => Object.values(one.stages).reduce((sum, value) => sum + value, 0);
const stageClass = (name) => (STAGES.includes(name) ? name : "other");

function facts(found) {
  const fact = (label, value) => h("div", { class: "fact" }, h("span", { class: "fact-label", text: label }), h("span", { class: "fact-value", text: value }));
  return h("div", { class: "facts" },
    fact("last refresh", found.refresh ? `#${found.refresh}` : "none yet"),
    found.refresh > 0 && fact("made", ago(found.refreshed_us)),
    fact("pipeline", found.running ? "running" : "not running"),
    found.waiting && fact("waiting", `${count(found.waiting.rows, "row")}, ${count(found.waiting.commits, "commit")}`),
    fact("kept", `${count(found.kept.rows, "row")}, ${bytes(found.kept.bytes)}`));
}

function under(found) {
  const now = found.under_way;
  return [found.error && h("p", { class: "card trouble", role: "alert", text: `The pipeline has ended: ${found.error}. It is started again by itself.` }),
    now && h("p", { class: "quiet", id: "under-way" }, h("span", { class: "dot dot-live" }), `A refresh is under way: ${now.stage || "beginning"}, ${seconds(now.seconds)}.`)];
}

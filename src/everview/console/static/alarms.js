// Whether any site is known to differ from this one, and what else somebody should look at.

import { h } from "./dom.js";
import { ago, count } from "./words.js";

export function alarms(found) {
  if (!found.sites.length && !found.alarms.length) return h("div", {});
  const wrong = found.alarms.length > 0;
  const said = wrong ? "Not all is well" : "No site is known to differ";
  const more = wrong
    ? "These relations differ although both sites have seen the same. Read them again from a site that is right: everview repair."
    : "Whenever two sites have seen the same, they compare what they hold.";
  return h("section", { class: "alarms" }, h("h2", { text: "Agreement" }),
    h("p", { class: `verdict verdict-${wrong ? "bad" : "yes"}`, id: "verdict" }, h("span", { class: "verdict-sign", "aria-hidden": "true",
      text: wrong ? "✕" : "✓" }), h("span", {}, h("strong", { text: said }), ". ", more)),
    wrong && table(found), others(found));
}

function table(found) {
  return h("div", { class: "scroll" }, h("table", { class: "rows", "aria-label": "Alarms" },
    h("thead", {}, h("tr", {}, ["relation", "differs from that of", "noticed"].map((text) => h("th", { text })))),
    h("tbody", {}, found.alarms.map((one) => h("tr", { "data-alarm": one.relation }, h("td", { text: one.relation }),
      h("td", { text: one.peer }), h("td", { text: ago(one.noticed_us, found.now_us) }))))));
}

function others(found) {
  const lines = [];
  if (found.staged_pages) lines.push(`${count(found.staged_pages, "page")} of a sync that was interrupted: the next one goes on there`);
  if (found.refused) lines.push(`${count(found.refused, "row")} refused, because their writers may not write them; everview status names them`);
  return lines.length ? h("ul", { class: "quiet waits" }, lines.map((text) => h("li", { text }))) : null;
}

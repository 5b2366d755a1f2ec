// Whether the sites have come to agree, as far as is known here; and what waits.

import { h } from "./dom.js";
import { ago, count, siteName } from "./words.js";

export function convergence(found) {
  if (!found.sites.length) return h("div", {});
  const { agree, relations } = found.convergence;
  const sites = new Map();
  for (const one of relations) for (const site of one.sites) sites.set(site.incarnation, site);
  const listed = [...sites.values()].sort((one, other) => (other.incarnation === found.self.incarnation) - (one.incarnation === found.self.incarnation)
    || siteName(one).localeCompare(siteName(other), "en", { numeric: true }));
  const behind = listed.filter((site) => relations.some((one) =>
    one.sites.some((other) => other.incarnation === site.incarnation && other.lacks !== 0)));
  const names = behind.map((site) => (site.incarnation === found.self.incarnation ? "this site" : siteName(site)));
  const said = agree ? "All sites agree" : `Not all agree yet: ${list(names)} ${names.length === 1 ? "lacks" : "lack"} something`;
  const more = agree
    ? "Every site that holds a relation has all commits that anybody is known to have: their relations and views are the same."
    : "They have not met since, or this site has not heard of it yet. Nothing is lost: what is missing comes with the next sync.";
  return h("section", { class: "convergence" }, h("h2", { text: "Convergence" }),
    h("p", { class: `verdict verdict-${agree ? "yes" : "no"}`, id: "verdict" }, h("span", { class: "verdict-sign", "aria-hidden": "true",
      text: agree ? "✓" : "…" }), h("span", {}, h("strong", { text: said }), ". ", more)),
    relations.length > 0 && table(found, relations, listed), waits(found.waiting));
}

function list(names) {
  const some = names.length > 4 ? [...names.slice(0, 3), `${names.length - 3} more`] : names;
  return some.length === 1 ? some[0] : `${some.slice(0, -1).join(", ")} and ${some.at(-1)}`;
}

function table(found, relations, sites) {
  const shown = sites.slice(0, 12);
  const lacks = (one, site) => one.sites.find((other) => other.incarnation === site.incarnation);
  const mark = (entry) => {
    if (!entry) return h("td", { class: "quiet", title: "does not hold it", text: "–" });
    if (entry.lacks === null) return h("td", { class: "quiet", title: "nothing is known of it yet", text: "?" });
    return entry.lacks ? h("td", { class: "lacks", text: `−${entry.lacks}`, title: `${count(entry.lacks, "commit")} missing` })
      : h("td", { class: "has", text: "✓", title: "has everything" });
  };
  return h("div", { class: "scroll" }, h("table", { class: "rows agree", "aria-label": "What each site lacks, in commits" },
    h("thead", {}, h("tr", {}, h("th", { text: "relation" }), shown.map((site) =>
      h("th", { title: `heard ${ago(site.heard_us, found.now_us)}`, text: site.incarnation === found.self.incarnation ? `${siteName(site)} (this)` : siteName(site) })))),
    h("tbody", {}, relations.filter((one) => !one.relation.startsWith("everview_")).map((one) =>
      h("tr", {}, h("td", { text: one.relation }), shown.map((site) => mark(lacks(one, site))))))));
}

function waits(waiting) {
  const lines = [];
  if (waiting.provisional.length) lines.push(`${waiting.provisional.join(", ")}: this site waits to be listed as a member`);
  if (waiting.from_the_future) lines.push(`${count(waiting.from_the_future, "row")} written by clocks that run ahead: they count when their time has come`);
  if (waiting.staged_pages) lines.push(`${count(waiting.staged_pages, "page")} of a cut that has not ended`);
  if (waiting.dropped_rows) lines.push(`${count(waiting.dropped_rows, "row")} left out, because their senders may not write them`);
  for (const [name, held] of Object.entries(waiting.held)) {
    if (held.waiting_for.length) lines.push(`${count(held.dead_rows, "deleted row")} of ${name} kept until it is known at ${list(held.waiting_for)}`);
  }
  return lines.length ? h("ul", { class: "quiet waits" }, lines.map((text) => h("li", { text }))) : null;
}

// Why a row is there: down to base rows and the sites that wrote them; and what goes if one of them does.

import { post } from "./api.js";
import { h, onEnter, put, s } from "./dom.js";
import { NARROW, box, edge, inSight, layOutWithin, picture, widthOf } from "./graph.js";
import { shown } from "./rows.js";
import { empty, loading, trouble } from "./states.js";
import { cell, count, rowText, short } from "./words.js";

const LABEL = { wide: 40, narrow: 20 };

export function whyPart(place, table, row, close) {
  const heading = h("h2", { tabindex: "-1" }, "Why is ", h("code", { text: short(rowText(table.name, row), 80) }), " there?");
  const body = h("div", {}, loading());
  const vanish = h("div", { id: "vanish" });
  const below = h("div", {});
  put(place, h("div", { class: "part-head" }, heading,
    h("button", { type: "button", class: "plain", text: "Close", "aria-keyshortcuts": "Escape", on: { click: close } })),
  body, vanish, below);
  let found = null;

  async function look() {
    try {
      found = await post("why", { name: table.name, row });
    } catch (error) {
      if (error.status === 401) throw error;
      put(body, trouble(error, look));
      return;
    }
    draw();
  }

  function draw() {
    if (!found.there) {
      put(body, empty("This row is not there (any more)", "It was deleted, or what it stood on was."));
      put(vanish);
      put(below);
      return;
    }
    found.tuples.sort((one, other) => Boolean(one.system) - Boolean(other.system));
    const region = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Provenance" });
    put(body, sentence(found), region);
    drawIn(region, found, table, row, ask, place.clientWidth);
    put(below, list(found, ask));
  }

  async function ask(tuple) {
    for (const one of place.querySelectorAll("[data-tuple]")) {
      one.classList.toggle("chosen", one.dataset.tuple === tuple.label);
    }
    put(vanish, loading());
    try {
      const answer = await post("without", {
        relation: tuple.relation, row: tuple.row, whole: tuple.whole, id: tuple.id, of: { name: table.name, row },
      });
      put(vanish, vanishing(tuple, answer, table, row));
    } catch (error) {
      put(vanish, trouble(error, () => ask(tuple)));
    }
    vanish.querySelector("h3")?.focus();
  }

  return { look, heading };
}

function sentence(found) {
  if (!found.all_monomials || found.monomials.every((one) => !one.length)) {
    return h("p", { class: "quiet", text: "It stands on no row of a relation: the view has it by itself." });
  }
  const ways = found.proof
    ? "One smallest proof is shown; a recursive row may have many."
    : found.all_monomials === 1 ? `It stands on ${count(found.all_tuples, "base row")}${together(found)}.`
      : `There are ${found.all_monomials.toLocaleString("en")} ways to it, over ${count(found.all_tuples, "base row")}; one suffices.`;
  const cut = found.tuples.length < found.all_tuples || found.monomials.length < found.all_monomials;
  return h("p", { class: "quiet", id: "why-sentence" }, ways,
    found.text && [" ", h("code", { class: "poly", text: broken(short(found.text, 160)) })],
    cut && ` Shown are ${count(found.tuples.length, "row")} of them.`);
}

// A long product is broken where it may be, and not within a name; a short one is not broken at all.
const broken = (text) => (text.length > 60 ? text.replaceAll("·", "·\u200b") : text);

// Of a group, or of one proof among several, a row may go and leave another in its place.
function together(found) {
  if (found.all_tuples === 1) return "";
  return found.needed ? ", all of them needed" : " together";
}

// Layers: the row, the alternatives, the base rows, their sites. Of a recursive row, the proof in between.
function drawIn(region, found, table, row, ask, room) {
  const nodes = [];
  const edges = [];
  const node = (id, kind, lines, more = {}) => {
    const texts = lines.map((line) => short(line, room < NARROW ? LABEL.narrow : LABEL.wide));
    const width = Math.max(...texts.map((text, at) =>
      widthOf(text, at ? "11.5px system-ui, sans-serif" : "600 13px system-ui, sans-serif")), 26) + 26;
    nodes.push({ id, kind, lines: texts, full: lines.join("\n"), width, height: 18 + 17 * texts.length, ...more });
  };
  const tuples = new Map(found.tuples.map((tuple) => [tuple.label, tuple]));
  if (found.proof) proofNodes(found, node, edges);
  else {
    node("row", "row", [table.name, row.map(cell).join(", ")]);
    const several = found.monomials.length > 1;
    found.monomials.forEach((labels, at) => {
      const from = several ? `m${at}` : "row";
      if (several) {
        node(from, "way", [`way ${at + 1}`]);
        edges.push(["row", from]);
      }
      for (const label of labels) edges.push([from, label]);
    });
  }
  for (const tuple of tuples.values()) {
    if (found.proof && !edges.some(([, below]) => below === tuple.label)) edges.push(["p0", tuple.label]);
    if (tuple.hidden) {
      node(tuple.label, "hidden", ["a row that this", "token may not read"]);
      continue;
    }
    node(tuple.label, tuple.system ? "system" : "tuple", [tuple.relation, known(tuple).map(brief).join(", ")], { tuple });
    const site = `site ${tuple.origin}`;
    if (!nodes.some((one) => one.id === site)) node(site, "site", [tuple.origin || "(site unknown)"]);
    edges.push([tuple.label, site]);
  }
  const unique = [...new Map(edges.map((pair) => [pair.join("\u0000"), pair])).values()];
  atTheBottom(nodes, unique);
  const size = layOutWithin(nodes, unique, room);
  const made = picture(size, `Provenance of a row of ${table.name}`,
    size.routes.map((route) => edge(route, {}, size.sideways)), nodes.map((one) => drawn(one, ask)));
  put(region, made);
  inSight(region, made, nodes[0], size);
}

function proofNodes(found, node, edges) {
  const name = (step, at) => (step.leaf && !step.hidden && leafOf(step, found.tuples)) || `p${at}`;
  found.proof.forEach((step, at) => {
    if (name(step, at) !== `p${at}`) return;
    if (step.hidden) node(`p${at}`, "hidden", ["a row that this", "token may not read"]);
    else node(`p${at}`, at ? "way" : "row", [step.relation, step.row.map(cell).join(", ")]);
    for (const below of step.premises ?? []) edges.push([`p${at}`, name(found.proof[below], below)]);
    for (const label of step.stands_on ?? []) edges.push([`p${at}`, label]);
  });
}

// The base row that a leaf of a proof is: a leaf has only the columns that the view reads, in their order.
function leafOf(step, tuples) {
  const fits = (row) => step.row.reduce((from, value) => (from < 0 ? -1 : row.indexOf(value, from) + 1 || -1), 0) >= 0;
  const found = tuples.filter((one) => !one.hidden && one.relation === step.relation && fits(one.row));
  const whole = found.find((one) => one.row.length === step.row.length);
  return (whole ?? (found.length === 1 ? found[0] : null))?.label;
}

// What a base row is known to be: who hosts a view without its relations knows what the view reads.
const known = (tuple) => tuple.row.map((value, at) => (tuple.known[at] ? cell(value) : "?"));

// A time to the minute, where that is all of it.
const brief = (text) => text.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):00Z$/, "$1 $2");

const tupleText = (tuple) => `${tuple.relation}(${known(tuple).map((text) => short(text, 40)).join(", ")})`;

// Base rows stand in one layer and sites in the last, however deep the proofs above them are.
function atTheBottom(nodes, edges) {
  const depth = new Map(nodes.map((one) => [one.id, 0]));
  for (let turn = 0; turn < nodes.length; turn += 1) {
    let moved = false;
    for (const [above, below] of edges) {
      if ((depth.get(below) ?? 0) < (depth.get(above) ?? 0) + 1) {
        depth.set(below, (depth.get(above) ?? 0) + 1);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const isBase = (one) => one.kind === "tuple" || one.kind === "system" || (one.kind === "hidden" && !one.id.startsWith("p"));
  const deepest = Math.max(...nodes.filter(isBase).map((one) => depth.get(one.id)), 0);
  for (const one of nodes) {
    one.fixed = one.kind === "site" ? deepest + 1 : isBase(one) ? deepest : depth.get(one.id);
  }
}

function drawn(node, ask) {
  const { kind, lines, full, tuple } = node;
  const act = kind === "tuple" ? () => ask(tuple) : null;
  return box(node, {
    class: `node node-${kind}`, "data-node": kind, "data-tuple": tuple?.label,
    ...(act ? { tabindex: "0", role: "button", "aria-label": `What would vanish without ${tupleText(tuple)}?`,
      on: onEnter(act) } : {}),
  }, s("title", { text: full }), lines.map((line, at) =>
    s("text", { x: node.width / 2, y: 22 + 17 * at, "text-anchor": "middle", class: at ? "node-more" : "node-title", text: line })));
}

function list(found, ask) {
  const listed = found.tuples.filter((tuple) => !tuple.hidden);
  if (!listed.length) return h("p", { class: "quiet", text: "None of the base rows may be read by this token." });
  return h("table", { class: "tuples" },
    h("thead", {}, h("tr", {}, ["", "base row", "from", ""].map((text) => h("th", { text })))),
    h("tbody", {}, listed.map((tuple) => h("tr", { "data-tuple": tuple.label },
      h("td", { class: "quiet", text: tuple.label }),
      h("td", {}, h("span", { class: "mono" }, tupleText(tuple))),
      h("td", { class: "origin", text: tuple.origin || "unknown" }),
      h("td", { class: "act" }, tuple.system
        ? h("span", { class: "quiet small", title: "It says how far this site has all events of a source.", text: "kept by Everview" })
        : h("button", { type: "button", class: "small", text: "Without it?", on: { click: () => ask(tuple) } }))))));
}

function vanishing(tuple, answer, table, row) {
  const head = h("h3", { tabindex: "-1" }, "Without ", h("code", { text: short(tupleText(tuple), 80) }));
  if (answer.vanishes !== null) {
    const said = answer.vanishes ? "This row would vanish: every derivation of it that has come here names that row."
      : "This row would stay: it has a derivation that does not name that row.";
    return h("section", { class: "card" }, head, h("p", { id: "vanish-said", text: said }),
      h("p", { class: "quiet", text: "The base row is at other sites; what else would go is known there." }));
  }
  const others = answer.turns.filter((turn) => turn.name !== tuple.relation);
  const mine = answer.turns.find((turn) => turn.name === table.name);
  const text = JSON.stringify(row);
  const goes = mine?.rows.some((one) => one.weight < 0 && JSON.stringify(one.cells) === text);
  const gone = others.reduce((sum, turn) => sum + turn.vanished, 0);
  const come = others.reduce((sum, turn) => sum + turn.appeared, 0);
  const said = `${goes ? "This row would vanish." : "This row would stay."} ${
    others.length ? `Of views, ${count(gone, "row")} would go${come ? ` and ${come} would come` : ""} in all.` : "No view would change."}`;
  return h("section", { class: "card" }, head, h("p", { id: "vanish-said", text: said }),
    h("p", { class: "quiet", text: "Tried in a transaction that was undone: nothing has been changed." }),
    answer.turns.map((turn) => h("div", { class: "turn" },
      h("h4", {}, turn.name, turn.name === tuple.relation && h("span", { class: "quiet", text: " the row itself" })),
      h("div", { class: "scroll" }, h("table", { class: "rows" },
        h("thead", {}, h("tr", {}, h("th", {}), turn.columns.map((name) => h("th", { text: name })))),
        h("tbody", {}, turn.rows.map((one) => h("tr", { class: one.weight < 0 ? "goes" : "comes" },
          h("td", { class: "sign", text: one.weight < 0 ? `−${-one.weight}` : `+${one.weight}` }),
          one.cells.map((value) => h("td", { class: value === null ? "null" : null }, shown(value)))))))),
      turn.rows.length < turn.vanished + turn.appeared && h("p", { class: "quiet", text: "and more" }))));
}

// The rows of a relation or view; those that have come since the last look are marked.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { empty, code, loading } from "./states.js";
import { cell, count } from "./words.js";

const PAGE = 100;

const isNumber = (column) => /INT|DOUBLE|DECIMAL/.test(column.type);
const SHORT = 24; // letters that stand in one line

// A value in a table: a short one in one line, a long one cut off.
export function shown(value) {
  const text = cell(value);
  return h("span", { class: text.length > SHORT ? "clip" : "clip short", text });
}

export function rowsPart(place, table, chosen, open) {
  let offset = 0;
  let known = null;
  let text = "";
  put(place, loading());

  async function look() {
    const found = await get("rows", { name: table.name, offset, limit: PAGE });
    if (!found.rows.length && found.different > 0 && offset) {
      offset = 0;
      return look();
    }
    const now = JSON.stringify(found);
    if (now === text) return undefined;
    text = now;
    const before = known;
    known = new Set(found.rows.map((row) => JSON.stringify(row.cells)));
    draw(found, before);
    return undefined;
  }

  function draw(found, before) {
    const focused = document.activeElement?.dataset?.row;
    put(place, summary(found), found.rows.length ? grid(found, before) : nothing(table), pager(found));
    if (focused !== undefined) {
      const rows = [...place.querySelectorAll("tr[data-row]")];
      (rows.find((row) => row.dataset.row === focused) ?? rows[0])?.focus();
    }
  }

  function grid(found, before) {
    const body = found.rows.map((row, at) => {
      const key = JSON.stringify(row.cells);
      const fresh = before !== null && !before.has(key);
      return h("tr", {
        tabindex: at ? "-1" : "0", "data-row": key, class: fresh ? "fresh" : null, role: "row",
        "aria-selected": String(key === chosen()),
        title: row.whole ? "Why is it there?" : "A value is too long to be asked about",
        on: {
          click: () => row.whole && open(row.cells),
          keydown: (event) => steer(event, row),
        },
      }, row.cells.map((value, column) => h("td", {
        class: value === null ? "null" : isNumber(found.columns[column]) ? "number" : null,
      }, shown(value))),
      found.rows.some((one) => one.often > 1) && h("td", { class: "often", text: row.often > 1 ? `× ${row.often}` : "" }));
    });
    return h("div", { class: "scroll" }, h("table", { class: "rows", role: "grid", "aria-label": `Rows of ${table.name}` },
      h("thead", {}, h("tr", { role: "row" }, found.columns.map((column) =>
        h("th", { scope: "col", class: isNumber(column) ? "number" : null }, column.name, h("span", { class: "type", text: column.type.toLowerCase() }))),
      found.rows.some((row) => row.often > 1) && h("th", { text: "copies" }))),
      h("tbody", {}, body)));
  }

  function steer(event, row) {
    const rows = [...place.querySelectorAll("tr[data-row]")];
    const at = rows.indexOf(event.currentTarget);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined && rows[to]) {
      event.preventDefault();
      for (const one of rows) one.tabIndex = -1;
      rows[to].tabIndex = 0;
      rows[to].focus();
    } else if (event.key === "Enter" && row.whole) {
      event.preventDefault();
      open(row.cells);
    }
  }

  function summary(found) {
    const copies = found.total !== found.different && found.ordered ? ` (${found.different.toLocaleString("en")} different)` : "";
    return h("p", { class: "quiet", id: "rows-count" }, `${count(found.total, "row")}${copies}`,
      !found.ordered && "; so many that they are shown as they lie, not in order");
  }

  function pager(found) {
    if (found.different <= PAGE) return null;
    const last = Math.min(offset + found.rows.length, found.different);
    const turn = (to) => () => { offset = to; text = ""; known = null; look(); };
    return h("div", { class: "pager" },
      h("button", { type: "button", text: "Before", disabled: offset === 0, on: { click: turn(Math.max(offset - PAGE, 0)) } }),
      h("span", { class: "quiet", text: `${(offset + 1).toLocaleString("en")}–${last.toLocaleString("en")}` }),
      h("button", { type: "button", text: "After", disabled: last >= found.different, on: { click: turn(offset + PAGE) } }));
  }

  return { look };
}

function nothing(table) {
  if (table.kind === "relation") {
    return empty(`${table.name} has no rows`, ["They appear here as soon as a site writes some: ",
      code(`everview insert STORE ${table.name} FILE`), table.writable ? ", or the button above." : "."]);
  }
  return empty(`${table.name} has no rows`, table.reads.length
    ? `It is made from ${table.reads.join(", ")}; rows appear here with the commit that brings them about.`
    : "Rows appear here with the commit that brings them about.");
}

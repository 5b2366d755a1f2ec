// Relations and views: a list, and of one of them the rows, the plan, and why a row is there.

import { get } from "./api.js";
import { h, put } from "./dom.js";
import { planPart } from "./plan.js";
import { rowsPart } from "./rows.js";
import { empty } from "./states.js";
import { whyPart } from "./why.js";
import { deleteButton, insertButton } from "./writes.js";

// A row that an address names: a list of texts, or nothing if it is none.
function cells(text, width) {
  try {
    const row = JSON.parse(text);
    const fits = Array.isArray(row) && row.length === width && row.every((value) => value === null || typeof value === "string");
    return fits ? row : null;
  } catch {
    return null;
  }
}

export function dataPage(main, about) {
  const list = h("div", { class: "list", role: "navigation", "aria-label": "Relations and views" });
  const detail = h("div", { class: "detail" });
  put(main, h("div", { class: "data" }, list, detail));
  const state = { table: null, mode: "", row: "", part: null, why: null, counts: {}, back: null };

  function drawList() {
    const link = (table) => h("a", {
      href: `#/data/${encodeURIComponent(table.name)}`, class: "item", "data-table": table.name,
      "aria-current": state.table?.name === table.name ? "true" : null,
    }, h("span", { class: "item-name", text: table.name }),
    h("span", { class: "item-count", text: counted(table.name) }));
    const part = (title, kind) => {
      const found = about.tables.filter((table) => table.kind === kind);
      return found.length ? [h("h2", { class: "list-title", text: title }), found.map(link)] : [];
    };
    put(list, part("Views", "view"), part("Relations", "relation"),
      about.unreadable ? h("p", { class: "quiet small", text: `${about.unreadable} more, which this token may not read` }) : null);
  }

  function counted(name) {
    const found = state.counts[name];
    return found ? `${found.exact ? "" : "≈ "}${found.rows.toLocaleString("en")}` : "";
  }

  async function counts() {
    state.counts = (await get("tables")).counts;
    drawList();
  }

  function draw() {
    const { table, mode } = state;
    const base = `#/data/${encodeURIComponent(table.name)}`;
    const facts = [table.kind === "view" ? "view" : `${table.semantics} relation`,
      table.key.length ? `key ${table.key.join(", ")}` : "", table.owner ? `each row is written by the site in ${table.owner}` : "",
      table.reads.length ? `made from ${table.reads.join(", ")}` : ""].filter(Boolean);
    const place = h("div", {});
    const why = h("section", { class: "why", id: "why", hidden: true });
    put(detail,
      h("div", { class: "detail-head" },
        h("div", {}, h("h1", { text: table.name }), h("p", { class: "quiet", text: facts.join(" · ") })),
        table.writable && insertButton(table, () => look())),
      table.kind === "view" && h("div", { class: "modes" },
        h("a", { href: base, "aria-current": mode === "rows" ? "true" : null, text: "Rows" }),
        h("a", { href: `${base}/plan`, "aria-current": mode === "plan" ? "true" : null, text: "Plan" })),
      h("div", { class: "split" }, place, why));
    state.why = why;
    state.part = mode === "plan" ? planPart(place, table.name) : rowsPart(place, table, () => state.row, (row) => {
      state.back = JSON.stringify(row);
      location.hash = `${base}?row=${encodeURIComponent(JSON.stringify(row))}`;
    });
  }

  async function showWhy(text) {
    state.row = text;
    for (const row of detail.querySelectorAll("tr[data-row]")) row.setAttribute("aria-selected", String(row.dataset.row === text));
    state.why.hidden = !text;
    state.why.parentElement.classList.toggle("with-why", Boolean(text));
    if (!text) {
      put(state.why);
      const rows = [...detail.querySelectorAll("tr[data-row]")];
      rows.find((row) => row.dataset.row === state.back)?.focus();
      return;
    }
    const row = cells(text, state.table.columns.length);
    if (row === null) {
      close();
      return;
    }
    const shown = whyPart(state.why, state.table, row, close);
    if (state.table.writable) {
      state.why.append(deleteButton(state.table, row, () => { close(); look(); }));
    }
    shown.heading.focus();
    await shown.look();
  }

  function close() {
    location.hash = `#/data/${encodeURIComponent(state.table.name)}`;
  }

  async function look() {
    await Promise.all([state.part?.look(), counts()]);
  }

  return {
    async go(rest, query) {
      if (!about.tables.length) {
        put(main, empty("There is nothing that this token may read",
          "It needs read = \"*\", or a list of names, in the server’s file of tokens."));
        return;
      }
      const name = rest[0] ?? (about.tables.find((table) => table.kind === "view") ?? about.tables[0]).name;
      const table = about.tables.find((one) => one.name === name);
      if (!table) {
        state.table = null;
        await counts();
        put(detail, empty(`There is no ${name} here`, "It may be hosted elsewhere, or this token may not read it. The list has what there is."));
        return;
      }
      const mode = rest[1] === "plan" && table.kind === "view" ? "plan" : "rows";
      const row = query.get("row") ?? "";
      if (state.table !== table || state.mode !== mode) {
        Object.assign(state, { table, mode, row: "", part: null });
        draw();
        drawList();
        await look();
      }
      if (row !== state.row) await showWhy(mode === "rows" ? row : "");
    },
    async news() {
      if (state.table) await look();
    },
    key(event) {
      if (event.key === "Escape" && state.row) close();
    },
  };
}

// Rows are written from the page only where the server was started with --allow-write.

import { post } from "./api.js";
import { h, put } from "./dom.js";
import { rowText, short } from "./words.js";

function dialogue(title, ...children) {
  const dialog = h("dialog", { "aria-label": title }, h("h2", { text: title }), children);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

export function insertButton(table, done) {
  return h("button", { type: "button", class: "main", id: "insert", text: "Insert a row", on: { click: () => form(table, done) } });
}

function form(table, done) {
  const said = h("p", { class: "said", role: "alert" });
  const fields = table.columns.map((column, at) => {
    const input = h("input", { id: `field-${at}`, name: column.name, autocomplete: "off", spellcheck: "false" });
    const none = h("input", { type: "checkbox", id: `null-${at}` });
    none.addEventListener("change", () => { input.disabled = none.checked; });
    return { input, none, row: h("div", { class: "field" },
      h("label", { for: `field-${at}` }, column.name, h("span", { class: "type", text: column.type.toLowerCase() })),
      h("div", { class: "line" }, input, column.nullable && h("label", { class: "null-box" }, none, "NULL"))) };
  });
  const made = h("form", { on: { submit: async (event) => {
    event.preventDefault();
    try {
      const row = fields.map(({ input, none }) => (none.checked ? null : input.value));
      await post("insert", { relation: table.name, row });
      dialog.close();
      done();
    } catch (error) {
      put(said, document.createTextNode(error.message));
    }
  } } }, fields.map((field) => field.row), said,
  h("div", { class: "buttons" }, h("button", { type: "button", text: "Cancel", on: { click: () => dialog.close() } }),
    h("button", { type: "submit", class: "main", text: "Insert" })));
  const dialog = dialogue(`Insert a row into ${table.name}`, made);
  fields[0]?.input.focus();
}

export function deleteButton(table, row, done) {
  const said = h("p", { class: "said", role: "alert" });
  const ask = () => {
    const dialog = dialogue("Delete this row?",
      h("p", {}, h("code", { text: short(rowText(table.name, row), 160) })),
      h("p", { class: "quiet", text: "It goes here at once, and at other sites when they meet." }), said,
      h("div", { class: "buttons" }, h("button", { type: "button", text: "Cancel", on: { click: () => dialog.close() } }),
        h("button", { type: "button", class: "danger", id: "delete-now", text: "Delete", on: { click: async () => {
          try {
            await post("delete", { relation: table.name, row });
            dialog.close();
            done();
          } catch (error) {
            put(said, document.createTextNode(error.message));
          }
        } } })));
  };
  return h("div", { class: "buttons" }, h("button", { type: "button", class: "danger", id: "delete", text: "Delete this row", on: { click: ask } }));
}

// A token is typed in, or pasted; it stays in this tab.

import { h } from "./dom.js";

export function signIn(said, use) {
  const input = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const form = h("form", { class: "card signin", on: { submit: (event) => {
    event.preventDefault();
    if (input.value.trim()) use(input.value.trim());
  } } },
  h("h1", { text: "A token, please" }),
  said && h("p", { class: "said", role: "alert", text: said }),
  h("p", { class: "quiet" }, "This server tells each token what it may read. ",
    h("code", { text: "everview token --site NAME >> tokens.toml" }), " makes one."),
  h("label", { for: "token", text: "Token" }),
  h("div", { class: "line" }, input, h("button", { type: "submit", class: "main", text: "Open" })),
  h("p", { class: "quiet small", text: "It is kept in this tab until you close it, and sent to this server only." }));
  return form;
}

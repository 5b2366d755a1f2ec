// What is shown when there is nothing to show, or something is wrong: what it means, and what to do next.

import { Away } from "./api.js";
import { h } from "./dom.js";

export function empty(title, ...lines) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title", text: title }), lines.map((line) =>
    h("p", { class: "quiet" }, line)));
}

export function code(text) {
  return h("code", { text });
}

export function loading() {
  return h("p", { class: "quiet", text: "Loading …" });
}

// What is refused because there is too much of it: nothing is wrong, and to try again would not help.
function tooMuch(error) {
  return h("div", { class: "card", role: "status" },
    h("p", { class: "trouble-title", text: "There is too much to tell here" }), h("p", { class: "quiet", text: sentence(error) }));
}

const sentence = (error) => `${error.message.slice(0, 1).toUpperCase()}${error.message.slice(1)}.`;

export function trouble(error, again) {
  if (error.code === "limit") return tooMuch(error);
  const next = error instanceof Away
    ? "It may have been stopped. The page looks for it again by itself."
    : error.status === 403 ? "Ask for a token with more rights, or look at something else."
      : error.status === 503 ? "The store is busy; it may pass." : "";
  return h("div", { class: "card trouble", role: "alert" },
    h("p", { class: "trouble-title", text: "This cannot be shown" }),
    h("p", { text: sentence(error) }),
    next && h("p", { class: "quiet", text: next }),
    again && h("button", { type: "button", on: { click: again }, text: "Try again" }));
}

// The page: who is looked at, which part of it, and that what is shown stays up to date.

import { Away, Refused, get, token } from "./api.js";
import { h, put } from "./dom.js";
import { dataPage } from "./data.js";
import { mapPage } from "./map.js";
import { refreshesPage } from "./refreshes.js";
import { signIn } from "./signin.js";
import { simulationPage } from "./simulation.js";
import { trouble } from "./states.js";

const LEAST_MS = 400; // between two looks at the same thing, however many commits there are
const RATIO = 4; // and so many times as long as a look takes, so that who looks does not keep the store busy

const main = document.getElementById("main");
const state = { about: null, page: null, key: "", mark: "", head: 0, polls: null };

const PAGES = {
  map: { title: "Map", make: mapPage },
  data: { title: "Data", make: dataPage },
  refreshes: { title: "Refreshes", make: refreshesPage },
  simulation: { title: "Simulation", make: simulationPage },
};

function offered() {
  if (state.about.kind === "simulation") return ["simulation"];
  const listed = ["map", "data", "refreshes"];
  return state.about.simulation ? [...listed, "simulation"] : listed;
}

function address() {
  const [path, query = ""] = location.hash.slice(1).split("?");
  const [name, ...rest] = path.split("/").filter(Boolean).map(decodeURIComponent);
  const known = offered();
  return { name: known.includes(name) ? name : known[0], rest, query: new URLSearchParams(query) };
}

function drawTabs(current) {
  const links = offered().map((name, index) =>
    h("a", {
      href: `#/${name}`, "aria-current": name === current ? "page" : null, "data-tab": name,
      "aria-keyshortcuts": String(index + 1), title: `${PAGES[name].title} (key ${index + 1})`,
    }, PAGES[name].title));
  put(document.getElementById("tabs"), links);
}

function drawWho() {
  const { kind, name, token_of: of } = state.about;
  put(document.getElementById("who"),
    h("span", { class: "who-name", text: kind === "simulation" ? "a simulator’s run" : name || "(no name)" }),
    kind !== "simulation" && h("span", { class: "chip", text: kind }),
    of && h("span", { class: "quiet who-token", text: `token of ${of}` }),
    token.get() && h("button", { type: "button", class: "plain", text: "Sign out", on: { click: signOut } }));
}

function drawLive(how) {
  const words = { live: `live · commit ${state.head.toLocaleString("en")}`, away: "no answer", still: "a record" };
  put(document.getElementById("live"), h("span", { class: `dot dot-${how}` }), h("span", { text: words[how] }));
}

function drawKeys() {
  if (state.about.kind === "simulation") return;
  put(document.getElementById("foot"),
    h("span", {}, h("kbd", { text: "1" }), "–", h("kbd", { text: String(offered().length) }), " pages"),
    h("span", {}, h("kbd", { text: "↑" }), h("kbd", { text: "↓" }), " rows"),
    h("span", {}, h("kbd", { text: "Enter" }), " why a row is there"),
    h("span", {}, h("kbd", { text: "Esc" }), " back"));
}

function banner(text) {
  const place = document.getElementById("banner");
  place.hidden = !text;
  place.textContent = text;
}

async function show() {
  const { name, rest, query } = address();
  drawTabs(name);
  document.title = `${PAGES[name].title} · ${state.about.name || "Everview"} console`;
  if (state.page && state.key === name) {
    await guarded(() => state.page.go(rest, query));
    return;
  }
  state.page?.leave?.();
  state.key = name;
  state.page = PAGES[name].make(main, state.about);
  await guarded(() => state.page.go(rest, query));
}

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    await failed(error);
  }
}

async function failed(error) {
  if (error.name === "AbortError") return;
  if (error instanceof Refused && error.status === 401) {
    await askForToken(token.get() ? "The server does not know this token (any more)." : "");
    return;
  }
  if (!(error instanceof Away || error instanceof Refused)) console.error(error);
  put(main, trouble(error, () => show()));
  state.page?.leave?.();
  state.page = null;
}

async function askForToken(said) {
  state.polls?.abort();
  state.page?.leave?.();
  state.page = null;
  token.forget();
  for (const id of ["tabs", "who", "live", "foot"]) put(document.getElementById(id));
  put(main, signIn(said, (given) => {
    token.set(given);
    begin();
  }));
  document.getElementById("token")?.focus();
}

function signOut() {
  askForToken("");
}

// One request waits at the server for news; what is shown is then asked for again, not more often than needed.
async function follow() {
  state.polls?.abort();
  const polls = state.polls = new AbortController();
  let pause = 1000;
  let away = false; // then the first answer is wanted at once, and what is shown may be old
  while (!polls.signal.aborted) {
    const began = performance.now();
    try {
      const found = await get("live", { after: away ? "" : state.mark }, polls.signal);
      const news = away || (state.mark !== "" && found.mark !== state.mark);
      away = false;
      state.mark = found.mark;
      state.head = found.head;
      banner("");
      drawLive("live");
      pause = 1000;
      const looked = performance.now();
      if (news) await state.page?.news?.();
      const took = performance.now() - looked;
      const left = Math.max(LEAST_MS - (performance.now() - began), RATIO * took);
      if (left > 0) await new Promise((done) => setTimeout(done, left));
    } catch (error) {
      if (polls.signal.aborted) return;
      if (error instanceof Refused && error.status === 401) {
        await failed(error);
        return;
      }
      away = true;
      drawLive("away");
      banner("The server does not answer. What is shown may be old; the page tries again by itself.");
      await new Promise((done) => setTimeout(done, pause));
      pause = Math.min(1.5 * pause, 5000);
    }
  }
}

async function begin() {
  await guarded(async () => {
    state.about = await get("about");
    drawWho();
    drawKeys();
    await show();
    if (state.about.kind === "simulation") drawLive("still");
    else follow();
  });
}

function keys(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || document.querySelector("dialog[open]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !state.about) return;
  const tab = offered()[Number(event.key) - 1];
  if (tab) location.hash = `#/${tab}`;
  else state.page?.key?.(event);
}

token.fromAddress();
window.addEventListener("hashchange", () => {
  token.fromAddress();
  if (state.about) show();
});
document.addEventListener("keydown", keys);
begin();

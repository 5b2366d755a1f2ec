// The map: this site in the middle, the others around it; and below, whether any is known to differ.

import { alarms } from "./alarms.js";
import { get } from "./api.js";
import { h, put, s } from "./dom.js";
import { widthOf } from "./graph.js";
import { code, empty, loading } from "./states.js";
import { ago, count, freshness, short, siteName } from "./words.js";

const EVERY_MS = 3000; // what was heard of others changes without a commit
const WIDE = 640; // from here on a few sites stand in a ring
const WIDER = 880; // and many
const FEW = 6;
const RING = 9; // more sites than these stand in two rings
const DRAWN = 20; // and more than these are listed, and not drawn

export function mapPage(main) {
  const place = h("div", { id: "map" }, loading());
  const below = h("div", {});
  put(main, h("h1", { text: "Sites and links" }), place, below);
  let drawn = "";
  let last = null;

  async function look() {
    const found = await get("sites");
    const text = JSON.stringify([found, main.clientWidth < WIDE, main.clientWidth < WIDER], (key, value) => (key === "now_us" ? Math.floor(value / 1e6) : value));
    if (text === drawn) return;
    drawn = text;
    last = found;
    draw(found);
  }

  function draw(found) {
    found.sites.sort((one, other) => siteName(one).localeCompare(siteName(other), "en", { numeric: true }));
    put(place, found.sites.length ? [legend(), drawing(found, main.clientWidth), table(found)] : alone(found));
    put(below, alarms(found));
  }

  const timer = setInterval(() => look().catch(() => {}), EVERY_MS);
  const watcher = new ResizeObserver(() => last && look().catch(() => {}));
  watcher.observe(main);
  return {
    go: look,
    news: look,
    leave() {
      clearInterval(timer);
      watcher.disconnect();
    },
  };
}

function alone(found) {
  const mine = location.origin;
  return empty(`${found.self.name || "This site"} has met no other site`,
    ["Another one comes here with ", code(`everview sync --store FILE ${mine}`), "."],
    "It then appears on this map, with when it was last heard of.");
}

function legend() {
  const item = (kind, text) => h("span", { class: "legend-item" }, h("span", { class: `dot dot-${kind}` }), text);
  return h("p", { class: "legend quiet" }, item("fresh", "met in the last two minutes"), item("late", "in the last hour"),
    item("old", "longer ago"), h("span", { class: "legend-item" }, h("span", { class: "dash" }), "known through others"));
}

function words(site) {
  if (site.lag === null) return site.link ? "dialled from here" : "through others";
  return site.lag ? `${count(site.lag, "commit")} behind` : "has everything";
}

function met(site, nowUs) {
  return site.heard_us ? `met ${ago(site.heard_us, nowUs)}` : "not met directly";
}

function pill(site, kind, place, lines) {
  const texts = lines.map((line) => short(line, 26));
  const width = Math.max(...texts.map((text, at) =>
    widthOf(text, at ? "11.5px system-ui, sans-serif" : "600 13.5px system-ui, sans-serif"))) + 44;
  const height = 20 + 16 * texts.length;
  const [x, y] = [place.left === undefined ? place.x : place.left + width / 2, place.y];
  return s("g", { class: `site site-${kind}`, transform: `translate(${x - width / 2},${y - height / 2})`, "data-site": siteName(site) },
    s("title", { text: lines.join("\n") }),
    s("rect", { width, height, rx: 12 }),
    s("circle", { cx: 17, cy: 19, r: 5, class: "site-dot" }),
    texts.map((text, at) => s("text", { x: 30, y: 23 + 16 * at, class: at ? "site-more" : "site-name", text })));
}

function drawing(found, width) {
  const sites = found.sites.slice(0, DRAWN);
  const own = found.self;
  const centre = [own.name || own.incarnation.slice(0, 8), `this ${own.kind} · commit ${own.head.toLocaleString("en")}`];
  const about = (site) => [siteName(site), words(site), met(site, found.now_us)];
  const kind = (site) => freshness(site.heard_us, found.now_us);
  const places = width < (sites.length > FEW ? WIDER : WIDE) ? column(sites, width) : ring(sites, width);
  const lines = places.sites.map(({ path }, at) => s("path", {
    d: path, class: `link link-${kind(sites[at])}${sites[at].link ? "" : " link-far"}`,
  }));
  const labels = places.sites.map(({ lagX, lagY }, at) => {
    const lag = sites[at].lag;
    if (!lag) return null;
    return s("g", { class: "lag", transform: `translate(${lagX},${lagY})` }, s("circle", { r: 13 }),
      s("text", { "text-anchor": "middle", y: 4, text: lag > 999 ? "999+" : `−${lag}` }));
  });
  return s("svg", {
    viewBox: `0 0 ${places.width} ${places.height}`, width: places.width, height: places.height, class: "picture map", role: "img",
    "aria-label": `${count(found.all_sites, "other site")} around ${centre[0]}; the table below says the same`,
  }, lines, labels, pill(own, "self", places.self, centre),
  sites.map((site, at) => pill(site, kind(site), places.sites[at], about(site))));
}

function ring(sites, width) {
  const wide = Math.min(width, 980);
  const height = sites.length < 3 ? 240 : sites.length <= RING ? 400 : 780;
  const middle = wide / 2;
  const inner = sites.length <= RING ? 0 : Math.round(sites.length * 0.35);
  const turn = sites.length === 2 ? 0 : -Math.PI / 2;
  const spots = sites.map((_, at) => {
    const [number, of, far] = at < sites.length - inner ? [at, sites.length - inner, 1] : [at - sites.length + inner + 0.5, inner, 0.52];
    const angle = turn + (2 * Math.PI * number) / of;
    return { x: middle + Math.cos(angle) * (wide / 2 - 100) * far, y: Math.sin(angle) * (height / 2 - 42) * far };
  });
  const top = Math.min(0, ...spots.map((spot) => spot.y)) - 46;
  const y = -top;
  return {
    self: { x: middle, y }, width: wide, height: Math.max(0, ...spots.map((spot) => spot.y)) - top + 46,
    sites: spots.map((spot) => ({
      x: spot.x, y: spot.y + y, path: `M${middle},${y} L${spot.x},${spot.y + y}`,
      lagX: middle + (spot.x - middle) * 0.52, lagY: y + spot.y * 0.52,
    })),
  };
}

// On a phone: this site on top, a trunk down from it, the others at its branches.
function column(sites, width) {
  const wide = Math.max(width, 280);
  const at = (number) => 118 + number * 86;
  return {
    self: { left: 2, y: 34 }, width: wide, height: 74 + sites.length * 86,
    sites: sites.map((_, number) => ({
      left: 92, y: at(number), path: `M28,40 V${at(number) - 12} Q28,${at(number)} 40,${at(number)} H100`, lagX: 62, lagY: at(number),
    })),
  };
}

function table(found) {
  const line = (site) => h("tr", { "data-member": siteName(site) },
    h("td", {}, h("span", { class: `dot dot-${freshness(site.heard_us, found.now_us)}` }), siteName(site)),
    h("td", { text: site.lag === null ? "" : words(site) }),
    h("td", { text: ago(site.heard_us, found.now_us) }),
    h("td", { text: site.link ? (site.link.dialled ? `dialled from here${site.link.address ? `, ${site.link.address}` : ""}` : "comes here") : "through others" }),
    h("td", { class: "quiet long", text: site.names.join(", ") }));
  return h("div", { class: "scroll" }, h("table", { class: "rows facts-table", "aria-label": "Sites" },
    h("thead", {}, h("tr", {}, ["site", "of this site’s commits", "met", "link", "rows seen of"].map((text) => h("th", { text })))),
    h("tbody", {}, found.sites.map(line))),
  found.sites.length < found.all_sites && h("p", { class: "quiet", text: `and ${found.all_sites - found.sites.length} more` }));
}

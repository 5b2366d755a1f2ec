// A view's plan: operators as boxes, rows flow from the relations at the bottom to the view at the top.

import { get } from "./api.js";
import { h, put, s } from "./dom.js";
import { box, edge, inSight, layOut, picture, widthOf } from "./graph.js";
import { empty, loading } from "./states.js";
import { short } from "./words.js";

const DETAIL = 44;

export function planPart(place, name) {
  let drawn = "";

  async function look() {
    const found = await get("plan", { name });
    const text = JSON.stringify(found);
    if (text === drawn) return;
    const before = drawn ? place.querySelector(".scroll")?.scrollLeft : null;
    drawn = text;
    const region = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The plan" });
    put(place, told(found), region, h("details", { class: "words" }, h("summary", { text: "In words" }),
      h("pre", { text: found.words })));
    draw(found, region, before);
  }

  put(place, loading());
  return { look };
}

function told(found) {
  if (found.change === null) {
    const what = found.unit === "commit"
      ? "Rows are counted from now on, while this picture is open: the next commit that this server makes will show here."
      : "No refresh has been made since the hub was started: the next one will show here.";
    return h("p", { class: "quiet", id: "plan-change", text: what });
  }
  return h("p", { class: "quiet", id: "plan-change" }, `Rows that came and went in each operator with ${found.unit} `,
    h("strong", { text: found.change.toLocaleString("en") }), ". Unchanged operators are pale.");
}

function draw(found, region, before) {
  if (!found.boxes.length) {
    put(region, empty("There is no plan to show"));
    return;
  }
  const nodes = found.boxes.map((one) => {
    const detail = short(one.detail, DETAIL);
    const counts = words(one);
    const width = Math.max(
      widthOf(one.title, "600 13px system-ui, sans-serif") + (counts ? widthOf(counts.join("  ")) + 26 : 0),
      widthOf(detail, "11.5px system-ui, sans-serif"), 74) + 28;
    return { id: one.id, one, detail, counts, width, height: detail ? 50 : 34 };
  });
  const edges = found.boxes.flatMap((one) => one.reads.map((below) => [one.id, below]));
  const size = layOut(nodes, edges);
  const made = picture(size, `The plan of ${found.name}`,
    size.routes.map((route) => edge(route, { class: `edge${moves(route.at(-1).one) ? " edge-moved" : ""}` })),
    nodes.map(drawn));
  put(region, made);
  inSight(region, made, nodes[0], size, before);
}

const moves = (one) => Boolean(one.appeared || one.disappeared);

function words(one) {
  if (one.appeared === null) return null;
  const found = [];
  if (one.appeared) found.push(`+${one.appeared.toLocaleString("en")}`);
  if (one.disappeared) found.push(`−${one.disappeared.toLocaleString("en")}`);
  return found.length ? found : ["0"];
}

function drawn(node) {
  const { one, detail, counts, width } = node;
  const still = counts && !moves(one) ? " box-still" : "";
  let right = width - 14;
  const badges = [...(counts ?? [])].reverse().map((text) => {
    const kind = text.startsWith("+") ? "come" : text.startsWith("−") ? "go" : "none";
    const made = s("text", { x: right, y: 22, class: `count count-${kind}`, "text-anchor": "end", text });
    right -= widthOf(text) + 9;
    return made;
  });
  return box(node, { class: `box box-${one.kind}${still}`, "data-box": one.title },
    s("title", { text: `${one.title} ${one.detail}`.trim() }),
    s("text", { x: 14, y: 22, class: "box-title", text: one.title }),
    detail && s("text", { x: 14, y: 39, class: "box-detail", text: detail }),
    badges);
}

// Graphs in layers: every node stands below those that lead to it, near them, and no two overlap.

import { s } from "./dom.js";

const GAP_X = 22;
const GAP_Y = 46;
const PAD = 12;
const LEAST = 0.72;

const pen = document.createElement("canvas").getContext("2d");

export function widthOf(text, font = "13px system-ui, sans-serif") {
  pen.font = font;
  return pen.measureText(text).width;
}

// nodes: {id, width, height}; edges: [above, below]. Sets x, y (the middle of the top) and layer of each node.
// An edge over several layers goes through a place of its own in each: `routes` are the nodes that edges touch.
export function layOut(given, edges) {
  const nodes = [...given];
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const up = new Map(nodes.map((node) => [node.id, []]));
  const down = new Map(nodes.map((node) => [node.id, []]));
  const known = edges.filter(([above, below]) => byId.has(above) && byId.has(below));
  const tie = (above, below) => {
    down.get(above.id).push(below);
    up.get(below.id).push(above);
  };
  for (const [above, below] of known) tie(byId.get(above), byId.get(below));
  inLayers(nodes, up, down);
  for (const near of [up, down]) near.forEach((_, id) => near.set(id, []));
  const routes = known.map(([above, below]) => {
    const route = [byId.get(above)];
    for (let layer = byId.get(above).layer + 1; layer < byId.get(below).layer; layer += 1) {
      const place = { id: `${above}>${below}@${layer}`, width: 6, height: 0, fixed: layer, empty: true };
      nodes.push(place);
      up.set(place.id, []);
      down.set(place.id, []);
      route.push(place);
    }
    route.push(byId.get(below));
    for (let at = 1; at < route.length; at += 1) tie(route[at - 1], route[at]);
    return route;
  });
  const layers = inLayers(nodes, up, down);
  for (let turn = 0; turn < 8; turn += 1) {
    const ordered = turn % 2 ? [...layers].reverse() : layers;
    for (const layer of ordered) sortBy(layer, turn % 2 ? down : up);
  }
  for (const layer of layers) inARow(layer);
  for (let turn = 0; turn < 24; turn += 1) {
    for (const layer of turn % 2 ? layers : [...layers].reverse()) pull(layer, turn % 2 ? up : down);
  }
  const left = Math.min(...nodes.map((node) => node.x - node.width / 2));
  let y = PAD;
  for (const layer of layers) {
    const height = Math.max(...layer.map((node) => node.height));
    for (const node of layer) {
      node.x += PAD - left;
      node.y = y + (height - node.height) / 2;
    }
    y += height + GAP_Y;
  }
  return {
    routes,
    width: Math.max(...nodes.map((node) => node.x + node.width / 2)) + PAD,
    height: y - GAP_Y + PAD,
  };
}

function inLayers(nodes, up, down) {
  const depth = new Map();
  const waiting = new Map(nodes.map((node) => [node.id, up.get(node.id).length]));
  let ready = nodes.filter((node) => !waiting.get(node.id));
  for (const node of ready) depth.set(node.id, 0);
  while (ready.length) {
    const next = [];
    for (const node of ready) {
      for (const below of down.get(node.id)) {
        depth.set(below.id, Math.max(depth.get(below.id) ?? 0, depth.get(node.id) + 1));
        waiting.set(below.id, waiting.get(below.id) - 1);
        if (!waiting.get(below.id)) next.push(below);
      }
    }
    ready = next;
  }
  const layers = [];
  for (const node of nodes) {
    node.layer = node.fixed ?? depth.get(node.id) ?? 0;
    (layers[node.layer] ??= []).push(node);
  }
  const found = layers.filter(Boolean);
  for (const layer of found) layer.forEach((node, at) => { node.at = at; });
  return found;
}

function sortBy(layer, near) {
  const place = (node) => {
    const others = near.get(node.id);
    return others.length ? others.reduce((sum, other) => sum + other.at, 0) / others.length : node.at;
  };
  const keyed = layer.map((node) => [place(node), node.at, node]);
  keyed.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  keyed.forEach(([, , node], at) => { node.at = at; layer[at] = node; });
}

function inARow(layer) {
  let x = 0;
  for (const node of layer) {
    node.x = x + node.width / 2;
    x += node.width + GAP_X;
  }
  const middle = x / 2;
  for (const node of layer) node.x -= middle;
}

function pull(layer, near) {
  for (const node of layer) {
    const others = near.get(node.id);
    if (others.length) node.x = others.reduce((sum, other) => sum + other.x, 0) / others.length;
  }
  const room = (one, other) => (one.width + other.width) / 2 + GAP_X;
  for (let at = 1; at < layer.length; at += 1) {
    const least = layer[at - 1].x + room(layer[at - 1], layer[at]);
    if (layer[at].x < least) {
      // Half of what is missing is taken from each side.
      const half = (least - layer[at].x) / 2;
      layer[at].x += half;
      for (let before = at - 1; before >= 0; before -= 1) {
        const most = layer[before + 1].x - room(layer[before], layer[before + 1]);
        if (layer[before].x > most) layer[before].x = most;
      }
    }
  }
}

export function edge(route, props = {}) {
  let d = `M${route[0].x},${route[0].y + route[0].height}`;
  for (let at = 1; at < route.length; at += 1) {
    const [above, below] = [route[at - 1], route[at]];
    const y1 = above.y + above.height;
    const bend = Math.max((below.y - y1) / 2, 14);
    d += ` C${above.x},${y1 + bend} ${below.x},${below.y - bend} ${below.x},${below.y}`;
  }
  return s("path", { d, class: "edge", ...props });
}

export function box(node, props, ...children) {
  return s("g", { transform: `translate(${node.x - node.width / 2},${node.y})`, ...props },
    s("rect", { width: node.width, height: node.height, rx: 9 }), children);
}

// As large as it is, or as narrow as its place, but never so small that nobody could read it: then it scrolls.
export function picture(size, label, ...children) {
  const made = s("svg", {
    viewBox: `0 0 ${Math.ceil(size.width)} ${Math.ceil(size.height)}`,
    width: Math.ceil(size.width), height: Math.ceil(size.height), role: "group", "aria-label": label, class: "picture",
  }, children);
  made.style.minWidth = `${Math.ceil(size.width * LEAST)}px`;
  return made;
}

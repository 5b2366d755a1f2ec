// Graphs in layers: every node stands below those that lead to it, or beside them, near them, and no two overlap.

import { s } from "./dom.js";

const GAP = 22; // between neighbours in a layer
const LAYERS = 46; // between layers
const SIDEWAYS = { gap: 8, layers: 84, narrow: 40 };
const PAD = 12;
const LEAST = 0.72;
export const NARROW = 480; // a place as on a phone

const pen = document.createElement("canvas").getContext("2d");

export function widthOf(text, font = "13px system-ui, sans-serif") {
  pen.font = font;
  return pen.measureText(text).width;
}

// nodes: {id, width, height}; edges: [above, below]. Sets x, y (the middle of the top) and layer of each node.
// An edge over several layers goes through a place of its own in each: `routes` are the nodes that edges touch.
export function layOut(given, edges, gap = GAP, between = LAYERS) {
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
  for (const layer of layers) inARow(layer, gap);
  for (let turn = 0; turn < 24; turn += 1) {
    for (const layer of turn % 2 ? layers : [...layers].reverse()) pull(layer, turn % 2 ? up : down, gap);
  }
  const left = Math.min(...nodes.map((node) => node.x - node.width / 2));
  let y = PAD;
  for (const layer of layers) {
    const height = Math.max(...layer.map((node) => node.height));
    for (const node of layer) {
      node.x += PAD - left;
      node.y = y + (height - node.height) / 2;
    }
    y += height + between;
  }
  return {
    routes,
    width: Math.max(...nodes.map((node) => node.x + node.width / 2)) + PAD,
    height: y - between + PAD,
  };
}

// The same from left to right: where a layer has many nodes, they stand one above the other, and it stays narrow.
function layOutSideways(given, edges, room) {
  const turn = (node) => { [node.width, node.height] = [node.height, node.width]; };
  given.forEach(turn);
  const size = layOut(given, edges, SIDEWAYS.gap, room < NARROW ? SIDEWAYS.narrow : SIDEWAYS.layers);
  const all = new Set([...given, ...size.routes.flat()]);
  for (const node of all) {
    turn(node);
    [node.x, node.y] = [node.y + node.width / 2, node.x - node.height / 2];
  }
  return { routes: size.routes, width: size.height, height: size.width, sideways: true };
}

// Whichever of the two fits a width, if only one does: downwards it reads like a tree.
export function layOutWithin(nodes, edges, room) {
  const down = layOut(nodes, edges);
  if (down.width * LEAST <= room) return down;
  const beside = layOutSideways(nodes, edges, room);
  return beside.width < down.width ? beside : layOut(nodes, edges);
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

function inARow(layer, gap) {
  let x = 0;
  for (const node of layer) {
    node.x = x + node.width / 2;
    x += node.width + gap;
  }
  const middle = x / 2;
  for (const node of layer) node.x -= middle;
}

// Each node goes to the middle of its neighbours, as near as those beside it let it: where several want the same
// place, they stand around it.
function pull(layer, near, gap) {
  const blocks = [];
  let before = 0; // how far from the first node, at the least
  layer.forEach((node, at) => {
    const others = near.get(node.id);
    const wanted = others.length ? others.reduce((sum, other) => sum + other.x, 0) / others.length : node.x;
    if (at) before += (layer[at - 1].width + node.width) / 2 + gap;
    let block = { sum: wanted - before, nodes: [[node, before]] };
    const place = (one) => one.sum / one.nodes.length;
    while (blocks.length && place(blocks.at(-1)) >= place(block)) {
      const other = blocks.pop();
      block = { sum: other.sum + block.sum, nodes: [...other.nodes, ...block.nodes] };
    }
    blocks.push(block);
  });
  for (const block of blocks) {
    for (const [node, offset] of block.nodes) node.x = block.sum / block.nodes.length + offset;
  }
}

export function edge(route, props = {}, sideways = false) {
  // Along the way and across it; a node begins and ends along the way.
  const ends = (node) => sideways
    ? { across: node.y + node.height / 2, from: node.x - node.width / 2, to: node.x + node.width / 2 }
    : { across: node.x, from: node.y, to: node.y + node.height };
  const at = (along, across) => (sideways ? `${along},${across}` : `${across},${along}`);
  const spots = route.map(ends);
  let d = `M${at(spots[0].to, spots[0].across)}`;
  for (let next = 1; next < spots.length; next += 1) {
    const [one, other] = [spots[next - 1], spots[next]];
    const bend = Math.max((other.from - one.to) / 2, 14);
    d += ` C${at(one.to + bend, one.across)} ${at(other.from - bend, other.across)} ${at(other.from, other.across)}`;
  }
  return s("path", { d, class: "edge", ...props });
}

export function box(node, props, ...children) {
  return s("g", { transform: `translate(${node.x - node.width / 2},${node.y})`, ...props },
    s("rect", { width: node.width, height: node.height, rx: 9 }), children);
}

// A place that scrolls sideways begins where a node is in sight, and stays where it was when it is drawn again.
export function inSight(region, drawing, node, size, before = null) {
  const wide = drawing.getBoundingClientRect().width;
  region.scrollLeft = before ?? (node.x / size.width) * wide - region.clientWidth / 2;
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

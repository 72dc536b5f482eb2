"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const svg = byId("graph"), scene = byId("scene"), panel = byId("panel"), query = byId("query"), hitList = byId("hits");
const NS = "http://www.w3.org/2000/svg";
// In pixels: the width of a character, a line of text, the space inside, between nodes, between layers, a link's lane.
const CHAR = 7.4, LINE = 16, PAD = 10, GAP = 20, RANK = 30, LANE = 10, TITLE = 24;
const LONGEST = 40, LEGIBLE = 0.38, READABLE = 0.75, SMALLEST = 0.004, LARGEST = 4;

// The model: parts in parts -----------------------------------------------------------------------------------------

/** A stage as parts: items and groups, with the links that lie within each group and those that leave it. */
function modelOf(stage) {
  const parts = [], items = [], byKey = new Map();
  const root = { parts: [], parent: null, depth: 0, key: "", title: stage.title, open: true };
  const add = (shape, parent) => {
    const isItem = typeof shape === "number";
    const part = isItem
      ? { item: stage.items[shape], key: stage.items[shape].key, count: 1 }
      : { parts: [], key: shape[0], title: shape[1], open: false, count: 0 };
    Object.assign(part, { parent, depth: parent.depth + 1, id: `p${parts.length}`, ins: [], outs: [] });
    parts.push(part);
    byKey.set(part.key, part);
    parent.parts.push(part);
    if (isItem) items[shape] = part;
    else {
      shape[2].forEach((inner) => add(inner, part));
      part.count = part.parts.reduce((sum, inner) => sum + inner.count, 0);
    }
  };
  stage.tree.forEach((shape) => add(shape, root));
  for (const group of [root, ...parts.filter((part) => part.parts)]) {
    Object.assign(group, { within: new Map(), enter: new Map(), leave: new Map() });
  }
  for (const [source, target] of stage.links) join(items[source], typeof target === "number" ? items[target] : byKey.get(target));
  for (const key of stage.open) if (byKey.has(key)) byKey.get(key).open = true;
  return { root, parts, items, byKey, stage };
}

/** Note a link on each level that it crosses: where it leaves a group, where it enters one, and between two parts. */
function join(from, to) {
  const link = { from, to };
  from.outs.push(to);
  to.ins.push(from);
  for (const part of [from, to]) (part.links ??= []).push(link);
  let a = from, b = to;
  while (a.parent !== b.parent) {
    if (a.depth >= b.depth) { noted(a.parent.leave, a, link); a = a.parent; }
    else { noted(b.parent.enter, b, link); b = b.parent; }
  }
  if (a === b) return;
  const pairs = a.parent.within;
  if (!pairs.has(a)) pairs.set(a, new Map());
  noted(pairs.get(a), b, link);
}

function noted(map, part, link) {
  if (!map.has(part)) map.set(part, []);
  map.get(part).push(link);
}

const isOpen = (part) => Boolean(part.parts && part.open);
const sourcesOf = (part) => part.parts ? outside(part, "ins", "enter") : part.ins;
const readersOf = (part) => part.parts ? outside(part, "outs", "leave") : part.outs;

function outside(group, own, crossing) {
  const far = [...group[crossing].values()].flat().map(({ from, to }) => (own === "ins" ? from : to));
  return [...new Set([...group[own], ...far])];
}

/** What is seen of a part: itself, or the outermost closed group around it. */
function seen(part) {
  let shown = part;
  for (let around = part.parent; around; around = around.parent) if (!around.open) shown = around;
  return shown;
}

function* itemsOf(part) {
  if (part.item) yield part; else for (const inner of part.parts) yield* itemsOf(inner);
}

// Words -------------------------------------------------------------------------------------------------------------

const number = (n) => n.toLocaleString("en-US");
const counted = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text);

function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; size >= 1024 && unit < 4; unit++) size /= 1024;
  return `${Number(size.toPrecision(3))} ${units[unit]}`;
}

function changedIn(group) {
  group.changed ??= [...itemsOf(group)].filter((part) => part.item.change).length;
  return group.changed;
}

function opsIn(group) {
  if (group.ops) return group.ops;
  const counts = new Map();
  for (const { item } of itemsOf(group)) {
    if (!isSource(item)) counts.set(item.label, (counts.get(item.label) || 0) + 1);
  }
  return (group.ops = [...counts].sort((a, b) => b[1] - a[1]).map(([label, many]) => (many > 1 ? `${many} ${label}` : label)));
}

const isSource = (item) => item.kind === "input" || item.kind === "constant";
const look = (part) => (part.look ??= part.item ? part.item.change || part.item.kind : [...itemsOf(part)].some(({ item }) => item.kind === "forward") ? "forward" : "backward");
const labelOf = (part) => part.item ? `${data.signs[look(part)] || ""} ${part.item.label}`.trim() : part.title;

/** The two or three lines that a part shows. */
function linesOf(part) {
  if (part.lines) return part.lines;
  const { item } = part;
  const more = item ? [item.spec, item.saved ? `saved ${bytes(item.saved)}` : ""] : closedLines(part);
  return (part.lines = [labelOf(part), ...more].filter(Boolean).map(cut));
}

function closedLines(group) {
  const code = data.code[group.title.replace("∇ ", "")];
  const changed = changedIn(group);
  return [`${counted(group.count, "node")}: ${opsIn(group).slice(0, 3).join(", ")}`, changed ? `~ ${number(changed)} changed` : code ? code[1] : ""];
}

function spoken(part) {
  if (part.item) return [data.words[look(part)], part.item.key, part.item.label, part.item.spec].join(" ");
  return `${part.title}, ${counted(part.count, "node")}`;
}

// Layout: layers from top to bottom, a group at a time (Sugiyama, Tagawa and Toda, 1981) -----------------------------

function sizeOf(part) {
  if (isOpen(part)) { const { w, h } = laidOut(part); return [w, h]; }
  const lines = linesOf(part);
  const longest = Math.max(...lines.map((line) => line.length)) + (part.item ? 0 : 3);
  return [Math.max(48, longest * CHAR + 2 * PAD), lines.length * LINE + 1.2 * PAD];
}

/** The size of an open group, and where its parts lie in it, with ports in its edges where links pass. */
function laidOut(group) {
  if (group.layout) return group.layout;
  const isWhole = isWholeOpen(group);
  if (isWhole && group.whole) return recalled(group);
  const cells = [], cellOf = new Map(), enter = new Map(), leave = new Map();
  const cell = (part, w, h, port) => { const made = { part, w, h, port, rank: 0, up: [], down: [], x: 0, index: cells.length }; cells.push(made); return made; };
  if (group.parent) for (const part of group.enter.keys()) enter.set(part, cell(part, LANE, 0, "enter"));
  for (const part of group.parts) cellOf.set(part, cell(part, ...sizeOf(part), ""));
  if (group.parent) for (const part of group.leave.keys()) leave.set(part, cell(part, LANE, 0, "leave"));
  const links = [];
  for (const [part, port] of enter) links.push([port, cellOf.get(part)]);
  for (const [a, targets] of group.within) for (const b of targets.keys()) links.push([cellOf.get(a), cellOf.get(b)]);
  for (const [part, port] of leave) links.push([cellOf.get(part), port]);
  const downwards = links.map(([a, b]) => (a.index < b.index ? [a, b] : [b, a]));
  const last = ranked(cells, downwards, enter.size > 0);
  const chains = chained(cells, downwards);
  const layers = ordered(cells, last);
  placed(layers);
  const left = Math.min(...cells.map((c) => c.x - c.w / 2)), right = Math.max(...cells.map((c) => c.x + c.w / 2));
  const titled = group.parent ? (group.title.length + 3) * CHAR + 2 * PAD : 0;
  const shift = PAD - left + Math.max(0, (titled - (right - left + 2 * PAD)) / 2);
  let y = group.parent ? TITLE : PAD;
  const tops = [], bottoms = [];
  layers.forEach((layer, rank) => {
    const high = Math.max(0, ...layer.map((c) => c.h));
    tops[rank] = y;
    for (const c of layer) { c.x += shift; c.y = y + (high - c.h) / 2; }
    y += high;
    bottoms[rank] = y;
    y += high || rank === 0 ? RANK : LANE;
  });
  const h = (bottoms[last] || TITLE) + PAD;
  for (const port of enter.values()) port.y = 0;
  for (const port of leave.values()) port.y = h;
  const w = Math.max(right - left + 2 * PAD, titled);
  group.layout = { w, h, at: cellOf, enter, leave, tops, bottoms, chains, paths: null };
  if (isWhole) group.whole = group.layout;
  return group.layout;
}

/** The layout of a group and of those in it, as they were when all were open. */
function recalled(group) {
  group.parts.forEach((part) => part.parts && recalled(part));
  return (group.layout = group.whole);
}

const isWholeOpen = (group) => group.parts.every((part) => !part.parts || (part.open && isWholeOpen(part)));

/** While nobody waits, lay out the graph with all groups open, and read what can be searched: both are quick then. */
function prepare(prepared) {
  const groups = prepared.parts.filter((part) => part.parts), states = groups.map((group) => group.open);
  const layouts = [prepared.root, ...groups].map((group) => [group, group.layout]);
  for (const [group] of layouts) Object.assign(group, { open: true, layout: null });
  laidOut(prepared.root);
  prepared.parts.forEach(textOf);
  for (const [group, layout] of layouts) group.layout = layout;
  groups.forEach((group, number) => { group.open = states[number]; });
}

/** Give each cell a layer: below all that it reads, and a source just above its first reader. The last layer. */
function ranked(cells, links, hasPorts) {
  const first = hasPorts ? 1 : 0;
  for (const c of cells) { c.rank = c.port === "enter" ? 0 : first; c.next = []; c.reads = 0; }
  for (const [a, b] of links) { a.next.push(b); b.reads++; }
  let last = first;
  for (const c of cells) {
    if (c.port === "leave") continue;
    for (const b of c.next) b.rank = Math.max(b.rank, c.rank + 1);
    last = Math.max(last, c.rank);
  }
  for (const c of cells) if (c.port !== "enter" && !c.reads && c.next.length) c.rank = Math.max(first, Math.min(...c.next.filter((b) => b.port !== "leave").map((b) => b.rank), last + 1) - 1);
  const leaving = cells.filter((c) => c.port === "leave");
  if (leaving.length) last++;
  for (const c of leaving) c.rank = last;
  return last;
}

/** Make the lanes of links that pass layers: those from one cell share theirs. From a cell to its lanes by layer. */
function chained(cells, links) {
  const chains = new Map();
  for (const [a, b] of links) {
    let above = a;
    for (let rank = a.rank + 1; rank < b.rank; rank++) {
      if (!chains.has(a)) chains.set(a, new Map());
      const chain = chains.get(a);
      if (!chain.has(rank)) {
        const lane = { w: LANE, h: 0, lane: true, rank, up: [above], down: [], x: 0, index: a.index };
        above.down.push(lane);
        chain.set(rank, lane);
        cells.push(lane);
      }
      above = chain.get(rank);
    }
    above.down.push(b);
    b.up.push(above);
  }
  return chains;
}

/** The cells of each layer, in an order in which few links cross: by the mean place of what they are linked to. */
function ordered(cells, last) {
  const layers = Array.from({ length: last + 1 }, () => []);
  for (const c of cells) layers[c.rank].push(c);
  const number = (layer) => layer.forEach((c, at) => { c.at = at; });
  layers.forEach((layer) => { layer.sort((a, b) => a.index - b.index); number(layer); });
  for (let sweep = 0; sweep < 6; sweep++) {
    const side = sweep % 2 ? "down" : "up";
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      for (const c of layer) c.mean = c[side].length ? c[side].reduce((sum, other) => sum + other.at, 0) / c[side].length : c.at;
      layer.sort((a, b) => a.mean - b.mean || a.at - b.at);
      number(layer);
    }
  }
  return layers;
}

/** Give each cell the x of its middle: near what it is linked to, lanes straight, and none on another. */
function placed(layers) {
  for (const layer of layers) { let x = 0; for (const c of layer) { c.x = x + c.w / 2; x += c.w + (c.lane || c.port ? LANE / 2 : GAP); } }
  for (const side of ["up", "down", "up", "down", "up"]) {
    for (const layer of side === "up" ? layers : [...layers].reverse()) {
      for (const c of layer) {
        let weight = 0, sum = 0;
        for (const other of c[side]) { const pull = c.lane && other.lane ? 8 : c.lane || other.lane ? 2 : 1; weight += pull; sum += pull * other.x; }
        c.wish = weight ? sum / weight : c.x;
        c.pull = weight || 0.05;
      }
      spread(layer);
    }
  }
}

/** The places nearest to the wishes of cells that keep their order and distance: pools of those that would overlap. */
function spread(layer) {
  const pools = [];
  let offset = 0;
  layer.forEach((c, at) => {
    if (at) { const before = layer[at - 1]; offset += (before.w + c.w) / 2 + (c.lane || before.lane || (c.port && before.port) ? LANE / 2 : GAP); }
    c.offset = offset;
    let pool = { weight: c.pull, sum: c.pull * (c.wish - offset), cells: [c] };
    while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].weight > pool.sum / pool.weight) {
      const before = pools.pop();
      pool = { weight: before.weight + pool.weight, sum: before.sum + pool.sum, cells: before.cells.concat(pool.cells) };
    }
    pools.push(pool);
  });
  for (const pool of pools) for (const c of pool.cells) c.x = pool.sum / pool.weight + c.offset;
}

/** Forget the layout of a group and of those around it. */
function stale(part) {
  for (let group = part; group; group = group.parent) group.layout = null;
}

// Links as paths ------------------------------------------------------------------------------------------------------

/** The child of a group that a part lies in. */
function childOf(group, part) {
  while (part.parent !== group) part = part.parent;
  return part;
}

/** Where a link leaves or enters a child of a group: at its port if the child is open, else in its middle. */
function end(group, child, part, side) {
  const c = group.layout.at.get(child);
  const port = isOpen(child) && child !== part ? child.layout[side].get(childOf(child, part)) : null;
  return { c, x: port ? c.x - c.w / 2 + port.x : c.x, y: side === "leave" ? c.y + c.h : c.y };
}

/** The links within a group as two paths, lines and heads of arrows: a piece that several links share is there once. */
function pieces(group, wanted) {
  const { enter, leave } = group.layout, lines = new Map(), heads = new Map();
  const edge = (port) => ({ c: port, x: port.x, y: port.y });
  const each = (links, f) => links.forEach((link) => { if (!wanted || wanted.has(link)) f(link.from, link.to); });
  const draw = (a, b, isHead) => {
    curve(group.layout, a, b, lines);
    const key = `${at(b.x)} ${at(b.y)}`;
    if (isHead && a.c.rank < b.c.rank && !heads.has(key)) heads.set(key, `M${key}l-3.6 -7h7.2z`);
  };
  for (const [part, port] of enter) each(group.enter.get(part), (from, to) => draw(edge(port), end(group, part, to, "enter"), !isOpen(part) || part === to));
  for (const [a, targets] of group.within) for (const [b, links] of targets) each(links, (from, to) => {
    draw(end(group, a, from, "leave"), end(group, b, to, "enter"), !isOpen(b) || b === to);
  });
  for (const [part, port] of leave) each(group.leave.get(part), (from) => draw(end(group, part, from, "leave"), edge(port), false));
  return [[...lines.values()].join(""), [...heads.values()].join("")];
}

const at = (v) => Math.round(v * 10) / 10;

/** Down from one end to another, straight past layers and bent between them, a piece a layer, by where it begins and ends. */
function curve({ tops, bottoms, chains }, a, b, lines) {
  let x = at(a.x), y = at(a.c.port ? a.y : bottoms[a.c.rank]);
  const bend = (toX, toY, endY) => {
    const key = `${x},${y},${toX},${toY}`;
    const half = (toY - y) / 2;
    if (!lines.has(key)) lines.set(key, `M${x} ${y}C${x} ${at(y + half)} ${toX} ${at(toY - half)} ${toX} ${toY}${endY > toY ? `V${endY}` : ""}`);
    x = toX;
    y = Math.max(toY, endY);
  };
  if (a.c.rank >= b.c.rank) { y = at(a.y); bend(at(b.x), at(b.y), 0); return; }
  if (y > a.y) lines.set(`${x} ${a.y}`, `M${x} ${at(a.y)}V${y}`);
  const chain = chains.get(a.c);
  for (let rank = a.c.rank + 1; rank < b.c.rank; rank++) bend(at(chain.get(rank).x), at(tops[rank]), at(bottoms[rank]));
  bend(at(b.x), at(b.c.port ? b.y : tops[b.c.rank]), b.c.port ? 0 : at(b.y));
}

// Painting ------------------------------------------------------------------------------------------------------------

let model, selected = null, hits = new Set(), drawn = null;
const view = { x: 0, y: 0, k: 1 };

function made(name, attributes, text) {
  const element = document.createElementNS(NS, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Paint what is on the screen and around it. Far away, parts are outlines without words, a path for all of one look. */
function paint() {
  const w = svg.clientWidth, h = svg.clientHeight, margin = 0.4;
  const rect = { left: (-view.x - margin * w) / view.k, top: (-view.y - margin * h) / view.k, right: ((1 + margin) * w - view.x) / view.k, bottom: ((1 + margin) * h - view.y) / view.k };
  drawn = { rect, legible: view.k >= LEGIBLE, hot: hotLinks(), outlines: new Map() };
  laidOut(model.root);
  const into = document.createDocumentFragment();
  paintGroup(model.root, 0, 0, into, false);
  for (const [style, d] of drawn.outlines) into.append(made("path", { class: style, d: d.join("") }));
  scene.replaceChildren(into);
  scene.classList.toggle("far", !drawn.legible);
  move();
  if (selected) svg.setAttribute("aria-activedescendant", seen(selected).id); else svg.removeAttribute("aria-activedescendant");
}

/** The links of what is selected, and the groups that they pass. */
function hotLinks() {
  const shown = selected && seen(selected), links = new Set(), groups = new Set();
  if (shown && shown.parts) for (const crossing of [shown.enter, shown.leave]) for (const some of crossing.values()) some.forEach((link) => links.add(link));
  else if (shown) (shown.links || []).forEach((link) => links.add(link));
  for (const { from, to } of links) for (const part of [from, to]) for (let group = part.parent; group; group = group.parent) groups.add(group);
  return { links, groups };
}

const isOff = (x, y, w, h) => x > drawn.rect.right || y > drawn.rect.bottom || x + w < drawn.rect.left || y + h < drawn.rect.top;

function paintGroup(group, x, y, into, isNamed) {
  const { at: cells } = group.layout;
  if (drawn.legible || group.layout.h * view.k > 40 || drawn.hot.groups.has(group)) {
    const paths = (group.layout.paths ??= pieces(group));
    const transform = `translate(${at(x)} ${at(y)})`;
    into.append(made("path", { class: "e", transform, d: paths[0] }));
    if (drawn.legible) into.append(made("path", { class: "a", transform, d: paths[1] }));
    if (drawn.hot.groups.has(group)) into.append(made("path", { class: "hot", transform, d: pieces(group, drawn.hot.links)[0] }));
  }
  for (const [part, c] of cells) {
    const left = x + c.x - c.w / 2, top = y + c.y;
    if (isOff(left, top, c.w, c.h)) continue;
    const fits = !isNamed && (part.title || "").length * CHAR < c.w * view.k && c.h * view.k > 2 * TITLE;
    if (drawn.legible || (selected && part === seen(selected)) || (part.parts && fits)) {
      into.append(isOpen(part) ? paintOpen(part, left, top, c.w, c.h, fits) : paintPart(part, left, top, c.w, c.h));
    } else outline(part, left, top, c.w, c.h);
    if (isOpen(part)) paintGroup(part, left, top, into, isNamed || fits);
  }
}

/** Note the outline of a part with those that look as it does. */
function outline(part, x, y, w, h) {
  const style = (isOpen(part) ? "b" : `n ${look(part)}`) + marks(part);
  if (!drawn.outlines.has(style)) drawn.outlines.set(style, []);
  drawn.outlines.get(style).push(`M${Math.round(x)} ${Math.round(y)}h${Math.round(w)}v${Math.round(h)}h${-Math.round(w)}z`);
}

function treeItem(part) {
  const g = made("g", { id: part.id, role: "treeitem", "aria-level": part.depth, "aria-label": spoken(part), "aria-selected": selected !== null && seen(selected) === part });
  if (part.parts) g.setAttribute("aria-expanded", part.open);
  return g;
}

function paintOpen(group, x, y, w, h, fits) {
  const g = treeItem(group);
  g.append(made("rect", { class: `b${marks(group)}`, x: at(x), y: at(y), width: at(w), height: at(h), rx: 6 }));
  if (drawn.legible) g.append(made("text", { class: "knob t", x: at(x + PAD), y: at(y + 16) }, "−"), made("text", { class: "t", x: at(x + PAD + 16), y: at(y + 16) }, cut(group.title)));
  else if (fits) g.append(made("text", { class: "t", x: at(x + 6 / view.k), y: at(y + 15 / view.k), style: `font-size:${12 / view.k}px` }, group.title));
  return g;
}

function paintPart(part, x, y, w, h) {
  const g = treeItem(part), kind = look(part), rx = kind === "input" ? h / 2 : 3;
  if (part.parts) g.append(made("path", { class: "stack", d: `M${at(x + 4)} ${at(y + h)}v3h${at(w - 1)}v${at(3 - h)}h-3` }));
  const style = `n ${kind}${part.parts ? " group" : ""}${part.item && part.item.result ? " r" : ""}${marks(part)}`;
  g.append(made("rect", { class: style, x: at(x), y: at(y), width: at(w), height: at(h), rx: at(rx) }));
  if (!drawn.legible) return g;
  const hitsIn = part.parts && hits.size ? [...itemsOf(part)].filter((inner) => hits.has(inner)).length : 0;
  linesOf(part).forEach((line, row) => {
    const saved = part.item && row === 2 ? "s" : row ? "d" : "";
    g.append(made("text", { class: saved, x: at(x + w / 2), y: at(y + 0.6 * PAD + (row + 0.8) * LINE) }, line));
  });
  if (part.parts) g.append(made("text", { class: "knob l", x: at(x + 7), y: at(y + 0.6 * PAD + 0.8 * LINE) }, "+"));
  if (hitsIn) g.append(made("text", { class: "s", x: at(x + w - 14), y: at(y - 4) }, number(hitsIn))); // beside a name it would be a part of it
  return g;
}

function marks(part) {
  const shown = selected ? seen(selected) : null;
  return `${part === shown ? " on" : ""}${hits.has(part) ? " hit" : ""}`;
}

function move() {
  scene.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
}

/** After a change of the view alone: paint again only if that shows what was not painted. */
function look_again() {
  const w = svg.clientWidth, h = svg.clientHeight, { rect } = drawn;
  const isInside = -view.x / view.k >= rect.left && -view.y / view.k >= rect.top && (w - view.x) / view.k <= rect.right && (h - view.y) / view.k <= rect.bottom;
  if (isInside && drawn.legible === view.k >= LEGIBLE && view.k < 3 * (drawn.k ??= view.k)) move(); else paint();
}

let waiting = false;
function soon() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; look_again(); });
}

// The view ------------------------------------------------------------------------------------------------------------

function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
  const k = Math.min(LARGEST, Math.max(SMALLEST, view.k * factor));
  view.x = x - (x - view.x) * k / view.k;
  view.y = y - (y - view.y) * k / view.k;
  view.k = k;
  soon();
}

/** The whole picture; or, no smaller than can be read, its beginning. */
function fit(isReadable) {
  const { w, h } = laidOut(model.root);
  const atLeast = isReadable ? Math.min(READABLE, Math.max(0.55, svg.clientWidth / w)) : 0;
  view.k = Math.max(atLeast, Math.min(1.2, svg.clientWidth / w, svg.clientHeight / h));
  view.x = (svg.clientWidth - w * view.k) / 2;
  view.y = Math.max(0, (svg.clientHeight - h * view.k) / 2);
  if (w * view.k > svg.clientWidth && isReadable) {
    let first = model.root.parts.find(isOpen) || model.root.parts[0];
    while (isOpen(first)) first = first.parts[0];
    const place = placeOf(first);
    view.x = svg.clientWidth / 2 - (place.x + place.w / 2) * view.k;
    view.y = Math.min(0, svg.clientHeight / 4 - place.y * view.k);
  }
  paint();
}

/** Where a part that is seen lies in the picture. */
function placeOf(part) {
  const c = part.parent.layout.at.get(part);
  let x = c.x - c.w / 2, y = c.y;
  for (let group = part.parent; group.parent; group = group.parent) {
    const around = group.parent.layout.at.get(group);
    x += around.x - around.w / 2;
    y += around.y;
  }
  return { x, y, w: c.w, h: c.h };
}

/** Bring a part into view if it is not there, large enough to be read. */
function bring(part) {
  laidOut(model.root);
  const place = placeOf(seen(part));
  if (view.k < LEGIBLE) view.k = 0.8;
  const sides = [["x", "w", svg.clientWidth], ["y", "h", svg.clientHeight]];
  for (const [axis, size, room] of sides) {
    const low = place[axis] * view.k + view[axis], high = low + place[size] * view.k;
    if (low < 30 || high > room - 30) view[axis] = place[size] * view.k > room - 60 ? 30 - place[axis] * view.k : room / 2 - (place[axis] + place[size] / 2) * view.k;
  }
}

/** Open all groups around a part, select it and bring it into view. */
function reveal(part) {
  for (let group = part.parent; group; group = group.parent) if (!group.open) { group.open = true; stale(group); }
  select(part);
}

function select(part) {
  selected = part;
  if (part) bring(part);
  paint();
  tell();
}

/** Open or close a group, which stays where it is on the screen. */
function toggle(group) {
  const before = placeOf(seen(group));
  group.open = !group.open;
  stale(group);
  selected = group;
  laidOut(model.root);
  const now = placeOf(group);
  view.x += (before.x - now.x + (before.w - now.w) / 2) * view.k;
  view.y += (before.y - now.y) * view.k;
  paint();
  tell();
}

function setAll(open) {
  for (const part of model.parts) if (part.parts) { part.open = open; part.layout = null; }
  model.root.layout = null;
  fit(true);
  tell();
}

// The panel -----------------------------------------------------------------------------------------------------------

function html(name, text, ...children) {
  const element = document.createElement(name);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

function button(text, act) {
  const element = html("button", text);
  element.addEventListener("click", act);
  return element;
}

const MOST_NAMED = 12;

function named(title, parts) {
  if (!parts.length) return [];
  const list = html("ul", "", ...parts.slice(0, MOST_NAMED).map((part) => html("li", "", button(part.item ? `${part.item.key} ${labelOf(part)} ${part.item.spec}` : part.title, () => { reveal(part); }))));
  if (parts.length > MOST_NAMED) list.append(html("li", `and ${number(parts.length - MOST_NAMED)} more`));
  return [html("h3", title), list];
}

function told(rows) {
  return html("dl", "", ...rows.filter(([, value]) => value).flatMap(([name, value]) => [html("dt", name), html("dd", value)]));
}

function codeOf(lines) {
  return lines.slice(0, 4).flatMap((line) => {
    const code = data.code[line];
    return [html("div", code && code[0] ? `${line}, in ${code[0]}` : line), ...(code ? [html("pre", code[1])] : [])];
  });
}

/** Say what is selected; nothing selected, how to read and use the picture. */
function tell() {
  const { items, stage } = model;
  const shown = model.parts.filter((part) => !isOpen(part) && seen(part) === part).length;
  byId("count").textContent = hits.size ? `${counted([...hits].filter((part) => part.item).length, "node")} of ${number(items.length)} match` : `${counted(items.length, "node")}, ${number(shown)} shown`;
  panel.replaceChildren(...(selected ? described(seen(selected)) : legend(stage)));
}

function described(part) {
  const around = part.parent.parent ? [html("h3", "In"), html("ul", "", html("li", "", button(part.parent.title, () => select(part.parent))))] : [];
  if (part.parts) {
    const items = [...itemsOf(part)];
    const sum = (field) => items.reduce((total, { item }) => total + item[field], 0);
    const lines = [...new Set(items.flatMap(({ item }) => item.lines))];
    const rows = [["nodes", number(part.count)], ["ops", opsIn(part).slice(0, 8).join(", ")], ["changed", changedIn(part) ? number(changedIn(part)) : ""], ["bytes of results", bytes(sum("size"))], ["saved", sum("saved") ? bytes(sum("saved")) : ""], ["lines", lines.length > 4 ? number(lines.length) : ""]];
    return [html("h2", part.title), button(part.open ? "Close this group" : "Open this group", () => toggle(part)), told(rows), ...codeOf(lines), ...around, ...named("Reads", sourcesOf(part)), ...named("Read by", readersOf(part))];
  }
  const { item } = part;
  const rows = [["op", item.kind === "input" ? "input" : item.label], ["result", item.spec], ["bytes", item.size ? bytes(item.size) : ""], ["options", item.options], ["pass", item.kind], ["change", item.change ? data.words[item.change] : ""], ["saved", item.saved ? `${bytes(item.saved)}, for the backward pass` : ""], ["role", item.result ? "a result of the graph" : ""]];
  return [html("h2", `${item.key} ${item.label}`), told(rows), ...codeOf(item.lines), ...around, ...named("Reads", part.ins), ...named("Read by", part.outs)];
}

const KEYS = [["arrows", "next and previous node; up and down follow the links"], ["Enter", "open or close a group"], ["Esc", "the group around"], ["+ − 0", "zoom, fit"], ["Shift + arrows", "move the picture"], ["/", "search"], ["[ ]", "the pass before and after"], ["n", "next change"]];

function legend(stage) {
  const looks = [...new Set(stage.items.map((item) => item.change || item.kind))];
  const sample = (kind) => {
    const picture = made("svg", { width: 26, height: 16, class: "gd", "aria-hidden": true });
    picture.append(made("rect", { class: `n ${kind}`, x: 2, y: 2, width: 22, height: 12, rx: kind === "input" ? 6 : 2 }));
    return picture;
  };
  const kinds = looks.map((kind) => html("li", "", sample(kind), `${data.signs[kind] || ""} ${data.words[kind]}`));
  const list = html("ul", "", ...kinds, html("li", "", sample("forward r"), "result"));
  list.className = "legend";
  const keys = html("dl", "", ...KEYS.filter(([key]) => data.stages.length > 1 || !["[ ]", "n"].includes(key)).flatMap(([key, what]) => [html("dt", "", html("kbd", key)), html("dd", what)]));
  return [html("h2", "How to read it"), list, html("p", "Data flow downwards. A box with + is closed: click its sign, or double-click it. Drag to move; turn the wheel or pinch to zoom."), html("h2", "Keys"), keys];
}

// Search --------------------------------------------------------------------------------------------------------------

let matches = [], current = -1;

/** What a node or a group itself is, in the letters that a search compares. */
function ownText(part) {
  const { item } = part;
  part.own ??= (item ? [item.key, item.label, item.spec, item.options, item.change || ""].join(" ") : part.title).toLowerCase();
  return part.own;
}

/** The same with the lines of code that a node is from. */
function textOf(part) {
  const code = (lines) => lines.map((line) => `${line} ${(data.code[line] || []).join(" ")}`).join(" ");
  part.text ??= part.item ? `${ownText(part)} ${code(part.item.lines).toLowerCase()}` : ownText(part);
  return part.text;
}

/** The parts that have all words: those that are so themselves, or where no node is, those whose code has them. */
function matching(words) {
  const having = (text) => model.parts.filter((part) => words.every((word) => text(part).includes(word)));
  const own = having(ownText);
  return own.some((part) => part.item) ? own : having(textOf);
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  matches = words.length ? matching(words) : [];
  hits = new Set(matches);
  current = -1;
  list();
  paint();
  tell();
}

function list() {
  hitList.hidden = !matches.length;
  hitList.replaceChildren(...matches.slice(0, 30).map((part, place) => {
    const text = part.item ? `${part.item.key} ${labelOf(part)} ${part.item.spec} ${part.item.lines[0] || ""}` : `${part.title} (${counted(part.count, "node")})`;
    const row = html("li", "", button(text, () => step(place)));
    row.classList.toggle("current", place === current);
    return row;
  }));
}

/** Go to one of the nodes that were found. */
function step(place) {
  if (!matches.length) return;
  current = (place + matches.length) % matches.length;
  list();
  hitList.children[current]?.scrollIntoView({ block: "nearest" });
  reveal(matches[current]);
}

// Stages --------------------------------------------------------------------------------------------------------------

let stageAt = 0;
const models = [];

function show(place) {
  stageAt = Math.max(0, Math.min(data.stages.length - 1, place));
  const before = model;
  model = models[stageAt] ??= modelOf(data.stages[stageAt]);
  if (before && before !== model) {
    for (const part of before.parts) {
      const same = part.parts && model.byKey.get(part.key);
      if (same && same.parts && same.open !== part.open) { same.open = part.open; stale(same); }
    }
  }
  const { stage } = model;
  selected = null;
  byId("stage").value = stageAt;
  byId("stage").setAttribute("aria-valuetext", stage.title);
  byId("note").textContent = `${stage.title}: ${stage.note}`;
  byId("change").disabled = !stage.items.some((item) => item.change);
  query.value ? search() : tell();
  fit(true);
}

/** Go to the next node that a pass changed. */
function nextChange() {
  const changed = model.parts.filter((part) => part.item && part.item.change);
  if (!changed.length) return;
  const last = selected ? changed.indexOf(selected) : -1;
  reveal(changed[(last + 1) % changed.length]);
}

// Hands ---------------------------------------------------------------------------------------------------------------

/** The parts that are seen, in the order of the graph. */
function reading() {
  const order = [];
  const walk = (group) => group.parts.forEach((part) => { order.push(part); if (isOpen(part)) walk(part); });
  walk(model.root);
  return order;
}

function beside(shift) {
  const order = reading();
  const now = selected ? order.indexOf(seen(selected)) : shift > 0 ? -1 : order.length;
  select(order[Math.max(0, Math.min(order.length - 1, now + shift))]);
}

function follow(parts, shift) {
  const next = selected ? parts(seen(selected)).map(seen).find((part) => part !== seen(selected)) : null;
  if (next) select(next); else beside(shift);
}

const ARROWS = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowLeft: [1, 0], ArrowRight: [-1, 0] };
const ACTS = {
  ArrowUp: () => follow(sourcesOf, -1), ArrowDown: () => follow(readersOf, 1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
  Home: () => select(reading()[0]), End: () => select(reading().at(-1)),
  Enter: () => selected && seen(selected).parts && toggle(seen(selected)), " ": () => selected && seen(selected).parts && toggle(seen(selected)),
  Escape: () => selected && select(seen(selected).parent.parent ? seen(selected).parent : null),
  "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(false), n: nextChange, "[": () => show(stageAt - 1), "]": () => show(stageAt + 1),
};

svg.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.shiftKey && ARROWS[event.key]) { view.x += 60 * ARROWS[event.key][0]; view.y += 60 * ARROWS[event.key][1]; soon(); }
  else if (ACTS[event.key]) ACTS[event.key]();
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== query) { event.preventDefault(); query.focus(); query.select(); }
});
svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const { left, top } = svg.getBoundingClientRect();
  zoom(Math.exp(-Math.max(-120, Math.min(120, event.deltaY * (event.deltaMode ? 30 : 1))) * 0.002), event.clientX - left, event.clientY - top);
}, { passive: false });

const fingers = new Map();
let dragged = 0;
svg.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); dragged = 0; });
svg.addEventListener("pointermove", (event) => {
  const before = fingers.get(event.pointerId);
  if (!before) return;
  const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
  const x = event.clientX - before.clientX, y = event.clientY - before.clientY;
  dragged += Math.abs(x) + Math.abs(y);
  if (dragged > 4 && !svg.hasPointerCapture(event.pointerId)) { svg.setPointerCapture(event.pointerId); svg.classList.add("moving"); }
  fingers.set(event.pointerId, event);
  if (other) {
    const { left, top } = svg.getBoundingClientRect();
    const apart = (finger) => Math.hypot(finger.clientX - other.clientX, finger.clientY - other.clientY);
    zoom(apart(event) / Math.max(1, apart(before)), (event.clientX + other.clientX) / 2 - left, (event.clientY + other.clientY) / 2 - top);
  } else if (dragged > 4) { view.x += x; view.y += y; soon(); }
});
for (const name of ["pointerup", "pointercancel"]) svg.addEventListener(name, (event) => { fingers.delete(event.pointerId); svg.classList.remove("moving"); });

/** The innermost part at a place of the screen, and whether that is its sign: the corner with + or −. */
function touched(event) {
  const { left, top } = svg.getBoundingClientRect();
  let x = (event.clientX - left - view.x) / view.k, y = (event.clientY - top - view.y) / view.k;
  let part = null, isSign = false;
  for (let group = model.root; group;) {
    const inside = [...group.layout.at].find(([, c]) => Math.abs(x - c.x) <= c.w / 2 && y >= c.y && y <= c.y + c.h);
    if (!inside) break;
    const c = inside[1];
    part = inside[0];
    x -= c.x - c.w / 2;
    y -= c.y;
    isSign = Boolean(part.parts) && x < TITLE && y < TITLE;
    group = isOpen(part) ? part : null;
  }
  return { part, isSign };
}

svg.addEventListener("click", (event) => {
  if (dragged > 4) return;
  const { part, isSign } = touched(event);
  if (isSign) toggle(part); else { selected = part; paint(); tell(); }
});
svg.addEventListener("dblclick", (event) => {
  const { part, isSign } = touched(event);
  if (part && part.parts && !isSign) toggle(part);
});

let awaited = 0;
query.addEventListener("input", () => { awaited ||= requestAnimationFrame(searched); });

/** Search for what has been typed, if nobody has since. */
function searched() {
  if (!awaited) return;
  cancelAnimationFrame(awaited);
  awaited = 0;
  search();
}

query.addEventListener("keydown", (event) => {
  const shift = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (shift) { event.preventDefault(); searched(); step(current + shift); }
  if (event.key === "Escape") { query.value = ""; search(); svg.focus(); }
});
query.addEventListener("focus", () => { hitList.hidden = !matches.length; });
document.addEventListener("click", (event) => { if (!byId("find").contains(event.target)) hitList.hidden = true; });

byId("open-all").addEventListener("click", () => setAll(true));
byId("close-all").addEventListener("click", () => setAll(false));
byId("fit").addEventListener("click", () => fit(false));
byId("closer").addEventListener("click", () => zoom(1.4));
byId("farther").addEventListener("click", () => zoom(1 / 1.4));
byId("stage").addEventListener("input", () => show(Number(byId("stage").value)));
byId("before").addEventListener("click", () => show(stageAt - 1));
byId("after").addEventListener("click", () => show(stageAt + 1));
byId("change").addEventListener("click", nextChange);
byId("stages").hidden = data.stages.length < 2;
byId("stage").max = data.stages.length - 1;
window.addEventListener("resize", () => paint());
show(0);
setTimeout(() => prepare(models[0]), 50);
})();

// SPDX-License-Identifier: Apache-2.0
// What stands beside the globe, and what the hand does.
//
// An address may end in #view=LAT,LON,ZOOM, #node=SET/NUMBER, #show=SOURCE>TARGET and
// #hide=SET,SOURCE>TARGET,marks, with & between them.
"use strict";

function make(tag, parent, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

const number = value => value.toLocaleString("en-US", {maximumFractionDigits: 0});
const short = value =>
    Math.abs(value) >= 100 ? number(value) : String(Number(value.toPrecision(3)));
const part = share =>
    share >= 1 ? "" : `${short(100 * share)} % of those in view drawn; zoom in for all`;

function placeText(lat_rad, lon_rad, digits) {
  const lon = ((lon_rad * kDegrees + 540) % 360 + 360) % 360 - 180;
  const text = (value, positive, negative) =>
      `${Math.abs(value).toFixed(digits)}° ${value < 0 ? negative : positive}`;
  return `${text(lat_rad * kDegrees, "N", "S")} ${text(lon, "E", "W")}`;
}

// The line of a set, with what switches it.
function addSwitch(parent, set, count, swatch) {
  const label = make("label", parent, "set");
  const box = make("input", label);
  box.type = "checkbox";
  box.checked = set.shown;
  box.onchange = () => {
    set.shown = box.checked;
    redraw();
  };
  make("span", label, swatch).style.background = set.colour;
  make("span", label, "name", set.name);
  make("span", label, "count", number(count));
  set.line = make("span", label, "drawn");
}

function tellShares() {
  for (const set of nodeSets) set.line.textContent = set.shown ? part(set.share) : "";
  for (const set of edgeSets) {
    const stride =
        set.json.every > 1 ? `edges of 1 of ${set.json.every} targets are in this page` : "";
    set.line.textContent =
        [stride, set.shown ? part(set.share) : ""].filter(text => text).join("; ");
  }
  document.getElementById("place").textContent =
      `centre ${placeText(view.lat, view.lon, 1)}, zoom ${short(view.zoom)}`;
  // For tests: what was drawn.
  document.documentElement.dataset.drawn =
      JSON.stringify(Object.fromEntries(nodeSets.map(set => [set.name, set.drawn])));
}

function tellOrphans() {
  const parent = document.getElementById("orphans");
  if (orphans.length === 0)
    make("p", parent, "quiet", "None: data nodes are all seen and reached.");
  for (const list of orphans) {
    const line = make("div", parent), box = make("input", line);
    box.type = "checkbox";
    box.checked = true;
    box.title = "Mark them";
    box.onchange = () => {
      list.shown = box.checked;
      redraw();
    };
    make("span", line, "ring").style.borderColor = list.colour;
    make("span", line, "text", list.text);
    const go = make("button", line, "", "next");
    go.title = "Go to the next of them";
    go.onclick = () => {
      pick({set: list.set, node: list.nodes[list.next++ % list.nodes.length]}, true);
    };
  }
  for (const text of graph.findings) make("li", document.getElementById("findings"), "", text);
}

function tellPicked() {
  const parent = document.getElementById("picked");
  parent.replaceChildren();
  if (!picked) return make("p", parent, "quiet", "Click a node of the globe.");
  const {set, node} = picked;
  make("div", parent, "", `${set.name} ${number(node)}`).style.fontWeight = "600";
  make("p", parent, "quiet", placeText(set.lat[node], set.lon[node], 4));
  const table = make("table", parent), head = make("tr", table);
  for (const text of ["edges", "number", "shortest", "longest"]) make("th", head, "", text);
  const row = (edges, end, name, className) => {
    const lengths = Array.from(edges.edgesAt(end, node), e => edges.angle(e) * kEarthRadius_km);
    const line = make("tr", table);
    make("td", line, className, name);
    make("td", line, "", number(lengths.length));
    for (const value of lengths.length > 0 ? [Math.min(...lengths), Math.max(...lengths)] : [])
      make("td", line, "", `${short(value)} km`);
  };
  for (const edges of edgeSets) {
    if (edges.source === set) row(edges, "from", `to ${edges.json.target}`, "out");
    if (edges.target === set) row(edges, "to", `from ${edges.json.source}`, "in");
  }
  if (edgeSets.some(edges => edges.json.every > 1))
    make("p", parent, "quiet", "Only of the edges in this page.");
}

function addHistogram(parent, title, unit, {min, mean, max, histogram}) {
  const figure = make("figure", parent), caption = make("figcaption", figure);
  make("b", caption, "", title);
  make("span", caption, "", `${short(min)} / ${short(mean)} / ${short(max)}${unit}`).title =
      "least / mean / most";
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  const width = 320, base = 68, counts = histogram.counts, most = Math.max(...counts, 1);
  svg.setAttribute("viewBox", `0 0 ${width} 84`);
  svg.setAttribute("preserveAspectRatio", "none");
  const add = (tag, attributes, text) => {
    const element = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    svg.append(element);
    return element;
  };
  counts.forEach((count, i) => {
    const from = histogram.first + i * histogram.width, bar = width / counts.length;
    const height = count > 0 ? Math.max(1.5, base * count / most) : 0;
    const rect =
        add("rect", {x: i * bar + 0.08 * bar, y: base - height, width: 0.84 * bar, height});
    if (unit === "" && from === 0 && histogram.width === 1) rect.setAttribute("class", "none");
    const range = unit === "" && histogram.width === 1 ?
        short(from) :
        `${short(from)} to ${short(from + histogram.width)}`;
    const tip = document.createElementNS(space, "title");
    tip.textContent = `${range}${unit}: ${number(count)}`;
    rect.append(tip);
  });
  add("line", {x1: 0, x2: width, y1: base, y2: base});
  const end =
      histogram.first + histogram.width * (counts.length - (unit === "" && histogram.width === 1));
  add("text", {x: 0, y: 80}, short(histogram.first));
  add("text", {x: width, y: 80, "text-anchor": "end"}, `${short(end)}${unit}`);
  figure.append(svg);
}

function tellStatistics() {
  const parent = document.getElementById("statistics");
  parent.replaceChildren();
  const set = edgeSets[document.getElementById("which").value];
  if (!set) return make("p", parent, "quiet", "There are no edges.");
  addHistogram(parent, `edges of a ${set.json.target} node`, "", set.json.in_degree);
  addHistogram(parent, `edges of a ${set.json.source} node (as source)`, "", set.json.out_degree);
  addHistogram(parent, "length", " km", set.json.length_km);
}

// ---------------------------------------------------------------------------------- the hand ---

// Turns to a node, near enough to see its neighbours.
function goTo({set, node}) {
  view.lat = set.lat[node];
  view.lon = set.lon[node];
  view.zoom = Math.max(view.zoom, Math.min(60, 0.25 / set.spacing()));
}

function pick(node, go = false) {
  picked = node;
  if (go) goTo(node);
  tellPicked();
  redraw();
}

// The node that is drawn nearest to a point of the canvas. Mesh nodes are fewer: they win.
function nodeAt(px, py) {
  const direction = view.direction(px, py), centres = Tiles.cells().centres;
  if (!direction) return null;
  const dot = (xyz, i) =>
      xyz[3 * i] * direction[0] + xyz[3 * i + 1] * direction[1] + xyz[3 * i + 2] * direction[2];
  let best = null, least = 14;
  for (const set of nodeSets.filter(set => set.shown)) {
    for (let cell = 0; cell < set.tiles.last; ++cell) {
      const apart = Math.acos(Math.min(1, dot(centres[cell], 0)));
      if (apart > Math.acos(set.tiles.nearest[cell]) + 14 / view.scale) continue;
      for (let k = set.tiles.start[cell]; k < set.tiles.start[cell + 1]; ++k) {
        const node = set.tiles.order[k];
        const distance_px = view.scale * Math.sqrt(Math.max(0, 2 - 2 * dot(set.xyz, node)));
        const counted = set.role === "data" ? distance_px : 0.7 * distance_px;
        if (counted < least) [least, best] = [counted, {set, node}];
      }
    }
  }
  return best;
}

function turn(dx, dy) {
  view.turn(dx, dy);
  redraw();
}

function zoomBy(factor) {
  view.zoom = Math.max(0.5, Math.min(4000, view.zoom * factor));
  redraw();
}

function listen() {
  let held = null;
  canvas.addEventListener("pointerdown", event => {
    held = {x: event.offsetX, y: event.offsetY, moved: 0};
    canvas.classList.add("turning");
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!held) return;
    const dx = event.offsetX - held.x, dy = event.offsetY - held.y;
    held = {x: event.offsetX, y: event.offsetY, moved: held.moved + Math.hypot(dx, dy)};
    if (held.moved > 3) turn(dx, dy);
  });
  const release = event => {
    canvas.classList.remove("turning");
    if (held && held.moved <= 3 && event.type === "pointerup")
      pick(nodeAt(event.offsetX, event.offsetY));
    held = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)));
  }, {passive: false});
  canvas.addEventListener("keydown", event => {
    const step = 40;
    const keys = {
      ArrowLeft: () => turn(step, 0),
      ArrowRight: () => turn(-step, 0),
      ArrowUp: () => turn(0, step),
      ArrowDown: () => turn(0, -step),
      "+": () => zoomBy(1.3),
      "-": () => zoomBy(1 / 1.3),
      "0": () => zoomBy(1 / view.zoom),
      Escape: () => pick(null)
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("resize", resize);
}

// Looks at the first set from above, as near as it allows: a region is not to be searched for.
function lookAtRegion() {
  const {xyz, count} = nodeSets[0], mean = [0, 0, 0];
  for (let i = 0; i < 3 * count; ++i) mean[i % 3] += xyz[i] / count;
  const length = Math.hypot(...mean);
  if (length < 0.2) return;  // all around the globe
  let nearest = 1;
  for (let i = 0; i < count; ++i)
    nearest = Math.min(
        nearest,
        (xyz[3 * i] * mean[0] + xyz[3 * i + 1] * mean[1] + xyz[3 * i + 2] * mean[2]) / length);
  view.lat = Math.asin(mean[2] / length);
  view.lon = Math.atan2(mean[1], mean[0]);
  if (nearest > 0)
    view.zoom = Math.min(200, 0.95 / Math.sqrt(Math.max(1e-6, 1 - nearest * nearest)));
}

// What the address asks for.
function readAddress() {
  const wanted = new URLSearchParams(decodeURIComponent(location.hash.slice(1)));
  const hidden = (wanted.get("hide") || "").split(",");
  for (const set of nodeSets)
    if (hidden.includes(set.name)) set.shown = false;
  for (const set of edgeSets)
    if (hidden.includes(set.key)) set.shown = false;
  for (const key of (wanted.get("show") || "").split(","))
    for (const set of edgeSets)
      if (set.key === key) set.shown = true;
  marksShown = !hidden.includes("marks");
  const [lat, lon, zoom] = (wanted.get("view") || "").split(",").map(Number);
  if (Number.isFinite(lon) && wanted.get("view"))
    [view.lat, view.lon] = [lat / kDegrees, lon / kDegrees];
  if (zoom > 0) view.zoom = zoom;
  const [name, node] = (wanted.get("node") || "").split("/"), set = byName.get(name);
  if (!set || !(node >= 0 && node < set.count)) return;
  picked = {set, node: Number(node)};
  if (!wanted.get("view")) goTo(picked);
}

function start() {
  document.title = `Graph: ${graph.title}`;
  document.getElementById("title").textContent = graph.title;
  document.getElementById("origin").textContent = graph.origin;
  lookAtRegion();
  readAddress();
  for (const set of nodeSets) addSwitch(document.getElementById("nodes"), set, set.count, "swatch");
  for (const set of edgeSets)
    addSwitch(document.getElementById("edges"), set, set.json.count, "swatch line");
  if (graph.edges.some(set => set.every > 1))
    document.getElementById("thinned").textContent =
        "Too many edges for a page: some sets have those of every so many targets. Counts, " +
        "statistics and nodes without edges are of all edges.";
  const which = document.getElementById("which");
  edgeSets.forEach((set, i) => make("option", which, "", set.name).value = i);
  which.onchange = tellStatistics;
  tellOrphans();
  tellPicked();
  tellStatistics();
  listen();
  resize();
}

start();

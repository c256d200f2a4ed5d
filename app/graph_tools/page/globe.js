// SPDX-License-Identifier: Apache-2.0
// The page of `aifs-train graph plot`: a globe on a canvas. Nodes and edges are sorted into tiles of
// the sphere, so that only what is in view is looked at; inside a tile they are in an order of which
// every beginning is spread evenly, so that a part of a tile can be drawn for the whole.
//
// An address may end in #view=LAT,LON,ZOOM, #node=SET/NUMBER, #show=SOURCE>TARGET and
// #hide=SET,SOURCE>TARGET,marks, with & between them.
"use strict";

const kDegrees = 180 / Math.PI;
const kEarthRadius_km = 6371;
const kNodeColours = ["#7fb2ff", "#ffd166", "#8ce99a", "#e599f7", "#ffa8a8", "#66d9e8"];
const kEdgeColours = ["#4dabf7", "#ffc53d", "#63e6be", "#b197fc", "#ff8787", "#74c0fc", "#c0eb75"];
// Points and lines that are drawn at once: while the globe turns, and when it rests.
const kTurning = {points: 25e3, lines: 12e3}, kResting = {points: 250e3, lines: 120e3};
const kLongEdge = 10 / kDegrees;  // is in no tile
const kArcStep = 5 / kDegrees;    // edges are bent in such steps

const graph = JSON.parse(document.getElementById("graph").textContent);

// ---------------------------------------------------------------------------------- the graph ---

// Numbers of 32 bits, little-endian, in base64.
function decodeFloats(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = letters.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

// Differences from one index to the next in base64: 2 d, or -2 d - 1 if d < 0, as groups of 7 bits,
// low ones first; the highest bit of a byte says that more follow.
function decodeIndices(text, count) {
  const letters = atob(text), values = new Int32Array(count);
  for (let k = 0, at = 0, last = 0; k < count; ++k) {
    let code = 0, unit = 1, byte;
    do {
      byte = letters.charCodeAt(at++);
      code += (byte & 127) * unit;
      unit *= 128;
    } while (byte & 128);
    last += code % 2 ? -(code + 1) / 2 : code / 2;
    values[k] = last;
  }
  return values;
}

// Unit vectors (N, 3) of coordinates in radians.
function unitVectors(lat, lon) {
  const xyz = new Float32Array(3 * lat.length);
  for (let i = 0; i < lat.length; ++i) {
    const c = Math.cos(lat[i]);
    xyz[3 * i] = c * Math.cos(lon[i]);
    xyz[3 * i + 1] = c * Math.sin(lon[i]);
    xyz[3 * i + 2] = Math.sin(lat[i]);
  }
  return xyz;
}

function greatestCommonDivisor(a, b) {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

// Cells of about 10 degrees; items are sorted by cell.
class Tiles {
  // place(i, v) writes the unit vector of item i and returns false for one that is in no cell.
  constructor(count, place) {
    const cells = Tiles.cells(), last = cells.centres.length;  // the items in no cell come last
    const cellOf = new Uint16Array(count), v = [0, 0, 0];
    this.start = new Int32Array(last + 2);
    this.nearest = new Float32Array(last).fill(1);  // cosine of the angle to the farthest item
    for (let i = 0; i < count; ++i) {
      const cell = place(i, v) ? cells.of(v) : last;
      cellOf[i] = cell;
      ++this.start[cell + 1];
      if (cell === last) continue;
      const c = cells.centres[cell];
      this.nearest[cell] = Math.min(this.nearest[cell], c[0] * v[0] + c[1] * v[1] + c[2] * v[2]);
    }
    for (let c = 0; c <= last; ++c) this.start[c + 1] += this.start[c];
    this.order = new Int32Array(count);
    const next = this.start.slice();
    // Golden section steps around the items, each once.
    let step = Math.max(1, Math.round(count * 0.6180339887));
    while (count > 0 && greatestCommonDivisor(step, count) !== 1) ++step;
    for (let k = 0, i = 0; k < count; ++k, i = (i + step) % count)
      this.order[next[cellOf[i]]++] = i;
    this.last = last;
  }

  static cells() {
    if (Tiles.shared) return Tiles.shared;
    const rows = 18, first = [], columns = [], centres = [];
    for (let r = 0; r < rows; ++r) {
      const lat = ((r + 0.5) / rows - 0.5) * Math.PI;
      first.push(centres.length);
      columns.push(Math.max(3, Math.round(2 * rows * Math.cos(lat))));
      for (let c = 0; c < columns[r]; ++c) {
        const lon = ((c + 0.5) / columns[r]) * 2 * Math.PI;
        centres.push([Math.cos(lat) * Math.cos(lon), Math.cos(lat) * Math.sin(lon), Math.sin(lat)]);
      }
    }
    const of = v => {
      const lat = Math.asin(Math.max(-1, Math.min(1, v[2])));
      const r = Math.min(rows - 1, Math.floor((lat / Math.PI + 0.5) * rows));
      const turn = (Math.atan2(v[1], v[0]) / (2 * Math.PI) + 1) % 1;
      return first[r] + Math.min(columns[r] - 1, Math.floor(turn * columns[r]));
    };
    return Tiles.shared = {centres, of};
  }

  size(cell) { return this.start[cell + 1] - this.start[cell]; }

  // Cells that may be in view, given how far items reach beyond their places.
  inView(view, reach) {
    const centres = Tiles.cells().centres, found = [];
    const wide = view.width / 2 / view.scale, high = view.height / 2 / view.scale;
    for (let cell = 0; cell < this.last; ++cell) {
      if (this.size(cell) === 0) continue;
      const radius = Math.acos(Math.min(1, this.nearest[cell])) + reach;
      const [x, y, z] = view.turned(centres[cell]);
      if (z < -Math.sin(Math.min(radius, Math.PI / 2))) continue;
      if (Math.abs(x) - radius < wide && Math.abs(y) - radius < high) found.push(cell);
    }
    if (this.size(this.last) > 0) found.push(this.last);
    return found;
  }

  // Calls visit(item) for an even part of what is in view, at most about `most`; returns the share.
  draw(view, reach, most, visit) {
    const cells = this.inView(view, reach);
    const count = cells.reduce((sum, cell) => sum + this.size(cell), 0);
    const share = Math.min(1, most / Math.max(1, count));
    for (const cell of cells) {
      const begin = this.start[cell], end = begin + Math.ceil(share * this.size(cell));
      for (let k = begin; k < end; ++k) visit(this.order[k]);
    }
    return share;
  }
}

class NodeSet {
  constructor(json, colour) {
    Object.assign(this, {name: json.name, role: json.role, colour, shown: true});
    this.lat = decodeFloats(json.lat);
    this.lon = decodeFloats(json.lon);
    this.count = this.lat.length;
    this.xyz = unitVectors(this.lat, this.lon);
    this.tiles = new Tiles(this.count, (i, v) => {
      for (let d = 0; d < 3; ++d) v[d] = this.xyz[3 * i + d];
      return true;
    });
    this.share = 1;
  }
  spacing() { return Math.sqrt(4 * Math.PI / Math.max(1, this.count)); }
}

class EdgeSet {
  constructor(json, colour, sets) {
    Object.assign(this, {json, colour, name: `${json.source} → ${json.target}`, shown: false});
    this.key = `${json.source}>${json.target}`;
    this.source = sets.get(json.source);
    this.target = sets.get(json.target);
    this.from = decodeIndices(json.source_index, json.kept);
    this.to = decodeIndices(json.target_index, json.kept);
    this.share = 1;
  }
  // The angle between the ends of an edge.
  angle(e) {
    const a = 3 * this.from[e], b = 3 * this.to[e], p = this.source.xyz, q = this.target.xyz;
    const chord = Math.hypot(p[a] - q[b], p[a + 1] - q[b + 1], p[a + 2] - q[b + 2]);
    return 2 * Math.asin(Math.min(1, chord / 2));
  }
  tiles() {
    if (this.made) return this.made;
    const p = this.source.xyz, q = this.target.xyz;
    this.reach = 0;
    return this.made = new Tiles(this.from.length, (e, v) => {
      const a = 3 * this.from[e], b = 3 * this.to[e];
      for (let d = 0; d < 3; ++d) v[d] = p[a + d] + q[b + d];
      const length = Math.hypot(...v), angle = this.angle(e);
      if (length === 0 || angle > kLongEdge) return false;
      for (let d = 0; d < 3; ++d) v[d] /= length;
      this.reach = Math.max(this.reach, angle / 2);
      return true;
    });
  }
  // The edges at a node of one end ("from" or "to").
  edgesAt(end, node) {
    const lists = this.lists || (this.lists = {});
    if (!lists[end]) {
      const nodes = end === "from" ? this.source.count : this.target.count;
      const start = new Int32Array(nodes + 1), edges = new Int32Array(this[end].length);
      for (const n of this[end]) ++start[n + 1];
      for (let n = 0; n < nodes; ++n) start[n + 1] += start[n];
      const next = start.slice();
      for (let e = 0; e < edges.length; ++e) edges[next[this[end][e]]++] = e;
      lists[end] = {start, edges};
    }
    return lists[end].edges.subarray(lists[end].start[node], lists[end].start[node + 1]);
  }
}

const nodeSets = graph.nodes.map((set, i) => new NodeSet(set, kNodeColours[i % kNodeColours.length]));
const byName = new Map(nodeSets.map(set => [set.name, set]));
const edgeSets =
    graph.edges.map((set, i) => new EdgeSet(set, kEdgeColours[i % kEdgeColours.length], byName));
const within = edgeSets.filter(set => set.source === set.target);
for (const set of within.length > 0 ? within : edgeSets.slice(0, 1)) set.shown = true;

// Nodes without edges, each list with what it means.
const orphans = graph.orphans.map(json => ({
  set: byName.get(json.set), nodes: decodeIndices(json.nodes, json.count), text: json.text,
  colour: json.is_data ? "#ff5d5d" : "#ffb84d", shown: true, next: 0}));

// ----------------------------------------------------------------------------------- the view ---

const canvas = document.getElementById("globe");
const context = canvas.getContext("2d");
const view = {
  lat: 0.45, lon: 0.2, zoom: 1, width: 1, height: 1, scale: 1,
  // Sets up the axes of the screen: right, up, towards the eye.
  prepare() {
    const sa = Math.sin(this.lat), ca = Math.cos(this.lat);
    const so = Math.sin(this.lon), co = Math.cos(this.lon);
    this.right = [-so, co, 0];
    this.up = [-sa * co, -sa * so, ca];
    this.eye = [ca * co, ca * so, sa];
    this.scale = this.zoom * 0.46 * Math.min(this.width, this.height);
  },
  turned(v) {
    const dot = a => a[0] * v[0] + a[1] * v[1] + a[2] * v[2];
    return [dot(this.right), dot(this.up), dot(this.eye)];
  },
  // Writes x and y on the canvas and the height above its plane.
  project(xyz, i, out) {
    const x = xyz[3 * i], y = xyz[3 * i + 1], z = xyz[3 * i + 2];
    const r = this.right, u = this.up, e = this.eye;
    out[0] = this.width / 2 + this.scale * (r[0] * x + r[1] * y + r[2] * z);
    out[1] = this.height / 2 - this.scale * (u[0] * x + u[1] * y + u[2] * z);
    out[2] = e[0] * x + e[1] * y + e[2] * z;
  },
  // The direction under a point of the canvas, or null beside the globe.
  direction(px, py) {
    const x = (px - this.width / 2) / this.scale, y = (this.height / 2 - py) / this.scale;
    const z2 = 1 - x * x - y * y;
    if (z2 < 0) return null;
    const z = Math.sqrt(z2);
    return [0, 1, 2].map(d => x * this.right[d] + y * this.up[d] + z * this.eye[d]);
  },
};
let picked = null;  // {set, node}
let marksShown = true;

function drawGlobe() {
  const {width, height, scale} = view, x = width / 2, y = height / 2;
  context.clearRect(0, 0, width, height);
  const shade = context.createRadialGradient(x - 0.35 * scale, y - 0.4 * scale, 0.1 * scale, x, y, scale);
  shade.addColorStop(0, "#22344f");
  shade.addColorStop(0.75, "#172438");
  shade.addColorStop(1, "#101a29");
  context.fillStyle = shade;
  context.beginPath();
  context.arc(x, y, scale, 0, 2 * Math.PI);
  context.fill();
  context.strokeStyle = "#3a4e6e";
  context.lineWidth = 1;
  context.stroke();
}

// Meridians and parallels.
function drawNet() {
  const step = view.zoom > 24 ? 1 : view.zoom > 6 ? 5 : view.zoom > 2.5 ? 15 : 30;
  const out = [0, 0, 0], v = [0, 0, 0];
  const line = (strong, count, place) => {
    context.strokeStyle = strong ? "rgba(150, 175, 215, .40)" : "rgba(130, 155, 195, .17)";
    context.lineWidth = 1;
    context.beginPath();
    let down = false;
    for (let k = 0; k <= count; ++k) {
      const [lat, lon] = place(k);
      v[0] = Math.cos(lat) * Math.cos(lon), v[1] = Math.cos(lat) * Math.sin(lon), v[2] = Math.sin(lat);
      view.project(v, 0, out);
      if (out[2] > 0) down ? context.lineTo(out[0], out[1]) : context.moveTo(out[0], out[1]);
      down = out[2] > 0;
    }
    context.stroke();
  };
  const fine = step < 30 ? 720 : 180;
  for (let lat = -90 + step; lat < 90; lat += step)
    line(lat === 0, fine, k => [lat / kDegrees, k / fine * 2 * Math.PI]);
  for (let lon = 0; lon < 360; lon += step)
    line(lon === 0, fine / 2, k => [(k / fine * 2 - 0.5) * Math.PI, lon / kDegrees]);
}

// Adds an edge to the path: straight if short, else along the great circle.
function traceEdge(set, e, a, b) {
  view.project(set.source.xyz, set.from[e], a);
  view.project(set.target.xyz, set.to[e], b);
  if (a[2] <= 0 && b[2] <= 0) return;
  const angle = set.angle(e);
  if (angle <= kArcStep) {
    if (a[2] <= 0 || b[2] <= 0) return;
    context.moveTo(a[0], a[1]);
    context.lineTo(b[0], b[1]);
    return;
  }
  const p = 3 * set.from[e], q = 3 * set.to[e], v = [0, 0, 0], out = [0, 0, 0];
  const steps = Math.ceil(angle / kArcStep), sine = Math.sin(angle);
  for (let k = 0, down = false; k <= steps; ++k) {
    const to = sine > 1e-6 ? Math.sin(angle * k / steps) / sine : k / steps;
    const from = sine > 1e-6 ? Math.sin(angle * (1 - k / steps)) / sine : 1 - k / steps;
    for (let d = 0; d < 3; ++d) v[d] = from * set.source.xyz[p + d] + to * set.target.xyz[q + d];
    view.project(v, 0, out);
    if (out[2] > 0) down ? context.lineTo(out[0], out[1]) : context.moveTo(out[0], out[1]);
    down = out[2] > 0;
  }
}

function drawEdges(set, most) {
  const a = [0, 0, 0], b = [0, 0, 0];
  const spacing_px = view.scale * Math.max(set.source.spacing(), set.target.spacing());
  context.strokeStyle = set.colour;
  context.globalAlpha = picked ? 0.15 : Math.min(0.6, 0.28 + spacing_px / 80);
  context.lineWidth = Math.min(1.4, Math.max(0.5, spacing_px / 30));
  context.beginPath();
  let traced = 0;
  const tiles = set.tiles();
  set.share = tiles.draw(view, set.reach, most, e => {
    traceEdge(set, e, a, b);
    if (++traced % 4000 === 0) {  // long paths are slow
      context.stroke();
      context.beginPath();
    }
  });
  context.stroke();
  context.globalAlpha = 1;
}

function radiusOf(set) {
  const of_mesh = set.role === "data" ? 1 : 1.5;
  return of_mesh * Math.max(0.5, Math.min(4, 0.085 * set.spacing() * view.scale));
}

function dot(x, y, radius) {
  if (radius < 1.3) return context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function drawNodes(set, most) {
  const radius = radiusOf(set), out = [0, 0, 0];
  context.fillStyle = set.colour;
  context.globalAlpha = picked ? 0.55 : 0.95;
  set.share = set.tiles.draw(view, 0, most, i => {
    view.project(set.xyz, i, out);
    if (out[2] <= 0 || out[0] < -9 || out[1] < -9 || out[0] > view.width + 9 ||
        out[1] > view.height + 9)
      return;
    dot(out[0], out[1], radius);
    ++set.drawn;
  });
  context.globalAlpha = 1;
}

function drawMarks(list, most) {
  const step = Math.max(1, Math.ceil(list.nodes.length / most)), out = [0, 0, 0];
  const radius = radiusOf(list.set) + 3;
  context.strokeStyle = list.colour;
  context.lineWidth = 1.6;
  for (let k = 0; k < list.nodes.length; k += step) {
    view.project(list.set.xyz, list.nodes[k], out);
    if (out[2] <= 0) continue;
    context.beginPath();
    context.arc(out[0], out[1], radius, 0, 2 * Math.PI);
    context.stroke();
  }
}

// The edges of the picked node, and their other ends.
function drawPicked() {
  const a = [0, 0, 0], b = [0, 0, 0], out = [0, 0, 0];
  const draw = (set, end, colour, width) => {
    const other = end === "from" ? "to" : "from", ends = end === "from" ? set.target : set.source;
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = width;
    const edges = set.edgesAt(end, picked.node);
    context.beginPath();
    for (const e of edges) traceEdge(set, e, a, b);
    context.stroke();
    for (const e of edges) {
      view.project(ends.xyz, set[other][e], out);
      if (out[2] > 0) dot(out[0], out[1], radiusOf(ends) + 1);
    }
  };
  // Where nothing else is chosen, all sets are shown.
  const chosen = edgeSets.filter(set => set.shown && (set.source === picked.set || set.target === picked.set));
  for (const set of chosen.length > 0 ? chosen : edgeSets) {
    if (set.source === picked.set) draw(set, "from", "#ffb357", 3.5);
    if (set.target === picked.set) draw(set, "to", "#57d7ff", 1.5);
  }
  view.project(picked.set.xyz, picked.node, out);
  if (out[2] <= 0) return;
  context.fillStyle = "#fff";
  dot(out[0], out[1], radiusOf(picked.set) + 1.5);
}

function draw(budget) {
  view.prepare();
  drawGlobe();
  drawNet();
  const lines = edgeSets.filter(set => set.shown), points = nodeSets.filter(set => set.shown);
  for (const set of nodeSets) set.drawn = 0;
  for (const set of lines) drawEdges(set, budget.lines / lines.length);
  for (const set of points) drawNodes(set, budget.points / points.length);
  if (picked) drawPicked();
  if (marksShown)
    for (const list of orphans.filter(list => list.shown && list.set.shown)) drawMarks(list, budget.lines);
  tellShares();
}

let waiting = null, asked = false;
// Draws a little at once, and all when nothing has changed for a while.
function redraw() {
  clearTimeout(waiting);
  if (!asked) requestAnimationFrame(() => {
    asked = false;
    if (waiting) draw(kTurning);
  });
  asked = true;
  waiting = setTimeout(() => {
    waiting = null;
    draw(kResting);
  }, 120);
}

function resize() {
  const sharpness = Math.min(2, window.devicePixelRatio || 1);
  view.width = canvas.clientWidth;
  view.height = canvas.clientHeight;
  canvas.width = view.width * sharpness;
  canvas.height = view.height * sharpness;
  context.setTransform(sharpness, 0, 0, sharpness, 0, 0);
  draw(kResting);  // the canvas is empty now
}

// ---------------------------------------------------------------------------------- the panel ---

function make(tag, parent, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

const number = value => value.toLocaleString("en-US", {maximumFractionDigits: 0});
const short = value => Math.abs(value) >= 100 ? number(value) : String(Number(value.toPrecision(3)));
const part = share => share >= 1 ? "" : `${short(100 * share)} % of those in view drawn; zoom in for all`;

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
    const stride = set.json.every > 1 ? `edges of 1 of ${set.json.every} targets are in this page` : "";
    set.line.textContent = [stride, set.shown ? part(set.share) : ""].filter(text => text).join("; ");
  }
  document.getElementById("place").textContent =
      `centre ${placeText(view.lat, view.lon, 1)}, zoom ${short(view.zoom)}`;
  // For tests: what was drawn.
  document.documentElement.dataset.drawn =
      JSON.stringify(Object.fromEntries(nodeSets.map(set => [set.name, set.drawn])));
}

function tellOrphans() {
  const parent = document.getElementById("orphans");
  if (orphans.length === 0) make("p", parent, "quiet", "None: data nodes are all seen and reached.");
  for (const list of orphans) {
    const line = make("div", parent);
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
    const rect = add("rect", {x: i * bar + 0.08 * bar, y: base - height, width: 0.84 * bar, height});
    if (unit === "" && from === 0 && histogram.width === 1) rect.setAttribute("class", "none");
    const range = unit === "" && histogram.width === 1 ? short(from)
                                                      : `${short(from)} to ${short(from + histogram.width)}`;
    const tip = document.createElementNS(space, "title");
    tip.textContent = `${range}${unit}: ${number(count)}`;
    rect.append(tip);
  });
  add("line", {x1: 0, x2: width, y1: base, y2: base});
  const end = histogram.first + histogram.width * (counts.length - (unit === "" && histogram.width === 1));
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

// ----------------------------------------------------------------------------------- the hand ---

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
  const dot = (xyz, i) => xyz[3 * i] * direction[0] + xyz[3 * i + 1] * direction[1] +
                          xyz[3 * i + 2] * direction[2];
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
  view.lon -= dx / view.scale;
  view.lat = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, view.lat + dy / view.scale));
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
    if (held && held.moved <= 3 && event.type === "pointerup") pick(nodeAt(event.offsetX, event.offsetY));
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
      ArrowLeft: () => turn(step, 0), ArrowRight: () => turn(-step, 0), ArrowUp: () => turn(0, step),
      ArrowDown: () => turn(0, -step), "+": () => zoomBy(1.3), "-": () => zoomBy(1 / 1.3),
      "0": () => zoomBy(1 / view.zoom), Escape: () => pick(null)};
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("resize", resize);
}

// What the address asks for.
function readAddress() {
  const wanted = new URLSearchParams(decodeURIComponent(location.hash.slice(1)));
  const hidden = (wanted.get("hide") || "").split(",");
  for (const set of nodeSets) if (hidden.includes(set.name)) set.shown = false;
  for (const set of edgeSets) if (hidden.includes(set.key)) set.shown = false;
  for (const key of (wanted.get("show") || "").split(","))
    for (const set of edgeSets) if (set.key === key) set.shown = true;
  marksShown = !hidden.includes("marks");
  const [lat, lon, zoom] = (wanted.get("view") || "").split(",").map(Number);
  if (Number.isFinite(lon) && wanted.get("view")) [view.lat, view.lon] = [lat / kDegrees, lon / kDegrees];
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
  readAddress();
  for (const set of nodeSets) addSwitch(document.getElementById("nodes"), set, set.count, "swatch");
  for (const set of edgeSets) addSwitch(document.getElementById("edges"), set, set.json.count, "swatch line");
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

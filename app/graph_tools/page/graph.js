// SPDX-License-Identifier: Apache-2.0
// The graph of the page: node sets and edge sets, decoded. Nodes and edges are sorted into tiles of
// the sphere, so that only what is in view is looked at; inside a tile they are in an order of
// which every beginning is spread evenly, so that a part of a tile can be drawn for the whole.
"use strict";

const kEarthRadius_km = 6371;
const kNodeColours = ["#7fb2ff", "#ffd166", "#8ce99a", "#e599f7", "#ffa8a8", "#66d9e8"];
const kEdgeColours =
    ["#4dabf7", "#ffc53d", "#63e6be", "#b197fc", "#ff8787", "#74c0fc", "#c0eb75"];
const kLongEdge = 10 / kDegrees;  // is in no tile

const graph = JSON.parse(document.getElementById("graph").textContent);

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

function greatestCommonDivisor(a, b) { return b === 0 ? a : greatestCommonDivisor(b, a % b); }

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
    this.made = new Tiles(this.from.length, (e, v) => {
      const a = 3 * this.from[e], b = 3 * this.to[e];
      for (let d = 0; d < 3; ++d) v[d] = p[a + d] + q[b + d];
      const length = Math.hypot(...v), angle = this.angle(e);
      if (length === 0 || angle > kLongEdge) return false;
      for (let d = 0; d < 3; ++d) v[d] /= length;
      this.reach = Math.max(this.reach, angle / 2);
      return true;
    });
    return this.made;
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

const nodeSets =
    graph.nodes.map((set, i) => new NodeSet(set, kNodeColours[i % kNodeColours.length]));
const byName = new Map(nodeSets.map(set => [set.name, set]));
const edgeSets =
    graph.edges.map((set, i) => new EdgeSet(set, kEdgeColours[i % kEdgeColours.length], byName));
const within = edgeSets.filter(set => set.source === set.target);
for (const set of within.length > 0 ? within : edgeSets.slice(0, 1)) set.shown = true;

// Nodes without edges, each list with what it means.
const orphans = graph.orphans.map(json => {
  const nodes = decodeIndices(json.nodes, json.count);
  const colour = json.is_data ? "#ff5d5d" : "#ffb84d";
  return {set: byName.get(json.set), nodes, text: json.text, colour, shown: true, next: 0};
});

// SPDX-License-Identifier: Apache-2.0
// Draws the globe on the canvas.
"use strict";

// Points and lines that are drawn at most: while the globe turns, and when it rests.
const kTurning = {points: 25e3, lines: 12e3};
const kResting = {points: 250e3, lines: 120e3};
const kArcStep = 5 / kDegrees;  // edges are bent in such steps

const canvas = document.getElementById("globe");
const context = canvas.getContext("2d");
const view = new SphereView(0.45, 0.2);
let picked = null;  // {set, node}
let marksShown = true;

function drawGlobe() {
  const {width, height, scale} = view, x = width / 2, y = height / 2;
  context.clearRect(0, 0, width, height);
  const shade =
      context.createRadialGradient(x - 0.35 * scale, y - 0.4 * scale, 0.1 * scale, x, y, scale);
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
      v[0] = Math.cos(lat) * Math.cos(lon), v[1] = Math.cos(lat) * Math.sin(lon),
      v[2] = Math.sin(lat);
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
  const chosen =
      edgeSets.filter(set => set.shown && (set.source === picked.set || set.target === picked.set));
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
    for (const list of orphans.filter(list => list.shown && list.set.shown))
      drawMarks(list, budget.lines);
  tellShares();
}

let waiting = null, asked = false;
// Draws a little at once, and all when nothing has changed for a while.
function redraw() {
  clearTimeout(waiting);
  if (!asked)
    requestAnimationFrame(() => {
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

// SPDX-License-Identifier: Apache-2.0
// Figures: a canvas with a caption, a line that says what the hand points at, and a button that
// saves it as PNG. What is drawn takes its colours from the style of the page.
"use strict";

const report = JSON.parse(document.getElementById("report").textContent);
const kFont = "12px system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

function make(tag, parent, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
// The colour of the n-th run or line.
const lineColour = n => colour(`c${n % 8}`);

// A number for people: four digits, powers of ten where it is very small or large.
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-3 || size >= 1e6)
    return String(Number(value.toPrecision(3)).toExponential()).replace("+", "").replace(/-/g, "−");
  const digits = size >= 1000 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en-US", {maximumFractionDigits: digits}).replace("-", "−");
}
function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds >= 7200) return `${short(seconds / 3600)} h`;
  if (seconds >= 120) return `${short(seconds / 60)} min`;
  return `${short(seconds)} s`;
}
const percent = share => `${(100 * share).toFixed(1).replace("-", "−")} %`;
function leadTime(hours) {
  return hours >= 72 && hours % 24 === 0 ? `${hours / 24} d` : `${short(hours)} h`;
}

const figures = [];

class Figure {
  // `shape` returns the height of a width, in pixels of the page.
  constructor(parent, {title, note = "", shape = () => 260, className = ""}) {
    Object.assign(this, {title, shape});
    const element = make("figure", parent), caption = make("figcaption", element);
    this.heading = make("b", caption, "", title);
    this.note = make("span", caption, "", note);
    const button = make("button", caption, "", "PNG");
    button.type = "button";
    button.title = "Save this figure as an image";
    button.setAttribute("aria-label", `Save "${title}" as PNG`);
    button.onclick = () => this.save();
    this.canvas = make("canvas", element, className);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", title);
    this.readout = make("p", element, "readout");
    this.readout.setAttribute("aria-live", "polite");
    figures.push(this);
  }
  rename(title, note) {
    this.title = this.heading.textContent = title;
    if (note !== undefined) this.note.textContent = note;
    this.canvas.setAttribute("aria-label", `${title} ${note || ""}`);
  }
  redraw() {
    const width = this.canvas.clientWidth, height = Math.round(this.shape(width));
    if (width === 0) return;
    const sharpness = Math.min(2, window.devicePixelRatio || 1);
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * sharpness);
    this.canvas.height = Math.round(height * sharpness);
    this.paintOn(this.canvas, sharpness, width, height);
  }
  paintOn(canvas, sharpness, width, height) {
    const context = canvas.getContext("2d");
    context.setTransform(sharpness, 0, 0, sharpness, 0, 0);
    context.fillStyle = colour("panel");
    context.fillRect(0, 0, width, height);
    context.font = kFont;
    this.paint(context, width, height, sharpness);
  }
  // The figure with its title, for other documents.
  image() {
    const width = this.canvas.clientWidth || 640, height = Math.round(this.shape(width));
    const inner = document.createElement("canvas"), outer = document.createElement("canvas");
    const sharpness = 2, head = 34;
    inner.width = width * sharpness;
    inner.height = height * sharpness;
    this.paintOn(inner, sharpness, width, height);
    outer.width = inner.width + 24 * sharpness;
    outer.height = inner.height + (head + 12) * sharpness;
    const context = outer.getContext("2d");
    context.fillStyle = colour("panel");
    context.fillRect(0, 0, outer.width, outer.height);
    context.drawImage(inner, 12 * sharpness, head * sharpness);
    context.scale(sharpness, sharpness);
    context.fillStyle = colour("text");
    context.font = `600 14px ${kFont.slice(5)}`;
    context.fillText(this.title, 12, 22);
    const after = 24 + context.measureText(this.title).width;
    context.fillStyle = colour("quiet");
    context.font = kFont;
    context.fillText(this.note.textContent, after, 22);
    return outer;
  }
  save() {
    this.image().toBlob(blob => {
      const link = make("a");
      link.href = URL.createObjectURL(blob);
      link.download = `${this.title.replace(/[^\w]+/g, "-").toLowerCase()}.png`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }
}

function redrawAll() {
  for (const figure of figures) figure.redraw();
}

// A list to choose from, with its label; `change` gets the number of the choice.
function choice(parent, label, names, change) {
  const select = make("select", make("label", parent, "", label));
  names.forEach((name, i) => make("option", select, "", name).value = i);
  select.onchange = () => change(Number(select.value));
  return select;
}

// Round values from `low` to `high`, about `count` of them.
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(rough));
  const unit = rough / power, step = power * (unit > 5 ? 10 : unit > 2 ? 5 : unit > 1 ? 2 : 1);
  const values = [];
  if (!(step > 0)) return [low];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k)
    values.push(Number((k * step).toPrecision(10)));
  return values;
}
function logTicks(low, high) {
  const values = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const factors = last - first > 4 ? [1] : last - first > 2 ? [1, 3] : [1, 2, 5];
  for (let power = first; power <= last; ++power)
    for (const factor of factors) {
      const value = factor * 10 ** power;
      if (value >= low * 0.999 && value <= high * 1.001) values.push(value);
    }
  return values;
}

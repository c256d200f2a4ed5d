// SPDX-License-Identifier: Apache-2.0
// Curves over steps, hours, lead times or wavenumbers, and stacked bars.
"use strict";

// The mean of so many values before and after each, without those that are none.
function smoothed(values, reach) {
  const sums = [0], counts = [0];
  values.forEach((value, i) => {
    sums.push(sums[i] + (value === null ? 0 : value));
    counts.push(counts[i] + (value === null ? 0 : 1));
  });
  return values.map((value, i) => {
    if (value === null) return null;
    const first = Math.max(0, i - reach), last = Math.min(values.length, i + reach + 1);
    return (sums[last] - sums[first]) / (counts[last] - counts[first]);
  });
}

// The legend in rows; returns their height. Each entry: {name, colour, dash}.
function drawLegend(context, entries, left, width) {
  let x = left, y = 11;
  for (const entry of entries) {
    const wide = 30 + context.measureText(entry.name).width;
    if (x > left && x + wide > left + width) x = left, y += 17;
    context.strokeStyle = entry.colour;
    context.lineWidth = 2.5;
    context.setLineDash(entry.dash || []);
    context.beginPath();
    context.moveTo(x, y - 4);
    context.lineTo(x + 18, y - 4);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour("text");
    context.fillText(entry.name, x + 23, y);
    x += wide + 12;
  }
  return entries.length > 0 ? y + 8 : 0;
}

// Whole parts of a day, or days.
function hourTicks(low, high, count) {
  const step = [1, 3, 6, 12, 24, 48, 72, 120, 240].find(s => (high - low) / s <= count + 1) || 480;
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9; ++k) values.push(k * step);
  return values;
}

class CurveFigure extends Figure {
  // Each line: {name, tone (its colour's number, or a name of the style), x, mean, low, high, dash}.
  constructor(parent, options) {
    super(parent, {shape: width => Math.max(230, Math.min(300, 0.52 * width)), ...options});
    Object.assign(this, {xLabel: "step", unit: "", lines: [], log: false, logX: false, zero: false,
                         smooth: false}, options);
    this.listen();
  }
  toneOf(line) { return typeof line.tone === "number" ? lineColour(line.tone) : colour(line.tone); }
  visible(i, line) {
    return line.mean[i] !== null && line.x[i] >= this.span[0] && line.x[i] <= this.span[1];
  }
  // What the axes reach over.
  measure() {
    const all = this.lines.flatMap(line => line.x.filter(x => x !== null && (!this.logX || x > 0)));
    this.whole = all.length > 0 ? [Math.min(...all), Math.max(...all)] : [0, 1];
    if (this.whole[0] === this.whole[1])
      this.whole = this.logX ? [this.whole[0] / 2, this.whole[1] * 2] : [this.whole[0] - 0.5, this.whole[0] + 0.5];
    this.span = this.zoomed || this.whole;
    let low = Infinity, high = -Infinity;
    for (const line of this.lines)
      line.mean.forEach((mean, i) => {
        if (!this.visible(i, line)) return;
        const least = (line.low || line.mean)[i], most = (line.high || line.mean)[i];
        if (!this.log || least > 0) low = Math.min(low, least);
        if (!this.log || most > 0) high = Math.max(high, most);
      });
    if (!(low <= high)) [low, high] = this.log ? [0.1, 1] : [0, 1];
    if (this.zero) low = Math.min(0, low), high = Math.max(0, high);
    if (this.log) {
      const room = Math.max(1.08, (high / low) ** 0.04);
      this.range = [low / room, high * room];
    } else {
      const room = (high - low || Math.abs(high) || 1) * 0.06;
      this.range = [this.zero && low === 0 ? 0 : low - room, high + room];
    }
  }
  place(value, [low, high], log, from, to) {
    const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
  toX(x) { return this.place(x, this.span, this.logX, this.box.left, this.box.right); }
  toY(y) { return this.place(y, this.range, this.log, this.box.bottom, this.box.top); }
  fromX(px) {
    const share = (px - this.box.left) / (this.box.right - this.box.left), [low, high] = this.span;
    return this.logX ? low * (high / low) ** share : low + share * (high - low);
  }

  paint(context, width, height) {
    this.measure();
    const entries =
        this.lines.map(line => ({name: line.name, colour: this.toneOf(line), dash: line.dash}));
    const legend = drawLegend(context, entries, 6, width - 12);
    this.box = {left: 58, right: width - 12, top: legend + 22, bottom: height - 38};
    this.drawAxes(context);
    context.save();
    context.beginPath();
    context.rect(this.box.left - 3, this.box.top - 3, this.box.right - this.box.left + 6,
                 this.box.bottom - this.box.top + 6);
    context.clip();
    for (const line of this.lines) this.drawLine(context, line);
    context.restore();
    this.drawCursor(context);
  }
  drawAxes(context) {
    const {left, right, top, bottom} = this.box;
    context.lineWidth = 1;
    context.strokeStyle = colour("grid");
    context.fillStyle = colour("quiet");
    const ys = this.log ? logTicks(...this.range) : ticks(...this.range, (bottom - top) / 42);
    context.textAlign = "right";
    for (const value of ys) {
      const y = Math.round(this.toY(value)) + 0.5;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillText(short(value), left - 7, y + 4);
    }
    context.textAlign = "center";
    const most = (right - left) / 90;
    const xs = this.logX ? logTicks(...this.span) :
        this.inHours     ? hourTicks(...this.span, most) :
                           ticks(...this.span, most);
    for (const value of xs) {
      const x = Math.round(this.toX(value)) + 0.5;
      context.beginPath();
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + 4);
      context.stroke();
      context.fillText(short(value), Math.max(left, Math.min(right - 8, x)), bottom + 17);
    }
    context.fillText(this.xLabel, (left + right) / 2, bottom + 33);
    context.textAlign = "left";
    context.fillText(this.unit, 6, top - 9);
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(left, bottom + 0.5);
    context.lineTo(right, bottom + 0.5);
    context.stroke();
  }
  trace(context, line, values) {
    let down = false;
    context.beginPath();
    values.forEach((value, i) => {
      if (value === null || line.x[i] === null || (this.log && value <= 0)) return down = false;
      const x = this.toX(line.x[i]), y = this.toY(value);
      down ? context.lineTo(x, y) : context.moveTo(x, y);
      return down = true;
    });
    context.stroke();
  }
  drawBand(context, line) {
    line.mean.forEach((mean, i) => {
      if (mean === null || line.x[i] === null) return;
      const low = this.log ? Math.max(line.low[i], this.range[0]) : line.low[i];
      const x = this.toX(line.x[i]);
      context.moveTo(x, this.toY(low));
      context.lineTo(x, Math.min(this.toY(line.high[i]), this.toY(low) - 1));
    });
  }
  drawLine(context, line) {
    context.strokeStyle = this.toneOf(line);
    context.lineJoin = "round";
    const dense = line.mean.length > 60 && this.smooth;
    if (line.low) {
      const gap = (this.box.right - this.box.left) / Math.max(1, line.x.length);
      context.globalAlpha = 0.3;
      context.lineWidth = Math.max(1, gap);
      context.beginPath();
      this.drawBand(context, line);
      context.stroke();
    }
    context.globalAlpha = dense ? 0.38 : 1;
    context.lineWidth = dense ? 1 : 1.8;
    context.setLineDash(line.dash || []);
    this.trace(context, line, line.mean);
    context.globalAlpha = 1;
    if (dense) {
      context.lineWidth = 2;
      this.trace(context, line, smoothed(line.mean, Math.ceil(line.mean.length / 60)));
    }
    context.setLineDash([]);
    this.drawPoints(context, line);
  }
  // Single values, and what was no number.
  drawPoints(context, line) {
    context.fillStyle = this.toneOf(line);
    line.mean.forEach((mean, i) => {
      if (line.x[i] === null) return;
      const x = this.toX(line.x[i]);
      if (mean === null) {
        if (!line.gaps) context.fillText("×", x - 4, this.box.top + 8);
      } else if (line.mean.length <= 20 && (!this.log || mean > 0)) {
        context.beginPath();
        context.arc(x, this.toY(mean), 2.6, 0, 2 * Math.PI);
        context.fill();
      }
    });
  }

  nearest(line) {
    let best = -1, least = Infinity;
    line.x.forEach((x, i) => {
      const distance = x === null ? Infinity : Math.abs(this.toX(x) - this.cursor);
      if (distance < least) [least, best] = [distance, i];
    });
    return best;
  }
  drawCursor(context) {
    if (this.dragged) {
      context.fillStyle = colour("accent");
      context.globalAlpha = 0.15;
      context.fillRect(this.dragged[0], this.box.top, this.dragged[1] - this.dragged[0],
                       this.box.bottom - this.box.top);
      context.globalAlpha = 1;
    }
    if (this.cursor === undefined) return;
    context.strokeStyle = colour("quiet");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(this.cursor, this.box.top);
    context.lineTo(this.cursor, this.box.bottom);
    context.stroke();
    const parts = [];
    for (const line of this.lines) {
      const i = this.nearest(line);
      if (i < 0 || !this.visible(i, line)) continue;
      if (parts.length === 0) parts.push(`${this.xLabel} ${short(line.x[i])}`);
      const spread = line.low ? ` (${short(line.low[i])} to ${short(line.high[i])})` : "";
      parts.push(`${line.name} ${short(line.mean[i])}${spread}`);
    }
    this.readout.textContent = parts.join(" · ");
  }
  point(px) {
    this.cursor = px === undefined ? undefined : Math.max(this.box.left, Math.min(this.box.right, px));
    if (px === undefined) this.readout.textContent = "";
    this.redraw();
  }
  zoomTo(from, to) {
    this.zoomed = from === undefined ? null : [Math.min(from, to), Math.max(from, to)];
    this.redraw();
  }
  listen() {
    const canvas = this.canvas;
    canvas.title = "drag: a part of the axis · double click or 0: all · arrows: move the line";
    canvas.addEventListener("pointerdown", event => {
      if (event.pointerType !== "touch") this.dragged = [event.offsetX, event.offsetX];
    });
    canvas.addEventListener("pointermove", event => {
      if (this.dragged) this.dragged[1] = event.offsetX;
      this.point(event.offsetX);
    });
    canvas.addEventListener("pointerup", () => {
      const dragged = this.dragged;
      this.dragged = null;
      if (dragged && Math.abs(dragged[1] - dragged[0]) > 8)
        this.zoomTo(this.fromX(dragged[0]), this.fromX(dragged[1]));
    });
    canvas.addEventListener("pointerleave", () => {
      this.dragged = null;
      this.point(undefined);
    });
    canvas.addEventListener("dblclick", () => this.zoomTo());
    canvas.addEventListener("keydown", event => {
      const at = this.cursor === undefined ? this.box.left : this.cursor;
      const step = event.shiftKey ? 40 : 8;
      const keys = {
        ArrowLeft: () => this.point(at - step),
        ArrowRight: () => this.point(at + step),
        "+": () => this.zoomTo((this.span[0] + this.fromX(at)) / 2, (this.span[1] + this.fromX(at)) / 2),
        "0": () => this.zoomTo(),
        Escape: () => this.point(undefined),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

// Rows of stacked bars, as shares of each row: {name, note, parts: [{name, value, tone}]}.
class BarFigure extends Figure {
  constructor(parent, options) {
    super(parent, {shape: () => (this.top || 24) + 40 * options.rows.length, ...options});
    Object.assign(this, options);
    this.canvas.addEventListener("pointermove", event => this.tell(event.offsetX, event.offsetY));
    this.canvas.addEventListener("focus", () => {
      this.readout.textContent =
          this.rows
              .map(row => `${row.name}: ` +
                       row.parts.map(part => `${part.name} ${duration(part.value)}`).join(", "))
              .join(" · ");
    });
  }
  paint(context, width) {
    const legend = new Map();
    for (const row of this.rows)
      for (const part of row.parts) legend.set(part.name, lineColour(part.tone));
    const entries = Array.from(legend, ([name, tone]) => ({name, colour: tone}));
    const top = drawLegend(context, entries, 6, width - 12) + 6;
    if (top !== this.top) {  // the legend has another number of rows than before
      this.top = top;
      requestAnimationFrame(() => this.redraw());
    }
    const sum = row => row.parts.reduce((total, part) => total + part.value, 0);
    this.boxes = [];
    this.rows.forEach((row, r) => {
      const y = top + 40 * r;
      context.fillStyle = colour("text");
      context.fillText(row.name, 6, y + 12);
      context.fillStyle = colour("quiet");
      context.textAlign = "right";
      context.fillText(row.note || duration(sum(row)), width - 8, y + 12);
      context.textAlign = "left";
      let x = 6;
      for (const part of row.parts) {
        const wide = (width - 12) * part.value / Math.max(sum(row), 1e-9);
        context.fillStyle = lineColour(part.tone);
        context.fillRect(x, y + 17, Math.max(0.5, wide - 1), 14);
        this.boxes.push({x, y: y + 17, wide, row, part, share: part.value / sum(row)});
        x += wide;
      }
    });
  }
  tell(x, y) {
    const hit = this.boxes.find(
        box => x >= box.x && x < box.x + box.wide && y >= box.y - 18 && y < box.y + 20);
    this.readout.textContent = hit ?
        `${hit.row.name}: ${hit.part.name} ${duration(hit.part.value)}, ${percent(hit.share)}` :
        "";
  }
}

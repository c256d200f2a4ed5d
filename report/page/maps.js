// SPDX-License-Identifier: Apache-2.0
// Maps of fields on the points that they have: every pixel takes the colour of the point that is
// nearest to it.
"use strict";

const kCoast = (() => {
  const json = JSON.parse(document.getElementById("coastlines").textContent);
  return json.lines.map(line => {
    const count = line.length / 2, lon = new Float32Array(count), lat = new Float32Array(count);
    for (let i = 0, x = 0, y = 0; i < count; ++i) {
      x += line[2 * i], y += line[2 * i + 1];
      lon[i] = x / 20 / kDegrees, lat[i] = y / 20 / kDegrees;
    }
    return {lat, lon, xyz: unitVectors(lat, lon), count};
  });
})();

// Colours from 0 to 1: light to dark where more is more (viridis), and two hues about a middle.
const kSequential = ["#440154", "#46327e", "#365c8d", "#277f8e", "#1fa187", "#4ac16d", "#a0da39", "#fde725"];
const kDiverging = ["#053061", "#2f79b5", "#8ec4de", "#e3eef4", "#f7f0ea", "#f5b799", "#d0624c", "#67001f"];

function scaleColour(scale, share) {
  const at = Math.max(0, Math.min(1, share)) * (scale.length - 1);
  const i = Math.min(scale.length - 2, Math.floor(at)), part = at - i;
  const channel = (hex, c) => parseInt(hex.slice(1 + 2 * c, 3 + 2 * c), 16);
  return [0, 1, 2].map(c => Math.round(channel(scale[i], c) * (1 - part) +
                                       channel(scale[i + 1], c) * part));
}

// Finds the point that is nearest to a place, by a table over latitude and longitude.
class NearestPoints {
  constructor(lat, lon) {
    Object.assign(this, {lat, lon, xyz: unitVectors(lat, lon), count: lat.length});
    this.reach = 1.3 * this.spacing();
    this.bound();
    this.fill();
  }
  chord2(i, x, y, z) {
    const p = this.xyz, dx = p[3 * i] - x, dy = p[3 * i + 1] - y, dz = p[3 * i + 2] - z;
    return dx * dx + dy * dy + dz * dz;
  }
  // The greatest distance of some points from the one next to them.
  spacing() {
    let most = 0;
    const step = Math.max(1, Math.floor(this.count / 150)), p = this.xyz;
    for (let i = 0; i < this.count; i += step) {
      let least = 4;
      for (let k = 0; k < this.count; ++k) {
        const d = k === i ? 4 : this.chord2(k, p[3 * i], p[3 * i + 1], p[3 * i + 2]);
        if (d > 0 && d < least) least = d;
      }
      most = Math.max(most, Math.sqrt(least));
    }
    return Math.max(most, 1e-4);
  }
  // The box that holds all points; west of a box over the date line is below -pi.
  bound() {
    const room = this.reach;
    let south = Infinity, north = -Infinity;
    for (const lat of this.lat) south = Math.min(south, lat), north = Math.max(north, lat);
    const sorted = Float32Array.from(this.lon, x => ((x % (2 * Math.PI)) + 2 * Math.PI) % (2 * Math.PI)).sort();
    let gap = sorted[0] + 2 * Math.PI - sorted[this.count - 1], after = sorted[0];
    for (let i = 1; i < this.count; ++i)
      if (sorted[i] - sorted[i - 1] > gap) gap = sorted[i] - sorted[i - 1], after = sorted[i];
    this.south = Math.max(-Math.PI / 2, south - room);
    this.north = Math.min(Math.PI / 2, north + room);
    const wide = 2 * Math.PI - gap, most = Math.cos(Math.min(1.5, Math.max(Math.abs(south), Math.abs(north))));
    this.isGlobal = wide + 2 * room / most > 1.9 * Math.PI;
    this.west = this.isGlobal ? -Math.PI : after - room / most;
    if (!this.isGlobal && this.west > Math.PI) this.west -= 2 * Math.PI;
    this.east = this.isGlobal ? Math.PI : this.west + wide + 2 * room / most;
  }
  // Points spread from their own cell of the table to the cells around (jump flooding).
  fill() {
    const aspect = (this.east - this.west) / (this.north - this.south);
    const rows = Math.max(120, Math.min(600, Math.round(2.2 * Math.sqrt(this.count))));
    const columns = Math.max(60, Math.min(1400, Math.round(rows * aspect)));
    Object.assign(this, {rows, columns});
    this.table = new Int32Array(rows * columns).fill(-1);
    const centres = new Float32Array(3 * rows * columns);
    for (let r = 0, k = 0; r < rows; ++r) {
      const lat = this.south + (r + 0.5) / rows * (this.north - this.south);
      for (let c = 0; c < columns; ++c, k += 3) {
        const lon = this.west + (c + 0.5) / columns * (this.east - this.west);
        centres[k] = Math.cos(lat) * Math.cos(lon);
        centres[k + 1] = Math.cos(lat) * Math.sin(lon);
        centres[k + 2] = Math.sin(lat);
      }
    }
    const offer = (cell, i) => {
      const k = 3 * cell, there = this.table[cell];
      if (there === i) return;
      if (there < 0 || this.chord2(i, centres[k], centres[k + 1], centres[k + 2]) <
                           this.chord2(there, centres[k], centres[k + 1], centres[k + 2]))
        this.table[cell] = i;
    };
    for (let i = 0; i < this.count; ++i) {
      const cell = this.cell(this.lat[i], this.lon[i]);
      if (cell >= 0) offer(cell, i);
    }
    let jump = 1;
    while (jump < Math.max(rows, columns) / 2) jump *= 2;
    for (; jump >= 1; jump /= 2) this.spread(jump, offer);
    this.spread(1, offer);
    for (let cell = 0; cell < this.table.length; ++cell) {
      const i = this.table[cell], k = 3 * cell;
      if (i >= 0 && this.chord2(i, centres[k], centres[k + 1], centres[k + 2]) > this.reach ** 2)
        this.table[cell] = -1;
    }
  }
  spread(jump, offer) {
    const {rows, columns, table} = this;
    for (let r = 0; r < rows; ++r)
      for (let c = 0; c < columns; ++c) {
        const i = table[r * columns + c];
        if (i < 0) continue;
        for (let dr = -jump; dr <= jump; dr += jump) {
          const row = r + dr;
          if (row < 0 || row >= rows) continue;
          for (let dc = -jump; dc <= jump; dc += jump) {
            let column = c + dc;
            if (this.isGlobal) column = (column + columns) % columns;
            if (column >= 0 && column < columns) offer(row * columns + column, i);
          }
        }
      }
  }
  cell(lat, lon) {
    const row = Math.floor((lat - this.south) / (this.north - this.south) * this.rows);
    let east = lon - this.west;
    east -= 2 * Math.PI * Math.floor(east / (2 * Math.PI));
    const column = Math.floor(east / (this.east - this.west) * this.columns);
    if (row < 0 || row > this.rows || column < 0 || column > this.columns) return -1;
    return Math.min(row, this.rows - 1) * this.columns + Math.min(column, this.columns - 1);
  }
  at(lat, lon) {
    const cell = this.cell(lat, lon);
    return cell < 0 ? -1 : this.table[cell];
  }
}

// A field of the page: codes 1 to 255 from low to high, 0 where there is no value.
function codesOf(field) {
  if (!field.bytes) field.bytes = decodeBytes(field.codes);
  return field.bytes;
}
function valueOf(field, i) {
  const code = codesOf(field)[i];
  return code === 0 ? null : field.low + (code - 1) / 254 * (field.high - field.low);
}

// The range of colours of fields: from the hundredth part of values to the 99th; even about zero
// for errors and for what has both signs.
function rangeOf(fields, isError) {
  const values = [];
  for (const field of fields.filter(f => f)) {
    const codes = codesOf(field), step = Math.max(1, Math.floor(codes.length / 1500));
    for (let i = 0; i < codes.length; i += step) {
      const value = valueOf(field, i);
      if (value !== null) values.push(value);
    }
  }
  values.sort((a, b) => a - b);
  if (values.length === 0) return {low: 0, high: 1, scale: kSequential};
  let low = values[Math.floor(0.01 * (values.length - 1))];
  let high = values[Math.ceil(0.99 * (values.length - 1))];
  const hasBothSigns = low < 0 && high > 0 && -low < 6 * high && high < -6 * low;
  if (isError || hasBothSigns) {
    high = Math.max(Math.abs(low), Math.abs(high)) || 1e-30;
    return {low: -high, high, scale: kDiverging};
  }
  if (low === high) low -= 0.5 * Math.abs(low) || 0.5, high += 0.5 * Math.abs(high) || 0.5;
  return {low, high, scale: kSequential};
}

// What all maps share: the points, what is in view, and which point each pixel shows.
class MapView {
  constructor(maps) {
    const toRadians = text => decodeFloats(text).map(x => x / kDegrees);
    this.points = new NearestPoints(toRadians(maps.lat), toRadians(maps.lon));
    this.sphere = new SphereView(0.5, 0.2);
    this.flat = false;
    this.hidden = new Map();
    this.lookAtAll();
  }
  lookAtAll() {
    const p = this.points;
    this.middle = p.isGlobal ? 0 : (p.west + p.east) / 2;
    this.sphere.zoom = 1;
    if (p.isGlobal) return;
    this.sphere.lat = (p.south + p.north) / 2;
    this.sphere.lon = this.middle;
    const half = Math.max((p.north - p.south) / 2,
                          (p.east - p.west) / 2 * Math.cos(this.sphere.lat));
    if (half < 1) this.sphere.zoom = Math.min(60, 1 / Math.sin(half));
  }
  prepare(width, height) {
    this.width = width;
    this.height = height;
    Object.assign(this.sphere, {width, height});
    this.sphere.prepare();
    const p = this.points, wide = p.east - p.west, high = p.north - p.south;
    this.perPixel = Math.max(wide / width, high / height);  // radians, of the flat map
  }
  // Latitude and longitude under a pixel, or null.
  place(x, y) {
    if (this.flat) {
      const p = this.points, lat = (p.north + p.south) / 2 - (y - this.height / 2) * this.perPixel;
      const east = (x - this.width / 2) * this.perPixel;
      if (Math.abs(lat) > Math.PI / 2 || Math.abs(east) > (p.east - p.west) / 2 + 1e-6) return null;
      return [lat, this.middle + east];
    }
    const v = this.sphere.direction(x, y);
    return v && [Math.asin(v[2]), Math.atan2(v[1], v[0])];
  }
  // The point of every pixel; kept as long as nothing moves.
  pixels(columns, rows) {
    const key = [this.flat, this.width, this.height, columns, rows, this.middle, this.sphere.lat,
                 this.sphere.lon, this.sphere.zoom].join();
    if (this.key !== key) {
      this.key = key;
      this.kept = new Int32Array(columns * rows);
      for (let r = 0, k = 0; r < rows; ++r)
        for (let c = 0; c < columns; ++c, ++k) {
          const at = this.place((c + 0.5) / columns * this.width, (r + 0.5) / rows * this.height);
          this.kept[k] = at ? this.points.at(at[0], at[1]) : -2;
        }
    }
    return this.kept;
  }
  // Calls line(x, y, goes on) along places on the sphere.
  trace(xyz, lat, lon, count, line) {
    const out = [0, 0, 0], half = Math.PI;
    for (let i = 0, last = null; i < count; ++i) {
      if (this.flat) {
        const p = this.points;
        let east = lon[i] - this.middle;
        east -= 2 * Math.PI * Math.round(east / (2 * Math.PI));
        const x = this.width / 2 + east / this.perPixel;
        const y = this.height / 2 - (lat[i] - (p.north + p.south) / 2) / this.perPixel;
        line(x, y, last !== null && Math.abs(east - last) < half);
        last = east;
      } else {
        this.sphere.project(xyz, i, out);
        if (out[2] > 0) line(out[0], out[1], last !== null);
        last = out[2] > 0 ? 0 : null;
      }
    }
  }
}

class MapFigure extends Figure {
  constructor(parent, view, options) {
    super(parent, {
      className: "globe",
      shape: width => {
        const p = view.points, aspect = (p.north - p.south) / (p.east - p.west);
        return kBarHeight + (view.flat ? Math.min(width, width * aspect) : Math.min(width, 330));
      },
      ...options,
    });
    this.view = view;
    this.listen();
  }
  show(field, range, units, note) {
    Object.assign(this, {field, range, units});
    this.note.textContent = note;
    this.redraw();
  }
  paint(context, width, height, sharpness) {
    const view = this.view, high = height - kBarHeight;
    view.prepare(width, high);
    if (!this.field) {
      context.fillStyle = colour("quiet");
      context.textAlign = "center";
      context.fillText("not in the dataset", width / 2, high / 2);
      return;
    }
    context.save();
    context.beginPath();
    context.rect(0, 0, width, high);
    context.clip();
    this.paintField(context, width, high, sharpness);
    this.paintLines(context);
    context.restore();
    this.paintBar(context, width, high + 14);
  }
  palette() {
    const {low, high, scale} = this.range, field = this.field, colours = new Uint32Array(257);
    const word = rgb => (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;
    const hex = name => [0, 1, 2].map(c => parseInt(colour(name).slice(1 + 2 * c, 3 + 2 * c), 16));
    colours[0] = word(hex("line"));  // no value
    colours[256] = word(hex("sea"));  // no point
    for (let code = 1; code < 256; ++code) {
      const value = field.low + (code - 1) / 254 * (field.high - field.low);
      colours[code] = word(scaleColour(scale, (value - low) / (high - low)));
    }
    return colours;
  }
  paintField(context, width, high, sharpness) {
    const fine = this.view.moving ? 0.5 : Math.min(1.5, sharpness);
    const columns = Math.round(width * fine), rows = Math.round(high * fine);
    const pixels = this.view.pixels(columns, rows), colours = this.palette();
    const codes = codesOf(this.field), image = new ImageData(columns, rows);
    const words = new Uint32Array(image.data.buffer);
    for (let k = 0; k < pixels.length; ++k) {
      const i = pixels[k];
      if (i > -2) words[k] = colours[i < 0 ? 256 : codes[i]];
    }
    const layer = document.createElement("canvas");
    layer.width = columns;
    layer.height = rows;
    layer.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = fine < 1;
    context.drawImage(layer, 0, 0, width, high);
  }
  paintLines(context) {
    const draw = (xyz, lat, lon, count) => this.view.trace(xyz, lat, lon, count, (x, y, on) => {
      on ? context.lineTo(x, y) : context.moveTo(x, y);
    });
    context.strokeStyle = "rgba(127, 127, 127, .35)";
    context.lineWidth = 0.7;
    context.beginPath();
    for (const net of kNet) draw(net.xyz, net.lat, net.lon, net.count);
    context.stroke();
    context.strokeStyle = colour("coast");
    context.lineWidth = 0.9;
    context.beginPath();
    for (const coast of kCoast) draw(coast.xyz, coast.lat, coast.lon, coast.count);
    context.stroke();
    if (this.view.flat) return;
    context.strokeStyle = colour("line");
    context.beginPath();
    context.arc(this.view.width / 2, this.view.height / 2, this.view.sphere.scale, 0, 2 * Math.PI);
    context.stroke();
  }
  paintBar(context, width, y) {
    const left = 12, wide = width - 24, {low, high, scale} = this.range;
    for (let x = 0; x < wide; ++x) {
      context.fillStyle = `rgb(${scaleColour(scale, x / wide).join()})`;
      context.fillRect(left + x, y, 1.5, 9);
    }
    context.fillStyle = colour("quiet");
    context.textAlign = "center";
    for (const value of ticks(low, high, Math.max(3, wide / 60))) {
      const x = left + (value - low) / (high - low) * wide;
      context.fillRect(x - 0.5, y + 9, 1, 4);
      context.fillText(short(value), Math.max(left + 12, Math.min(width - 24, x)), y + 25);
    }
    context.textAlign = "left";
    context.fillText(this.units, left, y + 40);
  }
  tell(x, y) {
    const at = this.field && y < this.view.height ? this.view.place(x, y) : null;
    const i = at ? this.view.points.at(at[0], at[1]) : -1;
    if (i < 0) return this.readout.textContent = "";
    const {lat, lon} = this.view.points, value = valueOf(this.field, i);
    return this.readout.textContent = `${placeText(lat[i], lon[i])}: ` +
        (value === null ? "no value" : `${short(value)} ${this.units}`);
  }
  listen() {
    const canvas = this.canvas, view = this.view;
    canvas.title = "drag or arrows: turn · wheel with ctrl, + and −: zoom · 0: all";
    let held = null;
    const turn = (dx, dy) => {
      view.flat ? view.middle -= view.points.isGlobal ? dx * view.perPixel : 0 :
                  view.sphere.turn(dx, dy);
      this.changed();
    };
    const zoom = factor => {
      view.sphere.zoom = Math.max(0.8, Math.min(80, view.sphere.zoom * factor));
      this.changed();
    };
    canvas.addEventListener("pointerdown", event => {
      held = [event.offsetX, event.offsetY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      view.prepare(canvas.clientWidth, canvas.clientHeight - kBarHeight);
      if (!held) return this.tell(event.offsetX, event.offsetY);
      const [dx, dy] = [event.offsetX - held[0], event.offsetY - held[1]];
      held = [event.offsetX, event.offsetY];
      view.moving = true;
      return turn(dx, dy);
    });
    for (const end of ["pointerup", "pointercancel"])
      canvas.addEventListener(end, () => {
        held = null;
        view.moving = false;
        this.changed();
      });
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey) return;  // the page scrolls
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * 0.005));
    }, {passive: false});
    canvas.addEventListener("keydown", event => {
      const keys = {
        ArrowLeft: () => turn(30, 0), ArrowRight: () => turn(-30, 0), ArrowUp: () => turn(0, 30),
        ArrowDown: () => turn(0, -30), "+": () => zoom(1.3), "-": () => zoom(1 / 1.3),
        "0": () => (view.lookAtAll(), this.changed()),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
const kBarHeight = 58;

// Meridians and parallels, every 30 degrees.
const kNet = (() => {
  const lines = [], add = (count, place) => {
    const lat = new Float32Array(count), lon = new Float32Array(count);
    for (let i = 0; i < count; ++i) [lat[i], lon[i]] = place(i).map(x => x / kDegrees);
    lines.push({lat, lon, xyz: unitVectors(lat, lon), count});
  };
  for (let lat = -60; lat <= 60; lat += 30) add(121, i => [lat, 3 * i - 180]);
  for (let lon = -180; lon < 180; lon += 30) add(57, i => [3 * i - 84, lon]);
  return lines;
})();

function placeText(lat, lon) {
  const east = ((lon * kDegrees + 540) % 360 + 360) % 360 - 180;
  const text = (value, positive, negative) =>
      `${Math.abs(value).toFixed(1)}° ${value < 0 ? negative : positive}`;
  return `${text(lat * kDegrees, "N", "S")} ${text(east, "E", "W")}`;
}

// Powers as people write them: "m s-1" and "m s**-1" with a raised -1.
function unitText(units) {
  const raised = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴"};
  return units.replace(/([A-Za-z])(?:\*\*|\^)?(-?[0-4])(?![\w.])/g,
                       (all, letter, power) => letter + [...power].map(c => raised[c]).join(""));
}

// The maps of one variable and lead time, and what chooses them.
class MapSection {
  constructor(parent, maps) {
    Object.assign(this, {maps, v: 0, t: maps.lead_times_h.length - 1, view: new MapView(maps)});
    this.controls = make("div", parent, "controls");
    const area = make("div", parent, "figures maps");
    const add = title => {
      const figure = new MapFigure(area, this.view, {title});
      figure.changed = () => this.redraw();
      return figure;
    };
    if (maps.has_truth) this.truth = add("truth");
    this.forecasts = maps.forecasts.map(name => add(maps.forecasts.length > 1 ? name : "forecast"));
    this.errors = maps.has_truth ?
        maps.forecasts.map(name => add(maps.forecasts.length > 1 ? `error of ${name}` : "error")) :
        [];
    this.addControls();
    if (maps.num_circles > 0) this.addSpectra(make("div", parent, "figures"));
    this.tell();
  }
  addControls() {
    const maps = this.maps;
    choice(this.controls, "variable", maps.variables.map(v => v.name), i => {
      this.v = i;
      this.tell();
    });
    const label = make("label", this.controls, "", "lead time"), slider = make("input", label);
    Object.assign(slider, {type: "range", min: 0, max: maps.lead_times_h.length - 1, step: 1,
                           value: this.t});
    this.output = make("output", label);
    slider.oninput = () => {
      this.t = Number(slider.value);
      this.tell();
    };
    this.slider = slider;
    const play = make("button", this.controls, "", "play");
    play.type = "button";
    play.onclick = () => this.play(play);
    const flat = make("button", this.controls, "", "flat map");
    flat.type = "button";
    flat.setAttribute("aria-pressed", "false");
    flat.onclick = () => {
      this.view.flat = !this.view.flat;
      flat.setAttribute("aria-pressed", this.view.flat);
      this.redraw();
    };
    this.flatButton = flat;
  }
  play(button) {
    if (this.timer) {
      clearInterval(this.timer);
      this.timer = null;
      button.textContent = "play";
      return;
    }
    button.textContent = "stop";
    this.timer = setInterval(() => {
      this.t = (this.t + 1) % this.maps.lead_times_h.length;
      this.slider.value = this.t;
      this.tell();
    }, 700);
  }
  redraw() {
    for (const figure of [this.truth, ...this.forecasts, ...this.errors])
      if (figure) figure.redraw();
  }
  tell() {
    const {maps, v, t} = this, variable = maps.variables[v], units = unitText(variable.units || "");
    this.output.textContent = leadTime(maps.lead_times_h[t]);
    const known = variable.truth.some(f => f) ? variable.truth : variable.forecasts[0].fields;
    const own = variable.own || (variable.own = {
      fields: rangeOf([...known, ...variable.forecasts.flatMap(f => f.fields)], false),
      errors: rangeOf(variable.forecasts.flatMap(f => f.errors), true),
    });
    const at = `${variable.name}, ${leadTime(maps.lead_times_h[t])}`;
    if (this.truth) this.truth.show(variable.truth[t], own.fields, units, at);
    this.forecasts.forEach(
        (figure, i) => figure.show(variable.forecasts[i].fields[t], own.fields, units, at));
    this.errors.forEach((figure, i) => {
      const {rmse, bias, errors} = variable.forecasts[i];
      const text = rmse[t] === null ? "" : `RMSE ${short(rmse[t])}, bias ${short(bias[t])} ${units}`;
      figure.show(errors[t], own.errors, units, text);
    });
    if (this.spectra) this.tellSpectra();
  }
  addSpectra(area) {
    this.spectra = new CurveFigure(area, {title: "Spectrum", xLabel: "zonal wavenumber", log: true,
                                          logX: true});
    this.ratios = new CurveFigure(area, {title: "Ratio of spectra",
                                         xLabel: "zonal wavenumber", log: true, logX: true});
  }
  tellSpectra() {
    const {maps, v} = this, variable = maps.variables[v], first = variable.forecasts[0];
    const leads = first.spectra.map((s, i) => s ? i : -1).filter(i => i >= 0);
    if (leads.length === 0) return;
    const t = leads.reduce((best, i) => Math.abs(i - this.t) < Math.abs(best - this.t) ? i : best);
    const numbers = values => values.map((_, i) => i + 1);
    const line = (name, tone, mean, dash) => ({name, tone, x: numbers(mean), mean, dash, gaps: true});
    const lines = [], ratios = [], truth = variable.truth_spectra[t];
    if (truth) lines.push(line("truth", "quiet", truth));
    variable.forecasts.forEach((forecast, i) => {
      const name = maps.forecasts.length > 1 ? maps.forecasts[i] : "forecast";
      if (!forecast.spectra[t]) return;
      lines.push(line(name, i, forecast.spectra[t]));
      if (forecast.error_spectra[t])
        lines.push(line(`error of ${name}`, i, forecast.error_spectra[t], [5, 4]));
      if (truth)
        ratios.push(line(name, i, truth.map((p, k) => p > 0 ? forecast.spectra[t][k] / p : null)));
    });
    const at = `${variable.name}, ${leadTime(maps.lead_times_h[t])}, 30° to 60° N and S`;
    this.spectra.lines = lines;
    this.spectra.unit = variable.units ? `power in (${unitText(variable.units)})²` : "power";
    this.spectra.rename("Spectrum", at);
    this.spectra.redraw();
    this.ratios.lines = ratios;
    this.ratios.unit = "power of the forecast / of the truth";
    this.ratios.rename("Ratio of spectra", at);
    this.ratios.redraw();
  }
}

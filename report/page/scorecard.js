// SPDX-License-Identifier: Apache-2.0
// The scorecard: variables by lead times, green where the forecasts are better than what they are
// compared with; and the error of one variable over lead time.
"use strict";

// What the first scores can be compared with: {name, note, at(place) → {value, low, high}}.
function comparisons(tables) {
  const found = [], own = tables[0], figure = (name, place) => (own.figures[name] || [])[place];
  const inFile = (name, key, note) => {
    if (!own.figures[key]) return;
    found.push({name, note, at: place => ({value: figure(key, place.own),
                                           low: figure(`${key}_low`, place.own),
                                           high: figure(`${key}_high`, place.own)})});
  };
  inFile("the forecasts named by --against", "skill_against",
         "dot: the 95 % interval of the skill does not hold 0");
  for (const other of tables.slice(1))
    found.push({
      name: other.name,
      other,
      note: "means of both files; whether a difference is chance is not known " +
          "(verify --against gives intervals)",
      at: place => {
        const mine = figure("rmse", place.own);
        const theirs = place.other === null ? null : (other.figures.rmse || [])[place.other];
        const known = Number.isFinite(mine) && Number.isFinite(theirs) && theirs > 0;
        return {value: known ? 1 - mine / theirs : null};
      },
    });
  inFile("persistence", "skill", "dot: the 95 % interval of the skill does not hold 0");
  inFile("climatology", "skill_against_climatology", "dot: the 95 % interval of the skill does not hold 0");
  if (found.length === 0)
    found.push({name: "nothing", note: "The scores hold no skill", at: () => ({value: null})});
  return found;
}

const isNumber = value => value !== null && value !== undefined && Number.isFinite(value);
const isSure = ({low, high}) => isNumber(low) && isNumber(high) && (low > 0 || high < 0);

function placeIn(table, variable, lead, region) {
  const v = table.variables.indexOf(variable), t = table.lead_times_h.indexOf(lead);
  const r = table.regions.indexOf(region);
  if (v < 0 || t < 0 || r < 0) return null;
  return (v * table.lead_times_h.length + t) * table.regions.length + r;
}

class Scorecard extends Figure {
  constructor(parent, tables, picked) {
    const own = tables[0], rowHeight = 25;
    super(parent, {title: "Scorecard", shape: () => 56 + rowHeight * own.variables.length});
    Object.assign(this, {tables, own, rowHeight, picked, region: own.regions[0]});
    this.comparisons = comparisons(tables);
    this.against = this.comparisons[0];
    this.cursor = null;
    this.listen();
    this.retitle();
  }
  retitle() {
    this.rename(`Scorecard: ${this.own.name} against ${this.against.name}`,
                `1 − RMSE / RMSE of the other, in %, ${this.region}`);
  }
  at(v, t) {
    const variable = this.own.variables[v], lead = this.own.lead_times_h[t];
    const other = this.against.other;
    return this.against.at({
      own: placeIn(this.own, variable, lead, this.region),
      other: other ? placeIn(other, variable, lead, this.region) : null,
    });
  }
  paint(context, width) {
    const {variables, lead_times_h: leads} = this.own;
    const left = Math.min(0.32 * width, 16 + Math.max(...variables.map(n => context.measureText(n).width)));
    this.box = {left, top: 26, wide: (width - left - 8) / leads.length};
    context.fillStyle = colour("quiet");
    context.textAlign = "center";
    const every = Math.ceil(46 / this.box.wide);
    leads.forEach((lead, t) => {
      if ((leads.length - 1 - t) % every === 0)
        context.fillText(leadTime(lead), left + (t + 0.5) * this.box.wide, 16);
    });
    variables.forEach((name, v) => {
      context.textAlign = "left";
      context.fillStyle = colour(this.picked && this.picked() === name ? "accent" : "text");
      context.fillText(name, 6, this.box.top + v * this.rowHeight + 16, left - 10);
      leads.forEach((lead, t) => this.paintCell(context, v, t));
    });
    this.paintScale(context, width, this.box.top + variables.length * this.rowHeight + 10);
  }
  paintCell(context, v, t) {
    const x = this.box.left + t * this.box.wide, y = this.box.top + v * this.rowHeight;
    const wide = this.box.wide - 2, high = this.rowHeight - 2, cell = this.at(v, t);
    context.fillStyle = colour("grid");
    context.fillRect(x, y, wide, high);
    context.textAlign = "center";
    if (!isNumber(cell.value)) {
      context.fillStyle = colour("quiet");
      context.fillText("–", x + wide / 2, y + 16);
      return;
    }
    context.fillStyle = colour(cell.value > 0 ? "better" : "worse");
    context.globalAlpha = 0.08 + 0.72 * Math.min(1, Math.abs(cell.value) / kFullSkill);
    context.fillRect(x, y, wide, high);
    context.globalAlpha = 1;
    context.fillStyle = colour("text");
    if (wide > 32) context.fillText((100 * cell.value).toFixed(wide > 44 ? 1 : 0).replace("-", "−"),
                                    x + wide / 2 - (isSure(cell) ? 3 : 0), y + 16);
    if (isSure(cell)) {
      context.beginPath();
      context.arc(x + wide - 6, y + 6, 2.2, 0, 2 * Math.PI);
      context.fill();
    }
    if (this.cursor && this.cursor[0] === v && this.cursor[1] === t) {
      context.strokeStyle = colour("text");
      context.lineWidth = 1.5;
      context.strokeRect(x + 0.75, y + 0.75, wide - 1.5, high - 1.5);
    }
  }
  paintScale(context, width, y) {
    const wide = Math.min(150, width / 4), middle = 96 + wide;
    for (let k = -20; k < 20; ++k) {
      context.fillStyle = colour(k >= 0 ? "better" : "worse");
      context.globalAlpha = 0.08 + 0.72 * Math.abs(k + 0.5) / 20;
      context.fillRect(middle + k * wide / 20, y, wide / 20, 9);
    }
    context.globalAlpha = 1;
    context.fillStyle = colour("quiet");
    context.textAlign = "right";
    context.fillText(`worse −${100 * kFullSkill} %`, middle - wide - 6, y + 9);
    context.textAlign = "left";
    context.fillText(`better +${100 * kFullSkill} %`, middle + wide + 6, y + 9);
    context.textAlign = "left";
  }
  tell() {
    if (!this.cursor) return this.readout.textContent = "";
    const [v, t] = this.cursor, variable = this.own.variables[v], lead = this.own.lead_times_h[t];
    const cell = this.at(v, t), place = placeIn(this.own, variable, lead, this.region);
    const parts = [`${variable}, ${leadTime(lead)}`];
    const rmse = (this.own.figures.rmse || [])[place];
    if (isNumber(rmse)) parts.push(`RMSE ${short(rmse)}`);
    if (isNumber(cell.value)) parts.push(`skill ${percent(cell.value)}`);
    if (isNumber(cell.low))
      parts.push(`95 % between ${percent(cell.low)} and ${percent(cell.high)}`);
    return this.readout.textContent = parts.join(" · ");
  }
  move(v, t) {
    this.cursor = [Math.max(0, Math.min(this.own.variables.length - 1, v)),
                   Math.max(0, Math.min(this.own.lead_times_h.length - 1, t))];
    this.redraw();
    this.tell();
  }
  listen() {
    const cellAt = event => [Math.floor((event.offsetY - this.box.top) / this.rowHeight),
                             Math.floor((event.offsetX - this.box.left) / this.box.wide)];
    this.canvas.addEventListener("pointermove", event => this.move(...cellAt(event)));
    this.canvas.addEventListener("click", event => {
      this.move(...cellAt(event));
      if (this.pick) this.pick(this.own.variables[this.cursor[0]]);
    });
    this.canvas.addEventListener("keydown", event => {
      const [v, t] = this.cursor || [0, 0];
      const keys = {
        ArrowLeft: () => this.move(v, t - 1),
        ArrowRight: () => this.move(v, t + 1),
        ArrowUp: () => this.move(v - 1, t),
        ArrowDown: () => this.move(v + 1, t),
        Enter: () => this.pick && this.pick(this.own.variables[v]),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}
const kFullSkill = 0.5;  // where the colours end

// The lines of one variable and figure over lead time, of all scores.
function scoreLines(tables, variable, region, key) {
  const lines = [];
  tables.forEach((table, i) => {
    const values = table.figures[key];
    if (!values || !table.variables.includes(variable)) return;
    lines.push({name: table.name, tone: i, x: table.lead_times_h, gaps: true,
                mean: table.lead_times_h.map(lead => {
                  const place = placeIn(table, variable, lead, region);
                  return place === null || !isNumber(values[place]) ? null : values[place];
                })});
  });
  return lines;
}

const kScoreNames = {
  rmse: "RMSE", bias: "bias", mae: "mean absolute error", crps: "fair CRPS", spread: "spread",
  activity: "activity of the forecast", truth_activity: "activity of the truth",
  spread_skill: "spread / RMSE", persistence_rmse: "RMSE of persistence", acc: "anomaly correlation",
};

function addScores(parent, tables) {
  const controls = make("div", parent, "controls"), area = make("div", parent, "figures");
  const own = tables[0];
  let variable = own.variables[0], key = "rmse", curves = null;
  const wideArea = make("div", null, "figures wide");
  parent.insertBefore(wideArea, area);
  wideArea.style.gridTemplateColumns = "1fr";
  const card = new Scorecard(wideArea, tables, () => variable);
  const note = make("p", null, "quiet");
  wideArea.after(note);
  const keys = Object.keys(own.figures).filter(name => !/^skill|^forecasts|^persistence/.test(name));
  const tell = () => {
    const lines = scoreLines(tables, variable, card.region, key);
    if (key === "rmse") {
      const line = scoreLines(tables.slice(0, 1), variable, card.region, "persistence_rmse")[0];
      if (line) lines.push({...line, name: "persistence", tone: "quiet", dash: [5, 4]});
    }
    if (key === "activity") {
      const line = scoreLines(tables.slice(0, 1), variable, card.region, "truth_activity")[0];
      if (line) lines.push({...line, name: "truth", tone: "quiet", dash: [5, 4]});
    }
    curves.lines = lines;
    curves.rename(`${variable}: ${kScoreNames[key] || key}`, `by lead time, ${card.region}`);
    note.textContent = `${card.against.note}. Choose a row for its figures below.`;
    card.retitle();
    card.redraw();
    curves.redraw();
  };
  curves = new CurveFigure(area, {title: "by lead time", xLabel: "lead time in hours", inHours: true,
                                  unit: "units of the variable", zero: true});
  if (card.comparisons.length > 1)
    choice(controls, "compared with", card.comparisons.map(c => c.name), i => {
      card.against = card.comparisons[i];
      tell();
    });
  if (own.regions.length > 1)
    choice(controls, "region", own.regions, i => {
      card.region = own.regions[i];
      tell();
    });
  const variables = choice(controls, "variable", own.variables, i => {
    variable = own.variables[i];
    tell();
  });
  choice(controls, "figure", keys.map(name => kScoreNames[name] || name), i => {
    key = keys[i];
    tell();
  }).value = Math.max(0, keys.indexOf("rmse"));
  card.pick = name => {
    variable = name;
    variables.value = own.variables.indexOf(name);
    tell();
  };
  tell();
}

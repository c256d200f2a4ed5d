// SPDX-License-Identifier: Apache-2.0
// Puts the page together: which sections there are follows from what the page holds.
//
// An address may end in #theme=dark or #theme=light, with & before further parts.
"use strict";

const sections = document.getElementById("sections");

function addSection(name, text) {
  const id = name.toLowerCase().replace(/[^a-z]+/g, "-"), section = make("section", sections);
  section.id = id;
  make("h2", section, "", name);
  if (text) make("p", section, "quiet", text);
  const link = make("a", document.getElementById("contents"), "", name);
  link.href = `#${id}`;
  return section;
}

function addTable(parent, head, rows, className) {
  const table = make("table", make("div", parent, "scroll"), className);
  const line = make("tr", make("thead", table)), body = make("tbody", table);
  for (const text of head) make("th", line, "", text);
  for (const row of rows) {
    const tr = make("tr", body, row.className);
    for (const cell of row.cells || row) {
      const td = make("td", tr);
      typeof cell === "object" && cell !== null ? td.append(cell) : td.textContent = cell;
    }
  }
  return table;
}

function nameCell(i) {
  const cell = make("span"), swatch = make("span", cell, "swatch");
  swatch.style.background = `var(--c${i % 8})`;
  cell.append(report.runs[i].name);
  return cell;
}

// ------------------------------------------------------------------------------------- runs ---

const lastValidation = run => run.validations.filter(v => v.loss !== null).at(-1);
const rate = run => run.steps_s > 0 ? run.samples / run.steps_s : NaN;
// Runs of earlier versions have no goodput.json.
const goodput = run => run.goodput ? run.goodput.share :
    run.log.wall_s > 0 ? Math.min(1, run.steps_s / run.log.wall_s) : NaN;

const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function addSummary() {
  const section = addSection("Summary");
  const rows = report.runs.map((run, i) => {
    const validation = lastValidation(run);
    const ratios = validation ?
        Object.entries(validation.ratios).map(([lead, r]) => `${lead} ${r.toFixed(3)}`).join(" · ") :
        "–";
    return [nameCell(i), run.last_step.toLocaleString("en-US"), short(run.loss), ratios || "–",
            `${short(rate(run))}`, duration(run.steps_s),
            run.steps_s > 0 ? percent(run.waiting_s / run.steps_s) : "–",
            Number.isFinite(goodput(run)) ? percent(goodput(run)) : "–"];
  });
  addTable(section, ["run", "steps", "loss ¹", "RMSE / persistence ²", "samples/s", "time in steps",
                     "waiting for data", "goodput ³"], rows);
  make("p", section, "quiet",
       "¹ mean of the last 100 steps. ² of the last validation, mean over prognostic variables. " +
           "³ time in steps that count, waiting for data left out, as a share of the time since the " +
           "first start, over all restarts (without goodput.json: time in steps, as a share of that " +
           "from the run card to the last line of the log).");
  for (const run of report.runs) {
    const list = make("ul", section, "remarks"), of = report.runs.length > 1 ? `${run.name}: ` : "";
    for (const text of run.remarks) make("li", list, "", of + text);
    for (const v of run.validations.filter(v => v.failure))
      make("li", list, "alarm", `${of}validation at step ${v.step} failed: ${v.failure}`);
    if (run.log.num_errors > 0)
      make("li", list, "alarm", `${of}${counted(run.log.num_errors, "error")} in the log; the last: ` +
                                    run.log.errors.at(-1));
    if (run.log.num_warnings > 0)
      make("li", list, "", `${of}${counted(run.log.num_warnings, "warning")} in the log; the last: ` +
                               run.log.warnings.at(-1));
  }
}

// --------------------------------------------------------------------------------- training ---

// What is known of numbers in metrics.jsonl: title, unit, and how they are drawn.
const kCurves = {
  loss: {title: "Training loss", unit: "loss", log: true, smooth: true},
  lr: {title: "Learning rate", unit: "rate", smooth: false},
  samples_per_s: {title: "Throughput", unit: "samples/s", zero: true, smooth: true},
  data_wait_share: {title: "Waiting for data", unit: "share of the step", zero: true, smooth: true},
  gradient_norm: {title: "Norm of the gradients", unit: "norm before clipping", log: true, smooth: true},
  step_s: {title: "Time of a step", unit: "s", zero: true, smooth: true},
  rollout: {title: "Forecast steps of the loss", unit: "steps", zero: true},
  loss_scale: {title: "Loss scale", unit: "factor", log: true},
  goodput: {title: "Goodput since the first start", unit: "share of the time", zero: true},
  sustained_samples_per_s: {title: "Throughput since the first start", unit: "samples/s", zero: true},
  tflops_per_s: {title: "Arithmetic", unit: "TFLOP/s of all ranks", zero: true},
  gpu_use: {title: "GPUs in use", unit: "share of the time, mean", zero: true},
  gpu_memory_gib: {title: "Memory of the fullest GPU", unit: "GiB", zero: true},
  gpu_power_w: {title: "Power of a GPU", unit: "W, mean", zero: true},
  gpu_temperature_c: {title: "Temperature of the hottest GPU", unit: "degrees C"},
  mfu: {title: "Use of the cards' arithmetic (MFU)", unit: "share", zero: true},
};
const kHidden = ["hours", "epoch", "data_wait_s", "samples", "step_s", "rollout"];

// Steps as hours in steps, between the points that are known.
function hoursOf(run, steps) {
  const known = run.series.hours;
  if (!known) return steps.map(() => null);
  let k = 0;
  return steps.map(step => {
    while (k + 1 < known.step.length && known.step[k + 1] < step) ++k;
    const next = Math.min(k + 1, known.step.length - 1), gap = known.step[next] - known.step[k];
    const part = gap > 0 ? Math.max(0, Math.min(1, (step - known.step[k]) / gap)) : 1;
    return known.mean[k] + part * (known.mean[next] - known.mean[k]);
  });
}

function curvesOf(name, byHours) {
  const lines = [];
  report.runs.forEach((run, i) => {
    const series = run.series[name];
    if (!series) return;
    lines.push({name: run.name, tone: i, mean: series.mean, low: series.low, high: series.high,
                x: byHours ? hoursOf(run, series.step) : series.step});
  });
  return lines;
}
const isConstant = line => line.mean.every(value => value === line.mean[0]);

function addTraining() {
  const section = addSection("Training",
                             "Every step of metrics.jsonl. Pale: single steps, or the range of " +
                                 "neighbours where they are many; strong: their running mean.");
  const controls = make("div", section, "controls"), area = make("div", section, "figures");
  const names = new Set(report.runs.flatMap(run => Object.keys(run.series)));
  const order = [...Object.keys(kCurves), ...names].filter(
      (name, i, all) => all.indexOf(name) === i && names.has(name) &&
          (!kHidden.includes(name) || (name === "rollout" && !curvesOf(name).every(isConstant))));
  const made = order.map(name => {
    const lines = curvesOf(name, false);
    // Something that is never a positive number has no logarithm.
    const log = (kCurves[name] || {}).log && lines.some(line => line.mean.some(v => v > 0));
    const options = {title: name, unit: name, smooth: true, ...kCurves[name], log, lines};
    return {name, figure: new CurveFigure(area, options)};
  });
  addValidation(area);
  const button = make("button", controls, "", "over hours in steps");
  button.type = "button";
  button.setAttribute("aria-pressed", "false");
  button.onclick = () => {
    const byHours = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", byHours);
    for (const {name, figure} of made) {
      Object.assign(figure, {lines: curvesOf(name, byHours), zoomed: null,
                             xLabel: byHours ? "hours in steps" : "step"});
      figure.redraw();
    }
  };
  const scale = make("button", controls, "", "loss on a linear axis");
  scale.type = "button";
  scale.setAttribute("aria-pressed", "false");
  scale.onclick = () => {
    const linear = scale.getAttribute("aria-pressed") === "false";
    scale.setAttribute("aria-pressed", linear);
    for (const {name, figure} of made)
      if (name === "loss") figure.log = !linear, figure.redraw();
  };
}

function addValidation(area) {
  const lines = [], losses = [], dashes = [[], [6, 4], [2, 3], [9, 3, 2, 3]];
  report.runs.forEach((run, i) => {
    const all = run.validations.filter(v => v.step !== null);
    if (all.length === 0) return;
    const x = all.map(v => v.step), several = report.runs.length > 1;
    losses.push({name: run.name, tone: i, x, mean: all.map(v => v.loss)});
    const leads = Object.keys(all.at(-1).ratios);
    leads.forEach((lead, k) => lines.push({
      name: several ? `${run.name}, ${lead}` : lead,
      tone: several ? i : k,
      dash: several ? dashes[k % 4] : [],
      gaps: true,
      x,
      mean: all.map(v => lead in v.ratios ? v.ratios[lead] : null),
    }));
  });
  if (losses.length === 0) return;
  new CurveFigure(area, {title: "Validation loss", unit: "loss", lines: losses});
  if (lines.length > 0)
    new CurveFigure(area, {title: "Validation: RMSE / RMSE of persistence", unit: "ratio", lines,
                           zero: true});
}

// ------------------------------------------------------------------------------------- time ---

// What goodput.json says of a run.
function timeSpent(run) {
  const parts = run.goodput.parts.filter(part => part.total_s > 0).map((part, i) => (
      {name: part.name.replaceAll("_", " "), value: part.total_s, tone: i}));
  return {name: run.name, parts,
          note: `${duration(run.goodput.wall_s)}, goodput ${percent(goodput(run))}, ` +
                    counted(run.goodput.starts, "start")};
}

function addTime() {
  const rows = report.runs.filter(run => run.goodput || run.steps_s > 0).map(run => {
    if (run.goodput) return timeSpent(run);
    const parts = [{name: "steps", value: run.steps_s - run.waiting_s, tone: 0},
                   {name: "waiting for data, in steps", value: run.waiting_s, tone: 1}];
    const rest = run.log.wall_s - run.steps_s;
    if (rest > 0) parts.push({name: "validation, checkpoints and the rest", value: rest, tone: 7});
    const processes = run.log.processes > 1 ? `, ${run.log.processes} processes` : "";
    const good = Number.isFinite(goodput(run)) ? `, goodput ${percent(goodput(run))}` : "";
    return {name: run.name, parts,
            note: duration(Math.max(run.log.wall_s, run.steps_s)) + good + processes};
  });
  if (rows.length === 0) return;
  const section = addSection("Time"), area = make("div", section, "figures");
  new BarFigure(area, {title: "Where the time went", rows});
  const timed = report.runs.filter(run => run.log.parts.length > 0).map(run => ({
    name: run.name,
    parts: run.log.parts.map((part, i) => ({name: part.name, value: part.total_s, tone: i})),
  }));
  if (timed.length > 0)
    new BarFigure(area, {title: "Time by part", note: "of the last process", rows: timed});
  else
    make("p", section, "quiet",
         "Runs with profile.parts=true have the time of each part of a step here.");
}

// ---------------------------------------------------------------------------- configuration ---

function flattened(value, path, into) {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    for (const key of Object.keys(value))
      flattened(value[key], path ? `${path}.${key}` : key, into);
  } else {
    into.set(path, JSON.stringify(value));
  }
  return into;
}

function addConfiguration() {
  const section = addSection("Configuration");
  const names = report.runs.map((run, i) => nameCell(i));
  const facts = [["program", "program_version"], ["LibTorch", "torch_version"],
                 ["checkpoint of", "time_utc"], ["at step", "step"],
                 ["hash of the configuration", "config_hash"], ["hash of the graph", "graph_hash"]];
  const rows = facts.map(([label, key]) => [label, ...report.runs.map(run => {
    const value = run.manifest[key];
    return value === undefined ? "–" : String(value).replace(/^([0-9a-f]{12})[0-9a-f]+$/, "$1…");
  })]);
  const table = addTable(section, [""], rows);
  for (const name of names) make("th", table.tHead.rows[0]).append(name);
  for (const run of report.runs.filter(run => run.log.card)) {
    const details = make("details", section);
    make("summary", details, "", `Run card of ${run.name}`);
    make("pre", details, "", run.log.card);
  }
  addKeys(section);
}

function addKeys(section) {
  const all = report.runs.map(run => flattened(run.manifest.config || {}, "", new Map()));
  const keys = [...new Set(all.flatMap(map => [...map.keys()]))].filter(key => key);
  if (keys.length === 0) return;
  const differs = key => all.some(map => map.get(key) !== all[0].get(key));
  const several = report.runs.length > 1, different = keys.filter(differs);
  const details = make("details", section);
  make("summary", details, "",
       several ? `Effective configurations: ${different.length} keys differ` :
                 `Effective configuration: ${keys.length} keys`);
  details.open = several;
  const search = make("input", make("div", details, "controls"));
  Object.assign(search, {type: "search", placeholder: "search keys and values"});
  search.setAttribute("aria-label", "Search the configuration");
  const order = [...different, ...keys.filter(key => !differs(key))];
  const rows = order.map(key => ({
    className: several && differs(key) ? "differs" : "",
    cells: [key, ...all.map(map => map.has(key) ? map.get(key) : "–")],
  }));
  const table = addTable(details, ["key", ...report.runs.map(run => run.name)], rows, "keys");
  const filter = () => {
    const wanted = search.value.toLowerCase();
    for (const row of table.tBodies[0].rows)
      row.hidden = wanted ? !row.textContent.toLowerCase().includes(wanted) :
                            several && different.length > 0 && row.className === "" && !details.all;
  };
  search.oninput = filter;
  if (several) {
    const button = make("button", search.parentElement, "", "all keys");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    button.onclick = () => {
      details.all = !details.all;
      button.setAttribute("aria-pressed", details.all);
      filter();
    };
  }
  filter();
}

// ------------------------------------------------------------------------------------- page ---

function addMaps() {
  const maps = report.maps, parts = [`Forecast from ${maps.start.replace("T", " ")} UTC`];
  if (maps.num_members > 1) parts.push(`mean of ${maps.num_members} members`);
  if (maps.num_points < maps.num_cells)
    parts.push(`${maps.num_points.toLocaleString("en-US")} of the grid's ` +
               `${maps.num_cells.toLocaleString("en-US")} points, evenly chosen to fit the page; ` +
               "RMSE, bias and spectra are of all points");
  else
    parts.push(`all ${maps.num_cells.toLocaleString("en-US")} points of the grid`);
  parts.push("values in 255 steps between the least and the greatest of each field");
  parts.push("coastlines: Natural Earth");
  const section = addSection("Maps", parts.join("; ") + ".");
  return new MapSection(section, maps);
}

function chooseTheme(theme) {
  document.documentElement.dataset.theme = theme;
  document.getElementById("theme").textContent = theme === "dark" ? "light" : "dark";
  redrawAll();
}

let mapSection = null;
function start() {
  document.title = report.title;
  document.getElementById("title").textContent = report.title;
  document.getElementById("origin").textContent = `${report.made_by}, ${report.made_at}`;
  const wanted = /theme=(dark|light)/.exec(location.hash);
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.dataset.theme = wanted ? wanted[1] : system;
  document.getElementById("theme").onclick = () =>
      chooseTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  addSummary();
  addTraining();
  addTime();
  if (report.scores.length > 0)
    addScores(addSection("Scores", "Of forecast files against a dataset, as `verify` wrote them."),
              report.scores);
  if (report.maps) mapSection = addMaps();
  addConfiguration();
  chooseTheme(document.documentElement.dataset.theme);
  window.addEventListener("resize", redrawAll);
  // For tests.
  document.documentElement.dataset.figures = figures.length;
}

start();

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores and curves of SPEEDY runs beside those of the reference, as Markdown and SVG.

usage: compare_speedy.py REFERENCE.json OUT_FOLDER LABEL=RUN_DIR [LABEL=RUN_DIR ...]
REFERENCE.json is anchors_speedy.json of the reference data; needs matplotlib for the curves. Beside the loss, the score is
drawn over all lead times that the runs were validated at (train.validation.lead_times).
"""
import json
import pathlib
import statistics
import sys

LEADS = ["6h", "24h", "72h"]


def jsonl(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def load_run(folder):
    folder = pathlib.Path(folder)
    scores = sorted(folder.glob("validation-step-*.json"), key=lambda p: int(p.stem.split("-")[-1]))[-1]
    steps = jsonl(folder / "metrics.jsonl")
    return {
        "scores": json.loads(scores.read_text())["lead_times"],
        "loss": [s["loss"] for s in steps],
        "step_s": statistics.median(s["step_s"] for s in steps),
    }


def smooth(values, width=50):
    return [sum(values[i:i + width]) / width for i in range(0, len(values) - width + 1, width)]


def reference_curve(run):
    return run.get("loss_mean_of_50_steps") or smooth(run["loss"])


def table(runs, reference):
    lines = ["| run | 6 h | 24 h | 72 h | mean loss of the last 100 steps | median s a step |", "|---|---|---|---|---|---|"]
    for label, run in runs.items():
        ratios = " | ".join(f"{run['scores'][lead]['mean_ratio']:.3f}" for lead in LEADS)
        lines.append(f"| {label} | {ratios} | {sum(run['loss'][-100:]) / 100:.4f} | {run['step_s']:.3f} |")
    for label, ratios, loss, step_s in reference:
        lines.append(f"| {label} (reference) | {ratios} | {loss} | {step_s} |")
    return lines


def per_variable(runs):
    first = next(iter(runs.values()))["scores"]
    heads = [f"{label} {lead}" for lead in LEADS for label in ["persistence", *runs]]
    lines = ["| variable | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for name in first["6h"]["rmse"]:
        cells = []
        for lead in LEADS:
            cells.append(f"{first[lead]['persistence_rmse'][name]:.3g}")
            cells += [f"{run['scores'][lead]['rmse'][name]:.3g}" for run in runs.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main():
    reference_file, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    runs = {label: load_run(folder) for label, folder in (a.split("=", 1) for a in sys.argv[3:])}
    data = json.loads(reference_file.read_text())["runs"]
    reference = []
    for label, run in data.items():
        mean = run["validation"]["mean_ratio"]
        curve = reference_curve(run)
        reference.append((label, " | ".join(f"{mean[lead]:.3f}" for lead in LEADS),
                          f"{statistics.mean(curve[-2:]):.4f}", f"{run['seconds_per_step']['median']:.2f}"))
    text = "\n".join(table(runs, reference) + ["", *per_variable(runs)]) + "\n"
    (out / "speedy_scores.md").write_text(text)
    print(text)

    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "speedy"
    from matplotlib import pyplot
    draw_losses(pyplot, runs, data, out / "speedy_loss.svg")
    draw_lead_times(pyplot, runs, out / "speedy_lead_times.svg")


def draw_losses(pyplot, runs, data, path):
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for label, run in runs.items():
        curve = smooth(run["loss"])
        axes.semilogy([50 * (i + 1) for i in range(len(curve))], curve, label=label)
    for label, run in data.items():
        if any(label.startswith(name.split()[0]) for name in runs):
            curve = reference_curve(run)
            axes.semilogy([50 * (i + 1) for i in range(len(curve))], curve, "--", label=f"{label} (reference)")
    finish(figure, axes, "step", "training loss, mean of 50 steps", path)


def draw_lead_times(pyplot, runs, path):
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for label, run in runs.items():
        hours = [int(lead.removesuffix("h")) for lead in run["scores"]]
        axes.plot(hours, [score["mean_ratio"] for score in run["scores"].values()], marker=".", label=label)
    axes.set_xticks(range(0, 73, 12))
    finish(figure, axes, "lead time [h]", "RMSE / RMSE of persistence, mean of variables", path)


def finish(figure, axes, xlabel, ylabel, path):
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of aifs-train in Anemoi's own code (ctest -L oracle; tools/oracle makes the environment).

usage: oracle.py families PROGRAM [--write]   tiny models of all families, there and back
       oracle.py trained PROGRAM              weights that Anemoi trained, and its forecast with them; needs AIFS_SHARED
"""
import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import anemoi_checkpoint as exchange  # noqa: E402

STATE_DICTS = ROOT / "tests/fixtures/state_dicts"
LIMITS = {6: 1e-5, 24: 1e-5, 72: 1e-4}  # hours: of a variable's standard deviation; rounding grows with the steps


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stdout}{result.stderr}")


def require(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def require_same_bits(a, b, text):
    require(list(a) == list(b), f"{text}: names")
    for name in a:
        same = a[name].dtype == b[name].dtype and a[name].numpy().tobytes() == b[name].numpy().tobytes()
        require(same, f"{text}: {name}")


# ---------------------------------------------------------------- families

def state_dict_text(overrides, state):
    lines = [overrides] + [f"{name} {str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for name, t in state.items()]
    return "\n".join(lines) + "\n"


def check_inference_reads(checkpoint, interface):
    from anemoi.inference.checkpoint import Checkpoint

    metadata = Checkpoint(str(checkpoint)).multi_dataset_metadata["data"]
    index = interface.data_indices["data"]
    require(metadata.timestep.total_seconds() == 6 * 3600, "the timestep that anemoi-inference reads")
    require(metadata.multi_step_input == interface.n_step_input, "the input times that anemoi-inference reads")
    inputs, outputs = dict(metadata.variable_to_input_tensor_index), dict(metadata.variable_to_output_tensor_index)
    require(inputs == index.model.input.name_to_index, "the inputs that anemoi-inference reads")
    require(outputs == index.model.output.name_to_index, "the outputs that anemoi-inference reads")
    require(metadata.number_of_grid_points == 544, "the grid that anemoi-inference reads")


def check_family(program, file, folder, write):
    overrides = file.read_text().splitlines()[0]
    run(program, "--config", ROOT / "tests/app/tiny.json", "--set", f"run.dir={folder / 'run'}", "--set",
        "train.max_steps=1", *shlex.split(overrides))
    run(program, "export", folder / "run", folder / "out")
    interface = exchange.load_interface(folder / "out")
    text = state_dict_text(overrides, interface.state_dict())
    if write:
        file.write_text(text)
    require(file.read_text() == text, f"{file} is not the state dict of Anemoi's model (write it with --write)")
    exchange.to_anemoi(folder / "out", folder / "model.ckpt")
    check_inference_reads(folder / "model.ckpt", interface)
    exchange.from_anemoi(folder / "model.ckpt", folder / "back")
    training = {"state_dict": {"model." + name: t for name, t in interface.state_dict().items()},
                "hyper_parameters": {"graph_data": interface.graph_data}}  # what Lightning keeps, as far as it is read
    torch.save(training, folder / "last.ckpt")
    exchange.from_anemoi(folder / "last.ckpt", folder / "of_training")
    for name in ("model.safetensors", "graph.safetensors"):
        same = (folder / "back" / name).read_bytes() == (folder / "of_training" / name).read_bytes()
        require(same, f"{name} of a training checkpoint")
    run(program, "import", "--config", folder / "out/config.json", folder / "back", folder / "again")
    require_same_bits(exchange.load_tensors(folder / "run/checkpoints/step-00000001/parameters.safetensors"),
                      exchange.load_tensors(folder / "again/checkpoints/step-00000000/parameters.safetensors"),
                      f"{file.stem}, there and back")
    print(f"{file.stem}: {len(interface.state_dict())} tensors, there and back the same bits")


def check_families(program, write):
    for file in sorted(STATE_DICTS.glob("*.txt")):
        with tempfile.TemporaryDirectory() as folder:
            check_family(program, file, pathlib.Path(folder), write)


# ---------------------------------------------------------------- trained models

def forecast(interface, fields, steps):
    """Model outputs of every step in physical units; `fields` (T + steps, N, V), physical."""
    index = interface.data_indices["data"]
    x = interface.pre_processors["data"](torch.from_numpy(fields)[None, :, None], in_place=False)
    x = x[..., index.data.input.full]
    times = interface.n_step_input
    state, results = x[:, :times], []
    for step in range(steps):
        y = interface.model({"data": state})["data"][:, 0]
        results.append(interface.post_processors["data"](y.double(), in_place=False)[0, 0].numpy())
        following = x[:, times + step].clone()
        following[..., index.model.input.prognostic] = y[..., index.model.output.prognostic]
        state = torch.cat([state[:, 1:], following[:, None]], dim=1)
    return results


def check_trained(program, case, config, store, folder):
    from anemoi.datasets import open_dataset

    golden = exchange.load_tensors(case.with_suffix(".safetensors"))
    (folder / "golden").mkdir()
    exchange.save_tensors(folder / "golden/model.safetensors",
                          {"model." + name[6:]: t for name, t in golden.items() if name.startswith("state/")})
    exchange.save_tensors(folder / "golden/graph.safetensors",
                          {name: t for name, t in golden.items() if name.startswith(("nodes/", "edges/"))})
    run(program, "import", "--config", ROOT / config, folder / "golden", folder / "run")
    run(program, "export", folder / "run", folder / "out")
    exchange.to_anemoi(folder / "out", folder / "model.ckpt")
    interface = torch.load(folder / "model.ckpt", weights_only=False)
    interface.eval()
    stored = {name[6:]: t for name, t in golden.items() if name.startswith("state/")}
    require_same_bits(stored, {name: interface.model.state_dict()[name] for name in stored}, case.stem)
    require(len(stored) == len(interface.model.state_dict()), f"{case.stem}: number of tensors")

    dataset = open_dataset(str(store))
    row = json.loads(case.read_text())["newest_input_row"]
    leads = {int(name[9:-1]): t for name, t in golden.items() if name.startswith("forecast/")}
    steps = max(leads) // 6
    fields = np.stack([dataset[r][:, 0].T for r in range(row - 1, row + 1 + steps)]).astype(np.float32)
    columns = interface.data_indices["data"].data.output.full
    deviation = torch.from_numpy(dataset.statistics["stdev"])[columns].numpy()
    with torch.no_grad():
        results = forecast(interface, fields, steps)
    for lead, reference in sorted(leads.items()):
        # The reference is stored as float32, whose rounding alone is 6e-6 of a deviation in pressure.
        rounding = np.spacing(np.abs(reference.numpy())) / 2
        difference = np.abs(results[lead // 6 - 1] - reference.numpy()) - rounding
        worst = (np.maximum(difference, 0) / deviation).max()
        print(f"{case.stem}: {lead} h, largest difference {worst:.1e} of a deviation")
        require(worst <= LIMITS[lead], f"{case.stem}: the forecast after {lead} h")


def check_all_trained(program):
    shared = pathlib.Path(os.environ["AIFS_SHARED"])
    with tempfile.TemporaryDirectory() as unpacked:
        with tarfile.open(shared / "datasets/speedy.tar") as tar:
            tar.extractall(unpacked, filter="data")
        store = pathlib.Path(unpacked) / "speedy.zarr"
        os.environ["AIFS_SPEEDY"] = str(store)
        for name, config in (("speedy_gnn", "configs/speedy.json"), ("speedy_gt", "configs/speedy_gt.json")):
            with tempfile.TemporaryDirectory() as folder:
                check_trained(program, shared / f"golden/trained/{name}.json", config, store, pathlib.Path(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("families", "trained"))
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write the state dicts of tests/fixtures")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.what == "families":
        check_families(arguments.program, arguments.write)
    else:
        check_all_trained(arguments.program)


if __name__ == "__main__":
    main()

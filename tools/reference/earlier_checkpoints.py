#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of earlier releases of anemoi-models, and forecasts of their own code, against `aifs-train`.

usage: earlier_checkpoints.py SOURCES PROGRAM [RELEASE ...]

SOURCES is a clone of https://github.com/ecmwf/anemoi-core, bare or not, with its tags. Runs in the environment of
tools/oracle, whose other packages the old code of models still works with. For each release and network it composes the
configuration that was shipped with that release, makes its sizes small, builds the model with random weights, saves it
as anemoi-training did, and asks PROGRAM to import it and to make a forecast of 6 hours: which must be that of the old
code, but for the rounding of fp32.
"""
import argparse
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

import numpy as np
import torch

HERE = pathlib.Path(__file__).resolve()
LIMIT = 5e-5  # of a variable's standard deviation: fp32 rounds pressure and temperature to 7e-6 of one
CASES = {"0.4.2": ("transformer", "gnn", "graphtransformer"), "0.6.0": ("transformer",),
         "0.9.3": ("transformer", "gnn", "graphtransformer"), "0.11.2": ("transformer",)}


def small(config, model, update):
    """As tools/reference/anemoi_checkpoints.py, for the keys of the time."""
    update("model.num_channels", 8)
    update("model.processor.num_layers", 4)
    update("model.processor.num_chunks", 2)
    for name, size in {"data": 2, "hidden": 2, "data2hidden": 1, "hidden2hidden": 1, "hidden2data": 1}.items():
        update(f"model.trainable_parameters.{name}", size)
    for part in ("encoder", "decoder", "processor"):
        for key, value in {"num_heads": 2, "num_channels": 8, "graph_attention_backend": "pyg", "window_size": 8,
                           "attention_implementation": "scaled_dot_product_attention"}.items():
            if key in config.model[part]:
                update(f"model.{part}.{key}", value)


def options_of(folder, model, dataset):
    """The configuration that was shipped, small, resolved, on a dataset."""
    import anemoi_checkpoints as present
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    with initialize_config_dir(version_base=None, config_dir=str(folder / "config")):
        config = compose(config_name="config", overrides=[f"model={model}"])
    OmegaConf.set_struct(config, False)

    def update(key, value):
        OmegaConf.update(config, key, value, force_add=True, merge=False)

    small(config, model, update)
    for key in ("paths.data", "paths.grids", "paths.output", "files.dataset", "files.graph", "files.forcing_dataset"):
        update(f"hardware.{key}", "none")
    for key in ("mlflow", "wandb", "tensorboard"):
        update(f"diagnostics.log.{key}", {"enabled": False})
    regional = present.regional
    update("data.forcing", regional.FORCING)
    update("data.diagnostic", regional.DIAGNOSTIC)
    update("data.processors", {"normalizer": {"_target_": "anemoi.models.preprocessing.normalizer.InputNormalizer",
                                              "config": regional.NORMALIZER}})
    update("model.bounding", regional.BOUNDING)
    update("graph.nodes.data.node_builder.dataset", str(dataset))
    for stage in ("training", "validation"):
        update(f"dataloader.{stage}", {"dataset": str(dataset), "frequency": "6h", "start": None, "end": 2020})
    OmegaConf.resolve(config)
    return config


def graph_of(model, folder, dataset):
    import anemoi_checkpoints as present
    from anemoi.graphs.create import GraphCreator

    case = {"recipe": "config", "model": "transformer" if model == "transformer" else "gnn"}
    return GraphCreator(present.options_of(case, folder, dataset).graph).create(save_path=None, overwrite=True)


def save_model(folder, model, dataset):
    """With the packages of its time: model.ckpt, and reference.npz with its forecast from the first two dates."""
    import zarr
    from anemoi.models.data_indices.collection import IndexCollection
    from anemoi.models.interface import AnemoiModelInterface
    from anemoi.utils.checkpoints import save_metadata
    from anemoi.utils.config import DotDict
    from omegaconf import OmegaConf

    config = options_of(folder, model, dataset)
    store = zarr.open(str(dataset), mode="r")
    indices = IndexCollection(config, {name: i for i, name in enumerate(store.attrs["variables"])})
    statistics = {name: store[name][:] for name in ("mean", "stdev", "minimum", "maximum")}
    extra = {"truncation_data": {}} if "truncation_data" in AnemoiModelInterface.__init__.__annotations__ else {}
    interface = AnemoiModelInterface(
        config=DotDict(OmegaConf.to_container(config)), graph_data=graph_of(model, folder, dataset), statistics=statistics,
        data_indices=indices, metadata={}, **extra)
    torch.manual_seed(3)
    with torch.no_grad():
        for parameter in interface.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    interface.eval()
    fields = torch.from_numpy(store["data"][0:2][:, :, 0].transpose(0, 2, 1).copy())[None, ..., indices.data.input.full]
    with torch.no_grad():
        forecast = interface.predict_step(fields, model_comm_group=None).numpy()
    columns = sorted(indices.model.output.name_to_index.items(), key=lambda item: item[1])
    np.savez(folder / "reference.npz", **{name: forecast[..., column].reshape(-1) for name, column in columns})
    interface.config = interface.metadata = None  # as anemoi-training
    torch.save(interface, folder / "model.ckpt")
    save_metadata(folder / "model.ckpt", {"version": "1.0", "config": OmegaConf.to_container(config)})


def run(*arguments, **environment):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, env=os.environ | environment)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stdout}{result.stderr}")


def check_case(program, release, model, folder, dataset):
    import netCDF4
    import zarr

    run(sys.executable, HERE, "--save", folder, model, dataset, PYTHONPATH=str(folder / "packages"))
    run(program, "import", folder / "model.ckpt", folder / "run", "--set", "train.precision=fp32")
    run(program, "forecast", folder / "run", "--dates", "2020-01-01T06", "--lead-time", "6h", "--out", folder / "out")
    (path,) = (folder / "out").glob("*.nc")
    store = zarr.open(str(dataset), mode="r")
    deviation = dict(zip(store.attrs["variables"], store["stdev"][:]))
    with netCDF4.Dataset(path) as file, np.load(folder / "reference.npz") as reference:
        worst = max(np.abs(np.ma.filled(file[name][:], np.nan).reshape(-1) - reference[name]).max() / deviation[name]
                    for name in reference.files)
    print(f"{release}, {model}: forecasts differ by {worst:.1e} of a deviation at most", flush=True)
    if not worst <= LIMIT:
        sys.exit(f"FAILED: {release}, {model}")


def unpack(sources, release, path, folder):
    archive = subprocess.run(["git", "-C", sources, "archive", f"models-{release}:{path}"], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", metavar="SOURCES", type=pathlib.Path)
    parser.add_argument("program", metavar="PROGRAM", type=pathlib.Path)
    parser.add_argument("releases", metavar="RELEASE", nargs="*", help=", ".join(CASES))
    arguments = parser.parse_args()
    import anemoi_checkpoints as present

    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        rng = np.random.default_rng(1)
        lat, lon = present.regional.globe(rng, present.POINTS)
        present.regional.write_dataset(scratch / "globe.zarr", lat, lon,
                                       present.regional.fields(lat, lon, present.TIMES, rng))
        for release in arguments.releases or CASES:
            for model in CASES[release]:
                folder = scratch / f"{release}-{model}"
                (folder / "packages/anemoi").mkdir(parents=True)
                unpack(arguments.sources, release, "models/src/anemoi/models", folder / "packages/anemoi/models")
                unpack(arguments.sources, release, "training/src/anemoi/training/config", folder / "config")
                check_case(arguments.program, release, model, folder, scratch / "globe.zarr")


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1:2] == ["--save"]:
        save_model(pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4]))
    else:
        main()

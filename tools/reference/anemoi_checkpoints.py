#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints that anemoi-training itself writes, small enough for tests/fixtures/checkpoints.

usage: anemoi_checkpoints.py FOLDER [CASE ...]      then: FOLDER/checkpoints.tar.gz

Runs where anemoi-training 0.17.1 is installed (tools/oracle makes such an environment). Every case takes a shipped
configuration of anemoi-training, makes its sizes small, writes a small dataset of the globe (once, globe.zarr) and
lets Anemoi's own trainer train and save, in the middle of the first epoch. CASE/training.ckpt is Lightning's file,
CASE/inference.ckpt the pickled model, CASE/losses.json has the losses of the steps before and behind, CASE/tensors.txt
a line with name, type, shape and SHA-256 of each tensor that tools/anemoi_checkpoint.py from-anemoi writes of either.
"""
import argparse
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import sys
import tarfile

import numpy as np
import torch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

import regional_cases as regional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import anemoi_checkpoint as exchange  # noqa: E402

POINTS, TIMES, CHANNELS, STEPS, MORE = 48, 14, 8, 4, 8
MAPPERS = ["model.encoders.0.mapper", "model.decoders.0.mapper"]
CASES = {
    "gnn": dict(recipe="config", model="gnn"),
    "graphtransformer": dict(recipe="config", model="graphtransformer"),
    # As the published AIFS: graph attention to and from the mesh, attention within a window on it.
    "aifs": dict(recipe="config", model="transformer"),
    "ensemble": dict(recipe="ensemble_crps", model="transformer_ens"),
}
PACKED = {"aifs": ["training.ckpt", "losses.json", "tensors.txt"], "ensemble": ["inference.ckpt", "tensors.txt"]}


def small(case):
    """Overrides that make a shipped configuration small, for a CPU."""
    model, processor = case["model"], "model.processor"
    values = {"model.num_channels": CHANNELS, f"{processor}.num_layers": 2, f"{processor}.num_chunks": 1,
              "model.node_trainable_parameters.data": 2, "model.node_trainable_parameters.hidden": 2,
              "model.edge_trainable_parameters.data2hidden": 1, "model.edge_trainable_parameters.hidden2hidden": 1,
              "model.edge_trainable_parameters.hidden2data": 1, "model.compile": []}
    attention = {"gnn": [], "graphtransformer": [processor, *MAPPERS]}.get(model, MAPPERS)
    for part in attention:
        values |= {f"{part}.graph_attention_backend": "pyg", f"{part}.num_heads": 2}
    for part in [processor, *MAPPERS]:
        values |= {f"{part}.gradient_checkpointing": False, f"{part}.num_channels": CHANNELS}
    if model.startswith("transformer"):
        values |= {f"{processor}.num_heads": 2, f"{processor}.window_size": 8, f"{processor}.dropout_p": 0.0,
                   f"{processor}.attention_implementation": "scaled_dot_product_attention",
                   "model.latent_aggregator": {"_target_": "anemoi.models.layers.aggregator.SumAggregator"}}
    if model.endswith("_ens"):
        values |= {"model.noise_injector.noise_mlp_hidden_dim": 4, "model.noise_injector.noise_channels_dim": 2}
    return values


def training(folder, dataset):
    """Overrides for data and training."""
    return {
        "training.max_epochs": None, "training.max_steps": STEPS + MORE, "training.precision": 32,
        "training.optimization.lr": 0.01, "training.optimization.lr_scheduler.warmup_t": 2,
        "training.optimization.lr_scheduler.t_initial": STEPS + MORE, "training.num_sanity_val_steps": 0,
        "dataloader.batch_size.training": 2, "dataloader.batch_size.validation": 1, "dataloader.batch_size.test": 1,
        "dataloader.num_workers": {"training": 1, "validation": 1, "test": 1},
        "dataloader.pin_memory": False, "dataloader.limit_batches": {"training": None, "validation": 1, "test": 1},
        "dataloader.validation_rollout": 1,
        "system.input.dataset": str(dataset), "system.input.graph": None, "system.output.root": str(folder / "out"),
        "system.hardware.accelerator": "cpu", "graph.nodes.hidden.node_builder": {"_target_": "anemoi.graphs.nodes.TriNodes", "resolution": 1},
        "diagnostics.plot.callbacks": [], "diagnostics.callbacks": [], "diagnostics.enable_progress_bar": False,
        "diagnostics.log.mlflow": {"enabled": False}, "diagnostics.log.wandb": {"enabled": False},
        "config_validation": False}


def options_of(case, folder, dataset):
    with initialize_config_module(version_base=None, config_module="anemoi.training.config"):
        config = compose(config_name=case["recipe"], overrides=[f"model={case['model']}"])
    OmegaConf.set_struct(config, False)
    for key, value in (small(case) | training(folder, dataset)).items():
        OmegaConf.update(config, key, value, force_add=True, merge=False)
    if "dataset" in config.dataloader:
        del config.dataloader["dataset"]
    for stage in ("training", "validation", "test"):
        config.dataloader[stage].datasets = {"data": {
            "dataset_config": {"dataset": str(dataset), "frequency": "6h"}, "start": None, "end": 2020}}
    config.data.datasets = {"data": {"forcing": regional.FORCING, "diagnostic": regional.DIAGNOSTIC, "processors": {
        "normalizer": {"_target_": "anemoi.models.preprocessing.normalizer.InputNormalizer",
                       "config": regional.NORMALIZER}}}}
    config.model.bounding = {"datasets": {"data": regional.BOUNDING}}
    if case["model"].startswith("transformer") and case["recipe"] == "config":
        del config.graph.edges[1]  # this processor knows no edges
    config.diagnostics.checkpoint = {
        "every_n_minutes": {"save_frequency": None, "num_models_saved": 0},
        "every_n_epochs": {"save_frequency": None, "num_models_saved": 0},
        "every_n_train_steps": {"save_frequency": STEPS, "num_models_saved": -1}}
    OmegaConf.resolve(config)
    return config


def train(config):
    """By Anemoi's own trainer; the losses of all steps."""
    import pytorch_lightning as pl
    from anemoi.training.train.train import AnemoiTrainer

    losses = []

    class Note(pl.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, number):
            losses.append(float(outputs["loss"]))

    trainer = AnemoiTrainer(config)
    trainer.callbacks.append(Note())
    trainer.train()
    return losses


def listing(checkpoint, scratch):
    """A line for each tensor of weights and graph, in their order."""
    shutil.rmtree(scratch, ignore_errors=True)
    exchange.from_anemoi(checkpoint, scratch)
    names = {dtype: name for name, dtype in exchange.DTYPES.items()}
    lines = []
    for file in ("model.safetensors", "graph.safetensors"):
        for name, tensor in exchange.load_tensors(scratch / file).items():
            digest = hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()
            lines.append(f"{name} {names[tensor.dtype]} {list(tensor.shape)} {digest}\n")
    shutil.rmtree(scratch)
    return "".join(lines)


def make_case(name, folder, dataset):
    case, place = CASES[name], folder / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    losses = train(options_of(case, place, dataset))
    (place / "losses.json").write_text(json.dumps({"before": losses[:STEPS], "behind": losses[STEPS:]}) + "\n")
    listings = []
    for kind, prefix in (("training", "anemoi-"), ("inference", "inference-anemoi-")):
        (file,) = (place / "out").rglob(f"{prefix}*step_{STEPS:06}.ckpt")
        shutil.copy(file, place / f"{kind}.ckpt")
        listings.append(listing(place / f"{kind}.ckpt", place / "scratch"))
    assert listings[0] == listings[1]
    (place / "tensors.txt").write_text(listings[0])
    shutil.rmtree(place / "out")
    print(f"{name}: {listings[0].count(chr(10))} tensors", flush=True)


def pack(folder):
    """What tests/fixtures/checkpoints holds."""
    with gzip.GzipFile(folder / "checkpoints.tar.gz", "wb", 9, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(folder / "globe.zarr", "globe.zarr")
            for case, files in PACKED.items():
                for file in files:
                    tar.add(folder / case / file, f"{case}/{file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("cases", metavar="CASE", nargs="*", help=", ".join(CASES))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        sys.exit(f"anemoi_checkpoints.py: there is no case {unknown[0]}: {', '.join(CASES)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    os.environ["ANEMOI_BASE_SEED"] = "42"
    dataset = arguments.folder.resolve() / "globe.zarr"
    rng = np.random.default_rng(1)
    lat, lon = regional.globe(rng, POINTS)
    regional.write_dataset(dataset, lat, lon, regional.fields(lat, lon, TIMES, rng))
    for name in arguments.cases or CASES:
        make_case(name, arguments.folder.resolve(), dataset)
    if all((arguments.folder / name / "tensors.txt").exists() for name in PACKED):
        pack(arguments.folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reference cases of limited areas and stretched grids, made by Anemoi's own packages.

usage: regional_cases.py FOLDER [CASE ...]      then: aifs-conformance FOLDER

Runs where anemoi-training 0.17.1 is installed (tools/oracle makes such an environment). Every case takes a shipped
configuration of anemoi-training (lam, stretched), makes its sizes small, writes two small datasets (a region and the
globe), and lets the packages do the rest: cutout, graph, model, loss with its scalers, output mask, rollout. It
writes three pairs of JSON and safetensors:

  CASE_graph          the graph with what it was built of (as golden/graph_recipes)
  CASE_model (.f64)   one batch: forward, loss, gradients, three AdamW steps (as golden/rollout)
  CASE_train (.f64)   50 AdamW steps on a cosine schedule with warm-up (as golden/training)

Names of tensors and keys are those of the reference data that aifs-conformance reads. Every number comes out of the
packages; the .f64 files are the same model, weights, batches and scalers widened to float64.
"""
import argparse
import copy
import importlib.metadata
import json
import pathlib
import sys
import tempfile

import numpy as np
import torch
import yaml
import zarr
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from safetensors.torch import save_file

STEPS, BATCH, TIMES, CHANNELS = 50, 2, 30, 16
REGION, GLOBE = (13, 14), 560  # rows and columns, points
VARIABLES = ["cos_latitude", "q_850", "z_500", "tp", "t_850", "lsm", "2t", "cp", "u_850", "insolation", "10u", "sp",
             "t_100"]
FORCING, DIAGNOSTIC = ["cos_latitude", "lsm", "insolation"], ["tp", "cp"]
NORMALIZER = {"default": "mean-std", "std": ["tp", "cp"], "remap": {"cp": "tp"}, "none": FORCING}
BOUNDING = [
    {"_target_": "anemoi.models.layers.bounding.ReluBounding", "variables": ["tp"]},
    {"_target_": "anemoi.models.layers.bounding.FractionBounding", "variables": ["cp"], "min_val": 0, "max_val": 1,
     "total_var": "tp"},
    {"_target_": "anemoi.models.layers.bounding.NormalizedReluBounding", "variables": ["q_850"], "min_val": [0.004],
     "normalizer": ["mean-std"]},
    {"_target_": "anemoi.models.layers.bounding.HardtanhBounding", "variables": ["10u"], "min_val": -1.2,
     "max_val": 1.2},
]
LAM, STRETCHED = "lam", "stretched"
TINY = dict(steps=12, times=8, channels=4, region=(6, 7), globe=60)
HIDDEN, EDGES = "graph.nodes.hidden.node_builder", "graph.edges"
LAM_SIZE = [f"{HIDDEN}.resolution=5", f"{HIDDEN}.margin_radius_km=60"]
STRETCHED_SIZE = [f"{HIDDEN}.lam_resolution=5", f"{HIDDEN}.global_resolution=2", f"{HIDDEN}.margin_radius_km=70"]

# The recipe, the network, forecast steps of a sample, centre and half width of the region [degrees], overrides; what
# else there is goes to options_of().
CASES = {
    "lam_gt": dict(recipe=LAM, model="graphtransformer", rollout=1, centre=(48, 10), overrides=LAM_SIZE),
    "lam_gnn_rollout2": dict(recipe=LAM, model="gnn", rollout=2, centre=(60, 20), overrides=LAM_SIZE),
    "lam_gt_rollout3": dict(recipe=LAM, model="graphtransformer", rollout=3, centre=(48, 10), overrides=LAM_SIZE),
    "lam_transformer_rollout2": dict(recipe=LAM, model="transformer", rollout=2, centre=(-30, 140),
                                     overrides=LAM_SIZE),
    "lam_date_line": dict(recipe=LAM, model="gnn", rollout=2, centre=(-17, 179), overrides=LAM_SIZE),
    "lam_pole": dict(recipe=LAM, model="graphtransformer", rollout=2, centre=(86, 30), overrides=LAM_SIZE),
    "lam_margin_k": dict(
        recipe=LAM, model="graphtransformer", rollout=2, centre=(48, 10), two_out=True, overrides=[
            f"{HIDDEN}.resolution=4", f"{HIDDEN}.margin_radius_km=300",
            f"{EDGES}.0.edge_builders.0.cutoff_factor=0.9", f"{EDGES}.0.edge_builders.1.cutoff_factor=2.5",
            f"{EDGES}.2.edge_builders.0.num_nearest_neighbours=4"]),
    "stretched_gt": dict(recipe=STRETCHED, model="graphtransformer", rollout=1, centre=(48, 10), share=0.33,
                         overrides=STRETCHED_SIZE),
    "stretched_gnn_rollout2": dict(recipe=STRETCHED, model="gnn", rollout=2, centre=(62, 15), share=0.5,
                                   overrides=STRETCHED_SIZE),
    "stretched_transformer": dict(recipe=STRETCHED, model="transformer", rollout=1, centre=(48, 10), share=0.25,
                                  overrides=STRETCHED_SIZE),
    "stretched_date_line": dict(recipe=STRETCHED, model="graphtransformer", rollout=2, centre=(-5, -179), share=0.7,
                                overrides=STRETCHED_SIZE),
    "stretched_pole": dict(recipe=STRETCHED, model="gnn", rollout=1, centre=(-87, 0), share=0.1,
                           overrides=[f"{HIDDEN}.lam_resolution=4", f"{HIDDEN}.global_resolution=1",
                                      f"{HIDDEN}.margin_radius_km=10",
                                      f"{EDGES}.0.edge_builders.0.num_nearest_neighbours=6"]),
    # A mask and a share of the loss at once: cells that the network does not decide count for nothing, and the rest
    # of the globe that it does decide is weighed against the region.
    "stretched_masked": dict(recipe=STRETCHED, model="gnn", rollout=2, centre=(48, 10), share=0.4, mask="north",
                             overrides=STRETCHED_SIZE),
    # For tests/fixtures/regional.
    "tiny_lam": dict(recipe=LAM, model="gnn", rollout=2, centre=(48, 10), tiny=True,
                     overrides=LAM_SIZE),
    "tiny_stretched": dict(recipe=STRETCHED, model="graphtransformer", rollout=1, centre=(48, 10), share=0.4, tiny=True,
                           overrides=[f"{HIDDEN}.lam_resolution=4", f"{HIDDEN}.global_resolution=1",
                                      f"{HIDDEN}.margin_radius_km=10",
                                      f"{EDGES}.0.edge_builders.0.num_nearest_neighbours=4"]),
    "lam_tendencies": dict(recipe=LAM, model="gnn", rollout=1, centre=(48, 10), overrides=LAM_SIZE,
                           scalers=["pressure_level", "general_variable", "stdev_tendency", "node_weights",
                                    "time_steps", "limited_area_mask"]),
}


def options_of_case(name):
    return CASES[name] | (TINY if CASES[name].get("tiny") else {})


# ---------------------------------------------------------------- datasets

def turned(points, centre):
    """Unit vectors of a patch around (0, 0), moved to a centre (latitude, longitude in degrees)."""
    lat, lon = np.radians(centre)
    north = np.array([[np.cos(lat), 0, -np.sin(lat)], [0, 1, 0], [np.sin(lat), 0, np.cos(lat)]])
    east = np.array([[np.cos(lon), -np.sin(lon), 0], [np.sin(lon), np.cos(lon), 0], [0, 0, 1]])
    return points @ (east @ north).T


def region(centre, rng, rows, columns, spacing=1.1):
    """A grid of about 120 km in a region; moved a little, so that no two distances are equal."""
    lat, lon = np.meshgrid(np.arange(rows) - (rows - 1) / 2, np.arange(columns) - (columns - 1) / 2, indexing="ij")
    lat, lon = (np.radians(spacing * (a + rng.uniform(-0.2, 0.2, a.shape))).ravel() for a in (lat, lon))
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    x, y, z = turned(points, centre).T
    return np.degrees(np.arcsin(z)), np.degrees(np.arctan2(y, x)) % 360


def globe(rng, count):
    """A spiral over the sphere, moved a little."""
    place = np.arange(count) + 0.5
    lat = np.degrees(np.arcsin(1 - 2 * place / count)) + rng.uniform(-1, 1, count)
    lon = np.degrees(place * np.pi * (np.sqrt(5) - 1)) + rng.uniform(-1, 1, count)
    return np.clip(lat, -89.9, 89.9), lon % 360


def fields(lat, lon, times, rng):
    """(times, variables, 1, cells), smooth waves that travel and some noise, in physical sizes."""
    la, lo = np.radians(lat), np.radians(lon)
    scale = {"q_850": (0.005, 0.002), "z_500": (54000, 1500), "tp": (0, 0.002), "t_850": (275, 8), "2t": (280, 10),
             "cp": (0, 0.001), "u_850": (2, 6), "10u": (0, 5), "sp": (97000, 3000), "t_100": (208, 5)}
    data = np.empty((times, len(VARIABLES), 1, len(la)), np.float32)
    for t in range(times):
        for v, name in enumerate(VARIABLES):
            wave = np.sin((1 + v % 4) * la + 0.3 * v) * np.cos((1 + v % 3) * lo - 0.2 * t + v)
            wave = wave + 0.1 * rng.standard_normal(len(la))
            if name == "cos_latitude":
                value = np.cos(la)
            elif name == "lsm":
                value = (np.sin(3 * la) * np.cos(2 * lo) > 0.1).astype(float)
            elif name == "insolation":
                value = np.maximum(0, np.cos(la) * np.cos(lo + 1.57 * t))
            elif name in DIAGNOSTIC:
                value = np.maximum(0, wave) * scale[name][1]
            else:
                value = scale[name][0] + scale[name][1] * wave
            data[t, v, 0] = value
    return data


def write_dataset(path, lat, lon, data):
    """As anemoi-datasets lays one out (Zarr 2)."""
    store = zarr.open_group(str(path), mode="w", **({"zarr_format": 2} if zarr.__version__.startswith("3") else {}))
    dates = np.datetime64("2020-01-01T00:00:00", "s") + np.arange(len(data)) * np.timedelta64(6, "h")

    def put(name, array, dims, chunks=None):
        made = (store.create_array if hasattr(store, "create_array") else store.create_dataset)(
            name, shape=array.shape, dtype=array.dtype, chunks=chunks or array.shape)
        made[...] = array
        made.attrs["_ARRAY_DIMENSIONS"] = dims

    put("data", data, ["time", "variable", "ensemble", "cell"], (1, *data.shape[1:]))
    put("dates", dates, ["time"])
    put("latitudes", lat, ["cell"])
    put("longitudes", lon, ["cell"])
    wide = data[:, :, 0].astype(np.float64)
    steps = np.diff(wide, axis=0)
    for name, values in {"mean": wide.mean((0, 2)), "stdev": wide.std((0, 2)), "minimum": wide.min((0, 2)),
                         "maximum": wide.max((0, 2)),
                         "statistics_tendencies_6h_mean": steps.mean((0, 2)),
                         "statistics_tendencies_6h_stdev": steps.std((0, 2)),
                         "statistics_tendencies_6h_minimum": steps.min((0, 2)),
                         "statistics_tendencies_6h_maximum": steps.max((0, 2))}.items():
        put(name, values, ["variable"])
    first, last = str(dates[0]), str(dates[-1])
    store.attrs.update({
        "allow_nans": False, "constant_fields": ["cos_latitude", "lsm"], "dtype": "float32", "ensemble_dimension": 1,
        "field_shape": [len(lat)], "flatten_grid": True, "start_date": first, "end_date": last, "first_date": first,
        "last_date": last, "frequency": "6h", "missing_dates": [], "resolution": "custom",
        "order_by": ["valid_datetime", "param_level", "number"], "shape": list(data.shape),
        "statistics_start_date": first, "statistics_end_date": last, "variables": VARIABLES,
        "variables_with_nans": [], "version": "0.30", "variables_metadata": variables_metadata()})


def variables_metadata():
    """What datasets from MARS say of their variables: loss scalers read parameters and levels from it."""
    metadata = {}
    for name in VARIABLES:
        param, _, level = name.partition("_")
        on_level = {"levtype": "pl", "levelist": int(level)} if level.isdigit() else {"levtype": "sfc"}
        computed = name in ("cos_latitude", "insolation")
        metadata[name] = {"computed_forcing": True} if computed else {"mars": {"param": param, **on_level}}
    return metadata


def make_cutout(case, folder, rng):
    """The cutout of a region and the globe as a configuration of open_dataset()."""
    rows, columns = case.get("region", REGION)
    grids = {"lam": region(case["centre"], rng, rows, columns), "global": globe(rng, case.get("globe", GLOBE))}
    for name, (lat, lon) in grids.items():
        write_dataset(folder / f"{name}.zarr", lat, lon, fields(lat, lon, case.get("times", TIMES), rng))
    cutout = {"cutout": [{"dataset": str(folder / "lam.zarr")}, {"dataset": str(folder / "global.zarr")}],
              "adjust": "all", "min_distance_km": 0}
    if case["recipe"] == LAM:
        cutout["max_distance_km"] = 3000 if case.get("tiny") else 1500  # a boundary zone
    return cutout


# ---------------------------------------------------------------- configuration

def small_model(case):
    """Overrides that make a shipped model small."""
    model = case["model"]
    options = [f"model.num_channels={case.get('channels', CHANNELS)}", "model.processor.num_layers=2", "model.processor.num_chunks=1",
               "model.node_trainable_parameters.data=3", "model.node_trainable_parameters.hidden=4",
               "model.edge_trainable_parameters.data2hidden=2", "model.edge_trainable_parameters.hidden2data=2"]
    parts = ["model.processor", "model.encoders.0.mapper", "model.decoders.0.mapper"]
    for part in parts:
        options.append(f"{part}.gradient_checkpointing=False")
        if model == "graphtransformer" or (model == "transformer" and part != parts[0]):
            options += [f"{part}.graph_attention_backend=pyg", f"{part}.num_heads=2"]
        if model == "transformer" and part == parts[0]:
            options += [f"{part}.num_heads=2", f"{part}.window_size=16", f"{part}.dropout_p=0.0",
                        f"{part}.attention_implementation=scaled_dot_product_attention"]
    if model == "transformer":  # its file lacks keys that the model asks for
        options += ["model.latent_aggregator={_target_: anemoi.models.layers.aggregator.SumAggregator}",
                    *(f"{part}.num_channels={case.get('channels', CHANNELS)}" for part in parts)]
    else:
        options.append("model.edge_trainable_parameters.hidden2hidden=1")
    return options


def options_of(case, cutout):
    """The whole configuration of a training, resolved."""
    overrides = [*small_model(case), *case["overrides"],
                 f"training.max_steps={case.get('steps', STEPS)}", "training.optimization.lr_scheduler.warmup_t=5",
                 "training.optimization.lr=0.002", "training.precision=32", f"dataloader.batch_size.training={BATCH}",
                 f"task.rollout.start={case['rollout']}", f"task.rollout.maximum={case['rollout']}",
                 "system.input.dataset=lam", "system.input.forcing_dataset=global", "system.input.graph=null",
                 "system.output.root=out", "system.hardware.accelerator=cpu", "model.compile=[]"]
    if case.get("two_out"):
        overrides.append("task.multistep_output=2")
    if case["recipe"] == STRETCHED:
        overrides.append(f"training.scalers.datasets.data.node_weights.weight_frac_of_total={case['share']}")
    with initialize_config_module(version_base=None, config_module="anemoi.training.config"):
        config = compose(config_name=case["recipe"], overrides=[f"model={case['model']}"])
    OmegaConf.set_struct(config, False)
    for override in overrides:
        key, _, value = override.partition("=")
        OmegaConf.update(config, key, yaml.safe_load(value), force_add=True)
    config.config_validation = False
    del config.dataloader["dataset"]
    for stage in ("training", "validation", "test"):
        config.dataloader[stage].datasets = {"data": {
            "dataset_config": {"dataset": cutout, "frequency": "6h"}, "start": None, "end": 2020}}
    config.data.datasets = {"data": {"forcing": FORCING, "diagnostic": DIAGNOSTIC, "processors": {
        "normalizer": {"_target_": "anemoi.models.preprocessing.normalizer.InputNormalizer", "config": NORMALIZER}}}}
    config.model.bounding = {"datasets": {"data": BOUNDING}}
    if case["model"] == "transformer":  # it knows no edges among hidden nodes, and refuses a graph with some
        del config.graph.edges[1]
    if case.get("mask"):
        config.model.output_mask = {"datasets": {"data": {
            "_target_": "anemoi.training.utils.masks.Boolean1DMask", "attribute_name": case["mask"]}}}
    if case.get("scalers"):
        config.training.training_loss.datasets.data.scalers = case["scalers"]
    OmegaConf.resolve(config)
    return config


# ---------------------------------------------------------------- model and training

def build_graph(config, case):
    from anemoi.graphs.create import GraphCreator

    graph = GraphCreator(copy.deepcopy(config.graph)).create(save_path=None, overwrite=True)
    if case.get("mask") == "north":  # where a network is to decide
        graph["data"]["north"] = (graph["data"].x[:, :1] > 0.2).bool()
    return graph


def build_module(config, graph, dataset):
    """The training module of anemoi-training, as its trainer makes it."""
    from anemoi.models.data_indices.collection import IndexCollection
    from anemoi.training.train.methods import SingleTraining
    from hydra.utils import instantiate

    torch.manual_seed(7)
    indices = {"data": IndexCollection(config.data.datasets.data, dataset.name_to_index)}
    tendencies = dataset.statistics_tendencies("6h")
    metadata = {"dataset": {"data": {"variables_metadata": variables_metadata()}},
                "metadata_inference": {"dataset_names": ["data"], "data": {}}}
    return SingleTraining(
        config=config, task=instantiate(config.task), graph_data=graph.clone(),
        statistics={"data": {k: v.copy() for k, v in dataset.statistics.items()}},
        statistics_tendencies={"data": {"lead_times": ["6h"], "6h": tendencies}}, data_indices=indices,
        metadata=metadata, supporting_arrays={"data": {}})


def network(module):
    return module.model.model


def seed_weights(module):
    """Noise of 0.05 on all parameters: norms, trainable tensors and layers that begin at zero matter."""
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for parameter in network(module).parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)


class Batches:
    """Samples of consecutive times, normalised in float32 by the module's own processor."""

    def __init__(self, dataset, module, rollout):
        self.raw = torch.from_numpy(np.stack([dataset[t][:, :].transpose(1, 2, 0) for t in range(len(dataset))]))
        self.raw = self.raw.float()  # times, ensemble, cells, variables
        self.processor = copy.deepcopy(module.model.pre_processors["data"])
        self.length = module.n_step_input + rollout * module.n_step_output

    def take(self, firsts):
        return torch.stack([self.raw[first:first + self.length] for first in firsts])

    def normalised(self, firsts, dtype):
        return self.processor(self.take(firsts), in_place=False).to(dtype)

    def order(self, count, batch):
        rng = np.random.default_rng(3)
        positions = len(self.raw) - self.length + 1
        epochs = [rng.permutation(positions) for _ in range(1 + count * batch // positions)]
        return np.concatenate(epochs)[:count * batch].reshape(count, batch)


def in_type(module, dtype):
    """A copy of the module; float64 is what float32 holds, widened."""
    wide = copy.deepcopy(module)
    wide.to(dtype)
    for name, (_, tensor) in wide.loss["data"].scaler.tensors.items() if hasattr(wide.loss["data"], "scaler") else []:
        assert tensor.dtype in (torch.float32, dtype, torch.bool), name
    wide._prepare_loss_scalers()
    return wide


def rollout_pass(module, batch):
    """x, output and loss of every step, as SingleTraining._step() goes through them."""
    from anemoi.training.utils.index_space import IndexSpace

    batch = {"data": batch}
    x = module.task.get_inputs(batch, data_indices=module.data_indices)
    steps, passes, total = module.task.steps("training"), [], 0
    for number, step in enumerate(steps):
        inputs = x["data"].clone()
        y = module(x)
        loss, _, _ = module.compute_loss_metrics(
            y, module.task.get_targets(batch, **step), pred_layout=IndexSpace.MODEL_OUTPUT,
            target_layout=IndexSpace.DATA_FULL)
        passes.append((inputs.detach(), y["data"].detach().clone(), loss.detach().clone()))
        total = total + loss
        if number + 1 < len(steps):
            x = module.task.advance_input(
                x, y, batch, **step, data_indices=module.data_indices, output_mask=module.output_mask,
                grid_shard_slice={"data": None})
    return passes, total / len(steps)


def prepare(module):
    module.grid_shard_sizes, module.grid_shard_slice = {"data": None}, {"data": None}


def loss_of(module, batch):
    prepare(module)
    return module._step({"data": batch.clone()}).loss


def clip(module):
    torch.nn.utils.clip_grad_value_(network(module).parameters(), 32.0)


def gradients(module):
    return {f"grad/{name}": p.grad.clone() for name, p in network(module).named_parameters() if p.grad is not None}


def state(module, prefix):
    return {f"{prefix}/{name}": t.detach().clone() for name, t in network(module).state_dict().items()}


def parameters(module, prefix):
    return {f"{prefix}/{name}": p.detach().clone() for name, p in network(module).named_parameters()}


def run_model(module, batch):
    """Forward, loss, gradients, three AdamW steps at a constant rate on one batch."""
    prepare(module)
    passes, total = rollout_pass(module, batch.clone())
    module.zero_grad()
    loss = loss_of(module, batch)
    assert torch.allclose(loss, total, rtol=1e-6), (loss, total)
    loss.backward()
    tensors = {"loss": loss.detach().reshape(1), **gradients(module)}
    for number, (x, y, of_step) in enumerate(passes):
        tensors |= {f"step{number}/x": x, f"step{number}/y_pred": y, f"step{number}/loss": of_step.reshape(())}
    missing = [name for name, p in network(module).named_parameters() if p.grad is None]
    optimizer = torch.optim.AdamW(network(module).parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.01)
    losses = []
    for number in range(4):
        optimizer.zero_grad()
        loss = loss_of(module, batch)
        losses.append(float(loss.detach()))
        if number == 3:
            break
        loss.backward()
        clip(module)
        optimizer.step()
    tensors["adamw_losses"] = torch.tensor(losses, dtype=torch.float64)
    return tensors | parameters(module, "after3"), missing


def run_training(module, batches, order, dtype):
    """The loop of Lightning: zero gradients, backward, clip, AdamW, schedule, with the module's own optimiser."""
    optimizers, schedules = module.configure_optimizers()
    optimizer, schedule = optimizers[0], schedules[0]["scheduler"]
    tensors, losses, rates = {}, [], []
    for number, firsts in enumerate(order):
        optimizer.zero_grad()
        loss = loss_of(module, batches.normalised(firsts, dtype))
        loss.backward()
        if number == 0:
            tensors |= gradients(module)
        clip(module)
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step_update(number + 1)
        losses.append(float(loss.detach()))
        if number + 1 in (10, len(order)):
            tensors |= parameters(module, f"after{number + 1}")
    tensors["loss"] = torch.tensor(losses, dtype=torch.float64)
    tensors["lr"] = torch.tensor(rates, dtype=torch.float64)
    return tensors


# ---------------------------------------------------------------- files

def plain(config):
    """A configuration with "class" for "_target_"."""
    if OmegaConf.is_config(config):
        config = OmegaConf.to_container(config, resolve=True)
    if isinstance(config, dict):
        return {("class" if key == "_target_" else key): plain(value) for key, value in config.items()}
    return [plain(value) for value in config] if isinstance(config, list) else config


def class_name(name):
    return name.rsplit(".", 1)[-1]


def short_classes(config):
    if isinstance(config, dict):
        return {key: class_name(value) if key == "class" else short_classes(value) for key, value in config.items()}
    return [short_classes(value) for value in config] if isinstance(config, list) else config


def save(folder, name, tensors):
    tensors = {key: tensor.detach().contiguous().clone() for key, tensor in tensors.items()}
    save_file(tensors, str(folder / f"{name}.safetensors"))


def write_json(folder, name, content):
    (folder / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def graph_tensors(graph):
    tensors = {}
    for name, nodes in graph.node_items():
        tensors[f"nodes/{name}/latlon_rad"] = nodes.x
        tensors |= {f"nodes/{name}/{key}": value for key, value in nodes.items() if torch.is_tensor(value) and key != "x"}
    for (source, _, target), edges in graph.edge_items():
        place = f"edges/{source}_to_{target}"
        tensors |= {f"{place}/{key}": value.int() if key == "edge_index" else value
                    for key, value in edges.items() if torch.is_tensor(value)}
    return tensors


def graph_description(config, graph, dataset, case):
    nodes = {name: {"count": len(store.x), "node_type": store["node_type"],
                    "attributes": [key for key, value in store.items() if torch.is_tensor(value) and key != "x"]}
             for name, store in graph.node_items()}
    edges = [{"source": e["source_name"], "target": e["target_name"],
              "builders": short_classes(plain(e["edge_builders"])), "attributes": short_classes(plain(e["attributes"]))}
             for e in config.graph.edges]
    counts = {f"{s}_to_{t}": {"edges": store.edge_index.shape[1]} for (s, _, t), store in graph.edge_items()}
    attributes = {"data": short_classes(plain(config.graph.nodes.data.attributes)), "hidden": {}}
    return {"overrides": [f"graph={'limited_area' if case['recipe'] == LAM else 'stretched_grid'}",
                          *[o for o in case["overrides"] if o.startswith("graph.")]],
            "nodes": nodes, "edges": edges, "node_attributes": attributes, "counts": counts,
            "grids": [int(g) for g in dataset.grids]}


def description(config, case, module, graph_file):
    index = module.data_indices["data"]
    prognostic = [name for name in VARIABLES if name not in FORCING + DIAGNOSTIC]
    scalers = short_classes(plain(config.training.scalers.datasets.data))
    used = plain(config.training.training_loss.datasets.data)["scalers"]
    model = short_classes(plain(config.model))
    for key in ("compile", "bounding", "cpu_offload", "keep_batch_sharded", "recompile_limit"):
        model.pop(key, None)
    packages = ("anemoi-models", "anemoi-graphs", "anemoi-training", "anemoi-datasets", "torch", "torch-geometric")
    return {
        "versions": {name: importlib.metadata.version(name) for name in packages},
        "graph_file": graph_file, "shipped_configuration": f"{case['recipe']}, model {case['model']}",
        "times_in": module.n_step_input, "times_out": module.n_step_output, "rollout_steps": case["rollout"],
        "batch_size": BATCH,
        "variables": {"dataset_variables": VARIABLES, "forcing": FORCING, "diagnostic": DIAGNOSTIC,
                      "prognostic": prognostic, "data_input_full": index.data.input.full.tolist(),
                      "data_output_full": index.data.output.full.tolist()},
        "normalizer": {"data": NORMALIZER}, "bounding_in_order": {"data": short_classes(plain(BOUNDING))},
        "model": model,
        "training_loss": short_classes(plain(config.training.training_loss)),
        "scalers": {name: scalers[name] for name in used},
    }


def common_tensors(module, dataset, weights):
    tensors = dict(weights)
    normaliser = module.model.pre_processors["data"].processors["normalizer"]
    tensors |= {"normalizer/mul": normaliser._norm_mul, "normalizer/add": normaliser._norm_add}
    for name in ("mean", "stdev", "minimum", "maximum"):
        tensors[f"statistics/{name}"] = torch.from_numpy(dataset.statistics[name].astype(np.float64))
    tensors["statistics_tendencies/stdev"] = torch.from_numpy(
        dataset.statistics_tendencies("6h")["stdev"].astype(np.float64))
    for name, (_, values) in module.scalers["data"].items():
        if name in plain(module.config.training.training_loss.datasets.data)["scalers"]:
            tensors[f"scaler/{name}"] = values.float()
    mask = module.output_mask["data"]
    if hasattr(mask, "mask"):
        tensors["output_mask"] = mask.mask
    return tensors


def make_case(name, folder, scratch):
    from anemoi.datasets import open_dataset

    case = options_of_case(name)
    steps = case.get("steps", STEPS)
    rng = np.random.default_rng(sum(map(ord, name)))
    cutout = make_cutout(case, scratch, rng)
    config = options_of(case, cutout)
    dataset = open_dataset(cutout)
    graph = build_graph(config, case)
    graph_name = f"{name}_graph"
    tensors = graph_tensors(graph)
    tensors["input/data_latlon_deg"] = torch.from_numpy(np.stack([dataset.latitudes, dataset.longitudes], 1).copy())
    save(folder, graph_name, tensors)
    if not case.get("mask"):  # an attribute of this script's own is no recipe
        write_json(folder, graph_name, {"what": f"graph of case {name}"} | graph_description(config, graph, dataset, case))

    module = build_module(config, graph, dataset)
    batches = Batches(dataset, module, case["rollout"])
    order = batches.order(steps, BATCH)
    general = description(config, case, module, f"{graph_name}.safetensors")
    optimizer = {"kind": "AdamW", "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.01}

    own = OmegaConf.to_container(config.training.optimization.optimizer)
    for key in ("betas", "weight_decay", "eps"):
        if key in own:
            optimizer[key] = own[key]

    # training, from weights as the package initialises them
    single, wide = in_type(module, torch.float32), in_type(module, torch.float64)
    weights = state(single, "state")
    trained = run_training(single, batches, order, torch.float32)
    twin = run_training(wide, batches, order, torch.float64)
    save(folder, f"{name}_train", common_tensors(module, dataset, weights) | trained | {
        "data_raw": batches.raw, "first_time_of_each_sample": torch.from_numpy(order.astype(np.int64)),
        "loss_f64": twin["loss"]})
    save(folder, f"{name}_train.f64", twin)
    write_json(folder, f"{name}_train", {"what": f"{steps} steps of training, case {name}"} | general | {
        "times": len(batches.raw), "optimizer": optimizer | {"lr": float(config.training.optimization.lr), "clip": "value 32"},
        "schedule": {"kind": "cosine with warm-up, per step", "t_initial": steps, "warmup_t": 5,
                     "lr_min": float(config.training.optimization.lr_scheduler.lr_min)},
        "loss_first_and_last": [float(trained["loss"][0]), float(trained["loss"][-1])],
        "largest_relative_difference_float32_float64": float(((trained["loss"] - twin["loss"]) / twin["loss"]).abs().max())})

    # one batch, from weights with noise
    seed_weights(module)
    single, wide = in_type(module, torch.float32), in_type(module, torch.float64)
    weights, firsts = state(single, "state"), order[0]
    tensors, missing = run_model(single, batches.normalised(firsts, torch.float32))
    twin, _ = run_model(wide, batches.normalised(firsts, torch.float64))
    save(folder, f"{name}_model", common_tensors(module, dataset, weights) | tensors | {
        "batch_raw": batches.take(firsts), "batch": batches.normalised(firsts, torch.float32)})
    save(folder, f"{name}_model.f64", {key: value for key, value in twin.items() if not key.endswith("/x")})
    write_json(folder, f"{name}_model", {"what": f"one batch, case {name}"} | general | {
        "optimizer": optimizer | {"lr": 1e-3, "clip": "each gradient element to +-32 before the step"},
        "loss": {"value": float(tensors["loss"]), "value_float64": float(twin["loss"])},
        "parameters_without_gradient": missing})
    print(f"{name}: {len(graph['data'].x)} data and {len(graph['hidden'].x)} hidden nodes, "
          f"loss {float(trained['loss'][0]):.4f} to {float(trained['loss'][-1]):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=pathlib.Path)
    parser.add_argument("cases", metavar="CASE", nargs="*", help=", ".join(CASES))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        sys.exit(f"regional_cases.py: there is no case {unknown[0]}: {', '.join(CASES)}")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        with tempfile.TemporaryDirectory() as scratch:
            make_case(name, arguments.folder, pathlib.Path(scratch))


if __name__ == "__main__":
    main()

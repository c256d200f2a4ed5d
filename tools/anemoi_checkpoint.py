#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Anemoi checkpoints from models that `aifs-train export` wrote, and the other way round.

usage: anemoi_checkpoint.py to-anemoi FOLDER CHECKPOINT     for anemoi-inference
       anemoi_checkpoint.py from-anemoi CHECKPOINT FOLDER   for `aifs-train import --config FILE`

Runs in an environment with anemoi-models 0.19 (from-anemoi of training checkpoints: also anemoi-training).
docs/formats/exchange.md describes the folder. The model is built by Anemoi's own classes from a
configuration in Anemoi's terms, and takes the weights strictly: names, shapes and order must agree.
"""
import argparse
import datetime
import json
import math
import pathlib
import struct
import uuid

import numpy as np
import torch
from omegaconf import OmegaConf

DATASET = "data"
DTYPES = {"F64": torch.float64, "F32": torch.float32, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32}


# ---------------------------------------------------------------- safetensors, in the order of the header

def load_tensors(path):
    data = bytearray(pathlib.Path(path).read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def save_tensors(path, tensors, metadata=None):
    header, offset = {"__metadata__": metadata} if metadata else {}, 0
    names = {dtype: name for name, dtype in DTYPES.items()}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    by_width = sorted(tensors, key=lambda name: -tensors[name].element_size())  # stable: all are aligned
    for name in tensors:
        header[name] = {"dtype": names[tensors[name].dtype], "shape": list(tensors[name].shape)}
    for name in by_width:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name]["data_offsets"] = [offset, offset + size]
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in by_width:
            file.write(tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())


# ---------------------------------------------------------------- configuration in Anemoi's terms

PARTS = {  # kind: names of encoder, processor and decoder
    "gnn": ("GNNForwardMapper", "GNNProcessor", "GNNBackwardMapper"),
    "graph_transformer": ("GraphTransformerForwardMapper", "GraphTransformerProcessor", "GraphTransformerBackwardMapper"),
    "transformer": ("TransformerForwardMapper", "TransformerProcessor", "TransformerBackwardMapper"),
    "point_wise": ("PointWiseForwardMapper", "PointWiseMLPProcessor", "PointWiseBackwardMapper"),
}
PLACES = ("encoder", "processor", "decoder")
WITH_EDGES = ("gnn", "graph_transformer", "none")  # none: learnt features that nothing reads
TRUNCATION = "truncation"  # node set of a coarse grid
ACTIVATIONS = {"gelu": "GELU", "silu": "SiLU", "relu": "ReLU", "leaky_relu": "LeakyReLU", "elu": "ELU", "selu": "SELU",
               "softplus": "Softplus", "tanh": "Tanh", "sigmoid": "Sigmoid", "mish": "Mish", "hardswish": "Hardswish",
               "identity": "Identity"}
ATTENTION = {"sdpa": "scaled_dot_product_attention", "flash": "flash_attention"}


def refuse(path, why):
    raise SystemExit(f"anemoi_checkpoint.py: {path}: {why}")


def layer_kernels(block, eps):
    norm = {"_target_": "anemoi.models.layers.normalization.AutocastLayerNorm", "eps": eps}
    return {"LayerNorm": norm, "Linear": {"_target_": "torch.nn.Linear"},
            "Activation": {"_target_": "torch.nn." + ACTIVATIONS[block["activation"]]},
            "QueryNorm": norm | {"bias": False}, "KeyNorm": norm | {"bias": False}}


def conditional_norm(model, channels):
    if model["layer_norm_eps"] != 1e-5:
        refuse("model.layer_norm_eps", "Anemoi's conditional norms have 1e-5")
    return {"_target_": "anemoi.models.layers.normalization.ConditionalLayerNorm", "normalized_shape": channels,
            "condition_shape": model["ensemble"]["noise_channels"], "zero_init": True, "autocast": False}


def block_config(block, model, place, trainable):
    """The options of a block as encoder, processor or decoder; `trainable`: learnt features of its edges."""
    kind = block["kind"]
    edges = {"trainable_size": trainable, "sub_graph_edge_attributes": model["edge_attributes"]}
    if kind == "none":
        return {"_target_": "anemoi.models.layers.processor.NoOpProcessor"} | edges
    module = "processor" if place == "processor" else "mapper"
    ratio = block["mlp_hidden_ratio"] or (1.0 if kind == "gnn" else 4.0)
    options = {"_target_": f"anemoi.models.layers.{module}.{PARTS[kind][PLACES.index(place)]}",
               "num_channels": block["channels"] or model["channels"],
               "num_chunks": 1 if place == "processor" else block["chunks"],
               "mlp_hidden_ratio": ratio, "mlp_implementation": block.get("mlp_implementation", "mlp"),
               "cpu_offload": False, "gradient_checkpointing": True,
               "layer_kernels": layer_kernels(block, model["layer_norm_eps"])}
    if place == "processor":
        options["num_layers"] = model["layers"]
        if model["ensemble"]["noise"] == "conditioning":
            options["layer_kernels"]["LayerNorm"] = conditional_norm(model, options["num_channels"])
    if kind == "gnn":
        options["mlp_extra_layers"] = block["mlp_extra_layers"]
    if kind in WITH_EDGES:
        options |= edges
    if kind in ("graph_transformer", "transformer"):
        options |= {"num_heads": block["heads"], "qk_norm": block["qk_norm"],
                    "attn_channels": block["attention_channels"] or None}
    if kind == "graph_transformer":
        options |= {"edge_pre_mlp": block["edge_pre_mlp"], "shard_strategy": "edges", "graph_attention_backend": "pyg"}
    if kind == "transformer":
        options |= {"window_size": block["window"] or None, "dropout_p": 0.0, "softcap": block["softcap"],
                    "attention_implementation": ATTENTION[block["attention"]], "use_alibi_slopes": block["alibi"],
                    "use_rotary_embeddings": block["rotary"]}
    return options


def bounding_config(options):
    name = "".join(word.capitalize() for word in options["kind"].split("_"))
    config = {"_target_": f"anemoi.models.layers.bounding.{name}Bounding", "variables": options["variables"]}
    if "hardtanh" in options["kind"] or "fraction" in options["kind"]:
        config |= {"min_val": options["min_val"], "max_val": options["max_val"]}
    if "fraction" in options["kind"]:
        config["total_var"] = options["total_var"]
    if "normalized" in options["kind"]:
        config |= {"min_val": options["thresholds"], "normalizer": options["normalizer"]}
    return config


def residual_config(options):
    kind = options["kind"]
    if kind == "none":
        refuse("model.residual.kind", "'none' cannot be put into an Anemoi checkpoint: its models always add one")
    of_kind = {
        "skip": {"step": options["step"]},
        "truncated": {"truncation_down_edges_name": [DATASET, "to", TRUNCATION],
                      "truncation_up_edges_name": [TRUNCATION, "to", DATASET]},
        "scalar_ornstein": {"theta_train": options["theta_train"]},
        "spectral_ornstein": {key: options[key] for key in ("lmax", "grid", "use_mean", "truncate", "anti_aliasing")},
    }
    config = of_kind[kind]
    if kind.endswith("ornstein"):
        config |= {"theta_init": options["theta_init"], "theta_buff": options["theta_buffer"],
                   "regressors": options["regressors"]}
    name = "".join(word.capitalize() for word in kind.split("_"))
    return {"_target_": f"anemoi.models.layers.residual.{name}Connection", **config}


def ensemble_config(ensemble):
    """Options that turn the model into one of an ensemble."""
    if ensemble["noise"] == "none":
        return {}
    return {"condition_on_residual": False, "noise_injector": {
        "_target_": "anemoi.models.layers.ensemble.NoiseConditioning", "noise_std": ensemble["noise_std"],
        "noise_channels_dim": ensemble["noise_channels"], "noise_mlp_hidden_dim": ensemble["noise_hidden"],
        "noise_matrix": None, "noise_edges_name": None,
        "layer_kernels": {"Activation": {"_target_": "torch.nn." + ACTIVATIONS[ensemble["noise_activation"]]}}}}


def meshes(model):
    """Names of the hidden node sets, fine to coarse."""
    if model["hierarchy"]["meshes"]:
        return model["hierarchy"]["meshes"]
    return [DATASET if model["encoder"]["kind"] == "point_wise" else "hidden"]


def hierarchy_config(model):
    """Options that turn the model into one of several meshes."""
    hierarchy = model["hierarchy"]
    if not hierarchy["meshes"]:
        return {}
    if model["decoder"]["target_features"] != ["encoded_data"]:
        refuse("model.decoder.target_features", "Anemoi's hierarchies decode encoded_data, whatever they are told")
    return {"enable_hierarchical_level_processing": hierarchy["level_processing"],
            "level_process_num_layers": hierarchy["level_layers"],
            "upscale_mapper": block_config(hierarchy["upscale"], model, "encoder", hierarchy["upscale_trainable"]),
            "downscale_mapper": block_config(hierarchy["downscale"], model, "decoder", hierarchy["downscale_trainable"])}


def model_config(model):
    trainable = model["trainable_parameters"]
    ensemble, hierarchy = ensemble_config(model["ensemble"]), hierarchy_config(model)
    name = f"Anemoi{'Ens' if ensemble else ''}ModelEncProcDec{'Hierarchical' if hierarchy else ''}"
    return ensemble | hierarchy | {
        "num_channels": model["channels"], "cpu_offload": False, "keep_batch_sharded": True,
        "model": {"_target_": f"anemoi.models.models.{name}", "latent_skip": model["latent_skip"],
                  "hidden_nodes_name": meshes(model) if hierarchy else meshes(model)[0]},
        "processor": block_config(model["processor"], model, "processor", trainable["hidden_to_hidden"]),
        "encoders": {"0": {"source_datasets": [DATASET], "dataset_fusing_strategy": "not_supported",
                           "mapper": block_config(model["encoder"], model, "encoder", trainable["data_to_hidden"])}},
        "latent_aggregator": {"_target_": "anemoi.models.layers.aggregator.SumAggregator"},
        "decoders": {"0": {"target_datasets": [DATASET], "target_node_features": model["decoder"]["target_features"],
                           "mapper": block_config(model["decoder"], model, "decoder", trainable["hidden_to_data"])}},
        "residual": {"datasets": {DATASET: residual_config(model["residual"])}},
        "node_trainable_parameters": {mesh: trainable["hidden"] for mesh in meshes(model)} | {DATASET: trainable["data"]},
        "attributes": {"edges": model["edge_attributes"], "nodes": []},
        "bounding": {"datasets": {DATASET: [bounding_config(b) for b in model["bounding"]]}},
        "output_mask": {"datasets": {DATASET: output_mask_config(model["output_mask"])}},
    }


def output_mask_config(attribute):
    masks = "anemoi.training.utils.masks"
    return {"_target_": f"{masks}.Boolean1DMask", "attribute_name": attribute} if attribute else {
        "_target_": f"{masks}.NoOutputMask"}


def imputer_config(rule):
    name, key = {"constant": ("ConstantImputer", rule["value"]), "copy": ("CopyImputer", rule["from"])}.get(
        rule["method"], ("InputImputer", rule["method"]))
    return {"_target_": f"anemoi.models.preprocessing.imputer.{name}",
            "config": {"default": "none", key: rule["variables"]}}


def data_config(data, metadata):
    for key in ("remapper", "postprocessor"):
        if data[key]:
            refuse(f"data.{key}", "cannot be put into an Anemoi checkpoint yet")
    processors = {f"imputer_{i}": imputer_config(rule) for i, rule in enumerate(data["imputer"])}
    normalizer = {key: value for key, value in data["normalizer"].items() if value}
    processors["normalizer"] = {"_target_": "anemoi.models.preprocessing.normalizer.InputNormalizer",
                                "config": normalizer}
    return {"format": "zarr", "frequency": metadata["frequency"], "timestep": metadata["timestep"],
            "datasets": {DATASET: {"forcing": metadata["forcing"], "diagnostic": metadata["diagnostic"],
                                   "processors": processors}}}


def anemoi_config(config, metadata):
    source = {"dataset": config["data"]["dataset"]["dataset"] or "analytic", "frequency": metadata["frequency"]}
    loaders = {part: {"datasets": {DATASET: {"dataset_config": source,
                                             **{k: v or None for k, v in config["data"][part].items()}}}}
               for part in ("training", "validation")}
    return OmegaConf.create({
        "data": data_config(config["data"], metadata), "model": model_config(config["model"]), "dataloader": loaders,
        "training": {"precision": "32", "multistep_input": metadata["times_in"],
                     "multistep_output": metadata["times_out"], "run_id": None},
    })


# ---------------------------------------------------------------- graph, statistics, metadata

def used_edges(model):
    """(source, target) of the edges that some part looks at: Anemoi takes those that are there for wanted."""
    levels, hierarchy = meshes(model), model["hierarchy"]
    steps = list(zip(levels, levels[1:]))
    processed = levels if hierarchy["level_processing"] else levels[-1:]
    edges = {"encoder": [(DATASET, levels[0])], "decoder": [(levels[0], DATASET)],
             "processor": [(mesh, mesh) for mesh in processed],
             "upscale": steps, "downscale": [(coarse, fine) for fine, coarse in steps]}
    blocks = {part: model[part] for part in PLACES} | {part: hierarchy[part] for part in ("upscale", "downscale")}
    return [pair for part, pairs in edges.items() if blocks[part]["kind"] in WITH_EDGES for pair in pairs]


def read_graph(path, model):
    """The nodes and edges that the model uses."""
    from torch_geometric.data import HeteroData

    used = [f"{source}_to_{target}" for source, target in used_edges(model)] + [DATASET, *meshes(model)]
    graph = HeteroData()
    for name, tensor in load_tensors(path).items():
        kind, where, attribute = name.split("/")
        if where not in used:
            continue
        store = graph[where] if kind == "nodes" else graph[where.split("_to_")[0], "to", where.split("_to_")[1]]
        store[{"latlon_rad": "x"}.get(attribute, attribute)] = tensor.long() if attribute == "edge_index" else tensor
    if model["residual"]["kind"] == "truncated":
        truncation = path.parent / "truncation.safetensors"
        if not truncation.exists():
            refuse(str(truncation), "is missing: export the model again, with the matrices of its residual")
        add_truncation(graph, load_tensors(truncation))
    return graph


def add_truncation(graph, tensors):
    """The matrices of a truncated residual as weighted edges to a coarse grid and back."""
    graph[TRUNCATION].num_nodes = 1 + int(max(tensors["down/row"].max(), tensors["up/column"].max()))
    for way, edges in (("down", (DATASET, "to", TRUNCATION)), ("up", (TRUNCATION, "to", DATASET))):
        graph[edges].edge_index = torch.stack([tensors[f"{way}/column"], tensors[f"{way}/row"]]).long()
        graph[edges].gauss_weight = tensors[f"{way}/value"]


def graph_tensors(graph):
    tensors = {}
    for kind, stores in (("nodes", graph.node_items()), ("edges", graph.edge_items())):
        for where, store in stores:
            place = where if kind == "nodes" else f"{where[0]}_to_{where[2]}"
            if TRUNCATION in place:  # derived from the configuration
                continue
            for attribute, value in store.items():
                if not torch.is_tensor(value) or value.dim() != 2:
                    continue
                value = value.int() if attribute == "edge_index" else value.float()
                tensors[f"{kind}/{place}/{'latlon_rad' if attribute == 'x' else attribute}"] = value
    return tensors


def statistics_of(metadata):
    return {name: np.array([math.nan if v is None else v for v in values])
            for name, values in metadata["statistics"].items()}


def anemoi_metadata(config, metadata, indices):
    """What anemoi-inference reads (version 2.0)."""
    from anemoi.training.utils.jsonify import map_config_to_primitives

    def names(index, which):
        by_index = {i: name for name, i in index.name_to_index.items()}
        return [by_index[int(i)] for i in getattr(index, which)]

    times_in, times_out = metadata["times_in"], metadata["times_out"]
    inputs, outputs = list(range(times_in)), list(range(times_in, times_in + times_out))
    of_dataset = {
        "data_indices": {"input": indices.model.input.name_to_index, "output": indices.model.output.name_to_index},
        "variable_types": {which: names(indices.data.input, which)
                           for which in ("forcing", "target", "prognostic", "diagnostic")},
        "timesteps": {"relative_date_indices_training": inputs + outputs, "input_relative_date_indices": inputs,
                      "output_relative_date_indices": outputs, "timestep": metadata["timestep"]},
    }
    shape = [metadata["num_dates"], len(metadata["variables"]), 1, metadata["num_nodes"]]
    dataset = metadata["attributes"] | {
        "variables": metadata["variables"], "shape": shape, "frequency": metadata["frequency"],
        "start_date": metadata["start_date"], "end_date": metadata["end_date"]}
    run = {"seed": None, "base_seed": None, "run_id": None}
    return map_config_to_primitives({
        "version": "2.0", "config": config, **run, "task": "forecaster", "dataset": {DATASET: dataset},
        "data_indices": {DATASET: indices},
        "provenance_training": {"program": "aifs-train", "version": metadata["program_version"]},
        "timestamp": datetime.datetime.now(tz=datetime.timezone.utc), "uuid": str(uuid.uuid4()),
        "metadata_inference": {**run, "dataset_names": [DATASET], "task": "forecaster", DATASET: of_dataset},
        "training": {"current_epoch": metadata["epoch"], "global_step": metadata["step"]}})


# ---------------------------------------------------------------- the two ways

def build_interface(folder):
    """The model of an exported folder as Anemoi builds it, with fresh weights."""
    from anemoi.models.data_indices.collection import IndexCollection
    from anemoi.models.interface import AnemoiModelInterface

    folder = pathlib.Path(folder)
    metadata = json.loads((folder / "metadata.json").read_text())
    own = json.loads((folder / "config.json").read_text())
    config = anemoi_config(own, metadata)
    name_to_index = {name: i for i, name in enumerate(metadata["variables"])}
    indices = IndexCollection(config.data.datasets[DATASET], name_to_index)
    arrays = {name: np.array(metadata[name]) for name in ("latitudes", "longitudes", "output_mask")
              if name in metadata}
    return AnemoiModelInterface(
        config=config, n_step_input=metadata["times_in"], n_step_output=metadata["times_out"],
        graph_data=read_graph(folder / "graph.safetensors", own["model"]), statistics={DATASET: statistics_of(metadata)},
        data_indices={DATASET: indices}, metadata=anemoi_metadata(config, metadata, indices),
        supporting_arrays={DATASET: arrays})


def load_interface(folder):
    """The same with the exported weights; anything that does not agree is refused."""
    interface = build_interface(folder)
    state, own = load_tensors(pathlib.Path(folder) / "model.safetensors"), interface.state_dict()
    if list(state) != list(own):
        other = next((pair for pair in zip(state, own) if pair[0] != pair[1]), "one has more tensors")
        refuse("model.safetensors", f"names or order differ from Anemoi's model: {other}")
    for name, tensor in own.items():
        if ".processors." in name and not torch.equal(tensor, state[name]):
            refuse("model.safetensors", f"{name} differs from what Anemoi makes of the statistics")
    interface.load_state_dict(state, strict=True)
    return interface


def to_anemoi(folder, checkpoint):
    from anemoi.utils.checkpoints import save_metadata

    interface = load_interface(folder)
    parameters = [p.numel() for p in interface.parameters()]
    metadata = interface.metadata | {"model": {"model": type(interface.model).__name__,
                                               "trainable_params": sum(parameters), "total_params": sum(parameters)}}
    arrays = interface.supporting_arrays
    interface.config = interface.metadata = interface.supporting_arrays = None  # as in anemoi-training
    torch.save(interface, checkpoint)
    save_metadata(checkpoint, metadata, supporting_arrays=arrays)


def from_anemoi(checkpoint, folder):
    loaded = torch.load(checkpoint, map_location="cpu", weights_only=False)
    if isinstance(loaded, dict):  # of training
        start = "model."
        state = {name.removeprefix(start): t for name, t in loaded["state_dict"].items() if name.startswith(start)}
        graph = loaded["hyper_parameters"]["graph_data"]
    else:
        state, graph = loaded.state_dict(), loaded.graph_data
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    save_tensors(folder / "model.safetensors", state)
    save_tensors(folder / "graph.safetensors", graph_tensors(graph))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    for name, function, source, target in (("to-anemoi", to_anemoi, "FOLDER", "CHECKPOINT"),
                                           ("from-anemoi", from_anemoi, "CHECKPOINT", "FOLDER")):
        way = ways.add_parser(name)
        way.add_argument("source", metavar=source)
        way.add_argument("target", metavar=target)
        way.set_defaults(function=function)
    arguments = parser.parse_args()
    arguments.function(arguments.source, arguments.target)


if __name__ == "__main__":
    main()

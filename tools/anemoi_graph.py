#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The graph of an Anemoi training (graph.pt) for aifs-train: its nodes, edges, their order and attributes.

usage: anemoi_graph.py GRAPH.pt GRAPH.safetensors [--trust]
       aifs-train graph import GRAPH.safetensors --out GRAPH.nc
       ... and in the configuration {"graph": {"file": "GRAPH.nc", "given": true}}

Runs in the environment that made the graph (torch and torch-geometric). Without --trust only tensors, numbers, texts
and the containers of a graph are loaded from the file; nothing else that it names is run.
docs/graphs.md says what becomes of the graph.
"""
import argparse
import math
import pathlib
import pickle
import types
import zipfile

import torch

import anemoi_checkpoint as exchange

COORDINATES = "latlon_rad"
MOST_INDEX = 2**31 - 1  # of a node


def refuse(what, why):
    raise SystemExit(f"anemoi_graph.py: {what}: {why}")


class GraphUnpickler(pickle.Unpickler):
    """Finds tensors and the containers of a graph, and nothing else that a file names."""

    KNOWN = {("torch._utils", "_rebuild_tensor_v2"), ("torch", "device"), ("torch.serialization", "_get_layout"),
             ("collections", "OrderedDict"), ("collections", "defaultdict"), ("builtins", "set"), ("builtins", "list"),
             ("builtins", "dict")}
    OF_GRAPHS = {"hetero_data": ("HeteroData",), "graph_store": ("EdgeAttr", "EdgeLayout"), "feature_store": ("TensorAttr",),
                 "storage": ("BaseStorage", "GlobalStorage", "NodeStorage", "EdgeStorage", "AttrType")}

    def find_class(self, module, name):
        package, _, of_graphs = module.rpartition(".")
        is_of_graphs = package == "torch_geometric.data" and name in self.OF_GRAPHS.get(of_graphs, ())
        if is_of_graphs or (module.replace("__builtin__", "builtins"), name) in self.KNOWN:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path, trust):
    """The object in a file of torch.save()."""
    if not path.is_file():
        refuse(path, "there is no such file")
    if not zipfile.is_zipfile(path):
        refuse(path, "is no file of torch.save(): name the graph that system.input.graph of the training names")
    try:
        import torch_geometric.data  # noqa: F401
    except ImportError:
        refuse("torch_geometric", "is not installed here: run this where anemoi-graphs is")
    restricted = types.SimpleNamespace(Unpickler=GraphUnpickler, __name__="graph_pickle")
    try:
        return torch.load(path, map_location="cpu", weights_only=False, pickle_module=None if trust else restricted)
    except pickle.UnpicklingError as error:
        hint = "" if trust else "; if you made the file yourself, --trust loads whatever is in it"
        refuse(path, f"holds an object that is no part of a graph: {error}{hint}")
    except (RuntimeError, EOFError, AttributeError, ImportError) as error:
        refuse(path, f"cannot be loaded: {error}")


def require_graph(graph, path):
    from torch_geometric.data import HeteroData

    if isinstance(graph, HeteroData):
        return
    if isinstance(graph, dict) and "state_dict" in graph:
        refuse(path, "is a checkpoint: `aifs-train import` takes weights and graph out of it")
    refuse(path, f"holds no graph of anemoi-graphs (HeteroData) but {type(graph).__name__}")


def coordinates(nodes, name):
    x = nodes.get("x")
    if not torch.is_tensor(x) or x.dim() != 2 or x.shape[1] != 2:
        refuse(f"nodes '{name}'", "have no coordinates (x of two columns, latitude and longitude in radians)")
    if len(x) == 0:
        refuse(f"nodes '{name}'", "are none at all")
    x = x.float()
    if not bool(torch.isfinite(x).all()):
        refuse(f"nodes '{name}'", "have coordinates that are not finite")
    if float(x[:, 0].abs().max()) > math.pi / 2 + 1e-3 or float(x[:, 1].abs().max()) > 2 * math.pi + 1e-3:
        refuse(f"nodes '{name}'", "have coordinates beyond pi/2 and 2 pi: these are not radians")
    return x


def edge_index(edges, name, sizes):
    index = edges.get("edge_index")
    if not torch.is_tensor(index) or index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        refuse(f"edges {name}", "have no edge_index of two rows")
    for row, (end, size) in enumerate(sizes):
        if index.shape[1] and (int(index[row].min()) < 0 or int(index[row].max()) >= size):
            refuse(f"edges {name}", f"join nodes that '{end}' has not: {int(index[row].min())} to "
                                    f"{int(index[row].max())} of {size} (of HEALPix and ICON meshes, edges to "
                                    "neighbours that there are not)")
    return index.int()


def attributes(store, rows, own, prefix, left_out):
    """Tensors of one row for each node or edge; others are named in `left_out`."""
    tensors = {}
    for name, value in store.items():
        if name == own or isinstance(value, str) or name.startswith("_"):
            continue
        fits = torch.is_tensor(value) and value.dim() in (1, 2) and len(value) == rows and not value.is_complex()
        if not fits:
            left_out.append(prefix + name)
            continue
        tensors[prefix + name] = value.reshape(rows, -1).float()
    return tensors


def kind_of(store, key):
    return store[key] if isinstance(store.get(key), str) else "of an unknown kind"


def tensors_of(graph):
    """All of the graph by the names of docs/formats/exchange.md, what made it, what is left out."""
    tensors, kinds, left_out, sizes, pairs = {}, [], [], {}, set()
    for name, nodes in graph.node_items():
        if "_to_" in name:
            refuse(f"nodes '{name}'", "\"_to_\" cannot be in the name of a node set: it joins names of edges")
        tensors[f"nodes/{name}/{COORDINATES}"] = coordinates(nodes, name)
        sizes[name] = len(nodes.x)
        tensors |= attributes(nodes, sizes[name], "x", f"nodes/{name}/", left_out)
        kinds.append(f"{name} {kind_of(nodes, 'node_type')}")
    if not sizes:
        refuse("the graph", "has no nodes")
    for (source, _, target), edges in graph.edge_items():
        name = f"{source}_to_{target}"
        for end in (source, target):
            if end not in sizes:
                refuse(f"edges {name}", f"there are no nodes '{end}'")
        if name in pairs:
            refuse(f"edges {name}", "are there twice, with different words between their ends")
        pairs.add(name)
        index = edge_index(edges, name, [(source, sizes[source]), (target, sizes[target])])
        tensors[f"edges/{name}/edge_index"] = index
        tensors |= attributes(edges, index.shape[1], "edge_index", f"edges/{name}/", left_out)
        kinds.append(f"{name} {kind_of(edges, 'edge_type')}")
    if not pairs:
        refuse("the graph", "has no edges")
    return tensors, kinds, left_out


def convert(source, target, trust):
    if target.suffix != ".safetensors":
        refuse(target, "name a file that ends with .safetensors; `aifs-train graph import` makes the NetCDF file of it")
    graph = load(source, trust)
    require_graph(graph, source)
    tensors, kinds, left_out = tensors_of(graph)
    exchange.save_tensors(target, tensors, {"origin": f"{source.name} of Anemoi: {', '.join(kinds)}"})
    for name, tensor in tensors.items():
        print(f"{name:50} {list(tensor.shape)}")
    for name in left_out:
        print(f"{name:50} left out: it has no number for each node or edge")
    print(f"now: aifs-train graph import {target} --out {target.with_suffix('.nc')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="GRAPH.pt", type=pathlib.Path)
    parser.add_argument("target", metavar="GRAPH.safetensors", type=pathlib.Path)
    parser.add_argument("--trust", action="store_true", help="load whatever Python objects the file names")
    arguments = parser.parse_args()
    convert(arguments.source, arguments.target, arguments.trust)


if __name__ == "__main__":
    main()

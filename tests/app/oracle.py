#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of aifs-train in Anemoi's own code (ctest -L oracle; tools/oracle makes the environment).

usage: oracle.py families PROGRAM [--write]   tiny models of all families, there and back
       oracle.py forecasts PROGRAM [--write]  scores of the program's forecasts and of Anemoi's; hierarchies begin in Anemoi
       oracle.py graphs PROGRAM               graph files of anemoi-graphs, with their own edges
       oracle.py regional PROGRAM             training on a limited area and a stretched grid, step by step
       oracle.py checkpoints PROGRAM          checkpoints of anemoi-training as runs that go on
       oracle.py trained PROGRAM              weights that Anemoi trained, and its forecast with them; needs AIFS_SHARED
"""
import argparse
import functools
import json
import math
import os
import pathlib
import shlex
import shutil
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
HIERARCHY_NAMES = ROOT / "tests/fixtures/hierarchies"
SCORE_LIMIT = 1e-5  # of a score, in fp32
# Hours: of a variable's standard deviation; rounding grows with the steps. Anemoi's own forecast at 24 h moves by 3.5e-6
# to 1.04e-5 with the instructions of the CPU, so its distance to one of another CPU may be the sum of two such.
LIMITS = {6: 1e-5, 24: 2e-5, 72: 1e-4}


def run(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{result.stdout}{result.stderr}")
    return result.stdout


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


def check_region(program, demo, folder):
    """A limited area or a stretched grid: its graph, weights and mask, there and back."""
    run(program, "--config", ROOT / f"configs/{demo}.json", "--set", f"run.dir={folder / 'run'}", "--set",
        "train.max_steps=1", "--set", "model.channels=8", "--set", "run.device=cpu")
    run(program, "export", folder / "run", folder / "out")
    interface = exchange.load_interface(folder / "out")
    mask = interface.supporting_arrays["data"].get("output_mask")
    region = interface.graph_data["data"].cutout_mask.bool().squeeze().numpy()
    if demo == "lam_demo":
        from anemoi.training.utils.masks import Boolean1DMask

        own = Boolean1DMask(interface.graph_data["data"], "cutout_mask").supporting_arrays["output_mask"]
        require(mask is not None and (mask == own).all(), "the output mask of Anemoi's class")
    else:
        require(mask is None, "a stretched grid has no output mask")
    require(0 < region.sum() < len(region), "the region of the exported graph")
    exchange.to_anemoi(folder / "out", folder / "model.ckpt")
    exchange.from_anemoi(folder / "model.ckpt", folder / "back")
    run(program, "import", "--config", folder / "out/config.json", folder / "back", folder / "again")
    require_same_bits(exchange.load_tensors(folder / "run/checkpoints/step-00000001/parameters.safetensors"),
                      exchange.load_tensors(folder / "again/checkpoints/step-00000000/parameters.safetensors"),
                      f"{demo}, there and back")
    run(program, "--config", folder / "again/config.json", "--resume", "--set", "train.max_steps=2")
    print(f"{demo}: {region.sum()} of {len(region)} cells in the region, there and back the same bits, goes on")


def check_families(program, write):
    for demo in ("lam_demo", "stretched_demo"):
        with tempfile.TemporaryDirectory() as folder:
            check_region(program, demo, pathlib.Path(folder))
    for file in sorted(STATE_DICTS.glob("*.txt")):
        with tempfile.TemporaryDirectory() as folder:
            check_family(program, file, pathlib.Path(folder), write)


# ---------------------------------------------------------------- forecasts

FORCING = ["cos_julian_day", "cos_latitude", "cos_local_time", "cos_longitude", "insolation", "lsm", "sin_julian_day",
           "sin_latitude", "sin_local_time", "sin_longitude", "z"]
STEPS = 3  # of training


def options(**values):
    """"--set" arguments; two underscores of a name are a dot."""
    return [argument for name, value in values.items() for argument in
            ("--set", f"{name.replace('__', '.')}={value if isinstance(value, str) else json.dumps(value)}")]


def of_all(**values):
    return options(**{f"model__{part}__{name}": value for part in exchange.PLACES for name, value in values.items()})


GRAPH_TRANSFORMER = of_all(kind="graph_transformer", heads=2)
NO_PROCESSOR = options(model__processor__kind="none", model__latent_skip=False)
TRUNCATED = options(model__residual__kind="truncated")
MODELS = {
    "gnn": [],
    "graph_transformer": GRAPH_TRANSFORMER + of_all(qk_norm=True),
    "transformer": of_all(kind="transformer", heads=2),
    "point_wise": of_all(kind="point_wise"),
    "point-wise processor": options(model__processor__kind="point_wise", model__processor__chunks=2),
    "no processor, gnn": NO_PROCESSOR,
    "autoencoder": options(**{f"model__{part}__{name}": value for part in ("encoder", "decoder")
                              for name, value in {"kind": "graph_transformer", "heads": 2}.items()})
                   + NO_PROCESSOR + options(model__decoder__target_features=["coordinates"]),
    "truncated residual": TRUNCATED + options(model__residual__truncation_grid="tri1",
                                              model__residual__truncation_sigma=0.4),
    "truncated residual of files": TRUNCATED + options(model__residual__truncation_down="down.npz",
                                                       model__residual__truncation_up="up.npz"),
}
LEVELS = options(model__hierarchy__level_processing=True)
STEP_ATTENTION = options(**{f"model__hierarchy__{step}__{name}": value for step in ("upscale", "downscale")
                            for name, value in {"kind": "graph_transformer", "heads": 2}.items()})
NAMED = {"gnn, 3 meshes, processors on all": "gnn_3_meshes.txt",  # whose names tests/fixtures has
         "graph_transformer, 2 meshes, processors on all": "graph_transformer_2_meshes.txt"}
HIERARCHIES = {  # sizes of the meshes, options
    "gnn, 2 meshes": ((160, 40), []),
    "gnn, 3 meshes, processors on all": ((160, 40, 12), LEVELS),
    "graph_transformer, 2 meshes, processors on all": (
        (160, 40), GRAPH_TRANSFORMER + STEP_ATTENTION + LEVELS +
        options(model__hierarchy__level_layers=2, model__latent_skip=False)),
    "graph_transformer, 3 meshes": ((160, 40, 12), GRAPH_TRANSFORMER + STEP_ATTENTION),
    "no processor, 2 meshes": ((160, 40), NO_PROCESSOR),
    "transformer processors, 3 meshes": (
        (160, 40, 12), LEVELS + options(model__processor__kind="transformer", model__processor__heads=2)),
}


def write_truncation(folder, nodes):
    """Two matrices that are no others' transposes; rows of the second do not sum to 1."""
    import scipy.sparse

    coarse = 40
    down = scipy.sparse.random(coarse, nodes, density=0.05, format="csr", dtype=np.float32, random_state=1)
    up = scipy.sparse.random(nodes, coarse, density=0.1, format="csr", dtype=np.float32, random_state=2)
    scipy.sparse.save_npz(folder / "down.npz", down)
    scipy.sparse.save_npz(folder / "up.npz", up)


def spiral(count):
    """Nodes spread evenly over the sphere, latitude and longitude [rad]."""
    place = torch.arange(count) + 0.5
    return torch.stack([torch.asin(1 - 2 * place / count), place * math.pi * (math.sqrt(5) - 1) % (2 * math.pi)], 1)


def hierarchy_graph(data, sizes):
    """By Anemoi, on the coordinates (N, 2) of the data nodes: the nearest three nodes everywhere."""
    from anemoi.graphs.create import GraphCreator
    from torch_geometric.data import HeteroData

    graph, place = HeteroData(), "anemoi.graphs.edges."
    graph["data"].x = data
    meshes = [f"hidden_{i}" for i in range(len(sizes))]
    for mesh, size in zip(meshes, sizes):
        graph[mesh].x = spiral(size)
    steps = list(zip(meshes, meshes[1:]))
    pairs = [("data", meshes[0]), (meshes[0], "data"), *zip(meshes, meshes), *steps, *((b, a) for a, b in steps)]
    attributes = {"edge_length": {"_target_": place + "attributes.EdgeLength", "norm": "unit-std"},
                  "edge_dirs": {"_target_": place + "attributes.EdgeDirection", "norm": "unit-std"}}
    return GraphCreator(exchange.OmegaConf.create({"nodes": {}, "edges": [
        {"source_name": source, "target_name": target, "attributes": attributes,
         "edge_builders": [{"_target_": place + "KNNEdges", "num_nearest_neighbours": 3}]}
        for source, target in pairs]})).update_graph(graph)


def begin_in_anemoi(program, plain, sizes, arguments, folder):
    """A run of a hierarchy that Anemoi made, on the data of an exported run."""
    start = folder / "start"
    start.mkdir()
    shutil.copy(plain / "metadata.json", start)
    data = exchange.load_tensors(plain / "graph.safetensors")["nodes/data/latlon_rad"]
    graph = hierarchy_graph(data, sizes)
    exchange.save_tensors(start / "graph.safetensors", exchange.graph_tensors(graph))
    meshes = [name for name in graph.node_types if name != "data"]
    arguments = arguments + options(model__hierarchy__meshes=meshes, graph__file=str(folder / "graph.nc"))
    config = json.loads((plain / "config.json").read_text())
    model = config["model"]
    for place, parts in ((model, exchange.PLACES), (model["hierarchy"], ("upscale", "downscale"))):
        for part in parts:  # options of other kinds are errors
            place[part] = {"kind": place[part]["kind"]}
    (start / "plain.json").write_text(json.dumps(config))
    printed = run(program, "--config", start / "plain.json", *arguments, "--print-config")
    printed = json.loads(printed)
    del printed["graph"]["file"]  # the import brings the graph
    (start / "config.json").write_text(json.dumps(printed))
    torch.manual_seed(1)
    exchange.save_tensors(start / "model.safetensors", exchange.build_interface(start).state_dict())
    run(program, "import", "--config", start / "config.json", start, folder / "run")
    return [program, "--config", folder / "run/config.json", "--resume"]


def output_mask(interface, config):
    """Anemoi's mask of a limited area, or none."""
    from anemoi.training.utils.masks import Boolean1DMask

    attribute = config["model"]["output_mask"]
    return Boolean1DMask(interface.graph_data["data"], attribute) if attribute else None


def forecast_scores(interface, dataset, config):
    """{lead time: {variable: RMSE over predicted cells and validation dates}} of Anemoi's forecasts."""
    mask = output_mask(interface, config)
    inside = slice(None) if mask is None else mask.mask.numpy()
    leads = [int(lead.removesuffix("h")) // 6 for lead in config["train"]["validation"]["lead_times"]]
    fields = torch.from_numpy(np.stack([row[:, 0].T for row in dataset[:]])).float().numpy()
    first = list(dataset.dates.astype("datetime64[s]").astype(str)).index(config["data"]["validation"]["start"])
    times = interface.n_step_input
    output = interface.data_indices["data"].data.output
    names = [name for name, column in sorted(output.name_to_index.items(), key=lambda item: item[1])
             if column in output.full]
    errors = {lead: [] for lead in leads}
    for row in range(first, len(fields) - times):
        steps = min(max(leads), len(fields) - times - row)
        results = forecast(interface, fields[row:row + times + steps], steps, mask)
        for lead in [lead for lead in leads if lead <= steps]:
            error = results[lead - 1] - fields[row + times + lead - 1][:, output.full.numpy()]
            errors[lead].append(error[inside])
    return {f"{6 * lead}h": dict(zip(names, np.sqrt(np.mean(np.square(error, dtype=np.float64), axis=(0, 1)))))
            for lead, error in errors.items()}


def check_names(file, arguments, interface, write):
    """The state dict of a hierarchy, in order; its shapes depend on the graph."""
    text = "\n".join([shlex.join(arguments), *interface.state_dict()]) + "\n"
    if write:
        file.write_text(text)
    require(file.read_text() == text, f"{file} is not the state dict of Anemoi's model (write it with --write)")


def check_forecast(name, program, training, dataset, folder):
    """Trains, and asks Anemoi for the same scores with the same weights; then the way back."""
    run(*training, *options(run__dir=str(folder / "run"), train__max_steps=STEPS))
    scores = json.loads((folder / "run/validation.jsonl").read_text().splitlines()[-1])["lead_times"]
    run(program, "export", folder / "run", folder / "out")
    exchange.to_anemoi(folder / "out", folder / "model.ckpt")
    interface = torch.load(folder / "model.ckpt", weights_only=False)
    interface.eval()
    config = json.loads((folder / "out/config.json").read_text())
    with torch.no_grad():
        reference = forecast_scores(interface, dataset, config)
    worst = max(abs(rmse / scores[lead]["rmse"][variable] - 1)
                for lead, of_lead in reference.items() for variable, rmse in of_lead.items())
    require(all(scores[lead]["rmse"].keys() == of_lead.keys() for lead, of_lead in reference.items()),
            f"{name}: variables of the scores")
    print(f"{name}: scores of Anemoi's forecasts differ by {worst:.1e} at most")
    require(worst <= SCORE_LIMIT, f"{name}: scores of the forecasts")
    exchange.from_anemoi(folder / "model.ckpt", folder / "back")
    run(program, "import", "--config", folder / "out/config.json", folder / "back", folder / "again")
    require_same_bits(
        exchange.load_tensors(folder / f"run/checkpoints/step-{STEPS:08}/parameters.safetensors"),
        exchange.load_tensors(folder / "again/checkpoints/step-00000000/parameters.safetensors"), f"{name}, there and back")
    return interface


def check_refusals(plain, folder):
    """What Anemoi has no model for is refused by name."""
    folder.mkdir()
    meshes = {"model.hierarchy.meshes": ["hidden", "hidden"], "model.decoder.target_features": ["coordinates"]}
    for option, values in {
            "model.residual.kind": {"model.residual.kind": "none"}, "model.decoder.target_features": meshes,
            "data.remapper": {"data.remapper": [{}]}, "data.postprocessor": {"data.postprocessor": [{}]}}.items():
        for name in ("metadata.json", "graph.safetensors", "model.safetensors"):
            shutil.copy(plain / name, folder)
        config = json.loads((plain / "config.json").read_text())
        for path, value in values.items():
            *sections, key = path.split(".")
            functools.reduce(dict.get, sections, config)[key] = value
        (folder / "config.json").write_text(json.dumps(config))
        try:
            exchange.build_interface(folder)
        except SystemExit as error:
            require(f" {option}: " in str(error), f"'{error}' does not name {option}")
        else:
            sys.exit(f"FAILED: {option} is not refused")


def check_limited_area(program, store, folder):
    """Forecasts that go on from the truth at the boundary of a region, by Anemoi's own mask."""
    from anemoi.datasets import open_dataset

    folder.mkdir()
    config = {"base": [str(ROOT / "tests/app/tiny.json"), str(ROOT / "configs/graphs/limited_area.json")]}
    (folder / "run.json").write_text(json.dumps(config))
    cutout = [{"dataset": str(store), "area": [70, 0, 0, 90]}, str(store)]
    dataset = open_dataset(cutout=cutout, min_distance_km=0, drop=["sst"], start="2020-01-02T18:00:00")
    whole = {"cutout": cutout, "min_distance_km": 0, "drop": ["sst"]}
    graph = options(graph__area_weight=None, graph__nodes__hidden__refinement=3, graph__nodes__hidden__margin_km=1200)
    data = [argument for value in of_store(store)[1::2] if not value.startswith(("graph.area_weight", "data.dataset"))
            for argument in ("--set", value)]
    training = [program, "--config", folder / "run.json", *data, *options(data__dataset=whole), *graph,
                *options(model__output_mask="cutout_mask", train__rollout={"start": 2, "maximum": 2})]
    check_forecast("limited area", program, training, dataset, folder)


def check_forecasts(program, write):
    from anemoi.datasets import open_dataset

    with tempfile.TemporaryDirectory() as unpacked:
        unpacked = pathlib.Path(unpacked)
        with tarfile.open(ROOT / "tests/fixtures/datasets/variants.tar") as tar:
            tar.extractall(unpacked, filter="data")
        dataset = open_dataset(str(unpacked / "base.zarr"), drop=["sst"], start="2020-01-02T18:00:00")
        write_truncation(unpacked, dataset.shape[-1])
        plain = unpacked / "gnn"
        for name, arguments in MODELS.items():
            folder = unpacked / name
            folder.mkdir()
            files = [argument.replace("=down.npz", f"={unpacked / 'down.npz'}").replace(
                "=up.npz", f"={unpacked / 'up.npz'}") for argument in arguments]
            training = [program, "--config", ROOT / "tests/app/tiny.json", *of_store(unpacked / "base.zarr"), *files]
            check_forecast(name, program, training, dataset, folder)
        check_refusals(plain / "out", unpacked / "refused")
        check_limited_area(program, unpacked / "base.zarr", unpacked / "limited area")
        for name, (sizes, arguments) in HIERARCHIES.items():
            folder = unpacked / name
            folder.mkdir()
            training = begin_in_anemoi(program, plain / "out", sizes, arguments, folder)
            interface = check_forecast(name, program, training, dataset, folder)
            if name in NAMED:
                check_names(HIERARCHY_NAMES / NAMED[name], arguments, interface, write)


def of_store(store):
    return options(
        data__kind="anemoi", data__dataset__dataset=str(store), data__dataset__drop=["sst"], data__forcing=FORCING,
        data__diagnostic=["tp"], data__normalizer={"std": ["tp"], "none": FORCING},
        data__training={"start": "2020-01-01", "end": "2020-01-02T06:00:00"},
        data__validation={"start": "2020-01-02T18:00:00", "end": ""}, data__batch_size=1, graph__grid="dataset", graph__area_weight__kind="uniform",
        model__bounding=[{"kind": "relu", "variables": ["tp"]}], train__validation__weights="uniform",
        train__validation__max_dates=0)


# ---------------------------------------------------------------- graphs

def stored_graph(store, file):
    """A graph of Anemoi's recipe on the cells of a dataset, in a file, with masks and two builders of edges."""
    from anemoi.graphs.create import GraphCreator

    nodes, edges = "anemoi.graphs.nodes.", "anemoi.graphs.edges."
    attributes = {"edge_length": {"_target_": edges + "attributes.EdgeLength", "norm": "unit-std"},
                  "edge_dirs": {"_target_": edges + "attributes.EdgeDirection", "norm": "unit-std"}}

    def between(source, target, *builders):
        return {"source_name": source, "target_name": target, "attributes": attributes,
                "edge_builders": [{"_target_": edges + name, **values} for name, values in builders]}

    config = {
        "nodes": {"data": {"node_builder": {"_target_": nodes + "AnemoiDatasetNodes", "dataset": str(store)},
                           "attributes": {"area_weight": {"_target_": nodes + "attributes.UniformWeights"},
                                          "land": {"_target_": nodes + "attributes.NonzeroAnemoiDatasetVariable",
                                                   "variable": "lsm"}}},
                  "hidden": {"node_builder": {"_target_": nodes + "TriNodes", "resolution": 2}}},
        "edges": [between("data", "hidden", ("CutOffEdges", {"cutoff_factor": 0.8}),
                          ("KNNEdges", {"num_nearest_neighbours": 2})),
                  between("hidden", "hidden", ("MultiScaleEdges", {"x_hops": 1, "scale_resolutions": 2})),
                  between("hidden", "data", ("KNNEdges", {"num_nearest_neighbours": 3}))]}
    return GraphCreator(exchange.OmegaConf.create(config)).create(save_path=file, overwrite=True)


def check_refused_graphs(graph, folder):
    """Files that are no graph are refused in words."""
    import anemoi_graph

    def convert(file):
        try:
            anemoi_graph.convert(file, folder / "bad.safetensors", trust=False)
        except SystemExit as error:
            return str(error)
        sys.exit(f"FAILED: {file} is not refused")

    def changed(edit):
        other = graph.clone()
        edit(other)
        torch.save(other, folder / "bad.pt")
        return convert(folder / "bad.pt")

    def drop_coordinates(other):
        del other["hidden"]["x"]

    def turn_to_degrees(other):
        other["data"].x = torch.rad2deg(other["data"].x)

    def break_edges(other):
        other["data", "to", "hidden"].edge_index[0, 3] = -1

    (folder / "text.pt").write_text("no graph")
    torch.save({"state_dict": {}}, folder / "checkpoint.pt")
    torch.save([1, 2], folder / "list.pt")
    torch.save(pathlib.PurePosixPath("a"), folder / "objects.pt")
    for text, told in {
            "there is no such file": convert(folder / "none.pt"), "no file of torch.save": convert(folder / "text.pt"),
            "aifs-train import": convert(folder / "checkpoint.pt"), "list": convert(folder / "list.pt"),
            "--trust": convert(folder / "objects.pt"), "nodes 'hidden'": changed(drop_coordinates),
            "not radians": changed(turn_to_degrees), "join nodes that 'data' has not": changed(break_edges)}.items():
        require(text in told, f"'{told}' says '{text}'")


def check_land(program, graph, folder):
    """The mask of a variable that Anemoi made, made by the program."""
    nodes = {"data": {"kind": "dataset", "attributes": {"land": {"kind": "nonzero", "variable": "lsm"},
                                                        "area_weight": {"kind": "uniform"}}},
             "hidden": {"kind": "tri", "refinement": 2}}
    edges = [{"source": source, "target": target, "kinds": [{"kind": "knn"}]}
             for source, target in (("data", "hidden"), ("hidden", "hidden"), ("hidden", "data"))]
    run(program, "--config", ROOT / "tests/app/tiny.json", *of_store(folder / "base.zarr"), *options(
        graph__nodes=nodes, graph__edges=edges, graph__hidden=None, graph__area_weight=None,
        run__dir=str(folder / "land"), train__max_steps=1))
    run(program, "export", folder / "land", folder / "land_out")
    ours = exchange.load_tensors(folder / "land_out/graph.safetensors")["nodes/data/land"]
    require(torch.equal(ours, graph["data"].land.float()), "the mask of a variable is Anemoi's")


def check_graphs(program):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with tarfile.open(ROOT / "tests/fixtures/datasets/variants.tar") as tar:
            tar.extractall(folder, filter="data")
        graph = stored_graph(folder / "base.zarr", folder / "anemoi.pt")
        told = run(sys.executable, ROOT / "tools/anemoi_graph.py", folder / "anemoi.pt", folder / "graph.safetensors")
        require("nodes/data/land" in told, "the mask is taken")
        run(program, "graph", "import", folder / "graph.safetensors", "--out", folder / "graph.nc")
        require("AnemoiDatasetNodes" in run(program, "graph", "info", folder / "graph.nc"), "types of nodes are shown")
        run(program, "--config", ROOT / "tests/app/tiny.json", *of_store(folder / "base.zarr"), *options(
            graph__file=str(folder / "graph.nc"), graph__given=True, graph__hidden=None, graph__area_weight=None,
            run__dir=str(folder / "run"), train__max_steps=1))
        run(program, "export", folder / "run", folder / "out")
        check_land(program, graph, folder)
        theirs, ours = exchange.graph_tensors(graph), exchange.load_tensors(folder / "out/graph.safetensors")
        require(sorted(theirs) == sorted(ours), "names of tensors of the graph")
        for name, tensor in theirs.items():
            require(torch.equal(tensor, ours[name]), f"{name} is the same to the bit, in its order")
        check_refused_graphs(graph, folder)
        print(f"graph of Anemoi: {len(theirs)} tensors, the same bits in the same order")


# ---------------------------------------------------------------- limited areas and stretched grids

STEP_LIMITS = 1e-6, 5e-6  # relative, of the loss of the first 20 steps and of later ones


def losses_of_anemoi(module, config, steps):
    """By Anemoi's own loader, processors, module and optimiser, as Lightning goes through them."""
    from anemoi.training.data.datamodule import AnemoiDatasetsDataModule

    loader = AnemoiDatasetsDataModule(config, module.task).train_dataloader()
    optimizers, schedules = module.configure_optimizers()
    losses = []
    while True:
        for batch in loader:
            optimizers[0].zero_grad()
            loss = module._step(module.on_after_batch_transfer(batch, 0)).loss
            loss.backward()
            torch.nn.utils.clip_grad_value_(module.parameters(), 32.0)
            optimizers[0].step()
            losses.append(float(loss.detach()))
            schedules[0]["scheduler"].step_update(len(losses))
            if len(losses) == steps:
                return losses


def check_regional_training(program, name, folder):
    """A configuration of Anemoi trains in both programs, from the same weights on the same graph."""
    import regional_cases
    from anemoi.datasets import open_dataset

    case = regional_cases.options_of_case(name)
    cutout = regional_cases.make_cutout(case, folder, np.random.default_rng(1))
    config = regional_cases.options_of(case, cutout)
    config.dataloader.num_workers.training = 2
    config.dataloader.pin_memory = False
    graph = regional_cases.build_graph(config, case)
    module = regional_cases.build_module(config, graph, open_dataset(cutout))
    (folder / "config.yaml").write_text(exchange.OmegaConf.to_yaml(config))
    torch.save(graph, folder / "anemoi.pt")
    run(sys.executable, ROOT / "tools/anemoi_graph.py", folder / "anemoi.pt", folder / "graph.safetensors")
    run(program, "graph", "import", folder / "graph.safetensors", "--out", folder / "graph.nc")
    start = folder / "start"
    start.mkdir()
    exchange.save_tensors(start / "model.safetensors", module.model.state_dict())
    exchange.save_tensors(start / "graph.safetensors", exchange.graph_tensors(graph))
    ours = json.loads(run(program, "import-config", folder / "config.yaml"))
    ours["graph"] = {"file": str(folder / "graph.nc"), "given": True}
    ours["run"] = {"device": "cpu", "threads": 1, "dir": str(folder / "run"), "seed": 42}  # Anemoi's base seed
    ours["train"]["precision"] = "fp32"
    ours["log"] = {"every_steps": 1}
    (start / "config.json").write_text(json.dumps(ours))
    run(program, "import", "--config", start / "config.json", start, folder / "run")
    run(program, "--config", folder / "run/config.json", "--resume")
    losses = [json.loads(line)["loss"] for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    reference = losses_of_anemoi(module, config, len(losses))
    require(len(losses) == config.training.max_steps, f"{name}: {len(losses)} steps")
    apart = [abs(a / b - 1) for a, b in zip(losses, reference)]
    print(f"{name}: losses of {len(losses)} steps differ by {max(apart):.1e} at most")
    for step, difference in enumerate(apart):
        require(difference <= STEP_LIMITS[step >= 20], f"{name}: the loss of step {step}")


def check_regional(program):
    sys.path.insert(0, str(ROOT / "tools/reference"))
    os.environ.pop("SLURM_JOB_ID", None)  # Anemoi's base seed, where there is one
    for name in ("tiny_lam", "tiny_stretched"):
        with tempfile.TemporaryDirectory() as folder:
            check_regional_training(program, name, pathlib.Path(folder))


# ---------------------------------------------------------------- checkpoints

GOES_ON_LIMIT = 1e-6  # relative, of the losses behind a checkpoint


def tensors_of_run(run_dir):
    (file,) = (run_dir / "checkpoints").glob("step-*/parameters.safetensors")
    return exchange.load_tensors(file)


def check_checkpoint(program, name, place, data):
    """A training of Anemoi's own trainer: both of its files have the same weights here, and it goes on."""
    exchange.from_anemoi(place / "inference.ckpt", place / "reference")
    reference = {key.removeprefix("model."): tensor
                 for key, tensor in exchange.load_tensors(place / "reference/model.safetensors").items()
                 if key.startswith("model.")}
    graph = exchange.load_tensors(place / "reference/graph.safetensors")
    for kind in ("inference", "training"):
        run(program, "import", place / f"{kind}.ckpt", place / kind, *data)
        own = tensors_of_run(place / kind)
        require_same_bits({key: reference[key] for key in own}, own, f"{name}, {kind}")
        require(len(own) == len(reference), f"{name}, {kind}: number of tensors")
        run(program, "export", place / kind, place / f"{kind}_out")
        exported = exchange.load_tensors(place / f"{kind}_out/graph.safetensors")
        require_same_bits({key: exported[key] for key in graph}, graph, f"{name}, {kind}: graph")
    run(program, "--config", place / "training/config.json", "--resume",
        *options(run__device="cpu", run__threads=1, log__every_steps=1))
    losses = [json.loads(line)["loss"] for line in (place / "training/metrics.jsonl").read_text().splitlines()]
    expected = json.loads((place / "losses.json").read_text())["behind"]
    require(len(losses) == len(expected), f"{name}: {len(losses)} steps behind the checkpoint")
    apart = max(abs(a / b - 1) for a, b in zip(losses, expected))
    print(f"{name}: {len(reference)} tensors, the same bits; losses of {len(losses)} steps behind differ by {apart:.1e}")
    if name != "ensemble":  # noise is drawn by other generators
        require(apart <= GOES_ON_LIMIT, f"{name}: losses behind the checkpoint")


def check_checkpoints(program):
    os.environ.pop("SLURM_JOB_ID", None)  # Anemoi's base seed, where there is one
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print(run(sys.executable, ROOT / "tools/reference/anemoi_checkpoints.py", folder).splitlines()[-1])
        for place in sorted(folder.glob("*/training.ckpt")):
            check_checkpoint(program, place.parent.name, place.parent,
                             options(data__dataset__dataset=str(folder / "globe.zarr")))


# ---------------------------------------------------------------- trained models

def forecast(interface, fields, steps, mask=None):
    """Model outputs of every step in physical units; `fields` (T + steps, N, V), physical. `mask`: Anemoi's, or none."""
    index = interface.data_indices["data"]
    batch = interface.pre_processors["data"](torch.from_numpy(fields)[None, :, None], in_place=False)
    x = batch[..., index.data.input.full]
    times = interface.n_step_input
    state, results = x[:, :times], []
    for step in range(steps):
        y = interface.model({"data": state})["data"][:, 0]
        results.append(interface.post_processors["data"](y.double(), in_place=False)[0, 0].numpy())
        following = x[:, times + step].clone()
        following[..., index.model.input.prognostic] = y[..., index.model.output.prognostic]
        if mask is not None:
            following = mask.rollout_boundary(following, batch[:, times + step], index)
        state = torch.cat([state[:, 1:], following[:, None]], dim=1)
    return results


def own_forecast(program, dataset, row, lead, variables, folder):
    """(lead times, N, V) of `aifs-train forecast` from a date, every 6 hours."""
    import netCDF4

    date = str(dataset.dates[row])[:13]
    run(program, "forecast", folder / "run", "--dates", date, "--lead-time", f"{lead}h", "--out", folder / "forecasts")
    (path,) = (folder / "forecasts").glob("*.nc")
    with netCDF4.Dataset(path) as file:
        fields = [np.ma.filled(file[name][:], np.nan) for name in variables]
    return np.stack([field.reshape(len(field), -1) for field in fields], axis=-1)


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
    own = own_forecast(program, dataset, row, max(leads), [dataset.variables[column] for column in columns], folder)
    for lead, reference in sorted(leads.items()):
        # The reference is stored as float32, whose rounding alone is 6e-6 of a deviation in pressure.
        rounding = np.spacing(np.abs(reference.numpy())) / 2
        for what, fields in (("exported", results[lead // 6 - 1]), ("aifs-train forecast", own[lead // 6 - 1])):
            difference = np.abs(fields - reference.numpy()) - rounding
            worst = (np.maximum(difference, 0) / deviation).max()
            print(f"{case.stem}: {what}, {lead} h, largest difference {worst:.1e} of a deviation")
            require(worst <= LIMITS[lead], f"{case.stem}: the forecast after {lead} h, {what}")


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
    parser.add_argument("what", choices=("families", "forecasts", "graphs", "regional", "checkpoints", "trained"))
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="write state dicts to tests/fixtures")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.what == "families":
        check_families(arguments.program, arguments.write)
    elif arguments.what == "forecasts":
        check_forecasts(arguments.program, arguments.write)
    elif arguments.what == "graphs":
        check_graphs(arguments.program)
    elif arguments.what == "regional":
        check_regional(arguments.program)
    elif arguments.what == "checkpoints":
        check_checkpoints(arguments.program)
    else:
        check_all_trained(arguments.program)


if __name__ == "__main__":
    main()

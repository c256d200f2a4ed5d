#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks lengths and numbers of parameters of functions (R-15), as universal-ctags sees them. Exit code 1 if a
function is over a limit without an exception, or an exception is not needed any more; 77 where there is no ctags."""
import json
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["core", "graph", "parallel", "data", "model", "plan", "train", "report", "anemoi", "app", "conformance", "bench", "tests"]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
MAX_LINES = 80
MAX_PARAMETERS = 6

# Functions that may be longer: the pair of files, the name, the lines that they may have, why. Only ever shorter.
LONGER = {
    ("model/kernels/cuda/layer_norm", "norm_backward_kernel"):
        (157, "all phases share registers, of which it lacks some: to be split beside its time on a card"),
    ("model/kernels/cuda/narrow_product", "narrow_product_kernel"):
        (86, "one ring of copies and products: to be split beside its time on a card"),
    ("tests/support/network_families", "network_families"): (107, "a table"),
}
# Functions that may have more parameters: the pair of files, the name, how many, why. Only ever fewer.
KERNEL = "tensors of one kernel, which nobody else keeps together"
PARTS = "parts of a network with as many widths and graphs"
MORE_PARAMETERS = {
    ("model/kernels/graph_attention", "forward"): (8, KERNEL + "; autograd wants them one by one"),
    ("model/kernels/graph_attention_cuda", "forward"): (8, KERNEL + "; autograd wants them one by one"),
    ("model/kernels/row_ops", "edge_product_gelu"): (7, KERNEL),
    ("model/kernels/row_ops", "norm_backward"): (9, KERNEL),
    ("model/kernels/row_ops_cuda", "edge_product_gelu"): (7, KERNEL),
    ("model/kernels/row_ops_cuda", "norm_backward"): (9, KERNEL),
    ("model/layers/gnn", "GnnEncoder"): (7, PARTS),
    ("model/layers/graph_transformer", "GraphTransformerDecoder"): (8, PARTS),
    ("model/layers/graph_transformer", "GraphTransformerEncoder"): (7, PARTS),
    ("model/layers/graph_transformer", "forward"): (7, PARTS),
    ("model/network/parts", "make_decoder"): (7, PARTS),
    ("model/network/parts", "make_processor"): (7, PARTS),
    ("plan/gnn", "gnn_decoder"): (7, PARTS),
    ("plan/gnn", "gnn_processor"): (7, PARTS),
    ("plan/gnn", "messages"): (9, PARTS),
    ("plan/gnn", "run_mlp"): (8, PARTS),
    ("plan/graph_transformer", "graph_transformer_decoder"): (7, PARTS),
    ("plan/layers", "gnn_decoder"): (7, PARTS),
    ("plan/layers", "gnn_processor"): (7, PARTS),
    ("plan/layers", "graph_transformer_decoder"): (7, PARTS),
    ("plan/layers", "over_ranges"): (8, PARTS),
    ("plan/layers", "run_steps"): (7, PARTS),
    ("plan/network", "decode"): (7, PARTS),
    ("plan/network", "process"): (7, PARTS),
}


def parameters_of(signature: str) -> int:
    """How many parameters a signature has. That of an autograd function's context is LibTorch's, not counted."""
    inside = signature[signature.find("(") + 1 : signature.rfind(")")]
    parts, depth = [""], 0
    for letter in inside:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return sum(bool(part.strip()) and part.strip() != "void" and "AutogradContext" not in part for part in parts)


def functions_of(paths: list[pathlib.Path], root: pathlib.Path) -> list[dict]:
    """Definitions and declarations: path, line, name, lines (0 for a declaration), parameters."""
    names = "\n".join(path.relative_to(root).as_posix() for path in paths)
    command = ["ctags", "--options=NONE", "--output-format=json", "--fields=+neS", "--languages=C++",
               "--langmap=C++:+.h.cu.cuh", "--kinds-C++=fp", "-I", "__cluster_dims__+,__launch_bounds__+", "-f", "-",
               "-L", "-"]
    output = subprocess.run(command, input=names, capture_output=True, text=True, check=True, cwd=root).stdout
    found = []
    for line in output.splitlines():
        tag = json.loads(line)
        if tag.get("_type") == "tag" and not tag["name"].startswith("__anon"):  # a lambda is a part of its function
            lines = tag["end"] - tag["line"] + 1 if tag["kind"] == "function" and "end" in tag else 0
            found.append({"path": tag["path"], "line": tag["line"], "name": tag["name"], "lines": lines,
                          "parameters": parameters_of(tag.get("signature", "()"))})
    return found


def faults_of(functions: list[dict], what: str, limit: int, exceptions: dict) -> list[str]:
    """`what` is "lines" or "parameters". Where functions of a pair of files share a name, the largest counts."""
    largest = {}
    for function in functions:
        key = function["path"].rsplit(".", 1)[0], function["name"]
        if key not in largest or function[what] > largest[key][what]:
            largest[key] = function
    found = []
    for key, function in largest.items():
        allowed = exceptions.get(key, (limit, ""))[0]
        if function[what] > allowed:
            found.append(f"{function['path']}:{function['line']}: {function['name']} has {function[what]} {what}, at "
                         f"most {allowed} allowed")
    for key, (allowed, _) in exceptions.items():
        there = largest[key][what] if key in largest else 0
        if there < allowed:
            found.append(f"{key[0]}: {key[1]} has {there} {what}: lower or remove its exception of {allowed} in "
                         "tools/check_functions.py")
    return found


def main() -> int:
    if shutil.which("ctags") is None:
        print("no ctags here (package universal-ctags)")
        return 77
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES]
    functions = functions_of(paths, ROOT)
    found = faults_of(functions, "lines", MAX_LINES, LONGER)
    found += faults_of(functions, "parameters", MAX_PARAMETERS, MORE_PARAMETERS)
    print("\n".join(found))
    print(f"{len(functions)} functions, {len(found)} faults")
    return 1 if found or not functions else 0


if __name__ == "__main__":
    sys.exit(main())

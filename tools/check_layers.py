#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks who includes whom, that neither folders nor pairs of files (a header with its source) include each other in a
circle, file and line lengths (of documents, too), and SPDX lines. Exit code 1 if anything is wrong."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A module may include itself and these.
MAY_INCLUDE = {
    "core": [],
    "graph": ["core"],
    "parallel": ["core"],
    "data/zarr": ["core"],
    "data": ["core", "data/zarr"],
    "model": ["core", "graph", "parallel"],
    "plan": ["core", "graph", "model"],
    "train": ["core", "graph", "parallel", "data", "model"],
    "forecast": ["core", "graph", "parallel", "data/zarr", "data", "model", "train"],
    "verify": ["core", "graph", "data"],
    "report": ["core", "data", "verify"],
    "anemoi": ["core"],
    "app": ["core", "graph", "parallel", "data/zarr", "data", "model", "plan", "train", "forecast", "verify", "report", "anemoi"],
    "conformance": ["core", "graph", "parallel", "data/zarr", "data", "model", "plan", "train", "forecast", "verify", "anemoi", "app"],
    "bench": ["core", "graph", "parallel", "data/zarr", "data", "model", "plan", "train", "forecast", "verify", "app"],
}
# Third-party headers and where they may stand (prefixes of file paths).
THIRD_PARTY = {
    r"(mpi|nccl)\.h": ["parallel/"],
    r"netcdf\.h": ["graph/", "data/", "forecast/", "verify/", "tests/support/", "tests/forecast/"],
    r"hdf5\.h": ["forecast/chunk_writer.cpp"],
    r"eccodes\.h": ["data/sources/grib_message.cpp"],
    r"blosc\.h": ["data/zarr/", "tests/support/"],
    r"(torch|ATen|c10)/.*": ["parallel/", "data/", "model/", "train/", "forecast/", "app/", "conformance/", "tests/",
                              "bench/", "cmake/"],
    r"spdlog/.*": ["core/log.cpp"],
    r"yaml-cpp/.*": ["anemoi/yaml.cpp"],
    r"catch2/.*": ["tests/"],
    # Only in sources that link the library: two versions of it may be there.
    r"CLI/.*": ["app/cli", "app/data_tools/cli_checks.h", "app/data_tools/options.cpp",
               "app/forecast_tools/forecast_options.cpp", "app/verify_tools/verify_options.cpp",
               "app/report_tools/report_options.cpp",
               "app/graph_tools/options.cpp", "bench/main.cpp"],
}
NO_TORCH = ["data/zarr/"]
MAX_FILE_LINES = 600
MAX_TEST_LINES = 800
MAX_COLUMNS = 100
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
# Documents written by hand; what is below the mark is printed by the program.
DOCUMENTS = ["*.md", "docs/**/*.md", "bench/*.md", "configs/*.md"]
GENERATED = "<!-- generated below"


def module_of(path: str) -> str:
    return "data/zarr" if path.startswith("data/zarr/") else path.split("/")[0]


def check(path: pathlib.Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    module = module_of(name)
    lines = path.read_text().splitlines()
    found = []
    if not lines or "SPDX-License-Identifier: Apache-2.0" not in lines[0]:
        found.append(f"{name}:1: the first line must be the SPDX line")
    limit = MAX_TEST_LINES if module == "tests" else MAX_FILE_LINES
    if len(lines) > limit:
        found.append(f"{name}: {len(lines)} lines, at most {limit} allowed")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            found.append(f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS} allowed")
        match = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        header = match.group(1)
        for pattern, places in THIRD_PARTY.items():
            if re.fullmatch(pattern, header):
                torch_below = header.split("/")[0] in ("torch", "ATen", "c10") and any(
                    name.startswith(p) for p in NO_TORCH)
                if torch_below or not any(name.startswith(p) for p in places):
                    found.append(f"{name}:{number}: <{header}> is not allowed here")
        if "/" in header and (ROOT / header).exists() and module in MAY_INCLUDE:
            target = module_of(header)
            if target != module and target not in MAY_INCLUDE[module]:
                found.append(f'{name}:{number}: {module} may not include {target} ("{header}")')
    return found


def circles(names_of_edges: dict[tuple[str, str], list[str]]) -> list[str]:
    """The edges that lie on a circle, with an include of each."""
    after = collections.defaultdict(set)
    for a, b in names_of_edges:
        after[a].add(b)

    def reached(start: str) -> set[str]:
        found, left = set(), [start]
        while left:
            new = after[left.pop()] - found
            found |= new
            left += new
        return found

    return [f"{names[0]}: {a} and {b} include each other in a circle"
            for (a, b), names in sorted(names_of_edges.items()) if a in reached(b)]


def check_circles(paths: list[pathlib.Path]) -> list[str]:
    folders, pairs = collections.defaultdict(list), collections.defaultdict(list)
    for path in paths:
        name = path.relative_to(ROOT)
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M):
            target = pathlib.Path(header)
            if not (ROOT / header).exists():
                continue
            text = f"{name} ({header})"
            if target.parent != name.parent:
                folders[str(name.parent), str(target.parent)].append(text)
            pair = str(name.with_suffix("")), str(target.with_suffix(""))
            if pair[0] != pair[1]:
                pairs[pair].append(text)
    return circles(folders) + circles(pairs)


def check_document(path: pathlib.Path) -> list[str]:
    """Tables, code blocks and lines of one word (addresses) may be longer than other lines."""
    name = path.relative_to(ROOT).as_posix()
    found, code = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        if line.startswith(GENERATED):
            break
        if words and words[0].startswith("```"):
            code = not code
        if len(line) > MAX_COLUMNS and not code and not words[0].startswith("|") and len(words) > 1:
            found.append(f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS} allowed")
    return found


def main() -> int:
    found, count, programs = [], 0, []
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            count += 1
            found += check_document(path)
    for folder in [*MAY_INCLUDE, "tests", "cmake"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SOURCES and (folder != "data" or "zarr" not in path.parts):
                count += 1
                found += check(path)
                programs += [path] if folder in MAY_INCLUDE else []
    found += check_circles(programs)
    print("\n".join(found))
    print(f"{count} files, {len(found)} faults")
    return 1 if found or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

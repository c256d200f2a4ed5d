#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tests/**/test_*.cpp must be registered in the CMakeLists.txt of its module, no two cases of a folder, which may
be one program, have the same title, and every source of a module has a test of its name, unless the list
tests/lint/tested_elsewhere.txt names the one that covers it."""
import collections
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["core", "graph", "parallel", "data", "model", "plan", "train", "report", "anemoi", "app", "conformance", "bench"]
ELSEWHERE = "tests/lint/tested_elsewhere.txt"


def has_own_test(source: str, tests: dict[str, set[str]]) -> bool:
    """`tests`: names of tests by module. Those of data/zarr may begin with zarr_."""
    path = pathlib.PurePosixPath(source)
    names = tests.get(path.parts[0], set())
    return path.stem in names or ("zarr" in path.parts and f"zarr_{path.stem}" in names)


def untested(sources: list[str], tests: dict[str, set[str]], elsewhere: dict[str, str], exists) -> list[str]:
    """What is wrong with sources, names of tests by module, and the list; `exists` answers for a path."""
    found, used = [], set()
    for source in sources:
        if has_own_test(source, tests):
            continue
        covering = [pattern for pattern in elsewhere if fnmatch.fnmatchcase(source, pattern)]
        used.update(covering)
        if not covering:
            found.append(f"{source} has no test: write test_{pathlib.PurePosixPath(source).stem}.cpp")
    found += [f"{ELSEWHERE}: {pattern} is there no more, or has a test of its name"
              for pattern in elsewhere if pattern not in used]
    found += [f"{ELSEWHERE}: there is no {test}" for test in sorted(set(elsewhere.values())) if not exists(test)]
    return found


def read_elsewhere() -> dict[str, str]:
    lines = [line.split() for line in (ROOT / ELSEWHERE).read_text().splitlines() if not line.startswith("#")]
    return {pattern: test for pattern, test in lines}


def main() -> int:
    missing = []
    files = sorted((ROOT / "tests").glob("*/**/test_*.cpp"))
    names = collections.defaultdict(set)
    for path in files:
        module = path.relative_to(ROOT / "tests").parts[0]
        text = (ROOT / "tests" / module / "CMakeLists.txt").read_text()
        unit = path.stem.removeprefix("test_")
        names[module].add(unit)
        if path.name not in text and not re.search(rf"\b{unit}\b", text):
            missing.append(path.relative_to(ROOT).as_posix())
    places = collections.defaultdict(list)
    for path in files:
        for case in re.finditer(r'TEST_CASE(?:_METHOD)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', path.read_text()):
            title = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', case[1]))
            places[path.relative_to(ROOT / "tests").parts[0], title].append(path.name)
    twice = {place: names for place, names in places.items() if len(names) > 1}
    for (folder, title), of_files in twice.items():
        print(f'tests/{folder}: "{title}" is the title of cases in {", ".join(of_files)}')
    for name in missing:
        print(f"{name} is not registered with aifs_add_test")
    sources = [path.relative_to(ROOT).as_posix() for module in MODULES for path in sorted((ROOT / module).rglob("*.cpp"))]
    faults = untested(sources, names, read_elsewhere(), lambda test: (ROOT / test).exists())
    print("\n".join(faults))
    print(f"{len(files)} test files, {len(missing)} not registered; {len(sources)} sources, {len(faults)} faults")
    return 1 if missing or twice or faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())

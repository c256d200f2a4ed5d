#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tests/**/test_*.cpp must be registered in the CMakeLists.txt of its module, and no two cases of a
folder, which may be one program, have the same title."""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    missing = []
    files = sorted((ROOT / "tests").glob("*/**/test_*.cpp"))
    for path in files:
        module = path.relative_to(ROOT / "tests").parts[0]
        text = (ROOT / "tests" / module / "CMakeLists.txt").read_text()
        unit = path.stem.removeprefix("test_")
        if path.name not in text and not re.search(rf"\b{unit}\b", text):
            missing.append(path.relative_to(ROOT).as_posix())
    places = collections.defaultdict(list)
    for path in files:
        for case in re.finditer(r'TEST_CASE(?:_METHOD)?\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', path.read_text()):
            title = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', case[1]))
            places[path.relative_to(ROOT / "tests").parts[0], title].append(path.name)
    twice = {place: names for place, names in places.items() if len(names) > 1}
    for (folder, title), names in twice.items():
        print(f'tests/{folder}: "{title}" is the title of cases in {", ".join(names)}')
    for name in missing:
        print(f"{name} is not registered with aifs_add_test")
    print(f"{len(files)} test files, {len(missing)} not registered")
    return 1 if missing or twice or not files else 0


if __name__ == "__main__":
    sys.exit(main())

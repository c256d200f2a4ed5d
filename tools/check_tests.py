#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every tests/*/test_*.cpp must be registered in the CMakeLists.txt of its folder."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    missing = []
    files = sorted((ROOT / "tests").glob("*/test_*.cpp"))
    for path in files:
        text = (path.parent / "CMakeLists.txt").read_text()
        unit = path.stem.removeprefix("test_")
        if path.name not in text and not re.search(rf"\b{unit}\b", text):
            missing.append(path.relative_to(ROOT).as_posix())
    for name in missing:
        print(f"{name} is not registered with aifs_add_test")
    print(f"{len(files)} test files, {len(missing)} not registered")
    return 1 if missing or not files else 0


if __name__ == "__main__":
    sys.exit(main())

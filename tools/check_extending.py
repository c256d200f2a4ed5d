#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recipes in docs/extending.md must be true: the files that they name exist, and a block of code behind
"<!-- from FILE -->" stands in that file, but for white space. Exit code 1 if one does not."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- from (?P<file>\S+) -->\s*```\w*\n(?P<code>.*?)```", re.S)
FILE = re.compile(r"`((?:app|core|data|graph|model|train|tests|tools|anemoi|plan)/[\w./]+\.(?:cpp|h|py|txt))`")


def squeezed(text: str) -> str:
    return " ".join(text.split())


def faults_of(text: str) -> list[str]:
    blocks = list(BLOCK.finditer(text))
    faults = [] if blocks else ["has no block of code"]
    for block in blocks:
        path = ROOT / block["file"]
        if not path.is_file():
            faults.append(f"{block['file']} is no file")
        elif squeezed(block["code"]) not in squeezed(path.read_text()):
            faults.append(f"{block['file']} does not have: {squeezed(block['code'])[:60]} ...")
    return faults + [f"{name} is no file" for name in FILE.findall(text) if not (ROOT / name).is_file()]


def main() -> int:
    faults = faults_of((ROOT / "docs/extending.md").read_text())
    for fault in faults:
        print(f"docs/extending.md: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

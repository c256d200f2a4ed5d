#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key of a configuration that a message, a document or a script names must be in configs/schema.json
(which lint.reference holds against the program). In sources only texts in quotes are read, not comments. A text
that is put behind a path, as in path + ".kind", must be a chain of keys somewhere. Exit code 1 if one is unknown."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["app", "core", "data", "graph", "model", "parallel", "plan", "train"]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
# Folders whose texts name keys of other programs: those of Anemoi's configurations and metadata.
FOREIGN = ["conformance/", "app/exchange", "docs/anemoi_configs.md"]
# Documents that describe this program's own keys.
DOCUMENTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/*.md", "docs/formats/*.md", "configs/README.md",
             "tools/demo", "tools/test"]
# What follows the last dot of a file's name, not of a key.
FILE_ENDINGS = {"cpp", "h", "cu", "json", "jsonl", "log", "md", "nc", "npz", "safetensors", "zarr", "py", "svg"}

LITERAL = re.compile(r'R"\((?P<raw>.*?)\)"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.S)
COMMENT_OR_LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)\'|' + LITERAL.pattern, re.S)
ADJACENT = re.compile(r'"\s*\n\s*"')
KEY = r"[A-Za-z0-9_*<>-]+"
BEHIND_A_PATH = re.compile(r"path(\)|\b)\s*[+,]\s*$")


class Schema:
    def __init__(self, tree: dict):
        self.tree = tree
        self.sections = [name for name in tree["properties"] if name != "base"]
        self.chains: set[tuple[str, ...]] = set()
        self.walk(tree, ())

    @staticmethod
    def forms(node: dict) -> list[dict]:
        return [node, *node.get("anyOf", [])]

    def walk(self, node: dict, path: tuple[str, ...]) -> None:
        for form in self.forms(node):
            for name, child in form.get("properties", {}).items():
                below = (*path, name)
                self.chains.update(below[i:] for i in range(len(below)))
                self.walk(child, below)
            for several in ("items", "additionalProperties"):
                if isinstance(form.get(several), dict):
                    self.walk(form[several], path)

    def below(self, node: dict, name: str) -> dict | None:
        """What stands under `name` (a key, or the number of an element); None where nothing can."""
        for form in self.forms(node):
            if name in form.get("properties", {}):
                return form["properties"][name]
            if isinstance(form.get("additionalProperties"), dict):
                return form["additionalProperties"]
            if isinstance(form.get("items"), dict) and (name.isdigit() or name == "<n>"):
                return form["items"]
        return None

    def knows(self, path: str) -> bool:
        node: dict | None = self.tree
        for name in path.split("."):
            node = self.below(node, name)
            if node is None:
                return False
        return True

    def knows_part(self, path: str) -> bool:
        names = [name for name in path.strip(".").split(".") if not name.isdigit()]
        return any(chain[: len(names)] == tuple(names) for chain in self.chains)


def texts_of(source: str):
    """Line and text of every literal of a C++ source, and whether it is put behind a path; adjacent ones are one."""
    joined = ADJACENT.sub(lambda m: "\0" * m.group(0).count("\n"), source)
    for match in COMMENT_OR_LITERAL.finditer(joined):
        text = match.group("raw") if match.group("raw") is not None else match.group("text")
        if text is not None:
            before = joined[: match.start()]
            line = 1 + before.count("\n") + before.count("\0")
            yield line, text.replace("\0", ""), bool(BEHIND_A_PATH.search(before[-60:]))


def is_test(path: str) -> bool:
    """Whether this is the name of a test, which documents have in the same form: train.pipeline_schedule."""
    module, unit, *_ = path.split(".")
    return any((ROOT / "tests" / module).glob(f"**/test_{unit}.cpp"))


def unknown_keys(text: str, schema: Schema) -> list[str]:
    sections = "|".join(schema.sections)
    found = []
    for match in re.finditer(rf"(?<![\w./<\\-])({sections})((?:\.{KEY})+)(?![\w/])", text):
        path = match.group(0).rstrip(".-")
        is_file = path.split(".")[-1] in FILE_ENDINGS
        if not (schema.knows(path.removesuffix(".*")) or is_file or is_test(path)):
            found.append(path)
    return found


def faults_of_source(text: str, schema: Schema) -> list[tuple[int, str]]:
    faults = []
    for line, literal, behind in texts_of(text):
        faults += [(line, key) for key in unknown_keys(literal, schema)]
        if behind and re.fullmatch(r"(\.[a-z][a-z0-9_]*)+\.?", literal) and not schema.knows_part(literal):
            faults.append((line, literal))
    return faults


def faults_of_document(text: str, schema: Schema) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return [(line, key) for line, words in lines for key in unknown_keys(words, schema)]


def files():
    """Every file to read, and how."""
    for module in MODULES:
        for path in sorted((ROOT / module).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SOURCES and not any(name.startswith(prefix) for prefix in FOREIGN):
                yield path, faults_of_source
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            if path.relative_to(ROOT).as_posix() not in FOREIGN:
                yield path, faults_of_document


def main() -> int:
    schema = Schema(json.loads((ROOT / "configs/schema.json").read_text()))
    checked = num_faults = 0
    for path, faults_of in files():
        checked += 1
        for line, key in faults_of(path.read_text(), schema):
            num_faults += 1
            print(f"{path.relative_to(ROOT).as_posix()}:{line}: no key '{key}' in configs/schema.json")
    print(f"{checked} files, {num_faults} unknown keys")
    return 1 if num_faults or not checked else 0


if __name__ == "__main__":
    sys.exit(main())

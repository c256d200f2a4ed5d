#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What comments and documents name must exist: files (a/b.h), calls (name(), Type::name()), names in backticks (in
comments) and CamelCase names must be somewhere in the tree. Exit code 1 if one is nowhere, or if a name that is said
to be foreign is not needed."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["core", "graph", "parallel", "data", "model", "plan", "train", "report", "anemoi", "app", "conformance", "bench",
           "tests", "cmake", "tools"]
SOURCES = {".h", ".cpp", ".cu", ".cuh"}
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "bench/NOTES.md"]
# Names of algorithms, people, other programs and of examples.
FOREIGN = {
    "AveragedModel", "ClipOptions", "DeepSpeed", "GradScaler",
    "GraphConv", "LeVeque", "MultiHeadCrossAttention", "MultiHeadSelfAttention", "MurmurHash3", "PositiveNumber",
    "PyTorch", "SplitMix64", "consolidate_metadata", "blosc.h", "mpi.h", "nccl.h", "netcdf.h",
    "tensorflow/core/lib/io/record_writer.h",
}
FILE = re.compile(r"(?<![\w./-])[A-Za-z_][\w-]*(?:/[\w.-]+)*\.(?:h|cpp|cu|cuh|py|cmake)(?![\w/])")
CALL = re.compile(r"(?<![\w.:])((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\(\)")
QUOTED = re.compile(r"`([A-Za-z_]\w*(?:(?:::|\.|->)[A-Za-z_]\w*)*)`")
CAMEL = re.compile(r"(?<![\w/.<-])(?:[A-Z][a-z0-9]+){2,}(?!\w|\.\w)")
COMMENT_OR_LITERAL = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"\(.*?\)"|"(?:[^"\\\n]|\\.)*"|'
                                r"'(?:[^'\\\n]|\\.)'", re.S)


def split(source: str) -> tuple[list[tuple[int, str]], str]:
    """The comments of a source, with their lines, and all the rest of it."""
    comments, rest, last = [], [], 0
    for match in COMMENT_OR_LITERAL.finditer(source):
        if match.group("comment"):
            comments.append((source.count("\n", 0, match.start()) + 1, match.group("comment")))
            rest.append(source[last : match.start()])
            last = match.end()
    return comments, " ".join([*rest, source[last:]])


class Tree:
    """What there is: ends of paths, and words outside of comments."""

    def __init__(self, root: pathlib.Path):
        self.comments: list[tuple[str, int, str]] = []
        self.words: set[str] = set()
        self.files: set[str] = set()
        for folder in FOLDERS:
            for path in sorted((root / folder).rglob("*")):
                if not path.is_file() or "__pycache__" in path.parts:
                    continue
                parts = path.relative_to(root).parts
                self.files.update("/".join(parts[i:]) for i in range(len(parts)))
                if path.suffix in SOURCES:
                    comments, rest = split(path.read_text())
                    name = path.relative_to(root).as_posix()
                    self.comments += [(name, line, text) for line, text in comments]
                    self.words.update(re.findall(r"\w+", rest))
                elif path.suffix == ".cmake" or (folder == "tools" and path.name != pathlib.Path(__file__).name):
                    self.words.update(re.findall(r"\w+", path.read_text(errors="ignore")))
        self.files |= {path.name.removesuffix(".in") for path in root.rglob("*.h.in")}

    def unknown(self, text: str, is_comment: bool) -> list[str]:
        found = [name for name in FILE.findall(text) if name not in self.files]
        calls = CALL.findall(text) + (QUOTED.findall(text) if is_comment else [])
        found += [name for name in calls if any(word not in self.words for word in re.split(r"::|\.|->", name))]
        if is_comment:  # an s may be a plural's
            found += [name for name in CAMEL.findall(text)
                      if name not in self.words and name.removesuffix("s") not in self.words]
        return found


def main() -> int:
    tree = Tree(ROOT)
    found, foreign = [], set()
    places = [(*comment, True) for comment in tree.comments]
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            places += [(name, line, text, False) for line, text in enumerate(path.read_text().splitlines(), 1)]
    for name, line, text, is_comment in places:
        for word in tree.unknown(text, is_comment):
            if word in FOREIGN:
                foreign.add(word)
            else:
                found.append(f"{name}:{line}: there is no {word}")
    found += [f"tools/check_names.py: nobody names {word} any more" for word in sorted(FOREIGN - foreign)]
    print("\n".join(found))
    print(f"{len(tree.comments)} comments, {len(found)} faults")
    return 1 if found or not tree.comments else 0


if __name__ == "__main__":
    sys.exit(main())

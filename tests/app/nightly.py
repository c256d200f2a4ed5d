#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/nightly on the tiny configuration: a record and a page; what is worse than before is said, with exit code 1.

usage: nightly.py PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def require(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def nightly(program, records, case="tiny", options="train.max_steps=12"):
    return subprocess.run([ROOT / "tools/nightly", program, "--records", records, "--case",
                           f"{case}={ROOT / 'tests/app/tiny.json'},{options}"], capture_output=True, text=True)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="aifs-nightly-test-") as folder:
        records = pathlib.Path(folder)
        first = nightly(program, records)
        require(first.returncode == 0, first.stdout + first.stderr)
        files = list(records.glob("*.jsonl"))
        require(len(files) == 1, files)
        record = json.loads(files[0].read_text())
        for name in ("steps_per_s", "memory_mib", "start_s", "loss", "ratio_6h"):
            require(record["figures"][name] > 0, f"{name}: {record}")
        require(record["version"].startswith("aifs-train ") and record["worse"] == [], record)
        page = (records / "index.html").read_text()
        require("<h2>tiny</h2>" in page and "ratio_6h" in page and "<polyline" in page, page)
        # Three nights that were far better: this one is worse, and each figure says so in its own direction.
        for name, factor in (("steps_per_s", 100), ("memory_mib", 0.01), ("ratio_6h", 0.5)):
            record["figures"][name] *= factor
        files[0].write_text((json.dumps(record) + "\n") * 3)
        worse = nightly(program, records)
        require(worse.returncode == 1, worse.stdout)
        for name in ("steps_per_s", "memory_mib", "ratio_6h"):
            require(f"WORSE: tiny: {name} is " in worse.stdout, worse.stdout)
        require("WORSE: tiny: loss" not in worse.stdout, worse.stdout)
        require("class=worse>steps_per_s is" in (records / "index.html").read_text(), "the page does not say it")
        require(len(files[0].read_text().splitlines()) == 4, "the record is missing")
        failed = nightly(program, records, options="train.max_steps=0")
        require(failed.returncode == 1 and "FAILED: tiny: exit code 2" in failed.stdout, failed.stdout + failed.stderr)
    print("passed: recorded, compared, shown")


if __name__ == "__main__":
    main()

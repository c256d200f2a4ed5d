#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` gives is a program of its own: it is moved, and trains the demo from where it is then.

usage: install.py CMAKE BUILD
"""
import os
import pathlib
import subprocess
import sys
import tempfile

STEPS = 20


def run(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if result.returncode != 0:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


def require(condition, text):
    if not condition:
        sys.exit(f"FAILED: {text}")


def libraries_of(program, environment):
    """Where the loader finds each library."""
    lines = [line.strip().split(" => ") for line in run("ldd", program, env=environment).splitlines() if "=>" in line]
    return {name: place for name, place in lines}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cmake, build = sys.argv[1:]
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    with tempfile.TemporaryDirectory(prefix="aifs-install-") as folder:
        first, prefix = pathlib.Path(folder) / "first", pathlib.Path(folder) / "moved here"
        run(cmake, "--install", build, "--prefix", first)
        first.rename(prefix)
        program = prefix / "bin/aifs-train"
        require(run(program, "--version", env=environment).startswith("aifs-train "), "--version")
        found = libraries_of(program, environment)
        for library in ("libtorch_cpu.so", "libc10.so"):
            if "libtorch_cuda.so" not in found:  # of CUDA's LibTorch nothing is copied that it needs
                require(found[library].startswith(str(prefix)), f"{library} is that of {found[library]}")
        missing = [name for name, place in found.items() if place == "not found"]
        require(not missing, f"libraries that are not found: {missing}")
        share, out = prefix / "share/aifs-train", pathlib.Path(folder) / "run"
        run(program, "--config", share / "configs/demo.json", "--set", f"train.max_steps={STEPS}", "--set",
            f"run.dir={out}", "--set", "run.device=cpu", env=environment, cwd=folder)
        require((out / f"checkpoints/step-{STEPS:08}/COMPLETE").exists(), "the demo leaves no checkpoint")
        scripts = share / "slurm"
        found = run("bash", "-c", '. "$1"; find_program', "bash", scripts / "functions.sh",
                    env={**environment, "AIFS_TRAIN": ""}).strip()
        require(pathlib.Path(found).resolve() == program.resolve(), f"job scripts start '{found}'")
        for page in ("man/man1/aifs-train.1", "bash-completion/completions/aifs-train", "zsh/site-functions/_aifs-train"):
            require("aifs" in (prefix / "share" / page).read_text(), f"{page} is missing")
        require(len(list(scripts.glob("*.sbatch"))) == 5, "job scripts are missing")
    print("passed: installed, moved, trained")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` gives is a program of its own: it is moved, and trains the demo from where it is then. So is a
package, which brings all libraries but those of C and C++, for machines without MPI those of MPI, too.

usage: install.py CMAKE BUILD
"""
import os
import pathlib
import re
import shutil
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


def without_libtorch():
    """Where libraries are that the system has elsewhere than others, but LibTorch: that is the program's own."""
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [folder for folder in folders if folder and not list(pathlib.Path(folder).glob("libtorch*"))]


C_AND_CPP = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|util|pthread|resolv|gcc_s|stdc\+\+|cuda|nvidia.*)\.so.*)")


def package(build, folder, environment):
    """Packs, moves and starts it."""
    first, packed = folder / "packing", folder / "packed"
    run(pathlib.Path(__file__).resolve().parents[2] / "tools/package", "folder", build, first)
    first.rename(packed)
    run(packed / "bin/aifs-train", "--version", env=environment)
    without_mpi = {**environment, "LD_LIBRARY_PATH": str(packed / "lib/aifs-train/no_mpi")}
    for program in ("aifs-train", "aifs-conformance"):
        others = {name: place for name, place in libraries_of(packed / "libexec" / program, without_mpi).items()
                  if not place.startswith(str(packed)) and not C_AND_CPP.fullmatch(name)}
        require(not others, f"{program} of a package needs {others}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    cmake, build = sys.argv[1:]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(without_libtorch())}
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
        if shutil.which("patchelf"):
            package(build, pathlib.Path(folder), environment)
    print("passed: installed, moved, trained")


if __name__ == "__main__":
    main()

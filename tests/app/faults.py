#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults on purpose: short trainings on 1, 2 and 4 ranks that are killed, stopped and paused at random moments of every
phase, whose disks fill up, become read-only or go away, whose checkpoints are damaged, whose clock jumps.

usage: faults.py PROGRAM [--faults N] [--seed S] [--only NAME ...]

After each fault the exit code is the documented one, there is no noise but a message, no valid checkpoint is lost, and
the run that goes on ends with the bits of one that nothing happened to. Prints the seed; the same seed makes the same
faults, though not at the same instruction. --faults is the number of killed, stopped and paused runs.
"""
import argparse
import collections
import ctypes
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from training_run import (LAST, Run, errors_in, require, require_no_noise, require_same_bits, send)  # noqa: E402

PHASES = ["start", "first step", "training", "checkpoint", "validation"]
LAYOUTS = {"1": (1, []), "2 replicas": (2, []), "2 of a sample": (2, ["parallel.model=2"]),
           "2 x 2": (4, ["parallel.model=2"])}
FAKETIME = ["/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1"]


class NotHere(Exception):
    """Why a fault cannot be made on this machine."""


class Trials:
    def __init__(self, program, folder, seed):
        self.program, self.folder, self.random = program, folder, random.Random(seed)
        self.references, self.number, self.met = {}, 0, collections.Counter()

    def reference(self, layout):
        """A run of this layout that nothing happened to."""
        if layout not in self.references:
            ranks, options = LAYOUTS[layout]
            run = Run(self.program, self.folder / f"whole-{len(self.references)}", ranks, options)
            code = run.wait()
            require(code == 0, f"exit code {code} without a fault\n{run.text()}")
            self.references[layout] = run.folder
        return self.references[layout]

    def new_folder(self):
        self.number += 1
        return self.folder / f"run-{self.number}"

    def start(self, layout, folder, resume=False, more=(), environment=None, before=()):
        ranks, options = LAYOUTS[layout]
        return Run(self.program, folder, ranks, [*options, *more], resume, environment, before)

    def finish(self, layout, folder, logs=True):
        """Goes on to the end, where the bits are to be those of the run that nothing happened to."""
        run = self.start(layout, folder, resume=True)
        code = run.wait()
        require(code == 0, f"exit code {code} of the run that goes on\n{run.text()}")
        require_no_noise(run.text())
        require_same_bits(folder, self.reference(layout), logs)
        return run


# ---------------------------------------------------------------- processes

def kill(trials, run):
    """SIGKILL of one rank: the launcher says so."""
    processes = run.rank_processes()
    if processes:
        send(trials.random.choice(processes), signal.SIGKILL)
    code = run.wait()
    require(code in ((0, -signal.SIGKILL) if run.ranks == 1 else (0, 128 + signal.SIGKILL)), f"exit code {code}")
    return code


def stop(trials, run):
    """A signal of the scheduler. Before the program listens it ends as any; mpirun passes SIGUSR1 on."""
    number = trials.random.choice([signal.SIGTERM, signal.SIGUSR1]) if run.ranks == 1 else signal.SIGUSR1
    young = time.monotonic() - run.started < 1.5
    send(run.process.pid, number)
    code = run.wait()
    require(code in (0, 5) or (young and code in (-number, 128 + number)), f"exit code {code}")
    if code == 5:
        require("stopped " in run.text(), "nothing says that the run was stopped")
        require(not errors_in(run.text()), "errors, though it was only stopped")
    return code


def pause(trials, run):
    """SIGSTOP and SIGCONT of one rank: the run goes on."""
    processes = run.rank_processes()
    if processes:
        paused = trials.random.choice(processes)
        send(paused, signal.SIGSTOP)
        time.sleep(trials.random.uniform(0.1, 0.8))
        send(paused, signal.SIGCONT)
    code = run.wait()
    require(code == 0, f"exit code {code}")
    return code


def one_process_fault(trials, layout, folder, fault, phase):
    run = trials.start(layout, folder, resume=folder.exists())
    met = run.reach(phase, trials.random)
    code = fault(trials, run)
    require_no_noise(run.text())
    trials.met[fault.__name__, phase if met else "too late", str(code)] += 1
    return run


def processes(trials, count):
    """Kills, stops and pauses at random moments, up to three in a row for the same run."""
    done = 0
    while done < count:
        layout, folder = trials.random.choice(list(LAYOUTS)), trials.new_folder()
        trials.reference(layout)
        run, story = None, []
        try:
            for _ in range(min(trials.random.randrange(1, 4), count - done)):
                fault, phase = trials.random.choice([kill, kill, stop, pause]), trials.random.choice(PHASES)
                story.append(f"{fault.__name__} in {phase}")
                run = one_process_fault(trials, layout, folder, fault, phase)
                done += 1
            story.append("to the end")
            run = trials.finish(layout, folder)
        except AssertionError as error:
            raise AssertionError(f"{layout}, {', '.join(story)}: {error}\n{run.text() if run else ''}") from None
        shutil.rmtree(folder)


def hang(trials):
    """A rank that never moves again ends the run with 6, be it the first, which the others ask, or another."""
    for rank in (0, 1):
        folder = trials.new_folder()
        run = trials.start("2 replicas", folder, more=["parallel.timeout_s=3"])
        require(run.reach("training", trials.random), "the run was over")
        hung = run.process_of(rank)
        send(hung, signal.SIGSTOP)
        code = run.wait()
        send(hung, signal.SIGKILL)
        require(code == 6, f"rank {rank}: exit code {code}\n{run.text()}")
        require(f"rank {1 - rank} on" in run.text() and "has waited" in run.text(), run.text())
        require("explain-hang" in run.text(), run.text())
        explained = subprocess.run([trials.program, "explain-hang", folder], capture_output=True, text=True)
        require(explained.returncode == 0, explained.stderr)
        require(f"it begins with rank {rank}" in explained.stdout and "step " in explained.stdout, explained.stdout)
        trials.finish("2 replicas", folder)


def restarts(trials):
    """with_restarts goes on where a rank was killed, with the same bits; a signal to it is no reason to."""
    script = pathlib.Path(__file__).resolve().parents[2] / "tools/slurm/with_restarts"
    folder = trials.new_folder()
    run = trials.start("2 replicas", folder, resume=True, before=[script, "2"])
    require(run.reach("training", trials.random), "the run was over")
    send(run.process_of(1), signal.SIGKILL)
    code = run.wait()
    require(code == 0, f"exit code {code}\n{run.text()}")
    require("a rank was lost; starting again" in run.text(), run.text())
    require_same_bits(folder, trials.reference("2 replicas"))
    folder = trials.new_folder()
    run = trials.start("1", folder, resume=True, before=[script, "2"])
    require(run.reach("training", trials.random), "the run was over")
    send(run.process.pid, signal.SIGTERM)
    code = run.wait()
    require(code == 5, f"exit code {code}\n{run.text()}")
    require("starting again" not in run.text(), run.text())
    trials.finish("1", folder)


# ---------------------------------------------------------------- disks

def own_mounts():
    """From now on mounts are seen by this process and its children only."""
    libc = ctypes.CDLL(None, use_errno=True)
    new_namespace, private = 0x00020000, (1 << 18) | (1 << 14)  # CLONE_NEWNS, MS_PRIVATE | MS_REC
    if os.geteuid() != 0 or libc.unshare(new_namespace) != 0 or libc.mount(b"none", b"/", None, private, None) != 0:
        raise NotHere("mounts of its own need root and CAP_SYS_ADMIN")


def mount(*words):
    result = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
    if result.returncode != 0:
        raise NotHere(f"mount: {result.stderr.strip()}")


def full_disk(trials):
    """ENOSPC: checkpoints fail, those that are there stay; with room again the run goes on."""
    own_mounts()
    folder = trials.new_folder()
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", folder)
    run = trials.start("1", folder)
    require(run.reach("training", trials.random), "the run was over")
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    code = run.wait()
    require(code == 1, f"exit code {code}\n{run.text()}")
    require("No space left on device" in run.text() and errors_in(run.text()), run.text())
    require_no_noise(run.text())
    filler.unlink()
    trials.finish("1", folder)
    subprocess.run(["umount", "-l", folder], check=True)


def read_only_disk(trials):
    """EROFS in the middle: as a full disk. From the start: an error before anything is read."""
    own_mounts()
    folder = trials.new_folder()
    checkpoints = folder / "checkpoints"
    checkpoints.mkdir(parents=True)
    mount("-t", "tmpfs", "-o", "size=8m", "tmpfs", checkpoints)
    run = trials.start("1", folder)
    require(run.reach("training", trials.random), "the run was over")
    for _ in range(1000):  # busy while a file is written
        result = subprocess.run(["mount", "-o", "remount,ro", checkpoints], capture_output=True, text=True)
        if result.returncode == 0:
            break
    require(result.returncode == 0, result.stderr)
    code = run.wait()
    require(code == 1, f"exit code {code}\n{run.text()}")
    require("Read-only file system" in run.text() and errors_in(run.text()), run.text())
    again = trials.start("1", folder, resume=True)
    code = again.wait()
    require(code == 1 and "Read-only file system" in again.text(), f"exit code {code}\n{again.text()}")
    require_no_noise(run.text() + again.text())
    mount("-o", "remount,rw", checkpoints)
    trials.finish("1", folder)
    subprocess.run(["umount", "-l", checkpoints], check=True)


def lost_folder(trials):
    """A run folder that is moved away in the middle: what it holds is sound, and goes on where it was put."""
    folder, moved = trials.new_folder(), trials.new_folder()
    run = trials.start("1", folder)
    require(run.reach("training", trials.random), "the run was over")
    os.rename(folder, moved)
    code = run.wait()
    require(code in (0, 1), f"exit code {code}\n{run.text()}")
    require_no_noise(run.text())
    trials.met["lost folder", "", str(code)] += 1
    if code == 0:
        require_same_bits(folder, trials.reference("1"), logs=False)
    trials.finish("1", moved)


# ---------------------------------------------------------------- checkpoints and clocks

def damage(trials, file):
    """Flips a bit, cuts off an end, empties or removes the file; returns which."""
    content = bytearray(file.read_bytes())
    how = trials.random.choice(["a flipped bit", "cut off", "empty", "removed"])
    if how == "a flipped bit":
        content[trials.random.randrange(len(content))] ^= 1 << trials.random.randrange(8)
    elif how == "cut off":
        del content[trials.random.randrange(len(content)):]
    elif how == "empty":
        content.clear()
    if how == "removed":
        file.unlink()
    else:
        file.write_bytes(content)
    return how


def damaged_checkpoints(trials, count=3):
    """The newest checkpoint is damaged: the one before serves. All are: nothing is overwritten."""
    whole = trials.reference("1")
    for number in range(count):
        folder = trials.new_folder()
        shutil.copytree(whole, folder)
        file = trials.random.choice(sorted((folder / LAST).iterdir()))
        how = damage(trials, file)
        run = trials.finish("1", folder)
        require("cannot be used" in run.text(), f"{file.name} {how}: no warning\n{run.text()}")
        if number > 0:
            continue
        for checkpoint in (folder / "checkpoints").glob("step-*"):
            damage(trials, trials.random.choice(sorted(checkpoint.iterdir())))
        before = {f: f.read_bytes() for f in (folder / "checkpoints").rglob("*") if f.is_file()}
        run = trials.start("1", folder, resume=True)
        code = run.wait()
        require(code == 3 and errors_in(run.text()), f"exit code {code}\n{run.text()}")
        require(before == {f: f.read_bytes() for f in (folder / "checkpoints").rglob("*") if f.is_file()},
                "damaged checkpoints were changed")


def clock(trials):
    """The clock of the machine jumps two days ahead and three back: nothing depends on it."""
    library = next((name for name in FAKETIME if os.path.exists(name)), None)
    if not library:
        raise NotHere("libfaketime is not installed")
    folder, offset = trials.new_folder(), trials.folder / "offset"
    offset.write_text("+0\n")
    run = trials.start("1", folder, environment={
        "LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "GOMP_SPINCOUNT": "1000"})
    for jump in ("+2d", "-3d"):
        require(run.reach("training", trials.random), f"the run was over\n{run.text()}")
        offset.write_text(jump + "\n")
    code = run.wait()
    require(code == 0, f"exit code {code}\n{run.text()}")
    require_no_noise(run.text())
    require_same_bits(folder, trials.reference("1"))


CASES = [hang, restarts, full_disk, read_only_disk, lost_folder, damaged_checkpoints, clock]


def guarded(name, case):
    """Runs a case and says how it went; returns whether it failed."""
    start = time.monotonic()
    try:
        case()
    except NotHere as reason:
        print(f"not here: {name}: {reason}", flush=True)
        return False
    except AssertionError as error:
        print(f"FAILED: {name}: {error}", flush=True)
        return True
    print(f"passed: {name}, {time.monotonic() - start:.1f} s", flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=5)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", nargs="*", default=None)
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    failures = 0
    with tempfile.TemporaryDirectory(prefix="aifs-faults-", ignore_cleanup_errors=True) as folder:
        trials = Trials(given.program.resolve(), pathlib.Path(folder), seed)
        cases = {"processes": lambda: processes(trials, given.faults)}
        cases |= {case.__name__: (lambda case=case: case(trials)) for case in CASES}
        for name, case in cases.items():
            if given.only is None or name in given.only:
                failures += guarded(name, case)
    for (fault, phase, code), number in sorted(trials.met.items()):
        print(f"{number:4} x {fault} in {phase}: exit code {code}")
    if given.only is None and not any(phase not in ("", "too late") for _, phase, _ in trials.met):
        print("FAILED: no fault met a run: are the words of its phases others now?")
        failures += 1
    print(f"seed {seed}: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

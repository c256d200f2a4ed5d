#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training under a real Slurm of this machine (tests/support/slurm_service.py), by the job scripts of tools/slurm.

usage: slurm.py PROGRAM [NAME ...]    all tests, or those of these names

Two nodes of the machine have four CPUs each and GPUs that are nothing but numbers. Ends with 77 where Slurm is not
installed or does not start.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import slurm_service  # noqa: E402

STEPS = 20
TINY = (ROOT / "tests/app/tiny.json").read_text()
SETTINGS = ["checkpoint.every_steps=0", "train.validation.every_epochs=0", "train.validation.every_steps=20",
            "optimizer.schedule.total_steps=1000", "parallel.timeout_s=30"]
SCRIPTS = ROOT / "tools/slurm"
# Of the machine's two cores only one is asked for by each rank, and ranks that wait let others run.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "AIFS_SLURM": str(SCRIPTS), "MASTER_ADDR": "127.0.0.1"}


def require(condition, text):
    if not condition:
        raise AssertionError(text)


def options(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Bench:
    """One Slurm, one program, one folder for all tests."""

    def __init__(self, slurm, program, folder):
        self.slurm, self.program, self.folder = slurm, str(program), folder
        self.variables = ENVIRONMENT | {"AIFS_TRAIN": self.program}
        self.config = folder / "config.json"
        self.set_steps(STEPS)

    def set_steps(self, steps):
        """How long runs are that are started from now on."""
        text = TINY.replace('"max_steps": 40', f'"max_steps": {steps}')
        require(steps == 40 or text != TINY, "tiny.json does not say how long to train")
        self.config.write_text(text)

    def run(self, *command, check=True, **more):
        return self.slurm.run(*command, check=check, timeout=120, **self.variables, **more)

    def train(self, name, *launcher, check=True):
        """Runs the program under a launcher into the run folder of this name."""
        return self.run(*launcher, self.program, "--config", self.config, *options(SETTINGS), "--set",
                        f"run.dir={self.run_folder(name)}", check=check)

    def submit(self, script, name, *sbatch, settings=(), **more):
        """Submits a script of tools/slurm with the tiny configuration; returns the number of the job."""
        result = self.run("sbatch", "--parsable", f"--job-name={name}", f"--chdir={self.folder}", *sbatch,
                          SCRIPTS / f"{script}.sbatch", self.config, *options([*SETTINGS, *settings]), **more)
        return result.stdout.strip().split(";")[0]

    def run_folder(self, name):
        return self.folder / "runs" / name

    def state(self, job):
        text = self.run("scontrol", "show", "job", job, "--oneliner").stdout.splitlines()[0]
        return dict(word.split("=", 1) for word in text.split() if "=" in word)

    def wait(self, what, condition, wait_s=60.0):
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"{what}: not within {wait_s:g} s\n{self.logs()}\n"
                             f"{self.run('squeue', check=False).stdout}")

    def wait_for_end(self, job):
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        return self.wait(f"the end of job {job}", lambda: (s := self.state(job))["JobState"] in ends and s)

    def wait_for_requeue(self, job, restarts):
        self.wait(f"requeue {restarts} of job {job}", lambda: (s := self.state(job))["JobState"] == "PENDING" and
                  int(s["Restarts"]) == restarts)

    def release(self, job):
        """Slurm holds back what is requeued for two minutes. Here it is done when the former start is over: two steps
        of one number do not get on with each other."""
        self.wait(f"the end of the former start of job {job}", lambda: not self.slurm.is_at_work(job))
        time.sleep(2)
        self.run("scontrol", "update", f"JobId={job}", "StartTime=now")

    def wait_for_steps(self, name, steps):
        metrics = self.run_folder(name) / "metrics.jsonl"
        self.wait(f"step {steps} of {name}",
                  lambda: metrics.exists() and len(metrics.read_text().splitlines()) >= steps)

    def ranks(self, run_folder):
        """The numbers of the processes that train into a folder."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_rank = os.readlink(process / "exe") == str(self.program)
                if is_rank and f"run.dir={run_folder}".encode() in (process / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:  # it has ended
                continue
        return found

    def logs(self):
        return "".join(f"--- {log.name}\n" + "".join(log.read_text().splitlines(keepends=True)[-15:])
                       for log in sorted(self.folder.glob("*.log")))


def losses(run):
    return [json.loads(line)["loss"] for line in (run / "metrics.jsonl").read_text().splitlines()]


def require_same_bits(bench, name, wanted, steps=STEPS):
    run, other = bench.run_folder(name), bench.run_folder(wanted)
    ours, theirs = losses(run), losses(other)
    differing = [i + 1 for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    require(ours == theirs, f"losses of {name} and {wanted} differ: {len(ours)} and {len(theirs)} of them, other ones at "
                            f"steps {differing}\n{bench.logs()}")
    for file in ("parameters.safetensors", "optimizer.safetensors"):
        one, two = (folder / f"checkpoints/step-{steps:08}" / file for folder in (run, other))
        require(one.read_bytes() == two.read_bytes(), f"{file} of {name} and {wanted} differ")


def require_completed(bench, job):
    end = bench.wait_for_end(job)
    require(end["JobState"] == "COMPLETED" and end["ExitCode"] == "0:0", f"{end}\n{bench.logs()}")


def test_launchers(bench):
    """two ranks find each other with PMIx, without, and by mpirun in an allocation: the same bits"""
    bench.train("pmix", "srun", "--ntasks=2", "--nodes=1", "--mpi=pmix")
    bench.train("none", "srun", "--ntasks=2", "--nodes=1", "--mpi=none")
    bench.train("salloc", "salloc", "--ntasks=2", "--nodes=1", "mpirun", "--bind-to", "none", "-n", "2")
    require_same_bits(bench, "none", "pmix")
    require_same_bits(bench, "salloc", "pmix")


def test_pmi2(bench):
    """what the program's MPI cannot read is a configuration error of one rank, before MPI starts"""
    result = bench.train("pmi2", "srun", "--ntasks=2", "--nodes=1", "--mpi=pmi2", check=False)
    require(result.returncode == 2, f"exit code {result.returncode}\n{result.stderr}")
    require(result.stderr.count("--mpi=pmi2, which this MPI cannot read") == 1, result.stderr)
    require("srun --mpi=pmix" in result.stderr and "MPI_Init" not in result.stderr, result.stderr)


def test_interruptions(bench):
    """a job that is signalled, and then preempted, goes on by itself and ends with the bits of one that was not"""
    small = ["--ntasks-per-node=2", "--cpus-per-task=1", "--gpus-per-node=2"]
    bench.set_steps(10**6)
    job = bench.submit("one_node", "parted", *small)
    bench.wait_for_steps("parted", 5)
    bench.run("scancel", "--signal=USR1", job)  # as --signal=USR1@120 does
    bench.wait_for_requeue(job, 1)
    done = len(losses(bench.run_folder("parted")))
    bench.release(job)
    bench.wait_for_steps("parted", done + 5)
    urgent = bench.run("sbatch", "--parsable", "--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null",
                       "--wrap", "true").stdout.strip()
    bench.wait_for_requeue(job, 2)
    steps = len(losses(bench.run_folder("parted"))) + 5
    bench.set_steps(steps)
    bench.wait_for_end(urgent)
    bench.release(job)
    require_completed(bench, job)
    require_completed(bench, bench.submit("one_node", "whole", *small))
    bench.set_steps(STEPS)
    require_same_bits(bench, "parted", "whole", steps)
    text = (bench.folder / "parted.log").read_text()
    require(text.count("stopped: back to the queue") == 2, text)
    require(text.count("resuming at step") == 2, text)


def test_cancelled(bench):
    """a job that is cancelled leaves a checkpoint and does not come back"""
    bench.set_steps(10**6)
    job = bench.submit("one_gpu", "cancelled", "--cpus-per-task=1")
    bench.wait_for_steps("cancelled", 3)
    bench.set_steps(STEPS)
    bench.run("scancel", job)
    text = bench.folder / "cancelled.log"
    bench.wait("the end of the script", lambda: "the job is over: submit it again to go on" in text.read_text())
    time.sleep(1)
    end = bench.state(job)
    require(end["JobState"] == "CANCELLED" and end["Restarts"] == "0", f"{end}\n{bench.logs()}")
    require((bench.run_folder("cancelled") / "checkpoints/latest").exists(), bench.logs())


def test_restarts(bench):
    """a job one of whose ranks dies starts again inside the job, once more than allowed ends it"""
    small = ["--ntasks-per-node=2", "--cpus-per-task=1", "--gpus-per-node=2"]
    bench.set_steps(10**6)
    job = bench.submit("one_node", "lost", *small, AIFS_RESTARTS="1")
    log = bench.folder / "lost.log"
    for count in (1, 2):
        bench.wait("its first step", lambda: log.exists() and log.read_text().count("the first step begins") == count)
        os.kill(bench.ranks("runs/lost")[0], signal.SIGKILL)
    end = bench.wait_for_end(job)
    bench.set_steps(STEPS)
    text = log.read_text()
    require(end["JobState"] == "FAILED" and end["Restarts"] == "0" and end["ExitCode"] == "137:0", f"{end}\n{text}")
    require(text.count("a rank was lost; starting again, 0 restarts left") == 1, text)


def test_devices(bench):
    """tasks see one GPU each, or all of their node"""
    for option, wanted in (("--gpus-per-task=1", {"0", "1"}), ("--gpus-per-node=2", {"0,1"})):
        seen = bench.run("srun", "--ntasks=2", "--nodes=1", option, "printenv", "CUDA_VISIBLE_DEVICES").stdout.split()
        require(len(seen) == 2 and set(seen) == wanted, f"{option}: {seen}")


def test_array(bench):
    """members of an array have folders and seeds of their own"""
    job = bench.submit("array", "members", "--array=1-2", "--cpus-per-task=1")
    for member in (1, 2):
        require_completed(bench, f"{job}_{member}")
    one, two = (losses(bench.run_folder(f"members-{member}")) for member in (1, 2))
    require(len(one) == len(two) == STEPS and one != two, f"{len(one)} and {len(two)} steps\n{bench.logs()}")


def test_several_nodes(bench):
    """ranks of two nodes, and of the two groups of a heterogeneous job, are one run"""
    few = ["--ntasks-per-node=1", "--cpus-per-task=1", "--gpus-per-node=1"]
    # Slurm cannot start PMIx twice on a machine.
    require_completed(bench, bench.submit("many_nodes", "nodes", "--nodes=2", *few, AIFS_MPI="none"))
    require("[0/2]" in (bench.folder / "nodes.log").read_text(), bench.logs())
    require_completed(bench, bench.submit("heterogeneous", "mixed", *few, ":", *few, AIFS_MPI="none"))
    require_same_bits(bench, "mixed", "nodes")


def test_staging(bench):
    """a dataset is copied to the node, trained on there, and removed when the run is done"""
    store, local = bench.folder / "store.zarr", bench.folder / "local"
    bench.run(bench.program, "data", "synth", store, "--grid", "o8", "--num-variables", "3", "--num-dates", "20")
    settings = ["data.kind=anemoi", "graph.area_weight.kind=uniform", "graph.grid=dataset", "data.training={}",
                "data.validation={}", "data.diagnostic=[]", "data.normalizer={}", "data.forcing=[]", "model.bounding=[]"]
    job = bench.submit("one_gpu", "staged", "--cpus-per-task=1", AIFS_STAGE=store, AIFS_LOCAL=local,
                       settings=settings)
    require_completed(bench, job)
    manifest = json.loads((bench.run_folder("staged") / f"checkpoints/step-{STEPS:08}/manifest.json").read_text())
    require(str(local / f"aifs-{job}/store.zarr") in json.dumps(manifest["config"]["data"]), bench.logs())
    require(list(local.iterdir()) == [], f"left: {list(local.iterdir())}")


TESTS = [test_launchers, test_pmi2, test_interruptions, test_cancelled, test_restarts, test_devices, test_array, test_several_nodes, test_staging]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, names = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    failed = 0
    try:
        with slurm_service.Slurm(nodes=2) as slurm, tempfile.TemporaryDirectory(prefix="aifs-jobs-") as folder:
            bench = Bench(slurm, program, pathlib.Path(folder))
            for test in TESTS:
                name = test.__name__.removeprefix("test_")
                if names and name not in names:
                    continue
                start = time.monotonic()
                try:
                    test(bench)
                    print(f"passed: {name}, {time.monotonic() - start:.1f} s: {test.__doc__}", flush=True)
                except (AssertionError, RuntimeError, subprocess.TimeoutExpired) as error:
                    failed += 1
                    print(f"FAILED: {name} ({test.__doc__}): {error}", flush=True)
    except slurm_service.Unavailable as reason:
        print(f"skipped: no Slurm here: {reason}")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

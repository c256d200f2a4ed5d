# SPDX-License-Identifier: Apache-2.0
"""Runs of aifs-train on the tiny configuration, watched from outside: where they are, which processes they have, and
whether two ended with the same bits."""
import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 40
LAST = f"checkpoints/step-{STEPS:08}"
VALIDATED = 10  # steps between validations
# Checkpoints often, validations long enough to be met.
OPTIONS = ["train.max_steps=40", "checkpoint.every_steps=4", "checkpoint.keep=3", "train.validation.every_epochs=0",
           f"train.validation.every_steps={VALIDATED}", "train.validation.max_dates=6", "parallel.timeout_s=60"]
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1"}
NOISE = ("terminate called", "Segmentation fault", "Assertion", "core dumped", "Traceback", "what():")


class Run:
    """A process, or mpirun with several, that trains into `folder`; its output goes to a file beside it. `before`: words
    before the command, of what starts it."""

    def __init__(self, program, folder, ranks=1, options=(), resume=False, environment=None, before=()):
        self.folder, self.ranks, self.program = pathlib.Path(folder), ranks, str(program)
        launcher = [] if ranks == 1 else ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        command = [*map(str, before), *launcher, self.program, "--config", str(ROOT / "tests/app/tiny.json")]
        for option in [*OPTIONS, *options, f"run.dir={folder}"]:
            command += ["--set", option]
        if resume:
            command.append("--resume")
        self.log = self.folder.with_suffix(".log")
        self.started = time.monotonic()
        # What a run of before has left says nothing about this one.
        self.lines_before = len(self.lines("metrics.jsonl"))
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.log.open("w"), start_new_session=True,
                                        env=os.environ | ENVIRONMENT | (environment or {}))

    def alive(self):
        return self.process.poll() is None

    def text(self):
        return self.log.read_text(errors="replace")

    def lines(self, name):
        try:
            return (self.folder / name).read_text().splitlines()
        except OSError:
            return []

    def rank_processes(self):
        """The numbers of the processes that train, in no order."""
        if self.ranks == 1:
            return [self.process.pid]
        found, children = [], [self.process.pid]
        while children:
            parent = children.pop()
            try:
                ids = [int(i) for i in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
                found += [i for i in ids if os.readlink(f"/proc/{i}/exe") == self.program]
                children += ids
            except OSError:  # it has ended
                continue
        return found

    def process_of(self, rank):
        """The number of the process of this rank of several."""
        for process in self.rank_processes():
            if f"OMPI_COMM_WORLD_RANK={rank}".encode() in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                return process
        raise AssertionError(f"there is no rank {rank}")

    def wait(self, limit_s=120.0):
        """Returns the exit code, of a process that a signal ended minus its number."""
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"the run does not end within {limit_s:g} s\n{self.text()}") from None

    def end(self):
        """Ends all its processes, whatever they are doing."""
        for process in [*self.rank_processes(), self.process.pid]:
            send(process, signal.SIGKILL)
        self.process.wait()

    def reach(self, phase, random, limit_s=60.0):
        """Waits until the run is in this phase, or over; returns whether it was met."""
        if phase == "start":  # the first step begins about a second after the program
            self.pause_until(lambda: False, random.uniform(0.0, 1.2))
            return self.alive()
        if phase == "training":
            steps = self.lines_before % STEPS + random.randrange(1, 30)
            return self.pause_until(lambda: self.begun() and len(self.lines("metrics.jsonl")) >= steps, limit_s)
        if phase == "first step":
            return self.pause_until(self.begun, limit_s)
        if phase == "validation":
            return self.pause_until(lambda: self.begun() and self.in_validation(), limit_s)
        if phase == "checkpoint":
            checkpoints = self.folder / "checkpoints"
            return self.pause_until(lambda: checkpoints.exists() and any(
                name.startswith(".partial-") for name in os.listdir(checkpoints)), limit_s)
        raise ValueError(phase)

    def begun(self):
        return "the first step begins" in self.text()

    def in_validation(self):
        steps = len(self.lines("metrics.jsonl"))
        return steps > 0 and steps % VALIDATED == 0 and len(self.lines("validation.jsonl")) < steps // VALIDATED

    def pause_until(self, condition, limit_s):
        deadline = time.monotonic() + limit_s
        while self.alive() and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.0005)
        return False


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def require(condition, text):
    if not condition:
        raise AssertionError(text)


def essentials(file):
    """What must not depend on interruptions, of every line."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("step_s", "data_wait_s", "rates")} for line in lines]


def require_same_bits(folder, wanted, logs=True):
    for file in ("parameters.safetensors", "optimizer.safetensors"):
        require((folder / LAST / file).read_bytes() == (wanted / LAST / file).read_bytes(), f"{file} differs")
    for file in ("metrics.jsonl", "validation.jsonl") if logs else ():
        require(essentials(folder / file) == essentials(wanted / file), f"{file} differs")


def require_no_noise(text):
    for words in NOISE:
        require(words not in text, f"'{words}' in the output:\n{text}")


def errors_in(text):
    """Lines of the level error."""
    return [line for line in text.splitlines() if line.startswith("E ")]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A private Slurm of this machine for tests: munge, a controller and nodes with ports, keys and folders of their own.

usage: slurm_service.py COMMAND ...    runs a command in it (salloc, a shell), then takes it down

Needs root and Debian's slurm-wlm and munge. The trap: everything that talks to it finds it through SLURM_CONF, which
environment() holds; with another one it would talk to the Slurm of the machine.
"""
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "squeue"]
NODE_CPUS, NODE_GPUS = 4, 4  # of each node, whatever the machine has; GPUs are numbers in CUDA_VISIBLE_DEVICES only

CONFIGURATION = """
ClusterName=test{port}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdParameters=config_overrides
FirstJobId={first_job}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,sched_min_interval=0
KillWait=5
InactiveLimit=0
MpiDefault=none
ReturnToService=2
TmpFS={folder}
GresTypes=gpu
{nodes}
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 GraceTime=60 MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=high Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP OverSubscribe=NO
"""


class Unavailable(Exception):
    """Why there can be no Slurm here."""


def missing():
    """Returns what this machine lacks, or nothing."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if lacking:
        return f"not installed: {', '.join(lacking)} (Debian: slurm-wlm, munge)"
    if os.geteuid() != 0:
        return "the daemons of a private Slurm start as root only"
    return None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Slurm:
    """Started by the constructor, which throws Unavailable with the reason where a daemon does not start."""

    def __init__(self, nodes=1, wait_s=30.0):
        reason = missing()
        if reason:
            raise Unavailable(reason)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aifs-slurm-"))
        self.folder.chmod(0o755)  # munged does not like what others may write to
        self.processes = []
        self.names = [f"n{i}" for i in range(nodes)]
        try:
            self.start_munge()
            self.write_configuration()
            self.start_daemons()
            self.wait_for_nodes(wait_s)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def environment(self):
        """Variables of commands that talk to it; nothing of another Slurm or launcher is left in them."""
        others = re.compile(r"SLURM|PMI|OMPI_COMM|SBATCH|SALLOC|SRUN")
        kept = {name: value for name, value in os.environ.items() if not others.match(name)}
        kept["SLURM_CONF"] = str(self.folder / "slurm.conf")
        kept["PATH"] = kept.get("PATH", "") + ":/usr/sbin:/sbin"
        return kept

    def run(self, *command, check=True, timeout=60, **more):
        result = subprocess.run([str(word) for word in command], env=self.environment() | more, text=True,
                                capture_output=True, timeout=timeout)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: exit code {result.returncode}\n"
                               f"{result.stdout}{result.stderr}")
        return result

    def start(self, name, *command, **more):
        log = (self.folder / f"{name}.out").open("w")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env=self.environment(), start_new_session=True, **more)
        self.processes.append((name, process))
        return process

    def is_at_work(self, job):
        """True while a daemon of a step of this job is there."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cmdline").read_bytes().startswith(f"slurmstepd: [{job}.".encode()):
                    return True
            except OSError:  # it has ended
                continue
        return bool(list(self.folder.glob(f"spool-*/pmix.{job}.*")))

    def start_munge(self):
        """munged refuses keys and folders that others may read or write, and to be root."""
        private = self.folder / "munge"
        private.mkdir(mode=0o700)
        (private / "key").write_bytes(os.urandom(128))
        (private / "key").chmod(0o400)
        try:
            user = pwd.getpwnam("munge")
        except KeyError:
            raise Unavailable("there is no user 'munge'") from None
        for path in (private / "key", private, self.folder):
            os.chown(path, user.pw_uid, user.pw_gid)
        self.start("munged", "munged", "--foreground", f"--key-file={private}/key", f"--socket={self.folder}/munge.socket",
                   f"--pid-file={private}/pid", f"--log-file={private}/log", f"--seed-file={private}/seed",
                   "--num-threads=2", user=user.pw_uid, group=user.pw_gid)
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), 10, "munged does not listen")

    def write_configuration(self):
        lines = [f"NodeName={name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={free_port()} "
                 f"CPUs={NODE_CPUS} RealMemory=2000 Gres=gpu:{NODE_GPUS} State=UNKNOWN" for name in self.names]
        if len(self.names) == 1:  # a build of Slurm need not know several nodes of a machine
            lines[0] = lines[0].replace(f"NodeName={self.names[0]} NodeHostname={socket.gethostname()}",
                                        f"NodeName={socket.gethostname()}")
            self.names = [socket.gethostname()]
        text = CONFIGURATION.format(folder=self.folder, host=socket.gethostname(), port=free_port(),
                                    # Ports of ranks follow from the number of their job.
                                    first_job=random.randrange(1000, 1000000), nodes="\n".join(lines))
        (self.folder / "state").mkdir()
        (self.folder / "slurm.conf").write_text(text)
        for number in range(NODE_GPUS):
            os.mknod(self.folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (self.folder / "gres.conf").write_text(f"Name=gpu File={self.folder}/gpu[0-{NODE_GPUS - 1}]\n")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def start_daemons(self):
        self.start("slurmctld", "slurmctld", "-D", "-i")
        for name in self.names:
            self.start(f"slurmd-{name}", "slurmd", "-D", "-N", name)

    def wait_for_nodes(self, wait_s):
        def idle():
            states = self.run("sinfo", "-h", "-N", "-p", "low", "-o", "%T", check=False).stdout.split()
            return len(states) == len(self.names) and set(states) == {"idle"}
        self.wait_for(idle, wait_s, "the nodes do not become idle")

    def wait_for(self, condition, wait_s, failure):
        deadline = time.monotonic() + wait_s
        while time.monotonic() < deadline:
            ended = [(name, process.returncode) for name, process in self.processes if process.poll() is not None]
            if ended:
                raise Unavailable(f"{ended[0][0]} ended with exit code {ended[0][1]}:\n{self.last_words(ended[0][0])}")
            if condition():
                return
            time.sleep(0.1)
        raise Unavailable(f"{failure} within {wait_s:g} s:\n" + "".join(self.last_words(n) for n, _ in self.processes))

    def last_words(self, name):
        lines = []
        for file in (self.folder / f"{name}.out", self.folder / f"{name}.log"):
            if file.exists():
                lines += file.read_text(errors="replace").splitlines()[-6:]
        return "".join(f"  {name}: {line}\n" for line in lines)

    def close(self):
        """Ends what it has started, jobs first, and removes its folder."""
        if any(name == "slurmctld" for name, _ in self.processes):
            self.run("scancel", "--user=root", check=False)
            deadline = time.monotonic() + 15
            while time.monotonic() < deadline and self.run("squeue", "--noheader", check=False).stdout.strip():
                time.sleep(0.2)
        for stop in (signal.SIGTERM, signal.SIGKILL):
            for _, process in reversed(self.processes):
                if process.poll() is None:
                    process.send_signal(stop)
            deadline = time.monotonic() + 10
            while time.monotonic() < deadline and any(p.poll() is None for _, p in self.processes):
                time.sleep(0.05)
        self.end_left_over()
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_left_over(self):
        """Ends what the daemons have started and lost: processes that know this folder."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                known = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
                files = [os.readlink(file) for file in (process / "fd").iterdir()]
            except OSError:  # it has ended
                continue
            if int(process.name) != os.getpid() and (str(self.folder).encode() in known or
                                                     any(file.startswith(str(self.folder)) for file in files)):
                os.kill(int(process.name), signal.SIGKILL)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        with Slurm(nodes=int(os.environ.get("AIFS_SLURM_NODES", "1"))) as slurm:
            return subprocess.call(sys.argv[1:], env=slurm.environment())
    except Unavailable as reason:
        print(f"no Slurm here: {reason}", file=sys.stderr)
        return 77


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the job scripts of this folder share, read by them with `.`; docs/slurm.md explains it.
#   AIFS_TRAIN         the program; else that of this source tree or installation, else of PATH
#   AIFS_RUN_DIR       the run folder; else runs/<name of the job>, of arrays runs/<name>-<index>
#   AIFS_MPI           for srun --mpi; else pmix where this Slurm has it, else none
#   AIFS_STAGE         a dataset (folder or file) that is copied to every node before training
#   AIFS_LOCAL         where to on the node; else $TMPDIR or /tmp
#   AIFS_SRUN          more options of srun
#   AIFS_RESTARTS      how often a start of the job begins again when a rank has died, at most; else 3
#   AIFS_MAX_REQUEUES  how often a job goes back to the queue at most; else 1000
# The trap: a job that is requeued runs its script again from the top, so nothing before train()
# may depend on whether it is the first time.

say() { printf '%s: %s\n' "${SLURM_JOB_NAME:-job}" "$*" >&2; }

# Prints the program to start.
find_program() {
  local here
  here=$(dirname "${BASH_SOURCE[0]}")
  if [ -n "${AIFS_TRAIN:-}" ]; then
    printf '%s\n' "$AIFS_TRAIN"
    return
  fi
  for program in "$here/../../build/cuda/bin/aifs-train" "$here/../../build/release/bin/aifs-train" \
    "$here/../../../bin/aifs-train"; do
    if [ -x "$program" ]; then
      printf '%s\n' "$program"
      return
    fi
  done
  printf 'aifs-train\n'
}

# Prints how ranks are to find each other.
find_mpi() {
  if [ -n "${AIFS_MPI:-}" ]; then
    printf '%s\n' "$AIFS_MPI"
  elif srun --mpi=list 2>&1 | grep -qw pmix; then
    printf 'pmix\n'
  else
    printf 'none\n'
  fi
}

# Prints the run folder: the name and the index of a job stay, whatever number it gets.
find_run_folder() {
  local name=${SLURM_JOB_NAME:-default}
  name=${name%.sbatch}
  [ -z "${SLURM_ARRAY_TASK_ID:-}" ] || name=$name-$SLURM_ARRAY_TASK_ID
  printf '%s\n' "${AIFS_RUN_DIR:-runs/$name}"
}

# Copies $1 to every node of the job and prints where it is there. A copy that an earlier start of
# this job has completed, and was killed before it could remove it, is taken as it is.
stage() {
  if [ -n "${SLURM_HET_SIZE:-}" ]; then
    say "AIFS_STAGE: datasets are not copied for heterogeneous jobs"
    return 1
  fi
  local local_folder=${AIFS_LOCAL:-${TMPDIR:-/tmp}}/aifs-$SLURM_JOB_ID
  local copy
  copy=$local_folder/$(basename "$1")
  # shellcheck disable=SC2016
  if ! srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --mpi=none sh -c '
      mkdir -p "$(dirname "$2")" && { mkdir -m 700 "$2" 2>/dev/null || [ -d "$2" ] && [ ! -L "$2" ] && [ -O "$2" ]; } || exit 1
      [ -e "$3" ] || { rm -rf "$3.part" && cp -rL "$1" "$3.part" &&
        mv "$3.part" "$3"; }' sh "$1" "$local_folder" "$copy" </dev/null >&2; then
    say "'$1' could not be copied to '$local_folder' of every node"
    unstage
    return 1
  fi
  printf '%s\n' "$copy"
}

# Removes what stage() has copied.
unstage() {
  [ -z "${AIFS_STAGE:-}" ] ||
    srun --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --mpi=none \
      rm -rf "${AIFS_LOCAL:-${TMPDIR:-/tmp}}/aifs-$SLURM_JOB_ID" </dev/null
}

# Puts a run that was stopped back into the queue, but for one whose job was cancelled, or is over for
# another reason: Slurm would start that, too.
go_on_later() {
  local state
  state=$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)
  if [ "$state" != RUNNING ]; then
    say "stopped; the job is over: submit it again to go on"
    return
  fi
  if [ "${SLURM_RESTART_COUNT:-0}" -ge "${AIFS_MAX_REQUEUES:-1000}" ]; then
    say "stopped; this was requeue ${SLURM_RESTART_COUNT:-0}, the last one"
    return
  fi
  say "stopped: back to the queue"
  scontrol requeue "${SLURM_HET_JOB_ID:-$SLURM_JOB_ID}" ||
    say "this job may not be requeued: submit it again, it goes on where it was"
}

# True for the exit codes of a training that has lost a rank, its host or its GPU: an error of the
# environment, a rank that waited too long for another, and 128 and the signals that kill.
is_lost() {
  case $1 in
    1 | 6 | 132 | 134 | 135 | 136 | 137 | 139) true ;;
    *) false ;;
  esac
}

# Trains, or goes on with training; the options are those of aifs-train. What srun is to be told
# besides goes into AIFS_SRUN. Returns the program's exit code.
train() {
  local code=0 more=() program asked=''
  program=$(find_program)
  # Signals reach the ranks, which end together; this shell only waits for them.
  trap 'asked=1' TERM USR1
  if [ -n "${AIFS_STAGE:-}" ]; then
    local copy
    copy=$(stage "$AIFS_STAGE") || return 1
    more=(--set "data.dataset=$copy")
  fi
  # Since Slurm 22.05 srun does not take these from the job.
  export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
  local left=${AIFS_RESTARTS:-3}
  while true; do
    code=0
    # shellcheck disable=SC2086
    srun --mpi="$(find_mpi)" --kill-on-bad-exit=1 ${AIFS_SRUN:-} "$program" "$@" "${more[@]}" \
      --set "run.dir=$(find_run_folder)" --resume || code=$?
    if [ -n "$asked" ] || ! is_lost "$code" || [ "$left" -le 0 ]; then break; fi
    left=$((left - 1))
    say "exit code $code: a rank was lost; starting again, $left restarts left after this one"
  done
  unstage
  case $code in
    5 | 138 | 143) go_on_later ;; # 128 and the signal: it came before the program listens
  esac
  return "$code"
}

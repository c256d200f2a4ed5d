// SPDX-License-Identifier: Apache-2.0
// How runs start on machines that are not the developer's: what launchers and batch systems leave
// in the environment, what processes are bound to, what file systems and disks do not offer.
#include <sched.h>

#include <cerrno>
#include <chrono>

#include "core/file_io.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using test::run_command;
using test::run_train;
using test::train_command;

namespace {

constexpr const char* kOneStep = "--set train.max_steps=1 --set train.validation.at_end=false";

// A run with variables in its environment, "A=1 B=2".
test::CommandResult run_in(const std::string& environment, const fs::path& run,
                           const std::string& more) {
  return run_command(concat("env ", environment, " ", train_command(run, more)));
}

// The words of missing_operations.cpp, for the environment.
[[maybe_unused]] std::string without(const std::string& missing) {
  return concat("LD_PRELOAD='", AIFS_MISSING_OPERATIONS, "' AIFS_MISSING='", missing, "'");
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// One of the cores of this process.
int some_core() {
  cpu_set_t set;
  REQUIRE(::sched_getaffinity(0, sizeof set, &set) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &set))
    ++core;
  return core;
}

}  // namespace

TEST_CASE("a shell of an interactive job and large job numbers start a run", "[start]") {
  const test::TemporaryFolder folder;
  const std::string slurm =
      "SLURM_LOCALID=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_TASKS_PER_NODE=1 "
      "SLURM_STEP_NODELIST=n1 ";
  int number = 0;
  for (const char* job :
       {"SLURM_JOB_ID=1731344 SLURM_STEP_ID=4294967290", "SLURM_JOB_ID=2952160490 SLURM_STEP_ID=0",
        "SLURM_JOB_ID=1 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=8"}) {
    INFO(job);
    const auto result = run_in(slurm + job, folder.path() / std::to_string(number++), kOneStep);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  }
}

TEST_CASE("threads are as many as cores that the process may use", "[start]") {
  const test::TemporaryFolder folder;
  const std::string bound = concat("-u OMP_NUM_THREADS taskset -c ", some_core(), " env ");
  for (const std::string launcher : {"", "WORLD_SIZE=1 RANK=0 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 "}) {
    const fs::path run = folder.path() / concat("run-", launcher.size());
    const auto result = run_in(bound + launcher, run, concat(kOneStep, " --set run.threads=0"));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    REQUIRE_THAT(read_file(run / "train.log"), ContainsSubstring(", 1 thread, "));
  }
}

TEST_CASE("threads that wait sleep, and a run of one thread loads its libraries once", "[start]") {
  const test::TemporaryFolder folder;
  const std::string spin = "  GOMP_SPINCOUNT = '";
  for (const int threads : {1, 2}) {
    const auto result = run_in("-u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose",
                               folder.path() / std::to_string(threads),
                               concat(kOneStep, " --set run.threads=", threads));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    if (count(result.err, spin) == 0) continue;  // another library of OpenMP
    REQUIRE(count(result.err, spin) == threads);
    REQUIRE(count(result.err, spin + "1000'") == threads - 1);
  }
}

TEST_CASE("what is printed goes into no file where the terminal is closed", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto result = run_command(train_command(run, kOneStep) + " <&- >&- 2>&-");
  REQUIRE(result.exit_code == 0);
  REQUIRE(fs::file_size(run / "lock") == 0);
  REQUIRE_THAT(read_file(run / "train.log"), ContainsSubstring("aifs-train"));
  REQUIRE(read_file(run / "metrics.jsonl").starts_with("{"));
}

TEST_CASE("a run folder that cannot be is told before data are read", "[start]") {
  const test::TemporaryFolder folder;
  const std::string no_data = " --set data.kind=anemoi --set data.dataset=/nowhere/a.zarr";
  const auto error_of = [&](const fs::path& run) {
    const auto result = run_train(run, kOneStep + no_data);
    REQUIRE(result.exit_code == 1);
    return result.err;
  };
  fs::create_symlink("nowhere", folder.path() / "dangling");
  REQUIRE_THAT(error_of(folder.path() / "dangling"),
               ContainsSubstring("dangling' is a link to 'nowhere', which does not exist"));
  REQUIRE_THAT(error_of("/proc/run"), ContainsSubstring("cannot write in folder '/proc'"));
}

TEST_CASE("a disk without room for a checkpoint is told before training", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto result = run_command("ulimit -f 40; " +  // blocks of 512 bytes
                                  train_command(run, "--set train.max_steps=9"));
  INFO(result.err);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, ContainsSubstring("a checkpoint takes ") &&
                               ContainsSubstring(" in '" + (run / "checkpoints").string()) &&
                               ContainsSubstring("at most 20480 bytes (20.0 KiB)") &&
                               ContainsSubstring("hint: raise the limit of file sizes"));
  REQUIRE(!fs::exists(run / "metrics.jsonl"));
  REQUIRE(fs::is_empty(run / "checkpoints"));
}

#ifndef AIFS_SANITIZE  // whose runtime must be loaded first
TEST_CASE("a run goes on without operations that the file system lacks, and says so once",
          "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string graph = concat(" --set graph.file='", (folder.path() / "g.nc").string(), "'");
  const std::string missing =
      without(concat("lock=", ENOLCK, " flush_folder=", EINVAL, " rename_folder=", ENOSYS));
  const auto first = run_in(missing, run, "--set train.max_steps=9" + graph);
  INFO(first.err);
  REQUIRE(first.exit_code == 0);
  REQUIRE(count(first.err, "lacks operations") == 1);
  for (const char* text :
       {"no locks: a second run", "no flush of folders", "no renaming of folders"})
    REQUIRE(count(first.err, text) == 1);
  REQUIRE(fs::exists(run / "checkpoints" / "step-00000009" / "COMPLETE"));
  const auto again = run_in(missing, run, "--set train.max_steps=11 --resume" + graph);
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  REQUIRE_THAT(again.err, ContainsSubstring("resuming at step 9"));
}

TEST_CASE("a disk that gets full later is named, and leaves nothing half-written", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto result =
      run_in(without(concat("write=", ENOSPC, " write_most=8192")), run, "--set train.max_steps=9");
  INFO(result.err);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, ContainsSubstring("no checkpoint at step 7") &&
                               ContainsSubstring("parameters.safetensors") &&
                               ContainsSubstring("hint: is the disk full"));
  REQUIRE(fs::is_empty(run / "checkpoints"));
}

TEST_CASE("a quota is told with what it lets through", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const auto result =
      run_in(without(concat("reserve=", EOPNOTSUPP, " write=", EDQUOT, " write_most=5000")), run,
             kOneStep);
  INFO(result.err);
  REQUIRE(result.exit_code == 1);
  REQUIRE_THAT(result.err, ContainsSubstring("only ") && ContainsSubstring("Disk quota exceeded"));
  REQUIRE(!fs::exists(run / "metrics.jsonl"));
}
#endif

#ifdef AIFS_HAVE_MPI
#ifndef AIFS_SANITIZE
TEST_CASE("ranks wait for a checkpoint that takes longer than the limit of waiting", "[start]") {
  const test::TemporaryFolder folder;
  const std::string slow = concat("-x LD_PRELOAD='", AIFS_MISSING_OPERATIONS,
                                  "' -x AIFS_SLOW_FLUSH_S=2 -x AIFS_SLOW_TO_FLUSH=safetensors ");
  const std::string more =
      "--set train.max_steps=2 --set checkpoint.every_steps=1 --set train.validation.at_end=false "
      "--set parallel.timeout_s=1.5";
  for (const std::string layout : {"", " --set parallel.model=2"}) {
    const fs::path run = folder.path() / concat("run", layout.size());
    const auto result = run_command(test::mpirun(2) + slow + train_command(run, more + layout));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    REQUIRE(fs::exists(run / "checkpoints" / "step-00000002" / "COMPLETE"));
    REQUIRE(count(result.err, "words of known work") == 0);
  }
}

TEST_CASE("what killed runs left goes at the next start", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  const std::string graph = concat(" --set graph.file='", (folder.path() / "g.nc").string(), "'");
  // A run that a disk stops in its trial of it: killed while it writes 256 MiB of noise.
  const std::string held =
      without(concat("reserve=", EOPNOTSUPP)) + " AIFS_SLOW_FLUSH_S=20 AIFS_SLOW_TO_FLUSH=.trial ";
  const auto killed =
      run_command(concat("env ", held, "timeout -s KILL 6 ", train_command(run, kOneStep + graph)));
  REQUIRE(killed.exit_code != 0);
  const auto num_left = [&] {
    int64_t left = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
      left += entry.path().filename().string().find(".tmp-") != std::string::npos ? 1 : 0;
    return left;
  };
  REQUIRE(num_left() > 0);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))  // a minute later
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::minutes(1));
  fs::remove(folder.path() / "g.nc");
  REQUIRE(run_train(run, kOneStep + graph).exit_code == 0);
  REQUIRE(num_left() == 0);
}
#endif

TEST_CASE("a mistake of all ranks is said once", "[start]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  for (const auto& [more, message] :
       {std::pair<std::string, std::string>{"--set model.chanels=8", "no key 'chanels'"},
        {"--set run.mode=validate --resume", "run.mode is \"validate\""},
        {"--nonsense", "--nonsense"},
        {"--set data.forcing='[\"cos_latitud\"]'", "has no variable 'cos_latitud'"}}) {
    const auto result = run_command(test::mpirun(3) + train_command(run, more));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 2);
    REQUIRE(count(result.out + result.err, message) == 1);
  }
  REQUIRE(!fs::exists(run));
}

TEST_CASE("a mistake of one rank is said once and ends all", "[start]") {
  const test::TemporaryFolder folder;
  const std::string good = train_command(folder.path() / "run", kOneStep);
  for (const auto& [bad, message] :
       {std::pair<std::string, std::string>{" --set model.chanels=8", "no key 'chanels'"},
        {" --nonsense", "--nonsense"}}) {
    const auto result = run_command(concat(test::mpirun(2), good, " : -n 1 ", good, bad));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 2);
    REQUIRE(count(result.err, message) == 1);
    REQUIRE_THAT(result.err, ContainsSubstring("[2/3]"));
  }
}

TEST_CASE("what a batch system left does not stop mpirun", "[start]") {
  const test::TemporaryFolder folder;
  const auto result = run_command(
      "SLURM_JOB_ID=2952160490 SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0 "
      "SLURM_LOCALID=? MASTER_PORT=? WORLD_SIZE=? RANK=? " +
      test::mpirun(2) + train_command(folder.path() / "run", kOneStep));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE_THAT(read_file(folder.path() / "run/train.log"), ContainsSubstring("2 = 2 replicas"));
}
#endif

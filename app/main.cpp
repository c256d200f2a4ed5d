// SPDX-License-Identifier: Apache-2.0
// aifs-train: parse, load, run, exit code. The only place that catches everything.
#include <c10/core/AutogradState.h>
#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "app/check_config.h"
#include "app/checkpoints.h"
#include "app/cli.h"
#include "app/device.h"
#include "app/exchange.h"
#include "app/exit_codes.h"
#include "app/failure.h"
#include "app/plan.h"
#include "app/profiler.h"
#include "app/run_card.h"
#include "app/signals.h"
#include "app/versions.h"
#include "app/wiring.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"
#include "core/time.h"
#include "parallel/comm_virtual.h"
#include "parallel/counting_communicator.h"
#include "parallel/gather_text.h"
#include "parallel/runtime.h"

namespace aifs::app {

namespace {

// OpenMP threads that wait spin for milliseconds by default, which slows small steps a hundredfold
// on a machine shared with other work. The library reads its settings when it is loaded, so the
// program starts itself once more with a short spin, unless the user has chosen.
void let_waiting_threads_sleep(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  ::setenv("GOMP_SPINCOUNT", "1000", 0);
  ::execv("/proc/self/exe", argv);  // returns only if it fails, which does no harm
}

// The allocator should keep what it has got: fields of some megabytes come and go in every step,
// and fetching them from the system each time costs a sixth of it in page faults.
void keep_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
#endif
}

int train(Run& run, const CommandLine& c, parallel::Runtime& runtime) {
  const RunConfig& config = run.config();
  parallel::Communicator& world = run.mesh().world();
  std::optional<FileLock> lock;
  std::optional<train::CheckpointInfo> checkpoint;
  parallel::require_same(world, "program version", program_version());
  RunConfig copy = config;
  parallel::require_same(world, "configuration", effective_json(copy));
  parallel::require_same(world, "graph", run.graph().hash);
  const std::vector<std::string> places =
      parallel::gather_text(world, concat(runtime.host(), ": ", device_name(run.device())));
  const auto prepare = [&] {  // the main rank reads and writes files, the others get what it has
    if (!run.mesh().is_main()) return;
    make_directories(config.run.dir);
    lock.emplace(fs::path(config.run.dir) / "lock");
    if (!lock->held()) {
      throw ConfigError("run.dir", concat("another process is training in '", config.run.dir, "'"),
                        "wait for it, or choose another folder: --set run.dir=...");
    }
    if (c.resume) checkpoint = checkpoint_to_resume(config, c.resume_from);
    log::add_file((fs::path(config.run.dir) / "train.log").string());
    log::info(run_card(run, places));
  };
  parallel::together(world, prepare, failure_handling());
  if (parallel::on_any_rank(world, stop_requested())) {
    log::info("stopped before the first step; start again with --resume");
    return kInterrupted;
  }
  check_device(config, run.device());
  if (config.profile.nvtx) mark_ranges();
  StepProfiler profiler(
      config.profile.first_step, config.profile.steps,
      (fs::path(config.run.dir) / concat("trace-rank-", world.rank(), ".json")).string(),
      run.device());
  bool first = true;
  const train::Outcome outcome = run.train(checkpoint, [&](int64_t step) {
    runtime.set_place(concat("step ", step));
    profiler.begin(step);
    if (std::exchange(first, false))
      log::info("the first step begins after ", format_elapsed(Phases::seconds()));
  });
  if (outcome == train::Outcome::kInterrupted) {
    log::info("stopped after a checkpoint; go on with --resume");
    return kInterrupted;
  }
  return kSuccess;
}

// Threads of each rank where neither the configuration nor the environment says: the cores of this
// host over the ranks on it.
void share_cores(RunConfig& config) {
  const std::optional<int> local = parallel::Runtime::local_size();
  if (!local || config.run.threads > 0 || std::getenv("OMP_NUM_THREADS")) return;
  const auto cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  config.run.threads = std::max<int64_t>(1, cores / *local);
}

// Trains or validates as one rank of `world`.
int run_as_rank(const CommandLine& c, const RunConfig& config, bool validate,
                parallel::Runtime& runtime, parallel::Communicator& world, at::Device device) {
  const auto count = std::make_shared<parallel::CommunicationCount>();
  parallel::CountingCommunicator counting(world, count);
  const parallel::ProcessMesh mesh(
      counting, parallel::complete_sizes(config.parallel.sizes, world.size(), "parallel"));
  std::unique_ptr<Run> run;
  std::optional<train::CheckpointInfo> checkpoint;
  const auto build = [&] {
    if (!validate && !c.resume && mesh.is_main()) refuse_to_overwrite(config);
    if (validate) checkpoint = checkpoint_to_validate(config, c.checkpoint);
    run = std::make_unique<Run>(config, mesh, device);
  };
  parallel::together(world, build, failure_handling());
  run->share();
  parallel::together(
      world, [&] { run->build(); }, failure_handling());
  if (!validate) {
    const int code = train(*run, c, runtime);
    if (config.profile.parts && mesh.is_main() && world.size() > 1)
      log::info("communication of this rank in the whole run\n", count->table());
    return code;
  }
  run->validate(*checkpoint);
  return kSuccess;
}

// Plays this process's share of the ranks of a reproducible run.
int run_as_virtual_ranks(const CommandLine& c, RunConfig config, bool validate,
                         parallel::Runtime& runtime, at::Device device) {
  const int64_t ranks = config.parallel.virtual_ranks;
  if (ranks % runtime.size() != 0) {
    throw ConfigError(
        "parallel.virtual_ranks",
        concat(ranks, " ranks cannot be shared out evenly over ", runtime.size(), " processes"));
  }
  config.run.threads = 1;  // how sums are split over threads must not depend on the machine
  std::atomic<int> code = kSuccess;
  parallel::run_as_virtual_ranks(
      runtime.world(), static_cast<int>(ranks), [&](parallel::Communicator& world) {
        log::set_thread_rank(world.rank(), world.size());
        use_device(device);
        // Backward passes that wait for each other must not share a thread.
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
        code = run_as_rank(c, config, validate, runtime, world, device);
      });
  return code;
}

// Trains or validates as one of the processes.
int run_as_process(const CommandLine& c, RunConfig config, bool validate,
                   parallel::Runtime& runtime) {
  log::set_rank(runtime.rank(), runtime.size());
  share_cores(config);
  at::Device device = at::kCPU;
  parallel::together(
      runtime.world(),
      [&] { device = choose_device(config.run.device, parallel::Runtime::local_rank()); },
      failure_handling());
  if (device.is_cuda() && runtime.size() > 1) runtime.use_nccl();
  if (config.parallel.reproducible)
    return run_as_virtual_ranks(c, config, validate, runtime, device);
  return run_as_rank(c, config, validate, runtime, runtime.world(), device);
}

// Says what is wrong, once where all ranks know it, and makes sure that no other rank waits for
// this one.
int leave(parallel::Runtime& runtime, const std::exception& error) {
  if (dynamic_cast<const parallel::FailedTogether*>(&error)) return exit_code_of(error);
  const int code = exit_code_of(error);
  const bool known_to_all = code == kUsage || code == kNumerical;
  if (code != kUsage || runtime.rank() == 0) report(error);
  if (runtime.size() > 1 && !known_to_all) {
    log::error(runtime.name(), " ends the run");
    log::close_file();
    runtime.world().abort(code);
  }
  return code;
}

// A model for another program, or from one. Without --config the model's own configuration holds.
int exchange_model(const CommandLine& c) {
  const ExchangeCommand& exchange = *c.exchange;
  const parallel::ProcessMesh mesh;
  if (exchange.import) {
    const fs::path own = fs::path(exchange.from) / "config.json";
    if (c.config.empty() && !fs::exists(own)) {
      throw ConfigError("", concat("'", exchange.from, "' has no configuration of its own"),
                        "name that of the model: --config FILE");
    }
    RunConfig config = load_config(c.config.empty() ? own.string() : c.config, c.overrides);
    config.run.dir = exchange.to;
    const fs::path checkpoint = import_model(config, exchange.from, mesh);
    log::info("wrote '", checkpoint.string(),
              "', to be named in init.from; or go on with --config ",
              (fs::path(exchange.to) / "config.json").string(), " --resume");
    return kSuccess;
  }
  const train::CheckpointInfo checkpoint = find_checkpoint(exchange.from, "export");
  Run run(c.config.empty() ? parse_config(checkpoint.meta.config_json, c.overrides)
                           : load_config(c.config, c.overrides),
          mesh, at::kCPU);
  run.build();
  export_model(run, checkpoint, exchange.to);
  log::info("wrote the model of '", checkpoint.path.string(), "' to '", exchange.to, "'");
  return kSuccess;
}

// Says what was checked. What is not on this machine is an error unless it is to be left out.
int check(const CommandLine& c, const RunConfig& config) {
  CheckRequest request{.files = !c.no_data};
  if (c.resume) request.use = CheckRequest::Use::kResume;
  if (c.validate_only || config.run.mode == Mode::kValidate)
    request.use = CheckRequest::Use::kValidate;
  request.checkpoint = c.resume ? c.resume_from : c.checkpoint;
  const CheckReport report = check_config(config, request);
  std::fputs(report.text().c_str(), stdout);
  if (report.not_here.empty() || c.no_data) return kSuccess;
  throw DataError("not all that the configuration names could be checked",
                  "check it where the files are, or leave them out with --no-data");
}

int execute(const CommandLine& c) {
  if (c.exchange) return exchange_model(c);
  if (c.version) return std::fputs(versions_text().c_str(), stdout), kSuccess;
  if (c.print_schema) return std::fputs(schema_json().c_str(), stdout), kSuccess;
  if (c.print_reference) return std::fputs(reference_markdown().c_str(), stdout), kSuccess;
  RunConfig config = load_config(c.config, c.overrides);
  if (c.print_config) return std::fputs(effective_json(config).c_str(), stdout), kSuccess;
  log::set_level(static_cast<log::Level>(config.run.log_level));
  if (c.check_config) return check(c, config);
  if (c.dry_run) return std::fputs(dry_run(config, c.plan).c_str(), stdout), kSuccess;
  const bool validate = c.validate_only || config.run.mode == Mode::kValidate;
  if (validate && c.resume) {
    throw ConfigError("", "--resume goes on with training, but run.mode is \"validate\"",
                      "name the weights by --validate-only CHECKPOINT");
  }
  if (!validate) install_signal_handlers();  // a validation just ends: there is nothing to save
  parallel::Runtime runtime(config.parallel.timeout_s);
  try {
    return run_as_process(c, config, validate, runtime);
  } catch (const std::exception& error) {
    return leave(runtime, error);
  }
}

int guarded(const CommandLine& c) {
  try {
    return execute(c);
  } catch (const std::exception& error) {
    report(error);
    return exit_code_of(error);
  }
}

}  // namespace

}  // namespace aifs::app

int main(int argc, char** argv) {
  const aifs::app::ParsedCommandLine parsed = aifs::app::parse_command_line(argc, argv);
  if (!parsed.exit_code) aifs::app::let_waiting_threads_sleep(argv);
  aifs::app::keep_memory();
  return parsed.exit_code ? *parsed.exit_code : aifs::app::guarded(parsed.command);
}

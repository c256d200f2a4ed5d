// SPDX-License-Identifier: Apache-2.0
// aifs-train: parse, load, run, exit code. The only place that catches everything.
#include <ATen/Parallel.h>
#include <c10/core/AutogradState.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "app/check_config.h"
#include "app/cli.h"
#include "app/cli_pages.h"
#include "app/data_tools/commands.h"
#include "app/exchange.h"
#include "app/forecast_tools/make_forecasts.h"
#include "app/graph_tools/commands.h"
#include "app/hang_tools/explain_hang.h"
#include "app/import_checkpoint.h"
#include "app/import_config.h"
#include "app/report_tools/report_command.h"
#include "app/run/checkpoints.h"
#include "app/run/device.h"
#include "app/run/environment_traps.h"
#include "app/run/exit_codes.h"
#include "app/run/failure.h"
#include "app/run/io_run.h"
#include "app/run/plan.h"
#include "app/run/profiler.h"
#include "app/run/run_card.h"
#include "app/run/saved_data.h"
#include "app/run/share.h"
#include "app/run/signals.h"
#include "app/run/versions.h"
#include "app/run/wiring.h"
#include "app/verify_tools/verify_command.h"
#include "app/watch_tools/watch_command.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/folder_trial.h"
#include "core/host.h"
#include "core/log.h"
#include "core/nvml.h"
#include "core/stale_files.h"
#include "core/time.h"
#include "parallel/backends/comm_virtual.h"
#include "parallel/backends/counting_communicator.h"
#include "parallel/gather_text.h"
#include "parallel/launch/runtime.h"

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

// False if no thread waits for others: loading the libraries twice would be half of a short run.
bool computes_with_threads(const RunConfig& config) {
  if (config.parallel.reproducible) return false;
  return (config.run.threads > 0 ? config.run.threads : at::get_num_threads()) > 1;
}

// True if the configuration comes from a pipe or a terminal.
bool can_be_read_once(const std::string& file) {
  std::error_code ignored;
  return fs::exists(file, ignored) && !fs::is_regular_file(file, ignored);
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

// Every chunk of the batches that are read ahead may be an open file.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Tries what would show at the first checkpoint: a disk that is full, a quota, a limit of file
// sizes, and operations that the file system has not got.
void try_run_folder(const Run& run) {
  const RunConfig& config = run.config();
  const fs::path checkpoints = checkpoint_folder(config);
  make_directories(checkpoints);
  for (const fs::path& folder : {fs::path(config.run.dir), checkpoints})
    remove_stale_files(folder, "", /*quiet_s=*/0.0);  // the lock says that nobody else writes here
  // One may be a link to another file system.
  std::map<std::string, std::string> lacking;
  for (const fs::path& folder : {fs::path(config.run.dir), checkpoints}) {
    std::string missing;
    for (const std::string& operation : missing_operations(folder))
      missing += (missing.empty() ? "" : "; ") + operation;
    if (!missing.empty()) lacking.try_emplace(missing, folder.string());
  }
  for (const auto& [missing, folder] : lacking) {
    log::warning("the file system of '", folder,
                 "' lacks operations, and this run does without: ", missing);
  }
  const bool ademamix = config.optimizer.adamw.kind == train::OptimizerKind::kAdemamix;
  const bool average = config.optimizer.average.kind != train::AverageKind::kNone;
  const int64_t states = (ademamix ? 3 : 2) + (average ? 1 : 0);
  check_room(checkpoints, "a checkpoint", train::checkpoint_file_bytes(run.parameters(), states));
}

// `hosts`: of all ranks. GPUs of other hosts than this one are not looked at.
void warn_of_traps(const Run& run, const std::vector<std::string>& hosts) {
  Surroundings surroundings{.on_gpu = run.device().is_cuda(), .variable = ::getenv};
  surroundings.num_hosts = std::ssize(std::set<std::string>(hosts.begin(), hosts.end()));
  if (surroundings.on_gpu) {
    if (const auto nvml = Nvml::open({gpu_address(run.device())})) surroundings.gpus = nvml->read();
  }
  for (const std::string& trap : environment_traps(surroundings))
    log::warning(trap);
}

// `goes_on`: with --resume, also where there is no checkpoint yet.
int train(Run& run, bool goes_on, const std::optional<train::CheckpointInfo>& resume_from,
          parallel::Runtime& runtime) {
  const RunConfig& config = run.config();
  parallel::Communicator& world = run.mesh().world();
  std::optional<FileLock> lock;
  parallel::require_same(world, "program version", program_version());
  RunConfig copy = config;
  parallel::require_same(world, "configuration", effective_json(copy));
  parallel::require_same(world, "graph", run.graph().hash);
  const std::vector<std::string> places =
      parallel::gather_text(world, concat(runtime.host(), ": ", device_name(run.device())));
  const std::vector<std::string> hosts = parallel::gather_text(world, runtime.host());
  const auto prepare = [&] {  // the main rank reads and writes files, the others get what it has
    if (!run.mesh().is_main()) return;
    make_directories(config.run.dir);
    lock.emplace(fs::path(config.run.dir) / "lock");
    if (!lock->held()) {
      throw ConfigError("run.dir", concat("another process is training in '", config.run.dir, "'"),
                        "wait for it, or choose another folder: --set run.dir=...");
    }
    log::add_file((fs::path(config.run.dir) / "train.log").string());
    std::error_code ignored;
    if (!goes_on) {  // what an earlier run took does not count
      for (const char* name : {train::Goodput::kFile, "metrics.jsonl"}) {
        const fs::path file = fs::path(config.run.dir) / name;
        if (fs::is_regular_file(fs::symlink_status(file, ignored))) fs::remove(file, ignored);
      }
    }
    try_run_folder(run);
    log::info(run_card(run, places));
    warn_of_traps(run, hosts);
  };
  parallel::together(world, prepare, failure_handling());
  runtime.record_hangs(fs::path(config.run.dir) / "hang", stop_requested,
                       concat("; who waited for whom: aifs-train explain-hang ", config.run.dir));
  check_device(config, run.device());
  if (config.profile.nvtx) mark_ranges();
  StepProfiler profiler(
      config.profile.first_step, config.profile.steps,
      (fs::path(config.run.dir) / concat("trace-rank-", world.rank(), ".json")).string(),
      run.device());
  bool first = true;
  const train::Outcome outcome = run.train(resume_from, [&](int64_t step) {
    runtime.set_place(concat("step ", step));
    profiler.begin(step);
    if (std::exchange(first, false))
      log::info("the first step begins after ", format_elapsed(Phases::seconds()));
  });
  if (outcome == train::Outcome::kInterrupted) {
    log::info("stopped after a checkpoint; go on with --resume");
    return kInterrupted;
  }
  log::info("training has ended after ", format_elapsed(Phases::seconds()));
  return kSuccess;
}

// Threads of each rank where neither the configuration nor the environment says: those that the
// library would start, but no more than there are cores for this rank. The configuration stays as
// it is, for it must be the same on all ranks, and hosts may differ.
void share_cores(const RunConfig& config, const parallel::Runtime& runtime) {
  const char* said = std::getenv("OMP_NUM_THREADS");
  if (config.run.threads > 0 || (said && *said)) return;
  at::set_num_threads(
      static_cast<int>(std::min<int64_t>(at::get_num_threads(), runtime.num_cores())));
}

// Returns what the checkpoint says of its data whose weights the run is to begin with.
std::optional<SavedData> saved_data_of(const RunConfig& config,
                                       const std::optional<train::CheckpointInfo>& checkpoint,
                                       bool validate) {
  if (checkpoint) return saved_data(validate ? WeightUse::kScore : WeightUse::kResume, *checkpoint);
  if (validate || config.init.from.empty()) return std::nullopt;
  return saved_data(WeightUse::kStart, find_checkpoint(config.init.from, "init.from"));
}

// Makes forecasts as one rank of `mesh`.
int forecast(const CommandLine& c, const RunConfig& config, const parallel::ProcessMesh& mesh,
             at::Device device) {
  std::unique_ptr<Run> run;
  std::optional<train::CheckpointInfo> checkpoint;
  // A run that goes on may have another checkpoint a moment later: all ranks take that of one.
  std::string folder;
  const auto find = [&] {
    if (!mesh.is_main()) return;
    checkpoint = find_checkpoint(c.forecast->from, "forecast");
    folder = checkpoint->path.string();
  };
  parallel::together(mesh.world(), find, failure_handling());
  share(folder, mesh.world());
  const auto build = [&] {
    if (!checkpoint) checkpoint = train::inspect_checkpoint(folder);
    run = std::make_unique<Run>(
        config, mesh, device,
        mesh.is_main() ? std::optional<SavedData>(saved_data(WeightUse::kForecast, *checkpoint))
                       : std::nullopt);
  };
  parallel::together(mesh.world(), build, failure_handling());
  run->share();
  const auto load = [&] {
    run->build_network();
    run->load_weights(*checkpoint, WeightUse::kForecast);
  };
  parallel::together(mesh.world(), load, failure_handling());
  return make_forecasts(*run, *checkpoint, *c.forecast);
}

// Trains or validates as one rank of `world`.
int run_as_rank(const CommandLine& c, const RunConfig& config, bool validate,
                parallel::Runtime& runtime, parallel::Communicator& world, at::Device device) {
  const auto count = std::make_shared<parallel::CommunicationCount>();
  // Ranks of a reproducible run are threads: what a process waits for is not one of them.
  parallel::CountingCommunicator counting(world, count,
                                          config.parallel.reproducible ? nullptr : runtime.ring());
  const parallel::ProcessMesh mesh(
      counting, parallel::complete_sizes(config.parallel.sizes, world.size(), "parallel"));
  if (c.forecast) return forecast(c, config, mesh, device);
  std::unique_ptr<Run> run;
  std::optional<train::CheckpointInfo> checkpoint;
  const auto build = [&] {
    if (!validate && mesh.is_main()) {
      if (!c.resume) refuse_to_overwrite(config);
      check_writable(config.run.dir);  // before data are read, which takes its time
    }
    if (validate) checkpoint = checkpoint_to_validate(config, c.checkpoint);
    if (!validate && c.resume && mesh.is_main())
      checkpoint = checkpoint_to_resume(config, c.resume_from);
    run = std::make_unique<Run>(
        config, mesh, device,
        mesh.is_main() ? saved_data_of(config, checkpoint, validate) : std::nullopt);
  };
  parallel::together(world, build, failure_handling());
  run->share();
  parallel::together(
      world, [&] { run->build(); }, failure_handling());
  if (!validate) {
    const int code = train(*run, c.resume, checkpoint, runtime);
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
  share_cores(config, runtime);
  at::Device device = at::kCPU;
  parallel::together(
      runtime.world(), [&] { device = choose_device(config.run.device, runtime.local_rank()); },
      failure_handling());
  check_gpus(parallel::gather_text(runtime.world(), host_identity()),
             parallel::gather_text(runtime.world(), gpu_address(device)));
  if (device.is_cuda() && runtime.size() > 1) runtime.use_nccl();
  if (config.run.mode == Mode::kIo) {
    run_io(config, runtime.world(), device);
    return stop_requested() ? kInterrupted : kSuccess;
  }
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

// A model of another program as a run. Without --config the model's own configuration holds.
int import_any(const CommandLine& c, const parallel::ProcessMesh& mesh) {
  const ExchangeCommand& exchange = *c.exchange;
  fs::path checkpoint;
  if (is_checkpoint_file(exchange.from)) {
    checkpoint = import_checkpoint(c, mesh);
  } else {
    const fs::path own = fs::path(exchange.from) / "config.json";
    if (!path_exists(exchange.from))
      throw DataError(concat("there is no '", exchange.from, "'"),
                      "name a checkpoint of Anemoi (.ckpt), or a folder with its state dict");
    if (c.config.empty() && !path_exists(own)) {
      throw ConfigError("", concat("'", exchange.from, "' has no configuration of its own"),
                        "name that of the model: --config FILE");
    }
    RunConfig config = load_config(c.config.empty() ? own.string() : c.config, with_graph_file(c));
    config.run.dir = exchange.to;
    checkpoint = import_folder(config, exchange.from, mesh);
  }
  log::info("wrote '", checkpoint.string(), "', to be named in init.from; or go on with --config ",
            (fs::path(exchange.to) / "config.json").string(), " --resume");
  return kSuccess;
}

// A model for another program, or from one.
int exchange_model(const CommandLine& c) {
  const ExchangeCommand& exchange = *c.exchange;
  const parallel::ProcessMesh mesh;
  if (exchange.import) return import_any(c, mesh);
  const train::CheckpointInfo checkpoint = find_checkpoint(exchange.from, "export");
  Run run(c.config.empty() ? parse_config(checkpoint.meta.config_json, c.overrides)
                           : load_config(c.config, c.overrides),
          mesh, at::kCPU, saved_data(WeightUse::kScore, checkpoint));
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

// Describes what is asked of a run.
struct Request {
  RunConfig config;
  bool validate = false;
};

// The configuration that is given, else that of a run or checkpoint, but for how many ranks it was
// trained on; `named_by` is who names it.
RunConfig config_of(const CommandLine& c, const std::string& from, const std::string& named_by) {
  if (!c.config.empty()) return load_config(c.config, c.overrides);
  const train::CheckpointInfo checkpoint = find_checkpoint(from, named_by);
  return parse_config(without_layout(checkpoint.meta.config_json), c.overrides);
}

int verify(const CommandLine& c) {
  if (parallel::launched_ranks() > 1)
    throw ConfigError("",
                      concat("verify is the work of one process, and ", parallel::launched_ranks(),
                             " were started"),
                      "call it without mpirun or srun");
  if (c.verify->truth.empty() && c.config.empty())
    throw ConfigError("--truth", "what the truth is, was not said",
                      "name a run or checkpoint, or --config FILE");
  const RunConfig config = config_of(c, c.verify->truth, "--truth");
  log::set_level(static_cast<log::Level>(config.run.log_level));
  return run_verify_command(*c.verify, forecast_config(config));
}

int report_runs(const CommandLine& c) {
  const auto truth_config = [&] {
    return forecast_config(config_of(c, c.report->truth, "--truth"));
  };
  const bool has_truth = !c.report->truth.empty() || !c.config.empty();
  return run_report_command(*c.report, has_truth ? truth_config : std::function<RunConfig()>());
}

Request read_request(const ParsedCommandLine& parsed) {
  if (parsed.exit_code)
    throw ConfigError("", parsed.err.substr(0, parsed.err.find_last_not_of('\n') + 1));
  const CommandLine& c = parsed.command;
  Request request{c.forecast ? config_of(c, c.forecast->from, "forecast")
                             : load_config(c.config, c.overrides)};
  log::set_level(static_cast<log::Level>(request.config.run.log_level));
  if (c.forecast) {
    request.config = forecast_config(std::move(request.config));
    check_command(*c.forecast, request.config);
    request.validate = true;  // nothing to save at a signal
    return request;
  }
  request.validate = c.validate_only || request.config.run.mode == Mode::kValidate;
  if (request.validate && c.resume) {
    throw ConfigError("", "--resume goes on with training, but run.mode is \"validate\"",
                      "name the weights by --validate-only CHECKPOINT");
  }
  const Mode mode = request.config.run.mode;
  if (c.resume && mode != Mode::kTrain) {
    throw ConfigError(
        "", concat("--resume goes on with training, but run.mode is \"", enum_name(mode), "\""),
        "leave one of them out");
  }
  return request;
}

// Joins the other ranks even with a request that is wrong: only together they know which of them
// has to say so, once, and that none waits for another.
int run_with_others(const ParsedCommandLine& parsed, char** argv) {
  constexpr double kJoining_s = 60.0;
  Request request;
  std::exception_ptr fault;
  try {
    if (can_be_read_once(parsed.command.config)) let_waiting_threads_sleep(argv);
    request = read_request(parsed);
    if (computes_with_threads(request.config)) let_waiting_threads_sleep(argv);
  } catch (const std::exception&) {
    fault = std::current_exception();
  }
  if (fault && parallel::launched_ranks() == 1) std::rethrow_exception(fault);
  // A validation just ends: there is nothing to save.
  if (!fault && !request.validate) install_signal_handlers();
  if (parsed.command.forecast) survive_failed_writes();
  std::optional<parallel::Runtime> runtime;
  try {
    runtime.emplace(fault ? kJoining_s : request.config.parallel.timeout_s);
  } catch (const ConfigError& error) {
    if (fault) std::rethrow_exception(fault);
    const bool on_all_ranks = error.path() == "parallel";
    if (on_all_ranks && parallel::launched_rank() != 0) return kUsage;
    throw;
  }
  log::set_rank(runtime->rank(), runtime->size());
  try {
    const auto check = [&] {
      if (fault) std::rethrow_exception(fault);
    };
    parallel::together(runtime->world(), check, failure_handling());
    return run_as_process(parsed.command, request.config, request.validate, *runtime);
  } catch (const std::exception& error) {
    return leave(*runtime, error);
  }
}

// The manual page, or what completes command lines in a shell.
int print_page(const CommandLine& c) {
  ProgramPages pages = *c.pages;
  pages.version = concat("aifs-train ", program_version());
  pages.keys = all_keys();
  std::fputs((c.print_man                   ? man_page(pages)
              : c.print_completion == "zsh" ? zsh_completion(pages)
                                            : bash_completion(pages))
                 .c_str(),
             stdout);
  return kSuccess;
}

int execute(const ParsedCommandLine& parsed, char** argv) {
  const CommandLine& c = parsed.command;
  if (parsed.exit_code && (*parsed.exit_code == kSuccess || parallel::launched_ranks() == 1)) {
    std::fputs(parsed.out.c_str(), stdout);
    std::fputs(parsed.err.c_str(), stderr);
    return *parsed.exit_code;
  }
  if (parsed.exit_code) return run_with_others(parsed, argv);
  if (c.exchange) return exchange_model(c);
  if (c.verify) return verify(c);
  if (c.report) return report_runs(c);
  if (c.import_config) return import_config(*c.import_config);
  if (c.data) return run_data_command(*c.data);
  if (c.watch) return run_watch_command(*c.watch);
  if (c.explain_hang) return explain_hang(*c.explain_hang);
  if (c.graph) return run_graph_command(*c.graph, {c.config, c.overrides});
  if (c.version) return std::fputs(versions_text().c_str(), stdout), kSuccess;
  if (c.pages) return print_page(c);
  if (c.print_schema) return std::fputs(schema_json().c_str(), stdout), kSuccess;
  if (c.print_reference) return std::fputs(reference_markdown().c_str(), stdout), kSuccess;
  if (!c.print_config && !c.check_config && !c.dry_run) return run_with_others(parsed, argv);
  RunConfig config = load_config(c.config, c.overrides);
  if (c.print_config) return std::fputs(effective_json(config).c_str(), stdout), kSuccess;
  log::set_level(static_cast<log::Level>(config.run.log_level));
  return c.check_config ? check(c, config)
                        : (std::fputs(dry_run(config, c.plan).c_str(), stdout), kSuccess);
}

int guarded(const ParsedCommandLine& parsed, char** argv) {
  try {
    return execute(parsed, argv);
  } catch (const std::exception& error) {
    report(error);
    return exit_code_of(error);
  }
}

}  // namespace

}  // namespace aifs::app

int main(int argc, char** argv) {
  aifs::open_standard_streams();
  const aifs::app::ParsedCommandLine parsed = aifs::app::parse_command_line(argc, argv);
  aifs::app::keep_memory();
  aifs::app::raise_file_limit();
  const int exit_code = aifs::app::guarded(parsed, argv);
  aifs::log::close_file();
  std::fflush(nullptr);
  std::_Exit(exit_code);  // libraries need not take themselves apart, which takes time and may fail
}

// SPDX-License-Identifier: Apache-2.0
// aifs-train: parse, load, run, exit code. The only place that catches everything.
#include <c10/util/Exception.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "app/cli.h"
#include "app/exit_codes.h"
#include "app/run_card.h"
#include "app/signals.h"
#include "app/versions.h"
#include "app/wiring.h"
#include "core/check.h"
#include "core/file_io.h"
#include "core/log.h"

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

int report(int code, const Error& error) {
  log::error(error.what());
  if (!error.hint().empty()) log::error("hint: ", error.hint());
  return code;
}

// What the user names: a checkpoint, or a folder that holds some (the newest sound one is taken).
train::CheckpointInfo find_checkpoint(const fs::path& given) {
  std::error_code ignored;
  const bool is_checkpoint = fs::exists(given / "manifest.json", ignored) ||
                             given.filename().string().starts_with("step-");
  if (is_checkpoint) return train::inspect_checkpoint(given);
  for (const fs::path& folder : {given / "checkpoints", given}) {
    if (!fs::is_directory(folder, ignored)) continue;
    if (auto found = train::find_latest_checkpoint(folder)) return *found;
  }
  throw DataError(concat("'", given.string(), "' holds no checkpoint"),
                  "name a run folder or a folder such as checkpoints/step-00000060");
}

// A run folder with checkpoints is only continued, never started over.
void refuse_to_overwrite(const RunConfig& config) {
  if (!train::has_checkpoints(checkpoint_folder(config))) return;
  throw ConfigError("run.dir", concat("'", config.run.dir, "' holds checkpoints of an earlier run"),
                    "go on with --resume, or choose another folder: --set run.dir=...");
}

// The checkpoint to go on from, or none to start afresh.
std::optional<train::CheckpointInfo> checkpoint_to_resume(const RunConfig& config,
                                                          const CommandLine& c) {
  const fs::path own = checkpoint_folder(config);
  if (c.resume_from.empty()) {
    auto found = train::find_latest_checkpoint(own);
    if (!found) log::info("no checkpoint in '", own.string(), "': starting afresh");
    return found;
  }
  auto found = find_checkpoint(c.resume_from);
  std::error_code ignored;
  const fs::path folder = fs::absolute(found.path).parent_path();
  if (!fs::equivalent(folder, own, ignored)) refuse_to_overwrite(config);  // a branch of a run
  return found;
}

train::CheckpointInfo checkpoint_to_validate(const RunConfig& config, const CommandLine& c) {
  if (!c.checkpoint.empty()) return find_checkpoint(c.checkpoint);
  if (auto found = train::find_latest_checkpoint(checkpoint_folder(config))) return *found;
  throw DataError(concat("no checkpoint in '", checkpoint_folder(config).string(), "'"),
                  "train first, or name one: --validate-only <run>/checkpoints/step-...");
}

int train(Run& run, const CommandLine& c) {
  const RunConfig& config = run.config();
  make_directories(config.run.dir);
  const FileLock lock(fs::path(config.run.dir) / "lock");
  if (!lock.held()) {
    throw ConfigError("run.dir", concat("another process is training in '", config.run.dir, "'"),
                      "wait for it, or choose another folder: --set run.dir=...");
  }
  std::optional<train::CheckpointInfo> checkpoint;
  if (c.resume) checkpoint = checkpoint_to_resume(config, c);
  log::add_file((fs::path(config.run.dir) / "train.log").string());
  log::info(run_card(run));
  if (stop_requested()) {
    log::info("stopped before the first step; start again with --resume");
    return kInterrupted;
  }
  const train::Outcome outcome = run.train(checkpoint);
  if (outcome == train::Outcome::kInterrupted) {
    log::info("stopped after a checkpoint; go on with --resume");
    return kInterrupted;
  }
  return kSuccess;
}

int execute(const CommandLine& c) {
  if (c.version) return std::fputs(versions_text().c_str(), stdout), kSuccess;
  if (c.print_schema) return std::fputs(schema_json().c_str(), stdout), kSuccess;
  if (c.print_reference) return std::fputs(reference_markdown().c_str(), stdout), kSuccess;
  RunConfig config = load_config(c.config, c.overrides);
  if (c.print_config) return std::fputs(effective_json(config).c_str(), stdout), kSuccess;
  log::set_level(static_cast<log::Level>(config.run.log_level));
  if (c.check_config) {
    std::printf("%s\nthe configuration is sound\n", check_config(config).c_str());
    return kSuccess;
  }
  const bool validate = c.validate_only || config.run.mode == Mode::kValidate;
  if (!validate && !c.resume) refuse_to_overwrite(config);
  if (validate && c.resume) {
    throw ConfigError("", "--resume goes on with training, but run.mode is \"validate\"",
                      "name the weights by --validate-only CHECKPOINT");
  }
  if (validate) {  // a signal just ends it: there is nothing to save
    const train::CheckpointInfo checkpoint = checkpoint_to_validate(config, c);
    Run(config).validate(checkpoint);
    return kSuccess;
  }
  install_signal_handlers();
  Run run(config);
  return train(run, c);
}

Error out_of_memory() {
  return Error("out of memory", "use a smaller batch, model or grid");
}

int guarded(const CommandLine& c) {
  try {
    return execute(c);
  } catch (const ConfigError& error) {
    return report(kUsage, error);
  } catch (const DataError& error) {
    return report(kData, error);
  } catch (const NumericalError& error) {
    return report(kNumerical, error);
  } catch (const Error& error) {
    return report(kInternal, error);
  } catch (const std::bad_alloc&) {
    return report(kInternal, out_of_memory());
  } catch (const c10::Error& error) {  // its what() has a stack trace
    const std::string text = error.what_without_backtrace();
    const bool memory = text.find("alloc") != std::string::npos;
    return report(kInternal, memory ? out_of_memory() : Error(text));
  } catch (const std::exception& error) {
    return report(kInternal, Error(error.what()));
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

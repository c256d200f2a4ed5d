// SPDX-License-Identifier: Apache-2.0
#include "app/run/checkpoints.h"

#include "core/check.h"
#include "core/file_kind.h"
#include "core/log.h"

namespace aifs::app {

namespace {

constexpr const char* kWanted = "name a run folder or a folder such as checkpoints/step-00000060";

bool is_checkpoint(const fs::path& folder) {
  return path_exists(folder / "manifest.json") || folder.filename().string().starts_with("step-");
}

// The file that names the best or the newest checkpoint if that is what a user gives, as
// <run>/checkpoints/best or <run>/best; else "".
fs::path pointer_of(const fs::path& given) {
  const std::string name = given.filename().string();
  if (name != "best" && name != "latest") return {};
  for (const fs::path& file : {given, given.parent_path() / "checkpoints" / name}) {
    std::error_code ignored;
    if (fs::is_regular_file(file, ignored)) return file;
  }
  return {};
}

// Returns what is there instead of a folder.
DataError no_folder(const fs::path& given, const std::string& named_by) {
  const std::string what = concat(named_by, " names '", given.string(), "', ");
  if (!path_exists(given)) {
    return DataError(concat(what, "which is not there", dangling_link_text(given)), kWanted);
  }
  const std::string kind = describe_kind_of_file(given);
  std::string hint = kWanted;
  if (given.has_parent_path() && path_exists(given.parent_path() / "manifest.json")) {
    hint = concat("name its folder: '", given.parent_path().string(), "'");
  } else if (kind.ends_with("archive") || kind == "a gzip file") {
    hint = concat("unpack it, and ", kWanted,
                  "; of a checkpoint of Anemoi, aifs-train import makes a run");
  }
  return DataError(concat(what, kind.empty() ? "a file that cannot be read" : kind,
                          ", not a folder with a checkpoint"),
                   hint);
}

}  // namespace

train::CheckpointInfo find_checkpoint(const fs::path& given, const std::string& named_by) {
  if (const fs::path pointer = pointer_of(given); !pointer.empty())
    return train::inspect_checkpoint(train::pointed_at(pointer));
  if (!folder_exists(given)) throw no_folder(given, named_by);
  if (is_checkpoint(given)) return train::inspect_checkpoint(given);
  for (const fs::path& folder : {given / "checkpoints", given}) {
    if (!folder_exists(folder)) continue;
    if (auto found = train::find_latest_checkpoint(folder)) return *found;
  }
  const bool is_model = path_exists(given / "model.safetensors");
  throw DataError(
      concat(named_by, " names '", given.string(), "', which holds no checkpoint"),
      is_model ? "aifs-train import makes a run of a model that export wrote" : kWanted);
}

fs::path checkpoint_folder(const RunConfig& config) {
  return fs::path(config.run.dir) / "checkpoints";
}

void refuse_to_overwrite(const RunConfig& config) {
  if (!train::has_checkpoints(checkpoint_folder(config))) return;
  throw ConfigError("run.dir", concat("'", config.run.dir, "' holds checkpoints of an earlier run"),
                    "go on with --resume, or choose another folder: --set run.dir=...");
}

std::optional<train::CheckpointInfo> checkpoint_to_resume(const RunConfig& config,
                                                          const std::string& given) {
  const fs::path own = checkpoint_folder(config);
  if (given.empty()) {
    auto found = train::find_latest_checkpoint(own);
    if (!found) log::info("no checkpoint in '", own.string(), "': starting afresh");
    return found;
  }
  auto found = find_checkpoint(given, "--resume");
  std::error_code ignored;
  const fs::path folder = fs::absolute(found.path).parent_path();
  if (!fs::equivalent(folder, own, ignored)) refuse_to_overwrite(config);  // a branch of a run
  return found;
}

train::CheckpointInfo checkpoint_to_validate(const RunConfig& config, const std::string& given) {
  if (!given.empty()) return find_checkpoint(given, "--validate-only");
  if (auto found = train::find_latest_checkpoint(checkpoint_folder(config))) return *found;
  throw DataError(concat("no checkpoint in '", checkpoint_folder(config).string(), "'"),
                  "train first, or name one: --validate-only <run>/checkpoints/step-...");
}

}  // namespace aifs::app

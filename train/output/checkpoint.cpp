// SPDX-License-Identifier: Apache-2.0
#include "train/output/checkpoint.h"

#include <ATen/ATen.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"
#include "core/log.h"
#include "core/run_on_threads.h"
#include "core/safetensors.h"
#include "train/optim/adapters.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
constexpr const char* kParameters = "parameters.safetensors";
constexpr const char* kOptimizer = "optimizer.safetensors";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kComplete = "COMPLETE";
constexpr const char* kLatest = "latest";
constexpr const char* kPrefix = "step-";

std::string folder_name(int64_t step) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%08lld", kPrefix, static_cast<long long>(step));
  return text;
}

DType stored_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    case at::kLong:
      return DType::kI64;
    case at::kBFloat16:
      return DType::kBF16;
    default:
      throw Error(concat("tensors of type ", at::toString(type), " cannot be stored"));
  }
}

at::ScalarType tensor_type(DType type) {
  switch (type) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF64:
      return at::kDouble;
    case DType::kI64:
      return at::kLong;
    case DType::kBF16:
      return at::kBFloat16;
    default:
      throw DataError(concat("a checkpoint holds no tensors of type ", dtype_name(type)));
  }
}

// After `items`.
std::string write_tensors(const fs::path& path,
                          const std::vector<CheckpointTensors::Named>& tensors,
                          std::vector<SafetensorsItem> items = {}) {
  for (const auto& [name, tensor] : tensors) {
    items.push_back(
        {name, stored_type(tensor.scalar_type()), tensor.sizes().vec(), tensor.data_ptr()});
  }
  return write_safetensors(path, items);
}

// The step in the name of a checkpoint folder, or -1 for another name.
int64_t step_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string digits = name.starts_with(kPrefix) ? name.substr(5) : "";
  const bool numbered = !digits.empty() && digits.size() <= 18 &&
                        digits.find_first_not_of("0123456789") == std::string::npos;
  return numbered ? std::stoll(digits) : -1;
}

// By step, the largest first. A folder that is there but cannot be read is an error: what looks
// empty would be started over.
std::vector<fs::path> checkpoints_by_step(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (step_of(entry->path()) >= 0 && entry->is_directory(ignored)) found.push_back(entry->path());
  }
  std::error_code ignored;
  if (error && fs::exists(folder, ignored)) {
    throw DataError(concat("cannot list '", folder.string(), "': ", error.message()));
  }
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return step_of(a) > step_of(b); });
  return found;
}

// The step that `latest` names, or -1.
int64_t latest_step(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / kLatest, ignored)) return -1;
  try {
    return step_of(pointed_at(folder / kLatest));
  } catch (const Error&) {
    return -1;
  }
}

// In the order in which they should be tried. A run that went on from an earlier checkpoint leaves
// later ones of its former course behind: those come last.
std::vector<fs::path> checkpoints_newest_first(const fs::path& folder) {
  std::vector<fs::path> found = checkpoints_by_step(folder);
  const int64_t latest = latest_step(folder);
  const bool is_there = std::any_of(found.begin(), found.end(),
                                    [&](const fs::path& path) { return step_of(path) == latest; });
  if (is_there) {
    std::stable_partition(found.begin(), found.end(),
                          [&](const fs::path& path) { return step_of(path) <= latest; });
  }
  return found;
}

void remove_quietly(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) log::warning("cannot remove '", path.string(), "': ", error.message());
}

// Gives a complete checkpoint its name, which is free. Where folders cannot be renamed its files
// are moved one by one, the marker that makes it whole last.
void give_name(const fs::path& partial, const fs::path& target) {
  if (rename_folder(partial, target)) return;
  try {
    make_directories(target);
    for (const char* name : {kParameters, kOptimizer, kManifest, kComplete})
      replace_file(partial / name, target / name);
  } catch (...) {
    remove_quietly(target);
    throw;
  }
  sync_to_disk(target);
  remove_quietly(partial);
}

Json manifest_of(const LoopState& state, int64_t optimizer_steps, const CheckpointMeta& meta) {
  Json manifest{{"format_version", kFormatVersion},
                {"program_version", meta.program_version},
                {"torch_version", meta.torch_version},
                {"time_utc", meta.time_utc},
                {"step", state.step},
                {"epoch", state.epoch},
                {"batch_in_epoch", state.batch_in_epoch},
                {"loss_scale", state.loss_scale},
                {"loss_scale_steps", state.loss_scale_steps},
                {"optimizer_steps", optimizer_steps},
                {"config_hash", meta.config_hash},
                {"graph_hash", meta.graph_hash},
                {"config", Json::parse(meta.config_json)}};
  if (const StopCount& count = state.stop_count; count.last_step >= 0) {
    Json& kept = manifest["early_stop"];
    kept = {{"validations_without_gain", count.without_gain}, {"last_step", count.last_step}};
    if (!std::isnan(count.best)) kept["best"] = count.best;
  }
  if (!meta.data_json.empty()) manifest["data"] = Json::parse(meta.data_json);
  if (meta.course) manifest["course"] = to_json(*meta.course);
  return manifest;
}

// All files of a checkpoint, the completion marker last.
void write_content(const fs::path& partial, const LoopState& state,
                   const CheckpointTensors& tensors, const CheckpointMeta& meta) {
  make_directories(partial);
  Json manifest = manifest_of(state, tensors.optimizer_steps, meta);
  manifest["files"][kParameters] = write_tensors(partial / kParameters, tensors.parameters);
  manifest["files"][kOptimizer] = write_tensors(partial / kOptimizer, tensors.states);
  const std::string manifest_text = manifest.dump(2);
  write_file_atomic(partial / kManifest, manifest_text);
  write_file_atomic(partial / kComplete, sha256_hex(std::string_view(manifest_text)) + "\n");
  sync_to_disk(partial);
}

StopCount read_stop_count(const JsonPlace& manifest) {
  StopCount count;
  const auto kept = manifest.find("early_stop");
  if (!kept) return count;
  count.without_gain = kept->at("validations_without_gain").integer(0);
  count.last_step = kept->at("last_step").integer(0);
  if (const auto best = kept->find("best")) count.best = best->number();
  return count;
}

CheckpointInfo read_manifest(const fs::path& path, const JsonPlace& manifest) {
  CheckpointInfo info;
  info.path = path;
  const auto data = manifest.find("data");              // of later checkpoints
  const auto loss_scale = manifest.find("loss_scale");  // of later checkpoints
  const auto loss_scale_steps = manifest.find("loss_scale_steps");
  info.state = {manifest.at("step").integer(0),
                manifest.at("epoch").integer(0),
                manifest.at("batch_in_epoch").integer(0),
                loss_scale ? loss_scale->number() : 0.0,
                loss_scale_steps ? loss_scale_steps->integer(0) : int64_t{0},
                read_stop_count(manifest)};
  info.optimizer_steps = manifest.at("optimizer_steps").integer(0);
  info.meta = {manifest.at("program_version").text(), manifest.at("torch_version").text(),
               manifest.at("config").object().dump(), manifest.at("config_hash").text(),
               manifest.at("graph_hash").text(),      data ? data->object().dump() : "",
               manifest.at("time_utc").text(),        course_from(manifest)};
  return info;
}

}  // namespace

at::Tensor on_host(const at::Tensor& tensor) {
  return tensor.detach().cpu().contiguous();
}

CheckpointTensors gather_tensors(const model::ParameterSet& parameters, const AdamW& optimizer,
                                 bool keep, const WholeState& whole_state, const ToHost& to_host) {
  CheckpointTensors tensors;
  tensors.optimizer_steps = optimizer.num_steps();
  const auto add = [&](std::vector<CheckpointTensors::Named>& list, const std::string& name,
                       const model::Parameter& parameter, const at::Tensor& own) {
    const at::Tensor whole = whole_tensor(parameter, own);
    if (keep) list.emplace_back(name, to_host(whole));
  };
  for (const model::Parameter& parameter : parameters.entries())
    add(tensors.parameters, parameter.name, parameter, parameter.tensor);
  for (const auto& [kind, state] : optimizer.states()) {
    const at::Tensor flat = whole_state ? whole_state(state) : state;
    for (const model::Parameter& parameter : parameters.entries()) {
      if (parameter.is_optimised())
        add(tensors.states, kind + "/" + parameter.name, parameter,
            model::view_in(flat, parameter));
    }
  }
  return tensors;
}

std::vector<int64_t> checkpoint_file_bytes(const model::ParameterSet& parameters,
                                           int64_t num_states) {
  constexpr int64_t kHeader = 256;  // of a tensor: name, type, shape and place as JSON
  const auto element = static_cast<int64_t>(c10::elementSize(parameters.dtype()));
  int64_t weights = 0, states = 0;
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::vector<int64_t> sizes = whole_sizes(parameter);
    const auto numbers = c10::multiply_integers(sizes);
    const auto width = std::max<int64_t>(
        element, static_cast<int64_t>(c10::elementSize(parameter.tensor.scalar_type())));
    weights += width * numbers + kHeader;
    if (parameter.is_optimised()) states += num_states * (element * numbers + kHeader);
  }
  return {weights, states};
}

fs::path write_checkpoint(const fs::path& folder, const LoopState& state,
                          const CheckpointTensors& tensors, const CheckpointMeta& meta,
                          const KeptSteps& kept) {
  make_directories(folder);
  const std::string name = folder_name(state.step);
  const std::string writer = unique_suffix();
  const fs::path partial = folder / concat(".partial-", name, "-", writer);
  const fs::path old = folder / concat(".partial-old-", name, "-", writer);
  const fs::path target = folder / name;
  try {
    write_content(partial, state, tensors, meta);
    std::error_code ignored;
    if (fs::exists(target, ignored) && !rename_folder(target, old)) remove_quietly(target);
    give_name(partial, target);
  } catch (...) {
    remove_quietly(partial);  // on a full disk its bytes are needed elsewhere
    throw;
  }
  sync_to_disk(folder);
  write_pointer(folder / kLatest, state.step);
  remove_old_checkpoints(folder, state.step, kept);
  return target;
}

void remove_old_checkpoints(const fs::path& folder, int64_t step, const KeptSteps& kept) {
  std::error_code error;
  std::vector<fs::path> left_over;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(".partial-")) {
      left_over.push_back(entry->path());
    }
  }
  if (kept) {
    for (const fs::path& path : checkpoints_by_step(folder)) {
      const int64_t own = step_of(path);
      if (own < step && std::count(kept->begin(), kept->end(), own) == 0) left_over.push_back(path);
    }
  }
  for (const fs::path& path : left_over)
    remove_quietly(path);
}

fs::path checkpoint_path(const fs::path& folder, int64_t step) {
  return folder / folder_name(step);
}

void write_pointer(const fs::path& file, int64_t step) {
  write_file_atomic(file, folder_name(step) + "\n");
}

fs::path pointed_at(const fs::path& file) {
  std::string name = read_file(file);
  while (!name.empty() && name.back() == '\n')
    name.pop_back();
  if (step_of(name) < 0) throw DataError(concat("'", file.string(), "' names no checkpoint"));
  return file.parent_path() / name;
}

std::vector<int64_t> checkpoint_steps(const fs::path& folder) {
  std::vector<int64_t> steps;
  for (const fs::path& path : checkpoints_by_step(folder))
    steps.push_back(step_of(path));
  return steps;
}

namespace {

// Returns a text that differs once the file has been written or replaced; "" for a file that was
// written a moment ago, when clocks of file systems are too coarse to tell, or cannot be asked.
std::string file_state(const fs::path& path) {
  constexpr std::time_t kSettled = 2;  // seconds
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  if (std::time(nullptr) - std::max(info.st_mtime, info.st_ctime) < kSettled) return "";
  return concat(info.st_dev, " ", info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ",
                info.st_mtim.tv_nsec, " ", info.st_ctim.tv_sec, " ", info.st_ctim.tv_nsec);
}

// Returns the SHA-256 of a file, from memory where this process has read the same file before: a
// command finds a checkpoint more than once, and a large one takes seconds.
std::string file_digest(const fs::path& path) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;  // by state
  const std::string state = file_state(path);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(state); found != known.end()) return found->second;
  }
  const MappedFile file(path);
  const std::string digest = sha256_hex(file.bytes());
  if (state.empty() || state != file_state(path)) return digest;
  const std::lock_guard lock(mutex);
  known[state] = digest;
  return digest;
}

}  // namespace

CheckpointInfo inspect_checkpoint(const fs::path& path) {
  const auto unsound = [&](const std::string& why) {
    return DataError(concat("checkpoint '", path.string(), "' cannot be used: ", why));
  };
  std::error_code error;
  if (!folder_exists(path)) throw unsound("there is no such folder");
  for (const char* name : {kComplete, kManifest}) {
    if (!fs::exists(path / name, error)) throw unsound(concat("the file ", name, " is missing"));
  }
  const std::string text = read_file(path / kManifest);
  std::string digest = read_file(path / kComplete);
  while (!digest.empty() && digest.back() == '\n')
    digest.pop_back();
  if (digest != sha256_hex(std::string_view(text))) {
    throw unsound("the checksum of manifest.json is wrong");
  }
  const std::string manifest_file = (path / kManifest).string();
  const Json json = parse_json_file(text, manifest_file);
  const JsonPlace manifest(json, manifest_file);
  if (const int64_t version = manifest.at("format_version").integer(); version != kFormatVersion) {
    throw unsound(concat("its format is ", version, ", this program reads ", kFormatVersion));
  }
  constexpr std::array<const char*, 2> kNames{kParameters, kOptimizer};
  for (const char* name : kNames)
    if (!fs::exists(path / name, error)) throw unsound(concat("the file ", name, " is missing"));
  // Both at once: hashing takes longer than reading.
  std::array<std::string, kNames.size()> digests;
  run_on_threads(std::ssize(kNames), std::ssize(kNames), [&](int64_t item) {
    const auto i = static_cast<size_t>(item);
    digests[i] = file_digest(path / kNames[i]);
  });
  for (size_t i = 0; i < kNames.size(); ++i)
    if (digests[i] != manifest.at("files").at(kNames[i]).text())
      throw unsound(concat("the checksum of ", kNames[i], " is wrong"));
  return read_manifest(path, manifest);
}

std::optional<CheckpointInfo> find_latest_checkpoint(const fs::path& folder) {
  const std::vector<fs::path> found = checkpoints_newest_first(folder);
  for (const fs::path& path : found) {
    try {
      return inspect_checkpoint(path);
    } catch (const Error& error) {
      log::warning(error.what(), "; trying the one before");
    }
  }
  if (!found.empty()) {
    throw DataError(
        concat("none of the ", found.size(), " checkpoints in '", folder.string(), "' can be used"),
        "start again with another run.dir, or restore one from a copy");
  }
  return std::nullopt;
}

namespace {

// Says where tensors of a file go: parameters, or flat states in places laid out like theirs.
struct Target {
  const model::Parameter* parameter;
  at::Tensor place;
};
using Targets = std::map<std::string, Target>;

bool fits(const SafetensorsEntry& entry, const Target& target) {
  return entry.shape == whole_sizes(*target.parameter);
}

std::string shapes(const SafetensorsEntry& entry, const Target& target) {
  return concat("has shape ", at::IntArrayRef(entry.shape), " in the checkpoint and ",
                at::IntArrayRef(whole_sizes(*target.parameter)), " in this model");
}

// The tensors of a file whose names start with `prefix` must be exactly `wanted`, with their
// shapes.
void check_tensors(const NamedTensors& file, const Targets& wanted,
                   const std::string& prefix = "") {
  std::vector<std::string> faults;
  for (const auto& [name, target] : wanted) {
    if (!file.contains(name)) {
      faults.push_back(concat("'", name, "' is not in the checkpoint"));
    } else if (!fits(file.at(name), target)) {
      faults.push_back(concat("'", name, "' ", shapes(file.at(name), target)));
    }
  }
  for (const auto& [name, entry] : file.entries()) {
    // What adapters add is in the weights that they belong to.
    const bool is_merged = is_adapter(name) && wanted.count(adapted_weight(name)) != 0;
    if (name.starts_with(prefix) && wanted.count(name) == 0 && !is_merged) {
      faults.push_back(concat("'", name, "' is not in this model"));
    }
  }
  if (faults.empty()) return;
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < faults.size() && i < kShown; ++i)
    text += concat("\n  ", faults[i]);
  if (faults.size() > kShown) text += concat("\n  and ", faults.size() - kShown, " more");
  throw DataError(concat("'", file.path().string(), "' is of another model, ", faults.size(),
                         " tensors differ:", text),
                  "the configuration that made it is in its manifest.json");
}

void copy_tensors(const NamedTensors& file, const Targets& targets) {
  for (const auto& [name, target] : targets) {
    target.place.detach().copy_(own_slice(*target.parameter, stored_tensor(file.at(name))));
  }
}

}  // namespace

fs::path weights_file(const CheckpointInfo& checkpoint) {
  return checkpoint.path / kParameters;
}

at::Tensor stored_tensor(const SafetensorsEntry& entry) {
  auto* data = const_cast<std::byte*>(entry.bytes.data());  // only read
  return at::from_blob(data, entry.shape, at::TensorOptions().dtype(tensor_type(entry.dtype)));
}

void load_parameters(const NamedTensors& file, const std::string& prefix,
                     model::ParameterSet& parameters) {
  Targets wanted;
  for (const model::Parameter& parameter : parameters.entries()) {
    wanted[prefix + parameter.name] = {&parameter, parameter.tensor};
  }
  check_tensors(file, wanted, prefix);
  copy_tensors(file, wanted);
}

void load_parameters(const CheckpointInfo& checkpoint, model::ParameterSet& parameters) {
  load_parameters(SafetensorsFile(weights_file(checkpoint)), "", parameters);
}

std::string write_parameters(const fs::path& path, const model::ParameterSet& parameters,
                             const std::vector<std::string>& names, const std::string& prefix,
                             std::vector<SafetensorsItem> first) {
  std::vector<CheckpointTensors::Named> weights;
  for (const std::string& name : names)
    weights.emplace_back(prefix + name, on_host(parameters.at(name).tensor));
  return write_tensors(path, weights, std::move(first));
}

void load_optimizer(const NamedTensors& file, const model::ParameterSet& parameters,
                    OptimizerState& optimizer) {
  Targets wanted;
  for (const model::Parameter& parameter : parameters.entries()) {
    if (!parameter.is_optimised()) continue;
    for (const auto& [kind, flat] : optimizer.flats)
      wanted[kind + "/" + parameter.name] = {&parameter, model::view_in(flat, parameter)};
  }
  check_tensors(file, wanted);
  copy_tensors(file, wanted);
}

void load_optimizer(const CheckpointInfo& checkpoint, const model::ParameterSet& parameters,
                    OptimizerState& optimizer) {
  load_optimizer(SafetensorsFile(checkpoint.path / kOptimizer), parameters, optimizer);
  optimizer.num_steps = checkpoint.optimizer_steps;
}

void load_average(const CheckpointInfo& checkpoint, model::ParameterSet& parameters) {
  const SafetensorsFile file(checkpoint.path / kOptimizer);
  Targets targets;
  for (const model::Parameter& parameter : parameters.entries()) {
    const std::string name = concat(kAverageState, "/", parameter.name);
    if (parameter.is_optimised() && file.contains(name))
      targets[name] = {&parameter, parameter.tensor};
  }
  if (targets.empty()) {
    throw DataError(concat("checkpoint '", checkpoint.path.string(), "' has no averaged weights"),
                    "set optimizer.average.kind to \"none\" for the weights themselves");
  }
  copy_tensors(file, targets);
}

}  // namespace aifs::train

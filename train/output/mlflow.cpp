// SPDX-License-Identifier: Apache-2.0
#include "train/output/mlflow.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/check.h"
#include "core/json_read.h"
#include "core/log.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRecord = "mlflow.json";

int64_t now_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

std::string yaml_text(const std::string& text) {
  std::string out = "'";
  for (const char letter : text) {
    if (letter == '\'')
      out += "''";
    else
      out += letter == '\n' ? ' ' : letter;
  }
  return out + "'";
}

std::string uri(const fs::path& path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF", kPlain = "/-_.~";
  std::string out = "file://";
  for (const char letter : absolute_path(path).string()) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain =
        (byte < 0x80 && std::isalnum(byte)) || kPlain.find(letter) != std::string_view::npos;
    if (is_plain)
      out += letter;
    else
      out += concat('%', kHex[byte >> 4], kHex[byte & 15]);
  }
  return out;
}

// As MLflow takes names of metrics, params and tags; no part of it leads out of its folder.
std::string key_of(const std::string& name) {
  static constexpr std::string_view kAllowed = "_-. :/";
  std::string key;
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_allowed =
        (byte < 0x80 && std::isalnum(byte)) || kAllowed.find(letter) != std::string_view::npos;
    key += is_allowed ? letter : '_';
  }
  std::string safe, part;
  std::istringstream parts(key);
  while (std::getline(parts, part, '/')) {
    if (part.empty()) continue;
    if (part == "." || part == "..") std::fill(part.begin(), part.end(), '_');
    safe += (safe.empty() ? "" : "/") + part;
  }
  return safe.empty() ? "_" : safe;
}

// Returns the value of a key of a flat YAML file, "" if it has none.
std::string yaml_value(const std::string& yaml, const std::string& key) {
  std::istringstream lines(yaml);
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with(key + ": ")) continue;
    std::string value = line.substr(key.size() + 2);
    if (value.size() < 2 || value.front() != value.back()) return value;
    if (value.front() != '\'' && value.front() != '"') return value;
    std::string plain;
    for (size_t i = 1; i + 1 < value.size(); ++i) {
      if (value[i] == '\'' && value[i + 1] == '\'' && value.front() == '\'') ++i;
      plain += value[i];
    }
    return plain;
  }
  return "";
}

// The experiment of this name that the store has, "" if there is none.
std::string find_experiment(const fs::path& store, const std::string& name) {
  std::error_code error;
  for (fs::directory_iterator entry(store, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path meta = entry->path() / "meta.yaml";
    std::error_code ignored;
    try {
      if (fs::is_regular_file(meta, ignored) && yaml_value(read_file(meta), "name") == name)
        return entry->path().filename().string();
    } catch (const Error&) {  // one that others do not show is not this one
    }
  }
  return "";
}

// Follows from the name, so that runs that start at the same time make the same one.
std::string experiment_id_of(const std::string& name) {
  const std::string digest = sha256_hex(std::string_view(name)).substr(0, 14);
  return std::to_string(100000000000000000 + std::stoll(digest, nullptr, 16));
}

void write_experiment(const fs::path& store, const std::string& id, const std::string& name) {
  make_directories(store / id);
  const int64_t now = now_ms();
  write_file_atomic(store / id / "meta.yaml",
                    concat("artifact_location: ", yaml_text(uri(store / id)), "\ncreation_time: ",
                           now, "\nexperiment_id: '", id, "'\nlast_update_time: ", now,
                           "\nlifecycle_stage: active\nname: ", yaml_text(name), "\n"));
}

void write_value(const fs::path& folder, const std::string& key, const std::string& value) {
  const fs::path file = folder / key_of(key);
  make_directories(file.parent_path());
  write_file_atomic(file, value);
}

// MLflow refuses longer values.
std::string cut(std::string value) {
  constexpr size_t kMost = 6000;
  if (value.size() <= kMost) return value;
  size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(value[end]) & 0xc0) == 0x80)
    --end;
  value.resize(end);
  return value;
}

// Writes "train.max_steps" and the like, a file each.
void write_params(const fs::path& folder, const Json& tree, const std::string& path) {
  if (tree.is_object() && !tree.empty()) {
    for (const auto& [key, value] : tree.items())
      write_params(folder, value, path.empty() ? key : path + "." + key);
    return;
  }
  if (path.empty()) return;
  write_value(folder, path, cut(tree.is_string() ? tree.get<std::string>() : tree.dump()));
}

// Takes away the points of later steps, and a last one that a crash has cut.
void forget_later(const fs::path& metrics, int64_t step) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(metrics, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    std::istringstream lines(read_file(entry->path()));
    std::string line, kept;
    while (std::getline(lines, line)) {
      std::istringstream parts(line);
      std::string time, value;
      int64_t own = 0;
      if (parts >> time >> value >> own && own <= step && !lines.eof()) kept += line + "\n";
    }
    write_file_atomic(entry->path(), kept);
  }
}

std::string user_name() {
  for (const char* variable : {"USER", "LOGNAME"})
    if (const char* name = std::getenv(variable); name && *name) return name;
  return "unknown";
}

std::string run_name(const MlflowRun& run) {
  const fs::path folder = absolute_path(run.run_dir).lexically_normal();
  const fs::path name = folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  return name.empty() ? "run" : name.string();
}

// As Python reads it.
std::string value_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return Json(value).dump();
}

}  // namespace

MlflowWriter::MlflowWriter(const MlflowRun& run, int64_t resume_step) : run_(run) {
  make_directories(run.store);
  const fs::path record = run.run_dir / kRecord;
  std::error_code ignored;
  if (resume_step >= 0 && fs::exists(record, ignored)) {
    const Json json = parse_json_file(read_file(record), record.string());
    const JsonPlace place(json, record.string());
    experiment_id_ = place.at("experiment_id").text();
    run_id_ = place.at("run_id").text();
    start_ms_ = place.at("start_time").integer(0);
    folder_ = run.store / key_of(experiment_id_) / key_of(run_id_);
  }
  if (run_id_.empty() || !fs::exists(folder_ / "meta.yaml", ignored)) {
    experiment_id_ = find_experiment(run.store, run.experiment);
    if (experiment_id_.empty()) {
      experiment_id_ = experiment_id_of(run.experiment);
      write_experiment(run.store, experiment_id_, run.experiment);
    }
    start_ms_ = now_ms();
    run_id_ = sha256_hex(std::string_view(concat(unique_suffix(), start_ms_))).substr(0, 32);
    folder_ = run.store / experiment_id_ / run_id_;
  } else {
    forget_later(folder_ / "metrics", resume_step);
  }
  write_description();
  write_meta(Status::kRunning, 0);
  const Json kept{
      {"experiment_id", experiment_id_}, {"run_id", run_id_}, {"start_time", start_ms_}};
  write_file_atomic(record, kept.dump() + "\n");
}

void MlflowWriter::write_description() const {
  for (const char* name : {"metrics", "params", "tags", "artifacts"})
    make_directories(folder_ / name);
  const Json config = Json::parse(run_.config_json, nullptr, /*allow_exceptions=*/false);
  write_params(folder_ / "params", config, "");
  const fs::path tags = folder_ / "tags";
  write_value(tags, "mlflow.runName", run_name(run_));
  write_value(tags, "mlflow.user", user_name());
  write_value(tags, "mlflow.source.name", "aifs-train");
  write_value(tags, "mlflow.source.type", "LOCAL");
  write_value(tags, "aifs.run_dir", absolute_path(run_.run_dir).string());
  write_value(tags, "aifs.version", cut(run_.program_version));
}

void MlflowWriter::write_meta(Status status, int64_t end_ms) const {
  write_file_atomic(
      folder_ / "meta.yaml",
      concat("artifact_uri: ", yaml_text(uri(folder_ / "artifacts")),
             "\nend_time: ", end_ms > 0 ? std::to_string(end_ms) : std::string("null"),
             "\nentry_point_name: ''\nexperiment_id: '", experiment_id_,
             "'\nlifecycle_stage: active\nrun_id: '", run_id_, "'\nrun_name: ",
             yaml_text(run_name(run_)), "\nsource_name: ''\nsource_type: 4\nsource_version: ''",
             "\nstart_time: ", start_ms_, "\nstatus: ", static_cast<int>(status),
             "\ntags: []\nuser_id: ", yaml_text(user_name()), "\n"));
}

MlflowWriter::~MlflowWriter() {
  if (!ended_) end(Status::kFailed);
}

void MlflowWriter::add_scalar(const std::string& key, double value, int64_t step) {
  pending_[key] += concat(now_ms(), " ", value_text(value), " ", step, "\n");
}

void MlflowWriter::note_failure(const std::string& what) {
  if (num_failures_++ > 0) return;
  log::warning("cannot write the MLflow run '", folder_.string(), "': ", what,
               "; training goes on, and what comes later will be tried");
}

void MlflowWriter::flush() {
  std::error_code ignored;
  const bool is_there = pending_.empty() || fs::exists(folder_, ignored);
  if (!is_there) note_failure("it is not there any more");
  if (!is_there) pending_.clear();  // a part of a run would be worse than none
  for (const auto& [key, lines] : pending_) {
    const fs::path file = folder_ / "metrics" / key_of(key);
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    if (const std::string reason = append_whole(file, lines); !reason.empty()) {
      note_failure(concat("'", file.string(), "': ", reason));
      break;  // one failure a flush: others would fail for the same reason
    }
  }
  pending_.clear();
}

void MlflowWriter::end(Status status) {
  ended_ = true;
  flush();
  try {
    write_meta(status, now_ms());
  } catch (const Error& error) {
    note_failure(error.what());
  }
}

}  // namespace aifs::train

// SPDX-License-Identifier: Apache-2.0
#include "report/run_folder.h"

#include <sstream>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::report {

namespace {

using Json = nlohmann::ordered_json;

// Lines that are JSON objects; the others are counted.
std::vector<Json> read_lines(const fs::path& file, int64_t& num_damaged) {
  std::vector<Json> found;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    try {  // nested too deep is damaged, too
      auto json = parse_json_file(line, file.string());
      json.is_object() ? found.push_back(std::move(json)) : void(++num_damaged);
    } catch (const DataError&) {
      ++num_damaged;
    }
  }
  return found;
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// The folder that `latest` names, or the one of the last step.
fs::path newest_checkpoint(const fs::path& folder) {
  if (is_file(folder / "latest")) {
    std::string name = read_file(folder / "latest");
    name.erase(name.find_last_not_of(" \r\n") + 1);
    // A name, not a path to anywhere.
    const bool is_name = name.starts_with("step-") && name.find('/') == std::string::npos;
    if (is_name && is_file(folder / name / "manifest.json")) return folder / name;
  }
  fs::path newest;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const bool is_checkpoint = entry->path().filename().string().starts_with("step-") &&
                               is_file(entry->path() / "manifest.json");
    if (is_checkpoint && entry->path() > newest) newest = entry->path();
  }
  return newest;
}

// Null if it is no JSON, or nested so deep that nobody can walk it.
Json parsed(const fs::path& file) {
  try {
    return parse_json_file(read_file(file), file.string());
  } catch (const DataError&) {
    return nullptr;
  }
}

// The manifest without what no page shows, or null.
Json read_manifest(const fs::path& run, std::vector<std::string>& remarks) {
  const fs::path checkpoint = newest_checkpoint(run / "checkpoints");
  if (!checkpoint.empty()) {
    Json manifest = parsed(checkpoint / "manifest.json");
    if (manifest.is_object() && manifest.contains("config") && manifest["config"].is_object())
      return manifest;
    remarks.push_back(concat("the manifest of ", checkpoint.filename().string(), " is damaged"));
  }
  if (is_file(run / "config.json")) {
    Json config = parsed(run / "config.json");
    if (config.is_object()) return Json{{"config", std::move(config)}};
  }
  remarks.push_back("no configuration: the run has no checkpoint that can be read");
  return nullptr;
}

std::string lines_text(int64_t count) {
  return count == 1 ? "1 line" : concat(count, " lines");
}

}  // namespace

RunFolder read_run_folder(const fs::path& path) {
  if (!folder_exists(path))
    throw DataError(concat("'", path.string(), "' is no folder"), "name run folders (run.dir)");
  RunFolder run;
  run.path = path;
  run.name = path.string();
  if (!is_file(path / "metrics.jsonl"))
    throw DataError(concat("'", path.string(), "' is no run folder: it has no metrics.jsonl"),
                    "name what run.dir was");
  run.metrics = read_metrics(path / "metrics.jsonl");
  if (run.metrics.num_damaged > 0)
    run.remarks.push_back(
        concat(lines_text(run.metrics.num_damaged), " of metrics.jsonl cannot be read: left out"));
  int64_t damaged = 0;
  if (is_file(path / "validation.jsonl"))
    run.validations = read_lines(path / "validation.jsonl", damaged);
  if (damaged > 0)
    run.remarks.push_back(
        concat(lines_text(damaged), " of validation.jsonl cannot be read: left out"));
  if (is_file(path / "train.log")) run.log = summarise_log(read_file(path / "train.log"));
  run.goodput = read_goodput(path / "goodput.json");
  run.manifest = read_manifest(path, run.remarks);
  return run;
}

}  // namespace aifs::report

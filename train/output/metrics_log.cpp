// SPDX-License-Identifier: Apache-2.0
#include "train/output/metrics_log.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

// The lines of a file up to a step, and the step of the last one (-1: none); a last line cut by a
// crash is dropped.
std::string lines_until(const fs::path& path, int64_t step, int64_t& last_step,
                        const JsonLines::FormerLine& former) {
  std::istringstream lines(read_file(path));
  std::string kept, line;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) continue;
    const auto own = json["step"].get<int64_t>();
    if (former) former(json, own <= step);
    if (own > step) continue;
    kept += line + "\n";
    last_step = own;
  }
  return kept;
}

}  // namespace

JsonLines::JsonLines(fs::path path, int64_t resume_step, const FormerLine& former)
    : file_(std::move(path)) {
  const fs::path& name = file_.path();
  try {
    std::error_code ignored;
    const bool is_there = fs::exists(name, ignored);
    int64_t last_step = -1;
    std::string kept;
    if (is_there && (resume_step >= 0 || former))
      kept = lines_until(name, resume_step, last_step, former);
    if (is_there && resume_step >= 0) last_step_ = last_step;
    write_file_atomic(name, kept);
  } catch (const Error& error) {
    file_.note_failure(error.what());
  }
}

void JsonLines::write(const Json& object) {
  file_.append(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace aifs::train

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
std::string lines_until(const fs::path& path, int64_t step, int64_t& last_step) {
  std::istringstream lines(read_file(path));
  std::string kept, line;
  while (std::getline(lines, line)) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer() &&
        json["step"].get<int64_t>() <= step) {
      kept += line + "\n";
      last_step = json["step"].get<int64_t>();
    }
  }
  return kept;
}

}  // namespace

JsonLines::JsonLines(fs::path path, int64_t resume_step) : file_(std::move(path)) {
  const fs::path& name = file_.path();
  try {
    std::error_code ignored;
    const bool keep = resume_step >= 0 && fs::exists(name, ignored);
    write_file_atomic(name, keep ? lines_until(name, resume_step, last_step_.emplace(-1)) : "");
  } catch (const Error& error) {
    file_.note_failure(error.what());
  }
}

void JsonLines::write(const Json& object) {
  file_.append(object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace aifs::train

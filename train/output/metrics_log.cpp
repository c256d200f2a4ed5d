// SPDX-License-Identifier: Apache-2.0
#include "train/output/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"
#include "core/log.h"

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

// Appends the whole text or nothing: what follows half a line would be lost with it. Gives the
// reason of a failure, or "".
std::string append(const fs::path& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return system_error_text();
  std::string reason;
  struct stat before {};
  if (::fstat(fd, &before) != 0) {
    reason = system_error_text();
  } else if (const ssize_t written = ::write(fd, text.data(), text.size());
             written != static_cast<ssize_t>(text.size())) {
    reason = written < 0 ? system_error_text() : "the disk is full";
    if (written > 0 && ::ftruncate(fd, before.st_size) != 0) reason += "; half a line remains";
  }
  if (::close(fd) != 0 && reason.empty()) reason = system_error_text();
  return reason;
}

}  // namespace

JsonLines::JsonLines(fs::path path, int64_t resume_step) : path_(std::move(path)) {
  try {
    std::error_code ignored;
    const bool keep = resume_step >= 0 && fs::exists(path_, ignored);
    write_file_atomic(path_, keep ? lines_until(path_, resume_step, last_step_.emplace(-1)) : "");
  } catch (const Error& error) {
    ++num_failures_;
    log::warning("cannot start '", path_.string(), "': ", error.what(), "; training goes on");
  }
}

void JsonLines::write(const Json& object) {
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string reason = append(path_, line);
  if (reason.empty()) return;
  if (num_failures_++ == 0) {
    log::warning("cannot write '", path_.string(), "': ", reason,
                 "; training goes on, each line will be tried");
  }
}

}  // namespace aifs::train

// SPDX-License-Identifier: Apache-2.0
#include "data/tools/copy_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"

namespace aifs::data {

namespace {

constexpr const char* kRequest = "request.json";
constexpr const char* kLines = "files";

bool is_free(const fs::path& folder) {
  std::error_code error;
  return !path_exists(folder) || (folder_exists(folder) && fs::is_empty(folder, error));
}

}  // namespace

CopyJournal::CopyJournal(const fs::path& store, const fs::path& folder, const zarr::Json& request)
    : folder_(folder) {
  const fs::path file = folder / kRequest;
  if (is_free(store)) {
    make_directories(folder);
    lock_.emplace(folder / "lock");
  } else {
    if (!path_exists(file)) {
      throw ConfigError("", concat("'", store.string(), "' is there already"),
                        "name a new folder, or remove this one");
    }
    lock_.emplace(folder / "lock");
  }
  if (!lock_->held()) {
    throw ConfigError("", concat("another process is writing '", store.string(), "'"),
                      "wait for it, or name another folder");
  }
  if (path_exists(file)) {
    const zarr::Json before = zarr::parse_json(read_file(file), file.string());
    if (before != request) {
      throw ConfigError("",
                        concat("'", store.string(),
                               "' holds the beginning of another copy: of other data, or with "
                               "other chunks, codec or format"),
                        "ask for the same as before, or remove it");
    }
    read_lines();
  } else {
    write_file_atomic(file, request.dump(1));
  }
  std::error_code error;
  fs::remove_all(folder / "staging", error);  // halves of files
  const fs::path lines = folder_ / kLines;
  fd_ = ::open(lines.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) throw Error(concat("cannot write '", lines.string(), "': ", system_error_text()));
}

CopyJournal::~CopyJournal() {
  if (fd_ >= 0) ::close(fd_);
}

// Lines are "data/3.0.0.0 9f01c2aa"; one that was cut off counts as none.
void CopyJournal::read_lines() {
  const fs::path lines = folder_ / kLines;
  if (!path_exists(lines)) return;
  std::istringstream in(read_file(lines));
  std::string line;
  while (std::getline(in, line)) {
    const size_t space = line.find(' ');
    unsigned int checksum = 0;
    const bool is_whole = space != std::string::npos && line.size() == space + 9 && !in.eof() &&
                          std::sscanf(line.c_str() + space + 1, "%8x", &checksum) == 1;
    if (is_whole) done_[line.substr(0, space)] = checksum;
  }
}

bool CopyJournal::is_done(const std::string& key) const {
  return checksum(key).has_value();
}

std::optional<uint32_t> CopyJournal::checksum(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(key);
  if (found == done_.end()) return std::nullopt;
  return found->second;
}

void CopyJournal::add(const std::string& key, uint32_t checksum) {
  char bits[16];
  std::snprintf(bits, sizeof bits, "%08x", checksum);
  const std::string line = concat("\n", key, " ", bits, "\n");
  const std::lock_guard lock(mutex_);
  done_[key] = checksum;
  if (::write(fd_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Error(concat("cannot write '", (folder_ / kLines).string(), "': ", system_error_text()));
  }
}

void CopyJournal::forget(const std::set<std::string>& keys) {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : keys)
    done_.erase(key);
}

void CopyJournal::close() {
  std::error_code error;
  fs::remove_all(folder_, error);
  if (error) throw Error(concat("cannot remove '", folder_.string(), "': ", error.message()));
}

}  // namespace aifs::data

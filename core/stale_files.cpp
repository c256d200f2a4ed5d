// SPDX-License-Identifier: Apache-2.0
#include "core/stale_files.h"

#include <sys/types.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <optional>
#include <vector>

#include "core/check.h"
#include "core/control_groups.h"
#include "core/time.h"

namespace aifs {

namespace {

constexpr size_t kDigits = 8;  // of chance in a suffix

struct Writer {
  std::string host;
  pid_t process = 0;
};

// "<host>-<process>-<8 hexadecimal digits>", as unique_suffix() has it.
std::optional<Writer> writer_of(const std::string& suffix) {
  const size_t chance = suffix.rfind('-');
  if (chance == std::string::npos || suffix.size() - chance - 1 != kDigits ||
      suffix.find_first_not_of("0123456789abcdef", chance + 1) != std::string::npos)
    return std::nullopt;
  const std::string front = suffix.substr(0, chance);
  const size_t process = front.rfind('-');
  if (process == std::string::npos || process == 0) return std::nullopt;
  const std::string number = front.substr(process + 1);
  if (number.empty() || number.size() > 9 ||
      number.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return Writer{front.substr(0, process), static_cast<pid_t>(std::stol(number))};
}

// True if a process has ended and nobody has asked how: where the first process of a container does
// not care, such processes stay for ever.
bool is_zombie(pid_t process) {
  const auto line = first_line_of_file(concat("/proc/", process, "/stat"));
  const size_t name_end = line ? line->rfind(')') : std::string::npos;  // "17 (name) Z ..."
  return name_end != std::string::npos && name_end + 2 < line->size() &&
         ((*line)[name_end + 2] == 'Z' || (*line)[name_end + 2] == 'X');
}

bool is_gone(const Writer& writer) {
  const std::optional<Writer> self = writer_of(unique_suffix());
  if (!self || self->host != writer.host || writer.process <= 0) return false;
  if (::kill(writer.process, 0) != 0) return errno == ESRCH;
  return is_zombie(writer.process);
}

double age_s(const fs::path& path) {
  std::error_code error;
  const auto changed = fs::last_write_time(path, error);
  if (error) return 0.0;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - changed).count();
}

}  // namespace

int64_t remove_stale_files(const fs::path& folder, const std::string& prefix, double quiet_s) {
  constexpr const char* kMark = ".tmp-";
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t mark = name.rfind(kMark);
    if (!name.starts_with(prefix) || mark == std::string::npos) continue;
    const std::optional<Writer> writer = writer_of(name.substr(mark + std::string(kMark).size()));
    if (!writer) continue;
    const double age = age_s(entry->path());
    if (age > kDay_s || (age >= quiet_s && is_gone(*writer))) stale.push_back(entry->path());
  }
  int64_t removed = 0;
  for (const fs::path& path : stale) {
    std::error_code ignored;
    if (fs::remove_all(path, ignored) > 0 && !ignored) ++removed;
  }
  return removed;
}

}  // namespace aifs

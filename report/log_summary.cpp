// SPDX-License-Identifier: Apache-2.0
#include "report/log_summary.h"

#include <algorithm>
#include <cstdlib>

#include "core/check.h"
#include "core/time.h"

namespace aifs::report {

namespace {

// A message may have several lines; only the first has time and level.
struct Message {
  double time_s = 0.0;
  std::string level, text;
};

// The seconds of "2026-01-31 06:00:00.123", or a negative number.
double time_of(std::string_view line) {
  constexpr size_t kLength = 23;
  if (line.size() <= kLength || line[4] != '-' || line[19] != '.' || line[kLength] != ' ')
    return -1.0;
  try {
    const auto seconds = static_cast<double>(parse_date(line.substr(0, 19)));
    return seconds + std::atof(std::string(line.substr(19, 4)).c_str());
  } catch (const Error&) {
    return -1.0;
  }
}

std::vector<Message> messages_of(std::string_view log) {
  std::vector<Message> messages;
  while (!log.empty()) {
    const size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(log.size(), end + 1));
    const double time_s = time_of(line);
    if (time_s >= 0.0) {
      const size_t level = 24, text = std::min(line.find(' ', level), line.size());
      messages.push_back({time_s, std::string(line.substr(level, text - level)),
                          std::string(line.substr(std::min(text + 1, line.size())))});
    } else if (!messages.empty()) {
      messages.back().text += concat("\n", line);
    }
  }
  return messages;
}

// Rows of the table: a name, total seconds, milliseconds a step, share.
std::vector<PartTime> parts_of(const std::string& table) {
  std::vector<PartTime> parts;
  size_t start = table.find('\n');      // after "time per part"
  start = table.find('\n', start + 1);  // after the head
  while (start != std::string::npos) {
    const size_t end = std::min(table.find('\n', start + 1), table.size());
    const std::string row = table.substr(start + 1, end - start - 1);
    constexpr size_t kName = 20;
    if (row.size() > kName) {
      const size_t length = row.find_last_not_of(' ', kName) + 1;
      parts.push_back({row.substr(0, length), std::atof(row.substr(kName).c_str())});
    }
    start = end == table.size() ? std::string::npos : end;
  }
  return parts;
}

void keep(const std::string& text, std::vector<std::string>& list, int& count) {
  ++count;
  if (list.size() == kMostMessages) list.erase(list.begin());
  list.push_back(text);
}

}  // namespace

LogSummary summarise_log(std::string_view log) {
  LogSummary summary;
  double began_s = -1.0, last_s = -1.0;
  for (const Message& message : messages_of(log)) {
    // The run card is the first message of a process.
    const bool begins = message.text.starts_with("aifs-train ") &&
                        message.text.find("\n  run ") != std::string::npos;
    if (begins) {
      if (began_s >= 0.0) summary.wall_s += last_s - began_s;
      ++summary.num_processes;
      summary.card = message.text;
      summary.parts.clear();
      began_s = message.time_s;
    }
    last_s = message.time_s;
    if (message.text.starts_with("time per part\n")) summary.parts = parts_of(message.text);
    if (message.level == "warning") keep(message.text, summary.warnings, summary.num_warnings);
    if (message.level == "error") keep(message.text, summary.errors, summary.num_errors);
  }
  if (began_s >= 0.0) summary.wall_s += last_s - began_s;
  return summary;
}

}  // namespace aifs::report

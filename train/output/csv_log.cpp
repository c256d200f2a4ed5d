// SPDX-License-Identifier: Apache-2.0
#include "train/output/csv_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/check.h"
#include "core/join.h"

namespace aifs::train {

namespace {

using Json = nlohmann::ordered_json;

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char letter : text)
    out += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return out + "\"";
}

std::string cell(const Json& value) {
  if (value.is_string()) return quoted(value.get<std::string>());
  if (value.is_null()) return "";
  if (value.is_number_float() && !std::isfinite(value.get<double>())) return "";
  return value.dump();
}

// The step that a row begins with; -1 for a row that is cut or damaged.
int64_t step_of_row(const std::string& row) {
  const std::string digits = row.substr(0, row.find(','));
  const bool is_number = !digits.empty() && digits.size() <= 18 &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(digits) : -1;
}

// The head and the rows up to a step; a last row without an end was cut by a crash.
std::string rows_until(const std::string& text, int64_t step) {
  std::string kept;
  size_t begin = 0;
  for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string row = text.substr(begin, end - begin + 1);
    const int64_t own = step_of_row(row);
    if (begin == 0 || (own >= 0 && own <= step)) kept += row;
  }
  return kept;
}

}  // namespace

CsvLines::CsvLines(const fs::path& path, const std::vector<std::string>& columns,
                   int64_t resume_step)
    : file_(path), columns_(columns) {
  for (const std::string& column : columns)
    head_ += (head_.empty() ? "" : ",") + quoted(column);
  head_ += "\n";
  try {
    std::error_code ignored;
    const bool goes_on = resume_step >= 0 && fs::exists(path, ignored);
    const std::string before = goes_on ? read_file(path) : "";
    const bool fits = before.empty() || before.starts_with(head_);
    if (!fits)
      replace_file(path, path.parent_path() / concat(path.stem().string(), ".before-step-",
                                                     resume_step + 1, ".csv"));
    write_file_atomic(path, fits ? rows_until(before, resume_step) : "");
  } catch (const Error& error) {
    file_.note_failure(error.what());
  }
}

void CsvLines::add(const Json& row) {
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const auto found = row.find(column);
    cells.push_back(found == row.end() ? "" : cell(*found));
  }
  pending_ += join(cells, ",") + "\n";
}

void CsvLines::flush() {
  if (pending_.empty()) return;
  file_.append(pending_, head_);
  pending_.clear();
}

}  // namespace aifs::train

// SPDX-License-Identifier: Apache-2.0
#include "core/check.h"

#include <algorithm>
#include <numeric>

namespace aifs {

namespace internal {

void throw_check_failure(const char* expression, const char* file, int line,
                         const std::string& message) {
  const std::string_view path(file);
  const size_t slash = path.find_last_of('/');
  const size_t parent = slash == std::string_view::npos ? slash : path.find_last_of('/', slash - 1);
  const std::string_view short_path =
      parent == std::string_view::npos ? path : path.substr(parent + 1);
  throw Error(concat(message.empty() ? "internal check failed" : message, " [", expression, " at ",
                     short_path, ":", line, "]"));
}

std::string nearest_names(std::string_view wanted, const std::vector<std::string_view>& known,
                          int most) {
  std::vector<std::pair<int, std::string_view>> ranked;
  ranked.reserve(known.size());
  for (std::string_view name : known)
    ranked.emplace_back(edit_distance(wanted, name), name);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > static_cast<size_t>(most)) ranked.resize(static_cast<size_t>(most));
  std::string text;
  for (const auto& [distance, name] : ranked) {
    text += concat(text.empty() ? "nearest: '" : ", '", name, "'");
  }
  return text;
}

}  // namespace internal

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] =
          std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        next[j] = std::min(next[j], before[j - 2] + 1);
      }
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

}  // namespace aifs

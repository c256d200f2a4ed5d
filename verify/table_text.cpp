// SPDX-License-Identifier: Apache-2.0
#include "verify/table_text.h"

#include <algorithm>
#include <cstdio>

namespace aifs::verify {

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::vector<size_t> shown_lead_times(size_t num_leads) {
  constexpr size_t kMostColumns = 4;
  std::vector<size_t> leads;
  const size_t count = std::min(num_leads, kMostColumns);
  for (size_t i = 1; i <= count; ++i)
    leads.push_back(i * num_leads / count - 1);
  return leads;
}

}  // namespace aifs::verify

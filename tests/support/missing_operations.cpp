// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: what is missing for a program is named in AIFS_MISSING, "lock=37 write=28", with
// the numbers of errors as missing_operations.h has them. Files whose path holds AIFS_SLOW_TO_FLUSH
// take AIFS_SLOW_FLUSH_S seconds to be flushed.
#include "tests/support/missing_operations.h"

#include <cstdlib>
#include <map>
#include <sstream>

namespace aifs::test {

namespace {

int64_t* place_of(const std::string& name) {
  return name == "write_most" ? &missing_now.write_most : nullptr;
}

bool read_environment() {
  const char* text = std::getenv("AIFS_MISSING");
  std::map<std::string, int*> places{{"flush_file", &missing_now.flush_file},
                                     {"flush_folder", &missing_now.flush_folder},
                                     {"lock", &missing_now.lock},
                                     {"map", &missing_now.map},
                                     {"reserve", &missing_now.reserve},
                                     {"write", &missing_now.write},
                                     {"rename_file", &missing_now.rename_file},
                                     {"rename_over", &missing_now.rename_over},
                                     {"rename_folder", &missing_now.rename_folder}};
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const int64_t number = std::atoll(word.c_str() + equals + 1);
    if (int64_t* place = place_of(name)) *place = number;
    if (const auto found = places.find(name); found != places.end())
      *found->second = static_cast<int>(number);
  }
  if (const char* seconds = std::getenv("AIFS_SLOW_FLUSH_S")) {
    slow_flush_s = static_cast<unsigned>(std::atoi(seconds));
    slow_to_flush = std::getenv("AIFS_SLOW_TO_FLUSH");
  }
  return true;
}

[[maybe_unused]] const bool is_read = read_environment();

}  // namespace

}  // namespace aifs::test

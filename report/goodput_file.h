// SPDX-License-Identifier: Apache-2.0
// What goodput.json of a run folder says of the time of a run (docs/monitoring.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.h"

namespace aifs::report {

struct GoodputFile {
  double share = 0.0;  // steps that count, of the time since the first start
  double wall_s = 0.0;
  int64_t starts = 1;
  // "stepping" and what else took time, in the order of the file.
  std::vector<std::pair<std::string, double>> seconds;

  // "87.3 % of 3 h 20 min, 2 starts; validation 4.0 %, lost work 1.1 %", without what took less
  // than a thousandth.
  std::string text() const;
};

// Returns nothing if there is no such file, or it is damaged.
std::optional<GoodputFile> read_goodput(const fs::path& file);

}  // namespace aifs::report

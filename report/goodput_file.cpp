// SPDX-License-Identifier: Apache-2.0
#include "report/goodput_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"
#include "core/time.h"

namespace aifs::report {

namespace {

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * share);
  return text;
}

}  // namespace

std::optional<GoodputFile> read_goodput(const fs::path& file) {
  try {
    if (!path_exists(file)) return std::nullopt;
    constexpr double kMost_s = 1e11;  // that people can be told
    const nlohmann::ordered_json json = parse_json_file(read_file(file), file.string());
    const JsonPlace place(json, file.string());
    GoodputFile found{.share = place.at("goodput").number(),
                      .wall_s = place.at("wall_s").number(),
                      .starts = place.at("starts").integer(1),
                      .seconds = {}};
    const JsonPlace seconds = place.at("seconds");
    constexpr size_t kMost = 32;
    for (const auto& [name, value] : seconds.object().items())
      if (found.seconds.size() < kMost) found.seconds.emplace_back(name, seconds.at(name).number());
    if (!(found.wall_s > 0.0 && found.wall_s < kMost_s)) return std::nullopt;
    return found;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string GoodputFile::text() const {
  std::string text = concat(percent(share), " of ", format_elapsed(wall_s), ", ", starts,
                            starts == 1 ? " start" : " starts");
  bool first = true;
  for (const auto& [key, spent_s] : seconds) {
    if (key == "stepping" || spent_s < 1e-3 * wall_s) continue;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', ' ');
    text += concat(first ? "; " : ", ", name, " ", percent(spent_s / wall_s));
    first = false;
  }
  return text;
}

}  // namespace aifs::report

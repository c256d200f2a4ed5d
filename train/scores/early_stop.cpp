// SPDX-License-Identifier: Apache-2.0
#include "train/scores/early_stop.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "train/scores/named_scores.h"

namespace aifs::train {

void count_score(const EarlyStopOptions& options, double score, int64_t step, StopCount& count) {
  if (!options.is_on() || step <= count.last_step) return;
  count.last_step = step;
  if (options.by.is_better(score, count.best, options.min_delta)) {
    count.best = score;
    count.without_gain = 0;
  } else {
    ++count.without_gain;
  }
}

void count_lines(const EarlyStopOptions& options, const fs::path& file, StopCount& count) {
  if (!options.is_on() || !path_exists(file)) return;
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.contains("failure") || !json.contains("step")) continue;
    if (!json["step"].is_number_integer()) continue;
    count_score(options, score_called(options.by.score, json), json["step"].get<int64_t>(), count);
  }
}

bool counts_alike(const EarlyStopOptions& options, const std::string& config_json) {
  const auto config = nlohmann::ordered_json::parse(config_json, nullptr,
                                                    /*allow_exceptions=*/false);
  const nlohmann::ordered_json::json_pointer place("/train/early_stop");
  if (!config.is_object() || !config.contains(place) || !config[place].is_object()) return false;
  const auto text = [&](const char* key) {
    const auto found = config[place].find(key);
    return found != config[place].end() && found->is_string() ? found->get<std::string>() : "";
  };
  return text("score") == options.by.score && text("better") == enum_name(options.by.better);
}

bool stops_early(const EarlyStopOptions& options, const StopCount& count) {
  return options.is_on() && count.without_gain >= options.patience;
}

}  // namespace aifs::train

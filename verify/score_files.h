// SPDX-License-Identifier: Apache-2.0
// Scores for programs (JSON Lines, CSV) and for people (tables).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "verify/verification.h"

namespace aifs::verify {

// One object for each variable, lead time, region and season that has scores, in this order:
// "variable", "lead_time_h", "region", "season" (if seasons are asked for), "forecasts", "rmse",
// "bias", "mae", "persistence_rmse", "skill", "skill_low", "skill_high", "activity",
// "truth_activity"; of ensembles "spread", "crps", "spread_skill"; with other forecasts
// "skill_against" and with a climatology "climatology_rmse", "acc", "skill_against_climatology",
// each skill with its "_low" and "_high"; "coverage"; of ensembles "rank_histogram", a list; for
// thresholds of the variable "thresholds", a list of objects with "threshold", "base_rate",
// "frequency_bias", "pod", "far", "ets", "hits", "false_alarms", "misses", "correct_negatives", and
// of ensembles "brier". What is no number is null.
std::vector<nlohmann::ordered_json> score_rows(const Verification& verification);

// The rows, one a line.
std::string to_json_lines(const std::vector<nlohmann::ordered_json>& rows);
// The rows without their lists; "" if there are none.
std::string to_csv(const std::vector<nlohmann::ordered_json>& rows);
// One line for each threshold of each row.
std::string thresholds_csv(const std::vector<nlohmann::ordered_json>& rows);

// How many forecasts there are, then variables by lead times: RMSE and skill against persistence in
// one region and season; with a climatology the anomaly correlation; with other forecasts the skill
// against them, with a star where it is significant.
std::string to_table(const Verification& verification, size_t region, size_t season = 0);
// Thresholds by lead times: equitable threat score and frequency bias; "" if there are none.
std::string thresholds_table(const Verification& verification, size_t region, size_t season = 0);

}  // namespace aifs::verify

// SPDX-License-Identifier: Apache-2.0
// Reads from a checkpoint which data its weights belong to, and gives it to other ranks as text.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "data/data_record.h"
#include "train/output/checkpoint.h"

namespace aifs::app {

// Key of the records of several datasets in the manifest of a checkpoint.
inline constexpr const char* kDatasetsKey = "datasets";

// Says what weights of a checkpoint are wanted for. Going on with a run, scoring weights and
// forecasts need the tables that they were trained with; a new run may start from them with tables
// of its own.
enum class WeightUse { kResume, kScore, kStart, kForecast };

// Describes the data that the weights of a checkpoint belong to.
struct SavedData {
  WeightUse use = WeightUse::kResume;
  std::string checkpoint;                       // for messages
  std::optional<data::DataRecord> record = {};  // none: written by a program that kept none
  std::map<std::string, data::DataRecord> datasets = {};  // instead of it, of a run of several
  int64_t times_in = 1, times_out = 1;                    // of inputs and outputs of a step
};

SavedData saved_data(WeightUse use, const train::CheckpointInfo& checkpoint);
// As text and back, to be given to other ranks; an empty text is none.
std::string to_text(const std::optional<SavedData>& saved);
std::optional<SavedData> saved_data_from_text(const std::string& text);

}  // namespace aifs::app

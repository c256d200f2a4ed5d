// SPDX-License-Identifier: Apache-2.0
// A dataset with everything that turns its rows into normalised values.
#pragma once

#include <memory>

#include "data/fields/dataset.h"
#include "data/transforms/imputer.h"
#include "data/transforms/normaliser.h"
#include "data/transforms/remapper.h"

namespace aifs::data {

// Outlives what reads from it.
struct SampleSource {
  std::shared_ptr<const Dataset> dataset;
  Normaliser normaliser;
  Imputer imputer;
  Remapper remapper = {};
};

}  // namespace aifs::data

// SPDX-License-Identifier: Apache-2.0
// Values of a dataset that no training survives: infinity, the default fill value of netCDF that a
// conversion left as a number, numbers absurdly far from all others. Looked for once a loss or
// gradient is not finite: then the input is at fault, and no learning rate helps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/fields/dataset.h"

namespace aifs::data {

struct BadInput {
  std::string variable;
  int64_t row = 0;     // of the dataset
  int64_t date_s = 0;  // of the row
  int64_t member = 0, cell = 0;
  float value = 0.0f;  // physical unit
  // "the input is bad: 'x.zarr': u_850 is inf (infinite) on 2020-01-02T06:00:00 in cell 17 (...)".
  std::string text;
  std::string hint;  // what a user can do about it
};

// The first bad value in physical units of some rows and cells, which are read again; nothing if
// there is none. Infinities and fill values go before numbers that are merely absurd: more than a
// million times the largest magnitude that was stored. NaN are not looked for: a reader refuses
// those that are not filled. Throws what Dataset::read() throws.
std::optional<BadInput> first_bad_input(const Dataset& dataset, NodeRange nodes,
                                        std::span<const int64_t> rows);

}  // namespace aifs::data

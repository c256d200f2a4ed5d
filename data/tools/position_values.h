// SPDX-License-Identifier: Apache-2.0
// Values of synthetic stores that say where they belong: the position of an item in the array
// (dates, variables, members, cells) modulo a prime below 2^24. float32 holds them exactly, and
// items that are neighbours along any axis, or any readable distance apart, never have the same.
#pragma once

#include <cstdint>

namespace aifs::data {

constexpr int64_t kPositionModulus = 16777213;
// The attribute of the root group that says so, and its value.
constexpr const char* kSyntheticAttribute = "aifs_train_synthetic";
constexpr const char* kPositionValues = "position modulo 16777213";

// `item`: number of the item in C order.
constexpr float position_value(int64_t item) {
  return static_cast<float>(item % kPositionModulus);
}

}  // namespace aifs::data

// SPDX-License-Identifier: Apache-2.0
// What a reference case allows a reader to do with a store. Cases say it in words:
//
//   must      = part { ("or" | "," | "and") part }
//   part      = outcome | condition
//   outcome   = "read" | "error" | "refuse" | "wrong values" | "treat the absent rows as missing"
//             | "error when used to normalise"
//   condition = "no crash" | "within a memory limit" | "within 512 MiB" | "within 30 s"
//
// Outcomes are alternatives: "read or refuse", "error or read within a memory limit". A note may
// open further ones ("refusing it is as right") and give rows other values than those of the good
// store ("row 2 is 7.5 everywhere"). Case and the usual variants of a word do not matter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "conformance/isolated.h"

namespace aifs::conformance {

struct Expectation {
  bool read = false;          // the values of the good store, but for noted ones
  bool refuse = false;        // an error that names what is wrong
  bool missing_rows = false;  // rows that are not there count as missing, the others are read
  bool any_values = false;    // whatever the bytes give
  bool refuse_to_normalise = false;
  IsolationLimits limits;
};

// Throws NotUnderstood quoting the first part of `must` that is none of the above.
Expectation parse_expectation(const std::string& must, const std::string& note = {});

// The values that a note gives whole rows; key -1 stands for all rows.
std::map<int64_t, float> noted_values(const std::string& note);
// True if a note speaks of values or rows at all. Where it does and noted_values() knows nothing of
// it, values other than the good store's may be right.
bool speaks_of_values(const std::string& note);

}  // namespace aifs::conformance

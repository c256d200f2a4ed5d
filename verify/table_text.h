// SPDX-License-Identifier: Apache-2.0
// Pieces of tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aifs::verify {

// A number as std::printf() would print it.
std::string formatted(const char* format, double value);
// At least so wide, with spaces behind.
std::string padded(std::string text, size_t width);
// Positions of the lead times that a table shows: evenly spread, the last one included.
std::vector<size_t> shown_lead_times(size_t num_leads);

}  // namespace aifs::verify

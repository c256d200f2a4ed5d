// SPDX-License-Identifier: Apache-2.0
// Pages that hold everything they need: files of the tree with texts and numbers in their places.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace aifs::report {

std::string base64(std::string_view bytes);
// Numbers of 32 bits, little-endian, in base64.
std::string base64_floats(std::span<const float> values);

// Returns JSON text that cannot end the element of a page that it stands in.
std::string harmless(std::string_view json);

// Puts texts in the places of the page that are named @LIKE_THIS@, each once and in this order.
// Throws Error for a place that is not there.
std::string filled(std::string_view page,
                   const std::vector<std::pair<std::string, std::string_view>>& texts);

}  // namespace aifs::report

// SPDX-License-Identifier: Apache-2.0
// Events that are scored: which variable reaches which value.
#pragma once

#include <string>
#include <vector>

namespace aifs::verify {

// The thresholds of each of `variables`, ascending, from texts such as "tp=0.001", "0.01",
// "2t=300": a number belongs to the variable before it. Empty texts: nothing. Throws ConfigError
// naming `option` for what is no number, and for variables that are not scored, with near names.
std::vector<std::vector<double>> parse_thresholds(const std::vector<std::string>& texts,
                                                  const std::vector<std::string>& variables,
                                                  const std::string& option);

}  // namespace aifs::verify

// SPDX-License-Identifier: Apache-2.0
// What a plain word of a YAML file means to Anemoi, which reads YAML 1.1 through OmegaConf: 1e-3 is
// a number, yes is true, 010 is eight, 1:30 is ninety, and a date is a text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace aifs::anemoi {

// The value of an unquoted scalar.
nlohmann::ordered_json yaml_scalar(const std::string& word);

}  // namespace aifs::anemoi

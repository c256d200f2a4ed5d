// SPDX-License-Identifier: Apache-2.0
// Files that Anemoi wrote, as trees: JSON, or YAML as OmegaConf reads it. What is wrong with them
// is said with file and line, in our words and not in those of the libraries.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace aifs::anemoi {

// Limits of a file. Aliases count each time they are used, because a few lines of them can stand
// for more than any memory has room for.
struct DocumentLimits {
  size_t bytes = size_t{16} << 20;
  size_t values = 500'000;
  int depth = 100;
};

// True if this program was built with yaml-cpp.
bool reads_yaml();

// The tree of a JSON file (*.json, or a text that begins with a brace), else of a YAML file. Throws
// ConfigError.
nlohmann::ordered_json read_document(const std::filesystem::path& file);

// Reads a YAML text; `name` is for messages. Throws ConfigError.
nlohmann::ordered_json parse_yaml(const std::string& text, const std::string& name,
                                  const DocumentLimits& limits = {});

}  // namespace aifs::anemoi

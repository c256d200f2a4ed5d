// SPDX-License-Identifier: Apache-2.0
#include "anemoi/document.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/config.h"
#include "core/file_io.h"

namespace aifs::anemoi {

namespace {

bool looks_like_json(const fs::path& file, const std::string& text) {
  if (file.extension() == ".json") return true;
  if (file.extension() == ".yaml" || file.extension() == ".yml") return false;
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

std::string read_limited(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  const std::string name = concat("'", file.string(), "'");
  if (error || !fs::exists(status)) throw ConfigError("", concat(name, " is not there"));
  if (!fs::is_regular_file(status)) throw ConfigError("", concat(name, " is not a file"));
  const size_t limit = DocumentLimits().bytes;
  if (fs::file_size(file, error) > limit) {
    throw ConfigError(
        "", concat(name, " is larger than any configuration: more than ", limit >> 20, " MiB"));
  }
  return read_file(file);
}

}  // namespace

nlohmann::ordered_json read_document(const fs::path& file) {
  const std::string text = read_limited(file);
  nlohmann::ordered_json tree = looks_like_json(file, text)
                                    ? config::parse_json(text, file.string())
                                    : parse_yaml(text, file.string());
  if (tree.is_object()) return tree;
  throw ConfigError("", concat("'", file.string(), "' is no configuration: it holds ",
                               tree.is_array() ? "a list" : "a single value",
                               " where names and values are expected"));
}

}  // namespace aifs::anemoi

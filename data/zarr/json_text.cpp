// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/json_text.h"

#include <array>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs::zarr {

namespace {

constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr int kMaxDepth = 200;
constexpr size_t kMaxShown = 80;
constexpr std::array<std::string_view, 3> kBareWords{"NaN", "Infinity", "-Infinity"};

// Length of the text in quotes that starts at `start`, or of what there is of it.
size_t quoted_length(std::string_view text, size_t start) {
  size_t end = start + 1;
  while (end < text.size() && text[end] != '"')
    end += text[end] == '\\' ? 2 : 1;
  return std::min(end + 1, text.size()) - start;
}

// Copies the text with the bare words in quotes; checks the nesting on the way.
std::string standard_json(std::string_view text, const std::string& file) {
  std::string out;
  out.reserve(text.size() + 16);
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"') {
      const size_t length = quoted_length(text, i);
      out += text.substr(i, length);
      i += length;
      continue;
    }
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) {
      throw DataError(
          concat("'", file, "' is not usable JSON: nested more than ", kMaxDepth, " levels deep"));
    }
    std::string_view word;
    for (const std::string_view candidate : kBareWords) {
      if (text.substr(i).starts_with(candidate)) word = candidate;
    }
    if (word.empty()) {
      out += c;
      ++i;
    } else {
      out += concat('"', word, '"');
      i += word.size();
    }
  }
  return out;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  try {
    return Json::parse(standard_json(text, file));
  } catch (const Json::exception& error) {
    throw DataError(concat("'", file, "' is not JSON: ", error.what()));
  }
}

std::optional<Json> read_json(const Store& store, const std::string& key) {
  Buffer bytes;
  if (!store.get(key, kMaxBytes, bytes)) return std::nullopt;
  const auto* text = static_cast<const char*>(static_cast<const void*>(bytes.data()));
  return parse_json({text, bytes.size()}, store.path_of(key));
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = text.substr(0, kMaxShown - 3) + "...";
  return text;
}

}  // namespace aifs::zarr

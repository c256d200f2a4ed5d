// SPDX-License-Identifier: Apache-2.0
#include "data/zarr/json_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/check.h"
#include "core/json_read.h"

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

// A text with the bare words in quotes, and where in it these begin.
struct StandardText {
  std::string text;
  std::vector<size_t> quoted;

  // The byte of the original text for one of this, both counted from 1.
  size_t original_byte(size_t byte) const {
    size_t added = 0;
    for (const size_t at : quoted)
      added += at < byte ? 2 : 0;
    return byte - std::min(added, byte);
  }
};

// Checks the nesting on the way.
StandardText standard_json(std::string_view text, const std::string& file) {
  StandardText result;
  std::string& out = result.text;
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
      result.quoted.push_back(out.size());
      out += concat('"', word, '"');
      i += word.size();
    }
  }
  return result;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  const StandardText standard = standard_json(text, file);
  try {
    return Json::parse(standard.text);
  } catch (const Json::parse_error& error) {
    throw DataError(
        concat("'", file, "' is not JSON: ", json_fault(text, standard.original_byte(error.byte))));
  } catch (const Json::exception&) {
    throw DataError(concat("'", file, "' is not usable JSON: a number in it is too large"));
  }
}

std::optional<Json> read_json(const Store& store, const std::string& key) {
  Buffer bytes;
  if (!store.get(key, kMaxBytes, bytes)) return std::nullopt;
  const auto* text = static_cast<const char*>(static_cast<const void*>(bytes.data()));
  return parse_json({text, bytes.size()}, store.path_of(key));
}

std::string shown(const Json& value) {
  return json_shown(value, kMaxShown);
}

}  // namespace aifs::zarr

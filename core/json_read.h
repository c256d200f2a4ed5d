// SPDX-License-Identifier: Apache-2.0
// JSON that somebody else wrote: what is wrong with it is said with file and key, in our words and
// not in those of the library. A tree of bounded depth, because what walks a tree recurses.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace aifs {

// "an object", "a list", "a text", "a number", "true", "false", "null".
std::string json_kind(const nlohmann::ordered_json& value);

// The value in one line of at most `most` bytes, cut between characters.
std::string json_shown(const nlohmann::ordered_json& value, size_t most = 80);

// Throws ConfigError at `path`: what stands there, and what is allowed.
[[noreturn]] void throw_not_allowed(const std::string& path, const nlohmann::ordered_json& value,
                                    const std::string& allowed);

// True if JSON can hold the text.
bool is_utf8(const std::string& text);

// Returns where and why a text stops being JSON: "line 2, column 5: 'x' does not belong there".
// `byte` counts from 1 and is that of nlohmann's parse_error; beyond the end the text is cut short.
std::string json_fault(std::string_view text, size_t byte);

// The tree of a text. Throws DataError naming `file` if it is not JSON, or nested more than
// `max_depth` levels deep.
nlohmann::ordered_json parse_json_file(std::string_view text, const std::string& file,
                                       int max_depth = 200);

// A place in a document, whose members are asked for with their types. Every function throws
// DataError such as "'manifest.json': files.a must be a text, not a list". Refers to the document.
class JsonPlace {
 public:
  using Json = nlohmann::ordered_json;

  // The root; `file` is for messages.
  JsonPlace(const Json& root, std::string file);

  // A member of an object; it is an error if it is not there.
  JsonPlace at(const std::string& key) const;
  // Returns the place of a key, nothing if it is absent or null.
  std::optional<JsonPlace> find(const std::string& key) const;

  const Json& object() const;
  const Json& list() const;
  std::string text() const;
  double number() const;
  int64_t integer(int64_t min = INT64_MIN, int64_t max = INT64_MAX) const;

 private:
  [[noreturn]] void wrong(const std::string& expected) const;

  const Json* value_;
  std::string file_, path_;
};

}  // namespace aifs

// SPDX-License-Identifier: Apache-2.0
#include "core/json_read.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace aifs {

using Json = nlohmann::ordered_json;

namespace {

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

// Returns what stands at a place, for a message: a character, or the number of a byte that is none.
std::string shown_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte >= 0x20 && byte < 0x7f) return concat("'", text[at], "'");
  if (byte == '\n' || byte == '\r') return "the end of the line";
  if (byte == '\t') return "a tabulator";
  return concat("the byte ", static_cast<int>(byte));
}

}  // namespace

std::string json_kind(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "a list";
    case Json::value_t::string:
      return "a text";
    case Json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return "a number";
    default:
      return "null";
  }
}

std::string json_shown(const Json& value, size_t most) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && continues_character(text[end]))
    --end;
  return text.substr(0, end) + "...";
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(nlohmann::ordered_json(text).dump());
  } catch (const nlohmann::ordered_json::exception&) {
    return false;
  }
  return true;
}

void throw_not_allowed(const std::string& path, const nlohmann::ordered_json& value,
                       const std::string& allowed) {
  throw ConfigError(path, concat("got ", json_shown(value, 60), ", allowed is ", allowed));
}

std::string json_fault(std::string_view text, size_t byte) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "it is empty";
  const size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const std::string_view before = text.substr(0, at);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const auto column =
      1 + std::count_if(before.begin() + static_cast<ptrdiff_t>(line_start), before.end(),
                        [](char c) { return !continues_character(c); });
  const std::string place = concat("line ", line, ", column ", column, ": ");
  if (at == text.size()) return place + "it ends where more must follow";
  return concat(place, shown_at(text, at), " does not belong there");
}

Json parse_json_file(std::string_view text, const std::string& file, int max_depth) {
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > max_depth;
    return !deep;  // forget it at once
  };
  Json tree;
  try {
    tree = Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    throw DataError(concat("'", file, "' is not JSON: ", json_fault(text, error.byte)));
  } catch (const Json::exception&) {
    throw DataError(concat("'", file, "' is not usable JSON: a number in it is too large"));
  }
  if (deep) {
    throw DataError(concat("'", file, "' is not usable JSON: more than ", max_depth,
                           " brackets or braces in each other"));
  }
  return tree;
}

JsonPlace::JsonPlace(const Json& root, std::string file) : value_(&root), file_(std::move(file)) {}

void JsonPlace::wrong(const std::string& expected) const {
  const bool shows = value_->is_number();
  throw DataError(concat("'", file_, "': ", path_.empty() ? "the whole" : path_, " must be ",
                         expected, ", not ", shows ? json_shown(*value_) : json_kind(*value_)));
}

JsonPlace JsonPlace::at(const std::string& key) const {
  auto member = find(key);
  if (member) return *member;
  const bool is_null = value_->contains(key);
  throw DataError(concat("'", file_, "': ", path_.empty() ? key : concat(path_, ".", key),
                         is_null ? " is null" : " is missing"));
}

std::optional<JsonPlace> JsonPlace::find(const std::string& key) const {
  const auto found = object().find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  JsonPlace member(*found, file_);
  member.path_ = path_.empty() ? key : concat(path_, ".", key);
  return member;
}

const Json& JsonPlace::object() const {
  if (!value_->is_object()) wrong("an object");
  return *value_;
}

const Json& JsonPlace::list() const {
  if (!value_->is_array()) wrong("a list");
  return *value_;
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) wrong("a text");
  return value_->get<std::string>();
}

double JsonPlace::number() const {
  if (!value_->is_number()) wrong("a number");
  return value_->get<double>();
}

int64_t JsonPlace::integer(int64_t min, int64_t max) const {
  const bool too_large = value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX;
  const bool fits = value_->is_number_integer() && !too_large;
  if (!fits || value_->get<int64_t>() < min || value_->get<int64_t>() > max) {
    if (min == INT64_MIN && max == INT64_MAX) wrong("an integer");
    wrong(max == INT64_MAX ? concat("an integer >= ", min)
                           : concat("an integer from ", min, " to ", max));
  }
  return value_->get<int64_t>();
}

}  // namespace aifs

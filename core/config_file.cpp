// SPDX-License-Identifier: Apache-2.0
// Configuration files: comments, bases, variables, relative paths, overrides.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/config.h"
#include "core/file_io.h"
#include "core/file_kind.h"
#include "core/json_read.h"

namespace aifs::config {

namespace {

constexpr const char* kBaseKey = "base";
constexpr int kMaxBaseDepth = 16;
// Deeper trees are no configurations, and what walks a tree recurses.
constexpr int kMaxDepth = 64;

void require_utf8(const std::string& text, const std::string& path) {
  if (!is_utf8(text)) throw ConfigError(path, "the text is not valid UTF-8");
}

[[noreturn]] void too_deep(const std::string& name) {
  throw ConfigError(
      "", concat("'", name, "' has more than ", kMaxDepth, " brackets or braces in each other"));
}

// The value of an assignment: JSON, else the text itself.
Json parse_value(const std::string& text, const std::string& path) {
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxDepth;
    return !deep;
  };
  Json value = Json::parse(text, watch, /*allow_exceptions=*/false);
  if (deep) too_deep(path);
  return value.is_discarded() ? Json(text) : value;
}

// Replaces ${VAR} and ${VAR:-default}; "$$" is a plain dollar sign.
std::string expand_variables(const std::string& text, const std::string& path) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "$$") == 0) {
      result += '$';
      ++i;
    } else if (text.compare(i, 2, "${") == 0) {
      const size_t close = text.find('}', i);
      if (close == std::string::npos) {
        throw ConfigError(path, concat("'", text, "' has '${' without '}'"));
      }
      const std::string inside = text.substr(i + 2, close - i - 2);
      const size_t fallback = inside.find(":-");
      const std::string name = inside.substr(0, fallback);
      const char* value = std::getenv(name.c_str());
      if (value) {
        require_utf8(value, path);
        result += value;
      } else if (fallback != std::string::npos) {
        result += inside.substr(fallback + 2);
      } else {
        throw ConfigError(path, concat("the environment variable '", name, "' is not set"),
                          concat("export ", name, "=..., or write ${", name, ":-default}"));
      }
      i = close;
    } else {
      result += text[i];
    }
  }
  return result;
}

void expand_all(Json& tree, const std::string& path) {
  if (tree.is_string()) {
    tree = expand_variables(tree.get<std::string>(), path);
  } else if (tree.is_object() || tree.is_array()) {
    for (const auto& item : tree.items()) {
      expand_all(item.value(), path.empty() ? item.key() : concat(path, ".", item.key()));
    }
  }
}

// A relative path is meant from the folder of the file it stands in.
void make_absolute(Json& text, const fs::path& folder) {
  if (!text.is_string()) return;
  const auto value = text.get<std::string>();
  if (value.empty() || value.find("://") != std::string::npos) return;
  const fs::path path(value);
  if (path.is_relative()) text = (folder / path).lexically_normal().string();
}

void resolve_paths(Json& tree, const std::vector<Field>& fields, const fs::path& folder);

// A path may also be a tree of paths: lists of them, and objects like the one that it stands in.
void resolve_path(Json& value, const std::vector<Field>& fields, const fs::path& folder) {
  if (value.is_array()) {
    for (Json& element : value)
      resolve_path(element, fields, folder);
  } else if (value.is_object()) {
    resolve_paths(value, fields, folder);
  } else {
    make_absolute(value, folder);
  }
}

void resolve_paths(Json& tree, const std::vector<Field>& fields, const fs::path& folder) {
  if (!tree.is_object()) return;
  for (const Field& field : fields) {
    const auto found = tree.find(field.key);
    if (found == tree.end()) continue;
    Json& value = found.value();
    switch (field.kind) {
      case Field::Kind::kPath:
        resolve_path(value, fields, folder);
        break;
      case Field::Kind::kPathList:
        if (value.is_array()) {
          for (Json& element : value)
            make_absolute(element, folder);
        } else {
          make_absolute(value, folder);  // one for a list of one
        }
        break;
      case Field::Kind::kSection:
        if (!field.shorthand.empty() && (value.is_string() || value.is_array()))
          value = Json{{field.shorthand, value}};
        resolve_paths(value, field.children, folder);
        break;
      case Field::Kind::kObjectList:
        if (value.is_array()) {
          for (Json& element : value)
            resolve_paths(element, field.children, folder);
        }
        break;
      case Field::Kind::kObjectMap:
        if (value.is_object()) {
          for (auto& [name, element] : value.items())
            resolve_paths(element, field.children, folder);
        }
        break;
      case Field::Kind::kValue:
        break;
    }
  }
}

void merge_over(Json& below, const Json& above) {
  if (!below.is_object() || !above.is_object()) {
    below = above;
    return;
  }
  for (const auto& [key, value] : above.items())
    merge_over(below[key], value);
}

// A file that cannot be JSON is called by what it is.
void refuse_other_kinds(const fs::path& file) {
  const std::string kind = describe_kind_of_file(file);
  const std::array<std::string_view, 6> possible{
      "", "JSON", "text", "an empty file", "a device, pipe or socket", "a file of another kind"};
  if (std::find(possible.begin(), possible.end(), kind) != possible.end()) return;
  throw ConfigError("", concat("'", file.string(), "' is ", kind, ", a JSON file was expected"));
}

Json load_with_bases(const fs::path& file, const std::vector<Field>& fields, int depth) {
  if (depth > kMaxBaseDepth) {
    throw ConfigError(
        kBaseKey,
        concat("'", file.string(), "': more than ", kMaxBaseDepth, " bases on top of each other"),
        "does a file name itself as its base?");
  }
  std::string text;
  try {
    text = read_file(file);
  } catch (const DataError& error) {
    throw ConfigError("", error.what());
  }
  refuse_other_kinds(file);
  Json tree = parse_json(text, file.string());
  if (!tree.is_object()) {
    throw ConfigError("", concat("'", file.string(), "' does not hold an object { ... }"));
  }
  expand_all(tree, "");
  const fs::path folder = file.parent_path();
  Json below = Json::object();
  if (const auto base = tree.find(kBaseKey); base != tree.end()) {
    for (const Json& name : base->is_array() ? *base : Json::array({*base})) {
      if (!name.is_string())
        throw ConfigError(kBaseKey, "the name of a file was expected, or a list of names");
      merge_over(below, load_with_bases(folder / name.get<std::string>(), fields, depth + 1));
    }
    tree.erase(kBaseKey);
  }
  resolve_paths(tree, fields, folder);
  merge_over(below, tree);
  return below;
}

// The first field of a key: kinds that share a key have the same keys below it.
const Field& field_at(const std::vector<Field>& fields, const std::string& key,
                      const std::string& whole) {
  std::vector<std::string> keys;
  for (const Field& field : fields) {
    if (field.key == key || (!field.formerly.empty() && field.formerly == key)) return field;
    keys.push_back(field.key);
  }
  throw ConfigError(whole, concat("no key '", key, "'"), nearest_names(key, keys));
}

}  // namespace

Json parse_json(const std::string& text, const std::string& name) {
  // The library keeps the last of two equal keys; a configuration with both is a mistake.
  std::vector<std::set<std::string>> open_objects;
  std::string duplicate;
  bool deep = false;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    deep = deep || depth > kMaxDepth;
    if (deep) return false;  // forget it at once
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key && !open_objects.empty() &&
        !open_objects.back().insert(parsed.get<std::string>()).second && duplicate.empty()) {
      duplicate = parsed.get<std::string>();
    }
    return true;
  };
  Json tree;
  try {
    tree = Json::parse(text, watch, true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw ConfigError("", concat("'", name, "' is not JSON: ", json_fault(text, error.byte)),
                      "comments are allowed, a comma before } or ] is not");
  } catch (const Json::exception&) {
    throw ConfigError("", concat("'", name, "' holds a number that is too large"));
  }
  if (deep) too_deep(name);
  if (!duplicate.empty()) {
    throw ConfigError("", concat("'", name, "' has the key '", duplicate, "' twice in one object"));
  }
  return tree;
}

Json load_file(const fs::path& file, const std::vector<Field>& fields) {
  return load_with_bases(file, fields, 0);
}

void apply_override(Json& tree, const std::string& assignment, const std::vector<Field>& fields,
                    ReadContext& context) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError("", concat("--set '", assignment, "' is not of the form path.to.key=value"));
  }
  const std::string path = assignment.substr(0, equals);
  require_utf8(path, "--set");
  require_utf8(assignment, path);
  const std::string text = expand_variables(assignment.substr(equals + 1), path);
  Json value = parse_value(text, path);
  context.raw_overrides[path] = text;

  Json* node = &tree;
  const std::vector<Field>* level = &fields;
  std::string shorthand;
  bool any_name = false;  // of an element of a map
  for (size_t start = 0; start <= path.size();) {
    const size_t dot = std::min(path.find('.', start), path.size());
    const std::string key = path.substr(start, dot - start);
    if (node->is_array() && !shorthand.empty()) *node = Json{{shorthand, *node}};
    if (node->is_array()) {
      const bool is_index =
          !key.empty() && key.find_first_not_of("0123456789") == std::string::npos;
      if (!is_index || key.size() > 9 || std::stoul(key) >= node->size()) {
        throw ConfigError(path, concat("no element '", key, "' in a list of ", node->size()));
      }
      node = &(*node)[std::stoul(key)];
    } else {
      if (node->is_null()) *node = Json::object();
      if (node->is_string() && !shorthand.empty()) *node = Json{{shorthand, *node}};
      if (!node->is_object()) {
        throw ConfigError(path, concat("'", path.substr(0, start - 1), "' is not an object"));
      }
      if (level && !std::exchange(any_name, false)) {
        const Field& field = field_at(*level, key, path);
        any_name = field.kind == Field::Kind::kObjectMap;
        level = field.has_children() ? &field.children : nullptr;
        shorthand = field.shorthand;
      }
      node = &(*node)[key];
    }
    start = dot + 1;
  }
  *node = std::move(value);
}

}  // namespace aifs::config

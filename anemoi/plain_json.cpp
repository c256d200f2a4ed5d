// SPDX-License-Identifier: Apache-2.0
#include "anemoi/plain_json.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::anemoi {

namespace {

using PlainJson = nlohmann::ordered_json;

// Shared values count each time they are used: a few of them can stand for more than any memory
// has room for.
class PlainTree {
 public:
  explicit PlainTree(const std::string& file) : file_(file) {}

  PlainJson of(const PickleValue& value, int depth = 0) {
    constexpr int kMostDepth = 100;
    constexpr size_t kMostValues = 500'000, kLettersOfValue = 100;
    if (depth > kMostDepth || ++count_ > kMostValues)
      throw DataError(file_ + " has a configuration that is larger or deeper than any in use");
    switch (value.kind()) {
      case PickleKind::kBool:
        return value.boolean();
      case PickleKind::kInteger:
        return value.integer();
      case PickleKind::kFloat:
        return value.number();
      case PickleKind::kText:
        count_ += value.text().size() / kLettersOfValue;
        return is_utf8(std::string(value.text())) ? PlainJson(std::string(value.text())) : nullptr;
      case PickleKind::kList:
      case PickleKind::kTuple:
        return list(value, depth);
      case PickleKind::kDict:
        return dictionary(value, depth);
      case PickleKind::kObject:
        return object(value, depth);
      default:
        return nullptr;
    }
  }

 private:
  PlainJson list(const PickleValue& value, int depth) {
    PlainJson json = PlainJson::array();
    for (size_t i = 0; i < value.size(); ++i)
      json.push_back(of(value[i], depth + 1));
    return json;
  }
  PlainJson dictionary(const PickleValue& value, int depth) {
    PlainJson json = PlainJson::object();
    for (const auto& [key, member] : value.entries()) {
      if (key.is(PickleKind::kInteger)) json[concat(key.integer())] = of(member, depth + 1);
      if (!key.is(PickleKind::kText) || !is_utf8(std::string(key.text()))) continue;
      json[std::string(key.text())] = of(member, depth + 1);
    }
    return json;
  }
  PlainJson object(const PickleValue& value, int depth) {
    const std::string name = value.class_name();
    if (name.starts_with("omegaconf.")) {  // containers and nodes
      const auto content = value.attribute("_content"), node = value.attribute("_val");
      if (!content && !node) return nullptr;
      return of(content ? *content : *node, depth + 1);
    }
    if (name.starts_with("pathlib.")) return path(value.arguments());
    if (name.ends_with("Dict") || name.ends_with("dict")) return dictionary(value, depth);
    return nullptr;
  }
  static PlainJson path(const PickleValue& parts) {
    std::string text;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].is(PickleKind::kText)) return nullptr;
      text += concat(text.empty() || text.ends_with('/') ? "" : "/", parts[i].text());
    }
    return is_utf8(text) ? PlainJson(text) : nullptr;
  }

  const std::string& file_;
  size_t count_ = 0;
};

}  // namespace

nlohmann::ordered_json plain_json(const PickleValue& value, const std::string& file) {
  return PlainTree(file).of(value);
}

}  // namespace aifs::anemoi

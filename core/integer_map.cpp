// SPDX-License-Identifier: Apache-2.0
#include "core/integer_map.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/json_read.h"

namespace aifs::config {

namespace {

// The key `key` of one integer.
Field integer_field(const std::string& key, int64_t& value, Bounds<int64_t> bounds) {
  Binder one;
  one.integer(key.c_str(), value, bounds, {});
  return std::move(one.fields().front());
}

}  // namespace

void integer_map(Binder& b, const char* key, std::map<std::string, int64_t>& value,
                 Bounds<int64_t> bounds, Doc doc) {
  int64_t unused = 0;
  Field field{key,
              std::move(doc),
              Field::Kind::kValue,
              concat("map of name to ", integer_field(key, unused, bounds).type),
              nullptr,
              nullptr,
              nullptr};
  field.read = [&value, bounds](const Json& json, const std::string& path,
                                const ReadContext& context) {
    if (!json.is_object()) throw_not_allowed(path, json, "an object of integers");
    value.clear();
    for (const auto& [name, element] : json.items())
      integer_field(name, value[name], bounds).read(element, concat(path, ".", name), context);
  };
  field.write = [&value] { return Json(value); };
  field.schema = [bounds] {
    int64_t one = 0;
    return Json{{"type", "object"},
                {"additionalProperties", integer_field("", one, bounds).schema()}};
  };
  b.fields().push_back(std::move(field));
}

}  // namespace aifs::config

// SPDX-License-Identifier: Apache-2.0
#include "core/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/join.h"
#include "core/json_read.h"
#include "core/time.h"

namespace aifs::config {

namespace {

std::string join_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : concat(path, ".", key);
}

// The value as the user wrote it, shortened for messages.
std::string shown(const Json& value) {
  return json_shown(value, 60);
}

[[noreturn]] void wrong(const std::string& path, const Json& value, const std::string& expected) {
  throw ConfigError(path, concat("got ", shown(value), ", allowed is ", expected));
}

template <class T>
std::string range_text(const char* noun, const Bounds<T>& bounds) {
  const bool has_min = bounds.min != std::numeric_limits<T>::lowest();
  const bool has_max = bounds.max != std::numeric_limits<T>::max();
  if (has_min && has_max) return concat(noun, " from ", bounds.min, " to ", bounds.max);
  if (has_min) return concat(noun, " >= ", bounds.min);
  if (has_max) return concat(noun, " <= ", bounds.max);
  return noun;
}

template <class T>
Json range_schema(const char* type, const Bounds<T>& bounds) {
  Json schema{{"type", type}};
  if (bounds.min != std::numeric_limits<T>::lowest()) schema["minimum"] = bounds.min;
  if (bounds.max != std::numeric_limits<T>::max()) schema["maximum"] = bounds.max;
  return schema;
}

int64_t to_integer(const Json& value, const std::string& path, const Bounds<int64_t>& bounds) {
  const std::string expected = range_text("integer", bounds);
  int64_t number = 0;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) wrong(path, value, expected);
  if (value.is_number_integer()) {
    number = value.get<int64_t>();
  } else if (value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
             std::abs(value.get<double>()) < 9e15) {
    number = static_cast<int64_t>(value.get<double>());  // 1e5 is an integer too
  } else {
    wrong(path, value, expected);
  }
  if (number < bounds.min || number > bounds.max) wrong(path, value, expected);
  return number;
}

double to_number(const Json& value, const std::string& path, const Bounds<double>& bounds) {
  const std::string expected = range_text("number", bounds);
  if (!value.is_number()) wrong(path, value, expected);
  const double number = value.get<double>();
  if (!(number >= bounds.min && number <= bounds.max)) wrong(path, value, expected);
  return number;
}

const char* text_type(TextKind kind) {
  switch (kind) {
    case TextKind::kPlain:
      return "text";
    case TextKind::kPath:
      return "path";
    case TextKind::kDuration:
      return "duration such as \"6h\", or a number of hours";
    case TextKind::kDate:
      return "date such as \"2020\" or \"2020-01-31T06:00:00\"";
  }
  return "text";
}

// Dates such as 2020 and durations in hours may be numbers.
Json text_schema(TextKind kind) {
  const bool may_be_number = kind == TextKind::kDate || kind == TextKind::kDuration;
  if (may_be_number) return Json{{"type", Json::array({"string", "integer"})}};
  return Json{{"type", "string"}};
}

std::string to_text(const Json& value, const std::string& path, TextKind kind,
                    const ReadContext& context) {
  std::string text;
  if (const auto raw = context.raw_overrides.find(path);
      raw != context.raw_overrides.end() && !value.is_string()) {
    text = raw->second;
  } else if ((kind == TextKind::kDate && value.is_number_unsigned()) ||
             (kind == TextKind::kDuration && value.is_number_integer())) {
    text = value.dump();  // the year 2020 and 6 hours, as Anemoi's configurations write them
  } else if (value.is_string()) {
    text = value.get<std::string>();
  } else {
    wrong(path, value, text_type(kind));
  }
  try {
    if (kind == TextKind::kDuration) parse_duration(text);
    if (kind == TextKind::kDate && !text.empty()) parse_date(text);
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
  return text;
}

// Reads a JSON array element by element.
template <class Read>
void read_array(const Json& value, const std::string& path, const char* type, Read&& read_element) {
  if (!value.is_array()) wrong(path, value, type);
  for (size_t i = 0; i < value.size(); ++i)
    read_element(value[i], concat(path, ".", i));
}

template <class Read>
void read_map(const Json& value, const std::string& path, const char* type, Read&& read_element) {
  if (!value.is_object()) wrong(path, value, type);
  for (const auto& [key, element] : value.items())
    read_element(key, element, join_path(path, key));
}

bool is_read_by(const Field& field, const std::string& kind) {
  return field.readers.empty() ||
         std::find(field.readers.begin(), field.readers.end(), kind) != field.readers.end();
}

bool has_name(const Field& field, const std::string& key) {
  return field.key == key || (!field.formerly.empty() && field.formerly == key);
}

const Field* find_tag(const std::vector<Field>& fields) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [](const Field& field) { return field.is_tag; });
  return found == fields.end() ? nullptr : &*found;
}

// The present kind; empty if there are no kinds.
std::string kind_of(const std::vector<Field>& fields) {
  const Field* tag = find_tag(fields);
  return tag ? tag->write().get<std::string>() : "";
}

const Field* find_field(const std::vector<Field>& fields, const std::string& key,
                        const std::string& kind) {
  for (const Field& field : fields) {
    if (has_name(field, key) && is_read_by(field, kind)) return &field;
  }
  return nullptr;
}

// Kinds that read a key.
std::vector<std::string> readers_of(const std::vector<Field>& fields, const std::string& key) {
  std::vector<std::string> readers;
  for (const Field& field : fields) {
    if (has_name(field, key))
      readers.insert(readers.end(), field.readers.begin(), field.readers.end());
  }
  return readers;
}

[[noreturn]] void refuse_key(const std::vector<Field>& fields, const std::string& key,
                             const std::string& kind, const std::string& path) {
  std::vector<std::string> keys, own;
  for (const Field& field : fields) {
    if (!is_read_by(field, kind)) continue;
    keys.push_back(field.key);
    if (!field.readers.empty()) own.push_back(field.key);
  }
  const std::vector<std::string> readers = readers_of(fields, key);
  if (readers.empty()) {
    throw ConfigError(join_path(path, key), "no such key", nearest_names(key, keys));
  }
  throw ConfigError(join_path(path, key),
                    concat("is an option of ", join(readers), ", not of ", kind),
                    concat(own.empty() ? concat(kind, " has no options of its own")
                                       : concat("the options of ", kind, " are ", join(own)),
                           "; null takes away what a file underneath says"));
}

}  // namespace

// ------------------------------------------------------------------------------------ binding ---

void Binder::boolean(const char* key, bool& value, Doc doc) {
  fields_.push_back({key, std::move(doc), Field::Kind::kValue, "true or false",
                     [&value](const Json& json, const std::string& path, const ReadContext&) {
                       if (!json.is_boolean()) wrong(path, json, "true or false");
                       value = json.get<bool>();
                     },
                     [&value] { return Json(value); },
                     [] {
                       return Json{{"type", "boolean"}};
                     }});
}

void Binder::integer(const char* key, int64_t& value, Bounds<int64_t> bounds, Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, range_text("integer", bounds),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value = to_integer(json, path, bounds);
       },
       [&value] { return Json(value); }, [bounds] { return range_schema("integer", bounds); }});
}

void Binder::integer_or_auto(const char* key, std::optional<int64_t>& value, Bounds<int64_t> bounds,
                             Doc doc) {
  const std::string type = range_text("integer", bounds) + " or \"auto\"";
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, type,
       [&value, bounds, type](const Json& json, const std::string& path, const ReadContext&) {
         if (json.is_string()) {
           if (json.get<std::string>() != "auto") wrong(path, json, type);
           value.reset();
         } else {
           value = to_integer(json, path, bounds);
         }
       },
       [&value] { return value ? Json(*value) : Json("auto"); },
       [bounds] {
         return Json{
             {"anyOf", Json::array({range_schema("integer", bounds), Json{{"const", "auto"}}})}};
       }});
}

void Binder::number(const char* key, double& value, Bounds<double> bounds, Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, range_text("number", bounds),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value = to_number(json, path, bounds);
       },
       [&value] { return Json(value); }, [bounds] { return range_schema("number", bounds); }});
}

void Binder::number_or_null(const char* key, std::optional<double>& value, Bounds<double> bounds,
                            Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, concat(range_text("number", bounds), " or null"),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value = to_number(json, path, bounds);
       },
       [&value] { return value ? Json(*value) : Json(); },
       [bounds] {
         Json schema = range_schema("number", bounds);
         schema["type"] = Json::array({"number", "null"});
         return schema;
       }});
}

void Binder::text(const char* key, std::string& value, Doc doc, TextKind kind) {
  const auto field_kind = kind == TextKind::kPath ? Field::Kind::kPath : Field::Kind::kValue;
  fields_.push_back(
      {key, std::move(doc), field_kind, text_type(kind),
       [&value, kind](const Json& json, const std::string& path, const ReadContext& context) {
         value = to_text(json, path, kind, context);
       },
       [&value] { return Json(value); }, [kind] { return text_schema(kind); }});
}

void Binder::text_list(const char* key, std::vector<std::string>& value, Doc doc, TextKind kind) {
  const auto field_kind = kind == TextKind::kPath ? Field::Kind::kPathList : Field::Kind::kValue;
  fields_.push_back(
      {key, std::move(doc), field_kind, concat("list of ", text_type(kind)),
       [&value, kind](const Json& json, const std::string& path, const ReadContext& context) {
         value.clear();
         if (json.is_string() || json.is_number()) {  // as open_dataset takes one for a list of one
           value.push_back(to_text(json, path, kind, context));
           return;
         }
         read_array(json, path, "a list of texts", [&](const Json& element, const std::string& at) {
           value.push_back(to_text(element, at, kind, context));
         });
       },
       [&value] { return Json(value); },
       [kind] {
         const Json one = text_schema(kind);
         return Json{{"anyOf", Json::array({Json{{"type", "array"}, {"items", one}}, one})}};
       }});
}

void Binder::integer_list(const char* key, std::vector<int64_t>& value, Bounds<int64_t> bounds,
                          Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, concat("list of ", range_text("integer", bounds)),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value.clear();
         read_array(json, path, "a list of integers",
                    [&](const Json& element, const std::string& at) {
                      value.push_back(to_integer(element, at, bounds));
                    });
       },
       [&value] { return Json(value); },
       [bounds] {
         return Json{{"type", "array"}, {"items", range_schema("integer", bounds)}};
       }});
}

void Binder::number_list(const char* key, std::vector<double>& value, Bounds<double> bounds,
                         Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, concat("list of ", range_text("number", bounds)),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value.clear();
         read_array(json, path, "a list of numbers",
                    [&](const Json& element, const std::string& at) {
                      value.push_back(to_number(element, at, bounds));
                    });
       },
       [&value] { return Json(value); },
       [bounds] {
         return Json{{"type", "array"}, {"items", range_schema("number", bounds)}};
       }});
}

void Binder::number_map(const char* key, std::map<std::string, double>& value,
                        Bounds<double> bounds, Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue,
       concat("map of name to ", range_text("number", bounds)),
       [&value, bounds](const Json& json, const std::string& path, const ReadContext&) {
         value.clear();
         read_map(json, path, "an object of numbers",
                  [&](const std::string& name, const Json& element, const std::string& at) {
                    value[name] = to_number(element, at, bounds);
                  });
       },
       [&value] { return Json(value); },
       [bounds] {
         return Json{{"type", "object"}, {"additionalProperties", range_schema("number", bounds)}};
       }});
}

void Binder::text_map(const char* key, std::map<std::string, std::string>& value, Doc doc) {
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, "map of name to text",
       [&value](const Json& json, const std::string& path, const ReadContext& context) {
         value.clear();
         read_map(json, path, "an object of texts",
                  [&](const std::string& name, const Json& element, const std::string& at) {
                    value[name] = to_text(element, at, TextKind::kPlain, context);
                  });
       },
       [&value] { return Json(value); },
       [] {
         return Json{{"type", "object"}, {"additionalProperties", Json{{"type", "string"}}}};
       }});
}

void Binder::choice_by_index(const char* key, std::vector<std::string> names, Doc doc,
                             std::function<void(size_t)> assign,
                             std::function<std::string()> current) {
  std::string allowed;
  for (const std::string& name : names)
    allowed += concat(allowed.empty() ? "" : " | ", name);
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kValue, allowed,
       [names, allowed, assign](const Json& json, const std::string& path, const ReadContext&) {
         if (json.is_string()) {
           const auto wanted = json.get<std::string>();
           for (size_t i = 0; i < names.size(); ++i) {
             if (names[i] == wanted) return assign(i);
           }
           throw ConfigError(path, concat("got ", shown(json), ", allowed is one of ", allowed),
                             nearest_names(wanted, names, 1));
         }
         wrong(path, json, "one of " + allowed);
       },
       [current] { return Json(current()); },
       [names] {
         return Json{{"enum", names}};
       }});
}

void Binder::tag(const char* key, std::vector<std::string> names, Doc doc,
                 std::function<void(size_t)> assign, std::function<std::string()> current) {
  choice_by_index(key, std::move(names), std::move(doc), std::move(assign), std::move(current));
  fields_.back().is_tag = true;
}

void Binder::options_of_kind(const std::string& kind, std::vector<Field> fields) {
  for (Field& field : fields) {
    field.readers = {kind};
    fields_.push_back(std::move(field));
  }
}

void Binder::add_section(const char* key, Doc doc, std::vector<Field> children,
                         std::function<void(const std::string&)> validate, std::string shorthand) {
  auto shared = std::make_shared<std::vector<Field>>(children);
  const std::string type =
      shorthand.empty() ? "object" : concat("object, or a text for its \"", shorthand, "\"");
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kSection, type,
       [shared, validate, shorthand](const Json& json, const std::string& path,
                                     const ReadContext& context) {
         const bool is_short = !shorthand.empty() && (json.is_string() || json.is_array());
         read_object(*shared, is_short ? Json{{shorthand, json}} : json, path, context);
         validate(path);
       },
       [shared] { return write_object(*shared); },
       [shared, shorthand] {
         const Json object = json_schema(*shared, "");
         if (shorthand.empty()) return object;
         return Json{{"anyOf", Json::array({object, Json{{"type", "string"}}})}};
       },
       std::move(children), std::move(shorthand)});
}

void Binder::add_list(
    const char* key, Doc doc, std::vector<Field> element_fields, std::function<void()> clear,
    std::function<void(const Json&, const std::string&, const ReadContext&)> append,
    std::function<std::vector<std::vector<Field>>()> elements) {
  auto shared = std::make_shared<std::vector<Field>>(element_fields);
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kObjectList, "list of objects",
       [clear, append](const Json& json, const std::string& path, const ReadContext& context) {
         clear();
         read_array(
             json, path, "a list of objects",
             [&](const Json& element, const std::string& at) { append(element, at, context); });
       },
       [elements] {
         Json array = Json::array();
         for (const std::vector<Field>& element : elements())
           array.push_back(write_object(element));
         return array;
       },
       [shared] {
         return Json{{"type", "array"}, {"items", json_schema(*shared, "")}};
       },
       std::move(element_fields)});
}

void Binder::add_map(
    const char* key, Doc doc, std::vector<Field> element_fields, std::function<void()> clear,
    std::function<void(const std::string&, const Json&, const std::string&, const ReadContext&)>
        append,
    std::function<NamedFields()> elements) {
  auto shared = std::make_shared<std::vector<Field>>(element_fields);
  fields_.push_back(
      {key, std::move(doc), Field::Kind::kObjectMap, "object of named objects",
       [clear, append](const Json& json, const std::string& path, const ReadContext& context) {
         clear();
         if (!json.is_object()) wrong(path, json, "an object with an object for each name");
         for (const auto& [name, element] : json.items()) {
           if (!element.is_null()) append(name, element, join_path(path, name), context);
         }
       },
       [elements] {
         Json object = Json::object();
         for (const auto& [name, element] : elements())
           object[name] = write_object(element);
         return object;
       },
       [shared] {
         return Json{{"type", "object"}, {"additionalProperties", json_schema(*shared, "")}};
       },
       std::move(element_fields)});
}

void read_object(const std::vector<Field>& fields, const Json& object, const std::string& path,
                 const ReadContext& context) {
  if (!object.is_object()) wrong(path, object, "an object { ... }");
  const Field* tag = find_tag(fields);  // first: it says what else is read
  if (tag && object.contains(tag->key) && !object.at(tag->key).is_null())
    tag->read(object.at(tag->key), join_path(path, tag->key), context);
  const std::string kind = kind_of(fields);
  for (const auto& [key, value] : object.items()) {
    const Field* field = find_field(fields, key, kind);
    if (!field) {
      if (value.is_null() && !readers_of(fields, key).empty()) continue;
      refuse_key(fields, key, kind, path);
    }
    if (value.is_null() || field == tag) continue;
    if (field->key != key && object.contains(field->key)) {
      throw ConfigError(join_path(path, key),
                        concat("is the former name of '", field->key, "', which is given, too"),
                        "leave it out");
    }
    field->read(value, join_path(path, key), context);
  }
}

void refuse_unused(const std::vector<Field>& given, const std::vector<Field>& plain,
                   const std::vector<std::string>& used, const std::string& path,
                   const std::string& user) {
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& key = given[i].key;
    if (std::find(used.begin(), used.end(), key) != used.end()) continue;
    if (given[i].write() == plain[i].write()) continue;
    throw ConfigError(join_path(path, key), concat("is not for ", user), "leave it out");
  }
}

Json write_object(const std::vector<Field>& fields) {
  const std::string kind = kind_of(fields);
  Json object = Json::object();
  for (const Field& field : fields) {
    if (is_read_by(field, kind)) object[field.key] = field.write();
  }
  return object;
}

namespace {

// The kind that an object names; the present one of the fields if it names none.
std::string kind_in(const Json& object, const std::vector<Field>& fields) {
  const Field* tag = find_tag(fields);
  const bool names_one = tag && object.contains(tag->key) && object.at(tag->key).is_string();
  return names_one ? object.at(tag->key).get<std::string>() : kind_of(fields);
}

// Returns the value of a field with `change` made to the objects that it holds.
template <class Change>
Json changed_inside(const Field& field, const Json& value, const Change& change) {
  if (field.kind == Field::Kind::kSection) return change(value);
  Json changed = value;
  const bool holds_objects =
      field.kind == Field::Kind::kObjectList || field.kind == Field::Kind::kObjectMap;
  if (!holds_objects || !changed.is_structured()) return changed;
  for (Json& element : changed)
    element = change(element);
  return changed;
}

}  // namespace

Json without_unread(const std::vector<Field>& fields, const Json& object) {
  if (!object.is_object()) return object;
  const std::string kind = kind_in(object, fields);
  Json kept = Json::object();
  for (const auto& [key, value] : object.items()) {
    const Field* field = find_field(fields, key, kind);
    if (field) {
      kept[field->key] = changed_inside(
          *field, value, [&](const Json& json) { return without_unread(field->children, json); });
    } else if (readers_of(fields, key).empty()) {
      kept[key] = value;
    }
  }
  return kept;
}

Json with_defaults(const std::vector<Field>& fields, const Json& object) {
  if (!object.is_object()) return object;
  const std::string kind = kind_in(object, fields);
  Json whole = Json::object();  // in the order in which fields are written
  for (const Field& field : fields) {
    if (!is_read_by(field, kind)) continue;
    const auto complete = [&](const Json& json) { return with_defaults(field.children, json); };
    whole[field.key] = object.contains(field.key)
                           ? changed_inside(field, object.at(field.key), complete)
                           : field.write();
  }
  for (const auto& [key, value] : object.items())
    if (!whole.contains(key)) whole[key] = value;
  return whole;
}

}  // namespace aifs::config

// SPDX-License-Identifier: Apache-2.0
// Strict configuration from one description. An options struct lists its fields once, in bind():
//
//   struct ClipOptions {
//     double value = 32.0;
//     void bind(config::Binder& b) {
//       b.number("value", value, {.min = 0.0}, {"largest absolute value of a gradient element"});
//     }
//     void validate(const std::string& path) const;  // optional: checks between fields
//   };
//
// From that list come parsing (unknown key, wrong type, out of range: a ConfigError with the JSON
// path), the effective configuration with defaults, the JSON Schema and the reference in
// configs/README.md. The default of a field is the value the struct has when constructed.
// A JSON null leaves the default in place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.h"

namespace aifs::config {

using Json = nlohmann::ordered_json;

// Describes what a field means, for people; `unit` is empty for pure numbers and names.
struct Doc {
  std::string text;
  std::string unit = {};
};

// Inclusive limits of a number.
template <class T>
struct Bounds {
  T min = std::numeric_limits<T>::lowest();
  T max = std::numeric_limits<T>::max();
};

// How a text is read: paths are taken relative to the file they stand in, durations and dates are
// checked by the grammars of core/time.h and may be integers: hours, and 2020 or 20200131.
enum class TextKind { kPlain, kPath, kDuration, kDate };

// Texts given on the command line, by path: lets `--set run.dir=12` be the text "12".
struct ReadContext {
  std::map<std::string, std::string> raw_overrides = {};
};

// One key of an object. Sections have children; lists and maps of objects have those of one
// element.
struct Field {
  enum class Kind { kValue, kPath, kPathList, kSection, kObjectList, kObjectMap };
  std::string key;
  Doc doc;
  Kind kind = Kind::kValue;
  std::string type;  // for people: "integer >= 1"
  std::function<void(const Json& value, const std::string& path, const ReadContext&)> read;
  std::function<Json()> write;   // the present value
  std::function<Json()> schema;  // JSON Schema of the value
  std::vector<Field> children = {};
  std::string shorthand = {};  // section: a text stands for an object with this key only
  bool is_tag = false;         // its value, a kind, says which of the keys beside it are read
  std::vector<std::string> readers = {};  // kinds that read it; empty: all
  std::string formerly = {};              // another key for it, which files of before have

  bool has_children() const {
    return kind == Kind::kSection || kind == Kind::kObjectList || kind == Kind::kObjectMap;
  }
};

// Collects the fields of one options struct; the references must outlive the Binder.
class Binder {
 public:
  void boolean(const char* key, bool& value, Doc doc);
  void integer(const char* key, int64_t& value, Bounds<int64_t> bounds, Doc doc);
  void number(const char* key, double& value, Bounds<double> bounds, Doc doc);
  void text(const char* key, std::string& value, Doc doc, TextKind kind = TextKind::kPlain);
  // A text that stands alone is a list of one.
  void text_list(const char* key, std::vector<std::string>& value, Doc doc,
                 TextKind kind = TextKind::kPlain);
  void integer_list(const char* key, std::vector<int64_t>& value, Bounds<int64_t> bounds, Doc doc);
  void number_list(const char* key, std::vector<double>& value, Bounds<double> bounds, Doc doc);
  void number_map(const char* key, std::map<std::string, double>& value, Bounds<double> bounds,
                  Doc doc);
  void text_map(const char* key, std::map<std::string, std::string>& value, Doc doc);
  // An integer that may also be the word "auto" (an empty optional).
  void integer_or_auto(const char* key, std::optional<int64_t>& value, Bounds<int64_t> bounds,
                       Doc doc);

  // A number that may be absent, which is written as null.
  void number_or_null(const char* key, std::optional<double>& value, Bounds<double> bounds,
                      Doc doc);

  template <class E>
  void choice(const char* key, E& value, Doc doc) {
    choice_by_index(
        key, enum_names<E>(), std::move(doc),
        [&value](size_t i) { value = EnumNames<E>::table[i].first; },
        [&value] { return enum_name(value); });
  }

  // A choice of a kind: of the keys beside it, those with readers are for some kinds only. An
  // object has one such key at most.
  template <class E>
  void tag(const char* key, E& value, Doc doc) {
    choice(key, value, std::move(doc));
    fields_.back().is_tag = true;
  }
  // Binds the tag of kinds that are known by their names: `assign` gets the number of one.
  void tag(const char* key, std::vector<std::string> names, Doc doc,
           std::function<void(size_t)> assign, std::function<std::string()> current);
  // Adds what one kind reads and others do not, or do as something else.
  void options_of_kind(const std::string& kind, std::vector<Field> fields);
  // The field bound last is read by these kinds only.
  void read_by(std::vector<std::string> kinds) { fields_.back().readers = std::move(kinds); }
  // The field bound last, a plain value, had this key before, under which it is still read.
  void formerly(std::string key) { fields_.back().formerly = std::move(key); }

  // With a `shorthand`, a plain text is read as an object with that key.
  template <class T>
  void section(const char* key, T& value, Doc doc, std::string shorthand = {});

  template <class T>
  void list(const char* key, std::vector<T>& value, Doc doc);

  // An object with one object for each name, in the order in which they stand.
  template <class T>
  void map(const char* key, std::vector<std::pair<std::string, T>>& value, Doc doc);

  std::vector<Field>& fields() { return fields_; }

 private:
  void choice_by_index(const char* key, std::vector<std::string> names, Doc doc,
                       std::function<void(size_t)> assign, std::function<std::string()> current);
  void add_section(const char* key, Doc doc, std::vector<Field> children,
                   std::function<void(const std::string&)> validate, std::string shorthand);
  void add_list(const char* key, Doc doc, std::vector<Field> element_fields,
                std::function<void()> clear,
                std::function<void(const Json&, const std::string&, const ReadContext&)> append,
                std::function<std::vector<std::vector<Field>>()> elements);
  using NamedFields = std::vector<std::pair<std::string, std::vector<Field>>>;
  void add_map(const char* key, Doc doc, std::vector<Field> element_fields,
               std::function<void()> clear,
               std::function<void(const std::string& name, const Json&, const std::string&,
                                  const ReadContext&)>
                   append,
               std::function<NamedFields()> elements);

  std::vector<Field> fields_;
};

// Reads `object` into the bound fields. Throws ConfigError for anything not described, and for a
// key that the object's kind does not read; null, which says nothing, may stand there.
void read_object(const std::vector<Field>& fields, const Json& object, const std::string& path,
                 const ReadContext& context);
// The present values, but for those that the present kind does not read.
Json write_object(const std::vector<Field>& fields);

// Returns what an older program wrote without keys that its kinds do not read, and with present
// keys for former ones. Other keys stay, known or not.
Json without_unread(const std::vector<Field>& fields, const Json& object);
// Returns an object with all keys that its kinds read: its own values, else the present ones of
// `fields`, inside sections, lists and maps, too. Other keys stay.
Json with_defaults(const std::vector<Field>& fields, const Json& object);

template <class T>
std::vector<Field> fields_of(T& options) {
  Binder binder;
  options.bind(binder);
  return std::move(binder.fields());
}

// Refuses options that stand beside a choice and mean nothing for it. Throws ConfigError for the
// first of `given` that differs from its default in `plain` and is not in `used`; `user` is what
// does not use it: "method log1p".
void refuse_unused(const std::vector<Field>& given, const std::vector<Field>& plain,
                   const std::vector<std::string>& used, const std::string& path,
                   const std::string& user);

template <class T>
void refuse_unused(const T& options, const std::vector<std::string>& used, const std::string& path,
                   const std::string& user) {
  T given = options, plain;
  refuse_unused(fields_of(given), fields_of(plain), used, path, user);
}

template <class T>
void validate_if_possible(const T& options, const std::string& path) {
  if constexpr (requires { options.validate(path); }) options.validate(path);
}

template <class T>
void read(T& options, const Json& object, const std::string& path, const ReadContext& context) {
  read_object(fields_of(options), object, path, context);
  validate_if_possible(options, path);
}

template <class T>
void Binder::section(const char* key, T& value, Doc doc, std::string shorthand) {
  add_section(
      key, std::move(doc), fields_of(value),
      [&value](const std::string& path) { validate_if_possible(value, path); },
      std::move(shorthand));
}

template <class T>
void Binder::list(const char* key, std::vector<T>& value, Doc doc) {
  auto prototype = std::make_shared<T>();  // gives the schema; must outlive the field
  add_list(
      key, std::move(doc), fields_of(*prototype), [prototype, &value] { value.clear(); },
      [&value](const Json& object, const std::string& path, const ReadContext& context) {
        read(value.emplace_back(), object, path, context);
      },
      [&value] {
        std::vector<std::vector<Field>> elements;
        for (T& element : value)
          elements.push_back(fields_of(element));
        return elements;
      });
}

template <class T>
void Binder::map(const char* key, std::vector<std::pair<std::string, T>>& value, Doc doc) {
  auto prototype = std::make_shared<T>();  // gives the schema; must outlive the field
  add_map(
      key, std::move(doc), fields_of(*prototype), [prototype, &value] { value.clear(); },
      [&value](const std::string& name, const Json& object, const std::string& path,
               const ReadContext& context) {
        value.emplace_back(name, T());
        read(value.back().second, object, path, context);
      },
      [&value] {
        NamedFields elements;
        for (auto& [name, element] : value)
          elements.emplace_back(name, fields_of(element));
        return elements;
      });
}

// A configuration text (JSON with // and /* */ comments) as a tree. `name` is used in messages.
// Throws ConfigError with line and column for bad syntax, and for a key given twice.
Json parse_json(const std::string& text, const std::string& name);

// Loads a configuration file: comments, "base" files merged underneath (deeply; objects merge,
// everything else replaces), ${VAR} and ${VAR:-default} expanded in every text, and paths taken
// relative to the file they stand in. `fields` says which keys are paths.
Json load_file(const std::filesystem::path& file, const std::vector<Field>& fields);

// Applies one `path.to.key=value` to the tree; the value is JSON if it parses as JSON, else a text.
// Keys must exist in `fields`. Array elements are addressed by number: model.bounding.0.min_val.
void apply_override(Json& tree, const std::string& assignment, const std::vector<Field>& fields,
                    ReadContext& context);

// JSON Schema (draft 2020-12) of an object with these fields.
Json json_schema(const std::vector<Field>& fields, const std::string& title);

// The reference of all keys as Markdown tables, one per section.
std::string markdown(const std::vector<Field>& fields);

}  // namespace aifs::config

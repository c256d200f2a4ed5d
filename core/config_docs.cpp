// SPDX-License-Identifier: Apache-2.0
// What the description of the options gives besides parsing: JSON Schema and Markdown.
#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/join.h"

namespace aifs::config {

namespace {

// The meaning of a field, after the kinds that read it if it is not for all.
std::string meaning(const Field& field) {
  const std::string& unit = field.doc.unit;
  return concat(field.readers.empty() ? "" : concat(join(field.readers), ": "), field.doc.text,
                unit.empty() ? "" : concat(" [", unit, "]"));
}

// Fields of which several kinds have the same are one, with all these kinds as readers.
std::vector<Field> shared_fields(const std::vector<Field>& fields) {
  std::vector<Field> shared;
  for (const Field& field : fields) {
    const auto is_same = [&](const Field& other) {
      return !field.readers.empty() && !other.readers.empty() && other.key == field.key &&
             other.type == field.type && other.doc.text == field.doc.text &&
             other.write() == field.write();
    };
    const auto found = std::find_if(shared.begin(), shared.end(), is_same);
    if (found == shared.end())
      shared.push_back(field);
    else
      found->readers.insert(found->readers.end(), field.readers.begin(), field.readers.end());
  }
  return shared;
}

// Text in a table cell: a bar would end the cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string sentence(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// Writes the heading and the table of some keys. `has_table` says which of them have a table of
// their own, and `where` it is.
template <class HasTable>
void write_table(const std::vector<Field>& fields, const std::string& path,
                 const std::string& title, HasTable has_table, const char* where,
                 std::string& out) {
  out += concat("\n## `", path, "`\n\n", sentence(title), ".\n\n");
  out += "| key | type | default | meaning |\n|---|---|---|---|\n";
  for (const Field& field : fields) {
    const std::string value = has_table(field) ? where : concat("`", field.write().dump(), "`");
    out += concat("| `", field.key, "` | ", cell(field.type), " | ", value, " | ",
                  cell(meaning(field)), " |\n");
  }
}

// Elements have keys that stand elsewhere, too: their sections are not described again.
void write_map(const Field& map, const std::string& path, std::string& out) {
  const auto is_section = [](const Field& field) { return field.kind == Field::Kind::kSection; };
  write_table(shared_fields(map.children), path, map.doc.text, is_section, "as there", out);
}

void write_section(const std::vector<Field>& of_kinds, const std::string& path,
                   const std::string& title, std::string& out) {
  const std::vector<Field> fields = shared_fields(of_kinds);
  const auto has_children = [](const Field& field) { return field.has_children(); };
  write_table(fields, path, title, has_children, "see below", out);
  for (const Field& field : fields) {
    if (field.kind == Field::Kind::kSection) {
      write_section(field.children, concat(path, ".", field.key), field.doc.text, out);
    } else if (field.kind == Field::Kind::kObjectList) {
      write_section(field.children, concat(path, ".", field.key, "[]"),
                    "Each element: " + field.doc.text, out);
    } else if (field.kind == Field::Kind::kObjectMap) {
      write_map(field, concat(path, ".", field.key, ".<name>"), out);
    }
  }
}

}  // namespace

namespace {

// Returns what a key may be; several kinds may read it as different things.
Json property(const std::vector<const Field*>& fields) {
  std::vector<Json> forms;
  std::string description;
  for (const Field* field : fields) {
    Json form = field->schema();
    if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    description += concat(description.empty() ? "" : "; ", meaning(*field));
  }
  Json schema = forms.size() == 1 ? forms[0] : Json{{"anyOf", forms}};
  schema["description"] = description;
  if (fields.size() == 1 && fields[0]->kind != Field::Kind::kSection)
    schema["default"] = fields[0]->write();
  return schema;
}

// For each key that only some kinds read: that the kind beside it is one of those.
Json kinds_by_key(const std::vector<Field>& fields, const Field& tag) {
  const std::string usual = tag.write().get<std::string>();
  std::map<std::string, std::vector<std::string>> readers;
  for (const Field& field : fields) {
    for (const std::string& key : {field.key, field.formerly}) {
      if (!key.empty() && !field.readers.empty())
        readers[key].insert(readers[key].end(), field.readers.begin(), field.readers.end());
    }
  }
  Json rules = Json::object();
  for (const auto& [key, kinds] : readers) {
    rules[key] = Json{{"properties", {{tag.key, {{"enum", kinds}}}}}};
    if (!contains(kinds, usual)) rules[key]["required"] = Json::array({tag.key});
  }
  return rules;
}

}  // namespace

Json json_schema(const std::vector<Field>& of_kinds, const std::string& title) {
  const std::vector<Field> fields = shared_fields(of_kinds);
  Json properties = Json::object();
  for (const Field& field : fields) {
    if (properties.contains(field.key)) continue;
    std::vector<const Field*> alike;
    for (const Field& other : fields) {
      if (other.key == field.key) alike.push_back(&other);
    }
    properties[field.key] = property(alike);
    if (!field.formerly.empty()) properties[field.formerly] = properties[field.key];
  }
  Json schema = Json::object();
  if (!title.empty()) {
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = title;
    properties["base"] =
        Json{{"type", Json::array({"string", "array"})},
             {"items", {{"type", "string"}}},
             {"description",
              "another configuration file, merged underneath this one, or several, "
              "each over those before it [path]"}};
  }
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
  const auto tag =
      std::find_if(fields.begin(), fields.end(), [](const Field& field) { return field.is_tag; });
  const bool has_own = std::any_of(fields.begin(), fields.end(),
                                   [](const Field& field) { return !field.readers.empty(); });
  if (tag != fields.end() && has_own) schema["dependentSchemas"] = kinds_by_key(fields, *tag);
  return schema;
}

std::string markdown(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    write_section(field.children, field.key, field.doc.text, out);
  }
  return out;
}

}  // namespace aifs::config

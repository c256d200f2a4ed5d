// SPDX-License-Identifier: Apache-2.0
// What the description of the options gives besides parsing: JSON Schema and Markdown.
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/config.h"

namespace aifs::config {

namespace {

std::string with_unit(const Doc& doc) {
  return doc.unit.empty() ? doc.text : concat(doc.text, " [", doc.unit, "]");
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
                  cell(with_unit(field.doc)), " |\n");
  }
}

// Elements have keys that stand elsewhere, too: their sections are not described again.
void write_map(const Field& map, const std::string& path, std::string& out) {
  const auto is_section = [](const Field& field) { return field.kind == Field::Kind::kSection; };
  write_table(map.children, path, map.doc.text, is_section, "as there", out);
}

void write_section(const std::vector<Field>& fields, const std::string& path,
                   const std::string& title, std::string& out) {
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

Json json_schema(const std::vector<Field>& fields, const std::string& title) {
  Json properties = Json::object();
  for (const Field& field : fields) {
    Json schema = field.schema();
    schema["description"] = with_unit(field.doc);
    if (field.kind != Field::Kind::kSection) schema["default"] = field.write();
    properties[field.key] = std::move(schema);
  }
  Json schema = Json::object();
  if (!title.empty()) {
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
    schema["title"] = title;
    properties["base"] =
        Json{{"type", "string"},
             {"description", "another configuration file, merged underneath this one [path]"}};
  }
  schema["type"] = "object";
  schema["additionalProperties"] = false;
  schema["properties"] = std::move(properties);
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

// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_file.h"

#include <algorithm>

#include "conformance/report.h"

namespace aifs::conformance {

namespace {

// Python writes NaN and Infinity for numbers that are none. JSON has null for the first; the others
// become texts.
std::string without_bare_words(const std::string& text) {
  struct Word {
    std::string_view python, json;
  };
  static constexpr Word kWords[] = {
      {"NaN", "null"}, {"-Infinity", "\"-Infinity\""}, {"Infinity", "\"Infinity\""}};
  std::string result;
  bool quoted = false;
  for (size_t at = 0; at < text.size();) {
    const auto word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) {
      return !quoted && text.compare(at, w.python.size(), w.python) == 0;
    });
    if (word != std::end(kWords)) {
      result += word->json;
      at += word->python.size();
      continue;
    }
    if (text[at] == '"') quoted = !quoted;
    if (quoted && text[at] == '\\' && at + 1 < text.size()) result += text[at++];
    result += text[at++];
  }
  return result;
}

}  // namespace

CaseFile::CaseFile(const fs::path& path) : json_path(path), name(path.stem().string()) {
  json = Json::parse(without_bare_words(read_file(path)), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) throw DataError(concat("'", path.string(), "' is not JSON"));
}

SafetensorsFile CaseFile::tensors() const {
  return SafetensorsFile(json_path.parent_path() / (name + ".safetensors"));
}

std::optional<fs::path> CaseFile::f64_path() const {
  const fs::path path = json_path.parent_path() / (name + ".f64.safetensors");
  if (!fs::exists(path)) return std::nullopt;
  return path;
}

void require_described(const Json& one) {
  if (one.is_object()) return;
  throw NotUnderstood(concat("the case is not described: ", one.dump()));
}

bool package_refuses(const Json& one, const char* result) {
  if (one.contains("error")) return true;
  const auto found = one.find(result);
  return found != one.end() && found->is_string();
}

std::vector<std::string> texts(const Json& json) {
  return json.get<std::vector<std::string>>();
}

void require_known_keys(const Json& object, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      throw NotSupported(concat("option '", key, "'"));
    }
  }
}

}  // namespace aifs::conformance

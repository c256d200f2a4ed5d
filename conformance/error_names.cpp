// SPDX-License-Identifier: Apache-2.0
#include "conformance/error_names.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/join.h"

namespace aifs::conformance {

namespace {

// Keys of the metadata of arrays and groups (Zarr 2 and 3), and of the attributes and arrays that
// Anemoi gives a dataset.
const std::set<std::string>& format_keys() {
  static const std::set<std::string> kKeys{"attributes",
                                           "chunk_grid",
                                           "chunk_key_encoding",
                                           "chunk_shape",
                                           "chunks",
                                           "codecs",
                                           "compressor",
                                           "configuration",
                                           "constant_fields",
                                           "data",
                                           "data_type",
                                           "dates",
                                           "dimension_names",
                                           "dimension_separator",
                                           "dtype",
                                           "end_date",
                                           "ensemble_dimension",
                                           "field_shape",
                                           "fill_value",
                                           "filters",
                                           "frequency",
                                           "index_codecs",
                                           "index_location",
                                           "latitudes",
                                           "layout",
                                           "longitudes",
                                           "maximum",
                                           "mean",
                                           "minimum",
                                           "missing_dates",
                                           "name_to_index",
                                           "node_type",
                                           "order",
                                           "resolution",
                                           "separator",
                                           "shape",
                                           "start_date",
                                           "statistics_end_date",
                                           "statistics_start_date",
                                           "stdev",
                                           "storage_transformers",
                                           "variables",
                                           "variables_metadata",
                                           "zarr_format"};
  return kKeys;
}

bool is_metadata_file(const std::string& name) {
  const std::string file = name.substr(name.rfind('/') + 1);
  return file.starts_with(".z") || file.ends_with(".json");
}

bool is_file(const std::string& name) {
  return name.find('/') != std::string::npos || is_metadata_file(name);
}

bool all_words_in(const std::string& message, const std::string& wanted) {
  std::istringstream words(wanted);
  for (std::string word; words >> word;) {
    if (message.find(word) == std::string::npos) return false;
  }
  return true;
}

}  // namespace

void StoreNames::add_members(const fs::path& store) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(store, ignored))
    members.insert(entry.path().filename().string());
}

NameKind kind_of_name(const std::string& name, const StoreNames& known, bool beside_chunk) {
  if (is_file(name)) return NameKind::kFile;
  if (known.variables.contains(name)) return NameKind::kVariable;
  const bool is_key = format_keys().contains(name) || name.starts_with("statistics_tendencies");
  if (known.members.contains(name) || (is_key && !beside_chunk)) return NameKind::kKey;
  return NameKind::kDescription;
}

bool says(const std::string& message, const std::string& wanted) {
  const std::string text = lower_case(message), words = lower_case(wanted);
  if (text.find(words) != std::string::npos) return true;
  return !is_file(wanted) && all_words_in(text, words);
}

void check_names(const std::vector<std::string>& wanted, const StoreNames& known,
                 const std::vector<std::string>& messages, Comparison& comparison) {
  const bool beside_chunk = std::any_of(wanted.begin(), wanted.end(), [](const std::string& name) {
    return is_file(name) && !is_metadata_file(name);
  });
  struct Unsaid {
    std::vector<std::string> names, descriptions;
    std::string message;
  };
  std::optional<Unsaid> nearest;
  for (const std::string& message : messages) {
    Unsaid unsaid{{}, {}, message};
    for (const std::string& name : wanted) {
      if (says(message, name)) continue;
      const bool description = kind_of_name(name, known, beside_chunk) == NameKind::kDescription;
      (description ? unsaid.descriptions : unsaid.names).push_back(name);
    }
    const bool nearer = !nearest || unsaid.names.size() < nearest->names.size() ||
                        (unsaid.names.size() == nearest->names.size() &&
                         unsaid.descriptions.size() < nearest->descriptions.size());
    if (nearer) nearest = std::move(unsaid);
  }
  comparison.require(nearest && !nearest->message.empty(), "the error has a message");
  if (!nearest) return;
  for (const std::string& name : nearest->names)
    comparison.require(false, concat("the message does not name '", name, "': ", nearest->message));
  for (const std::string& words : nearest->descriptions)
    comparison.remark(concat("the message says '", words, "' in other words"));
}

}  // namespace aifs::conformance

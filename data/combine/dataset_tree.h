// SPDX-License-Identifier: Apache-2.0
// What the section data.dataset of a configuration may hold: the arguments of Anemoi's
// open_dataset, as JSON. A dataset is the name of a store, a list of datasets, or an object with
// one dataset or combination and options; datasets within are again of this kind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/fields/dataset_options.h"

namespace aifs::data {

// The options of DatasetOptions, and all others. `dataset` (of the base) is the name of a store,
// where it is one; lists and objects in its place are in `values`.
struct DatasetTree : DatasetOptions {
  std::map<std::string, std::string> values = {};  // of the other keys that are given, as JSON

  void bind(config::Binder& b);
  // Checks all datasets within, too.
  void validate(const std::string& at) const;

  bool has(const std::string& key) const { return values.contains(key); }
  // The value of a key, or null.
  config::Json value(const std::string& key) const;
  // One store with nothing but start, end, frequency, select and drop.
  bool is_plain() const { return values.empty(); }
  // The key that says what data there are: "dataset", or a combination such as "join". Empty if
  // there is none.
  std::string source_key() const;
  // Returns where a key of this tree stands in the configuration.
  std::string path_of(const std::string& key) const { return path + "." + key; }
};

// A dataset within another, or the whole. Throws ConfigError naming the place.
DatasetTree parse_dataset(const config::Json& json, const std::string& path);

// A dataset that holds only another: options of the whole stand apart from those of the inner one.
DatasetTree put_inside_another(DatasetTree tree);

// The names of all stores in a tree, each once, in the order in which they stand.
std::vector<std::string> store_names(const DatasetTree& tree);

}  // namespace aifs::data

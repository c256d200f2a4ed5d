// SPDX-License-Identifier: Apache-2.0
// Which dataset is read, and which part of it: the options of Anemoi's open_dataset that exist
// here. They apply in the order start/end, frequency, select, drop, however they are written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

struct DatasetOptions {
  std::string dataset = {};                         // folder of the Zarr group
  std::string start = {}, end = {};                 // date or "80%"; empty: all
  std::string frequency = {};                       // empty: that of the store
  std::vector<std::string> select = {}, drop = {};  // empty: all, none
  bool allow_missing_chunks = false;
  int64_t cache_mib = 256;  // decoded chunks kept, if chunks hold several dates

  void bind(config::Binder& b);
};

}  // namespace aifs::data

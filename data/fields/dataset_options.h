// SPDX-License-Identifier: Apache-2.0
// Which dataset is read, and which part of it: the options of Anemoi's open_dataset that exist
// here. They apply in the order start/end, frequency, select, drop, however they are written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/config.h"

namespace aifs::data {

// CF netCDF files in the place of an Anemoi dataset, see netcdf_dataset.h.
struct NetcdfOptions {
  std::vector<std::string> files = {};  // names, or patterns with * ? [..]; none: no netCDF files
  std::map<std::string, std::string> variables = {};  // name in the files -> name; empty: all
  std::vector<std::string> forcings = {};             // computed: names of computed_forcings.h
  bool longitudes_from_zero = false;  // turn rows so that their longitudes ascend from 0
  std::string statistics_start = {}, statistics_end = {};  // empty: as Anemoi chooses
  std::string statistics_dir = {};  // where computed statistics are kept; empty: beside the files
};

struct DatasetOptions {
  std::string dataset = {};                         // folder of the Zarr group
  NetcdfOptions netcdf = {};                        // instead of it
  std::string start = {}, end = {};                 // date or "80%"; empty: all
  std::string frequency = {};                       // empty: that of the store
  std::vector<std::string> select = {}, drop = {};  // empty: all, none
  bool strict = false;                              // absent chunks are errors, not fill values
  bool allow_missing_chunks = false;                // of former configurations
  int64_t cache_mib = 256;  // decoded chunks kept, if chunks hold several dates
  // Says where these options, and start and end, stand in the configuration, for messages.
  std::string path = "data.dataset";
  std::string start_path = "data.dataset.start", end_path = "data.dataset.end";

  void bind(config::Binder& b);
  void validate(const std::string& at) const;
};

// A date in one of the forms of parse_date(), a percentage of the dates ("80%"), or a full hour of
// the first day ("06:00"). Binding checks only dates: the others need those of the dataset.
void bind_date_or_share(config::Binder& b, const char* key, std::string& value, config::Doc doc);

// True if a text bound so is a date, and neither empty, a percentage nor an hour.
bool is_date(const std::string& text);

}  // namespace aifs::data

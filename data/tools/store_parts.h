// SPDX-License-Identifier: Apache-2.0
// What an Anemoi dataset has beside its fields: attributes of the root group, and arrays of one
// dimension.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/file_io.h"
#include "data/fields/dataset.h"
#include "data/zarr/array_writer.h"

namespace aifs::data {

constexpr const char* kBuildFolder = "_build";  // Anemoi's name for what is unfinished

// Describes a dataset for its attributes.
struct StoreDescription {
  std::string attribution, description, licence;
  std::vector<std::string> variables;
  std::vector<std::string> units = {};  // of each; empty: not said
  std::vector<int64_t> dates_s;
  int64_t frequency_s = 0;
  int64_t members = 1, cells = 0;
  std::vector<int64_t> field_shape = {};  // empty: one dimension
  std::string resolution = {};            // empty: not said
  bool allow_nans = false;
};

// `fields`: of the array "data", (dates, variables, members, cells).
zarr::Json store_attributes(const StoreDescription& store, const zarr::ArraySettings& fields);

// Writes small arrays of one dimension.
class VectorWriter {
 public:
  // `staging`: as of ArrayWriter.
  VectorWriter(fs::path store, int format, fs::path staging)
      : store_(std::move(store)), format_(format), staging_(std::move(staging)) {}

  void write_dates(const std::vector<int64_t>& dates_s) const;
  void write_cells(const std::vector<double>& latitudes_deg,
                   const std::vector<double>& longitudes_deg) const;
  // Arrays "<prefix>mean", "stdev", "minimum" and "maximum".
  void write_statistics(const std::string& prefix, const Statistics& statistics) const;

 private:
  void write(const std::string& name, std::span<const std::byte> values, int64_t count,
             const zarr::DataType& type, const char* dimension) const;

  fs::path store_;
  int format_;
  fs::path staging_;
};

}  // namespace aifs::data

// SPDX-License-Identifier: Apache-2.0
// An Anemoi dataset on disk: the gridded layout, "data" of shape (T, V, E, N) in any regular
// chunks, Zarr format 2 or 3, with Anemoi's options to use a part of it.
//
// An absent chunk reads as the fill value of the array, as in Python; warnings() says for how many
// dates. With the option `strict` it is an error unless its date is declared missing. Without a
// defined fill value it always is.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "data/fields/dataset.h"
#include "data/fields/dataset_options.h"
#include "data/zarr/array.h"

namespace aifs::data {

// The store in a folder or zip file. Throws DataError if there is none, naming similar ones beside
// it.
std::shared_ptr<const zarr::Store> open_store(const std::string& folder);

class AnemoiDataset : public Dataset {
 public:
  // Opens options.dataset. Throws ConfigError for options that do not fit the dataset, DataError
  // for anything that is wrong with it.
  explicit AnemoiDataset(const DatasetOptions& options);
  // Opens a dataset in any store; options.dataset is not looked at.
  AnemoiDataset(std::shared_ptr<const zarr::Store> store, const DatasetOptions& options);
  ~AnemoiDataset() override;

  const DatasetInfo& info() const override;

  // Values that are not float32 in the store are rounded to it. As little of chunks is decoded as
  // the codec allows.
  std::unique_ptr<RowReader> open_row(int64_t row, NodeRange nodes) const override;
  std::unique_ptr<RowReader> open_columns(int64_t row, NodeRange nodes,
                                          std::span<const ColumnMap> columns) const override;
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;

  // Absent chunks of fields and of statistics, dates and coordinates. Lists the folder of chunks.
  std::vector<std::string> warnings() const override;
  std::vector<std::string> warnings_for(std::span<const int64_t> rows) const override;
  // Which chunk of the row is absent.
  std::string remark(int64_t row) const override;

  // The attributes of the root group, as they stand in the store.
  nlohmann::ordered_json attributes() const override;
  // The row of the stored array that holds a row; -1 if it was never stored.
  int64_t stored_row(int64_t row) const;
  // Returns which stored variable (source) each column is, ascending by stored variable.
  std::span<const ColumnMap> columns() const;
  // The stored array, without the options.
  const zarr::Array& data() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aifs::data

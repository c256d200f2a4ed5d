// SPDX-License-Identifier: Apache-2.0
// A dataset made of netCDF files that follow the CF conventions: any number of files, each with
// some variables and dates; forcings computed from place and date may be added. Statistics are
// computed from the values once and kept in a file.
//
// The variables come in the order of their names, as Anemoi sorts them. A date that a field which
// varies in time lacks is missing. The netCDF library reads with one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/fields/dataset.h"
#include "data/fields/dataset_options.h"

namespace aifs::data {

class NetcdfDataset : public Dataset {
 public:
  // Opens options.netcdf, and computes statistics if there are none for just these files and
  // options. Throws ConfigError for options that do not fit, DataError naming file and variable.
  explicit NetcdfDataset(const DatasetOptions& options);
  ~NetcdfDataset() override;

  const DatasetInfo& info() const override;
  void read(int64_t row, NodeRange nodes, std::span<float> out) const override;
  std::vector<std::string> warnings() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The files that names and patterns stand for, each once, in order. Throws ConfigError, at a path
// of the configuration, where one stands for none.
std::vector<std::string> netcdf_files(const std::vector<std::string>& names,
                                      const std::string& path);

}  // namespace aifs::data

// SPDX-License-Identifier: Apache-2.0
// Makes of data what graph and network want to know: cells, fields, and a part of the network for
// each dataset.
#pragma once

#include <string>
#include <vector>

#include "app/run/data_parts.h"
#include "graph/builder.h"
#include "model/network/encoder_processor_decoder.h"

namespace aifs::app {

// The fields of the data as a network sees them.
model::FieldLayout field_layout(const DataParts& data);

// The network of a configuration on these datasets, of which name, variables, statistics,
// tendencies, window and time step count. Throws ConfigError for options that do not fit them, and
// for noise that the graph does not bring to the hidden nodes; without a graph the plan lacks the
// matrix of such noise.
model::NetworkPlan network_plan(const model::ModelOptions& model, const data::DataOptions& options,
                                const std::vector<DataParts>& datasets,
                                const graph::Graph* graph = nullptr);

// The cells of each dataset, which outlive what is returned.
class DataCells {
 public:
  explicit DataCells(const std::vector<DataParts>& datasets);
  std::vector<graph::NamedCells> named() const;

 private:
  std::vector<std::string> names_;
  std::vector<graph::Coordinates> cells_;
  std::vector<std::vector<int64_t>> grids_;
  std::vector<graph::FirstField> fields_;
};

}  // namespace aifs::app

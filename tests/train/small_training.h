// SPDX-License-Identifier: Apache-2.0
// A dataset in memory and a network on a random graph: the smallest thing that can be trained.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <thread>

#include "core/check.h"
#include "core/rng.h"
#include "core/time.h"
#include "data/loader/data_loader.h"
#include "model/network/encoder_processor_decoder.h"
#include "parallel/process_mesh.h"
#include "tests/support/network_families.h"
#include "tests/support/small_graph.h"
#include "train/rollout.h"

namespace aifs::test {

inline constexpr int64_t kCells = kFamilyData;

// One rank alone.
inline const parallel::ProcessMesh& single_mesh() {
  static const parallel::ProcessMesh mesh;
  return mesh;
}

// Waves that travel: forcing "f", prognostic "a" and "b", diagnostic "d" = a + b.
class WaveDataset : public data::Dataset {
 public:
  explicit WaveDataset(int64_t rows) {
    info_.name = "waves";
    info_.variables = {"a", "b", "d", "f"};
    info_.frequency_s = 6 * 3600;
    for (int64_t row = 0; row < rows; ++row)
      info_.dates_s.push_back(parse_date("2020-01-01") + row * info_.frequency_s);
    info_.latitudes_deg.assign(static_cast<size_t>(kCells), 0.0);
    info_.longitudes_deg.assign(static_cast<size_t>(kCells), 0.0);
    info_.field_shape = {kCells};
    info_.statistics = {{0, 1, 1, 0}, {2, 0.5, 3, 1}, {-9, -9, -9, -9}, {9, 9, 9, 9}};
  }

  const data::DatasetInfo& info() const override { return info_; }

  void read(int64_t row, data::NodeRange nodes, std::span<float> out) const override {
    if (row == lost_row) throw DataError(concat("'waves/", row, "' is missing"));
    if (row == slow_row) std::this_thread::sleep_for(std::chrono::seconds(3));
    size_t i = 0;
    for (int64_t n = nodes.begin; n < nodes.end; ++n) {
      const double phase = 0.3 * static_cast<double>(row) + 0.7 * static_cast<double>(n);
      const double a = 2.0 * std::sin(phase), b = 1.0 + 0.5 * std::cos(2.0 * phase);
      for (const double value : {a, b, a + b, std::cos(0.1 * static_cast<double>(row))})
        out[i++] = static_cast<float>(value);
    }
    if (row == nan_row) out[0] = std::numeric_limits<float>::quiet_NaN();
    if (row == infinite_row) out[0] = std::numeric_limits<float>::infinity();
    if (row == bad_row) out[bad_column] = bad_value;
  }

  int64_t nan_row = -1, infinite_row = -1, lost_row = -1;
  int64_t slow_row = -1;  // takes three seconds
  int64_t bad_row = -1;   // has this value of a variable in its first cell
  float bad_value = 0.0f;
  size_t bad_column = 0;
  data::DatasetInfo info_;
};

struct SmallTraining {
  std::shared_ptr<WaveDataset> dataset;
  parallel::Counts cells_per_rank{kCells};
  data::VariableTable variables;
  data::SampleSource source;
  train::Window window{2, 1, 1};
  model::ParameterSet parameters;
  std::unique_ptr<model::EncoderProcessorDecoder> network;

  explicit SmallTraining(int64_t rows = 12, uint64_t seed = 3, at::ScalarType dtype = at::kFloat)
      : SmallTraining(Data(), rows, seed, dtype) {
    model::ModelOptions options;
    options.channels = 4;
    options.layers = 1;
    const graph::Graph graph = random_graph({kCells, 7, 40, 30, 60}, 5);
    network = std::make_unique<model::EncoderProcessorDecoder>(
        parameters, options, model::GraphTensors::create(graph, options.edge_attributes, dtype),
        layout());
    parameters.flatten(at::kCPU);
  }

  // In fp64, divided over the ranks of `mesh`; its stages have as many layers each.
  SmallTraining(int64_t rows, const NetworkFamily& family, const parallel::ProcessMesh& mesh)
      : SmallTraining(Data(), rows, /*seed=*/3, at::kDouble) {
    const model::NetworkPlan plan = family.plan(layout());
    parameters.slice_over(mesh.tensor());
    parameters.divide_over(
        {mesh.stage_links(), balanced_counts(plan.options.num_layers(), mesh.sizes().pipeline)});
    const graph::Graph graph = NetworkFamily::graph();
    const graph::GraphPartition partition =
        graph::make_partition(graph, mesh.sizes().model, graph::HiddenOrder::kHilbert, 2);
    cells_per_rank = partition.data.counts();
    const model::Shard shard{partition, mesh.model(), graph::SourceRows::kHalo,
                             model::AttentionSharing::kAuto};
    network = std::make_unique<model::EncoderProcessorDecoder>(
        parameters, plan,
        model::GraphTensors::create(graph, plan.options.edge_attributes, at::kDouble,
                                    mesh.sizes().model > 1 ? &shard : nullptr));
    parameters.flatten(at::kCPU);
  }

  model::FieldLayout layout() const {
    model::FieldLayout layout;
    layout.times_in = window.times_in;
    layout.times_out = window.times_out;
    layout.num_inputs = variables.num_inputs();
    layout.input_prognostic = variables.input_prognostic();
    layout.output_prognostic = variables.output_prognostic();
    layout.outputs.names = variables.output_names();
    return layout;
  }

  // The normalised sample around a row, (1, T, 1, N, V).
  at::Tensor sample(int64_t row, int64_t steps) const {
    const data::LoaderOptions options{.nodes = {0, kCells}};
    return data::read_batch(source, options, {{row}, window.offsets(steps)})
        .values.to(parameters.dtype());
  }

 private:
  struct Data {};
  SmallTraining(Data /*only*/, int64_t rows, uint64_t seed, at::ScalarType dtype)
      : dataset(std::make_shared<WaveDataset>(rows)),
        variables(dataset->info().variables, {.forcing = {"f"}, .diagnostic = {"d"}}),
        parameters(dtype, seed) {
    data::Statistics statistics = dataset->info().statistics;
    source = {dataset, data::Normaliser::create(dataset->info().variables, statistics, {}), {}};
  }
};

}  // namespace aifs::test

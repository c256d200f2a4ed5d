// SPDX-License-Identifier: Apache-2.0
// The reference set-up on SPEEDY fields, down to the loss of persistence. The store is not part of
// this project (its licence is non-commercial); the test needs $AIFS_SHARED/datasets/speedy.tar.
#include <ATen/ATen.h>

#include <cstdlib>

#include "app/run/wiring.h"
#include "tests/support/catch.h"
#include "tests/support/full_reference.h"
#include "tests/support/paths.h"

using namespace aifs;

namespace {

// Loss of "tomorrow is as today, without rain" for the sample whose first input row is `row`.
double persistence_loss(const app::Run& run, int64_t row) {
  const app::DataParts& data = run.data();
  const data::VariableTable& variables = data.variables;
  data::LoaderOptions loading;
  loading.nodes = {0, data.training->info().num_nodes()};
  const data::Batch batch = data::read_batch(data.training_source, loading, {{row + 1}, {0, 1}});
  const at::Tensor columns = at::tensor(variables.output_columns(), at::kLong);
  const at::Tensor fields = batch.values.index_select(-1, columns);
  at::Tensor prediction = fields.narrow(1, 0, 1).clone();
  prediction.select(-1, variables.find_output("tp")).zero_();
  return run.loss()(prediction, fields.narrow(1, 1, 1)).item<double>();
}

}  // namespace

TEST_CASE("the loss of persistence on SPEEDY is that of the reference",
          "[speedy][full_reference]") {
  const fs::path shared = test::full_reference();
  const test::TemporaryFolder folder;
  const auto unpacked =
      test::run_command(concat("tar -xf '", (shared / "datasets/speedy.tar").string(), "' -C '",
                               folder.path().string(), "'"));
  REQUIRE(unpacked.exit_code == 0);
  ::setenv("AIFS_SPEEDY", (folder.path() / "speedy.zarr").c_str(), 1);
  const parallel::ProcessMesh mesh;
  const auto build = [&](const char* config) {
    auto run = std::make_unique<app::Run>(
        app::load_config((test::source_folder() / config).string(), {}), mesh, at::kCPU);
    run->build();
    return run;
  };
  const std::unique_ptr<app::Run> gnn = build("configs/speedy.json");
  const app::Run& run = *gnn;
  REQUIRE(run.parameters().num_trainable() == 530310);
  REQUIRE(build("configs/speedy_gt.json")->parameters().num_trainable() == 587206);
  constexpr int64_t kSamples = 202;
  REQUIRE(std::abs(persistence_loss(run, 0) - 0.17848) < 1e-4 * 0.17848);
  double sum = 0.0;
  for (int64_t row = 0; row < kSamples; ++row)
    sum += persistence_loss(run, row);
  REQUIRE(std::abs(sum / kSamples - 0.16172) < 1e-4 * 0.16172);
}

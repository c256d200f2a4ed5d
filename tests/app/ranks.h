// SPDX-License-Identifier: Apache-2.0
// Runs of aifs-train under mpirun, and what they are compared by.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

namespace aifs::test {

using Json = nlohmann::json;

inline CommandResult run_ranks(int ranks, const fs::path& dir, const std::string& more) {
  return run_command(mpirun(ranks) + train_command(dir, more));
}

inline std::vector<Json> lines_of(const fs::path& file) {
  std::istringstream lines(read_file(file));
  std::vector<Json> all;
  std::string line;
  while (std::getline(lines, line))
    all.push_back(Json::parse(line));
  return all;
}

inline std::vector<double> losses_of(const fs::path& dir) {
  std::vector<double> losses;
  for (const Json& line : lines_of(dir / "metrics.jsonl"))
    losses.push_back(line["loss"]);
  return losses;
}

inline void require_close(const std::vector<double>& a, const std::vector<double>& b,
                          double relative) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("step " << i + 1);
    REQUIRE(std::abs(a[i] - b[i]) <= relative * std::abs(b[i]));
  }
}

// Largest difference over all parameters, relative to the largest parameter.
inline double parameter_difference(const fs::path& a, const fs::path& b) {
  const SafetensorsFile ours(a / "parameters.safetensors"), theirs(b / "parameters.safetensors");
  double worst = 0.0, largest = 0.0;
  for (const auto& [name, entry] : theirs.entries()) {
    if (entry.dtype == DType::kI64) continue;
    const std::vector<double> x = ours.doubles(name), y = theirs.doubles(name);
    REQUIRE(x.size() == y.size());
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs(x[i] - y[i]));
      largest = std::max(largest, std::abs(y[i]));
    }
  }
  return worst / largest;
}

inline constexpr const char* kThreeSteps =
    "--set train.max_steps=3 --set checkpoint.every_steps=0 ";
inline constexpr const char* kLast = "checkpoints/step-00000003";

// The folder of a run that ends well.
inline fs::path train_ranks(const TemporaryFolder& folder, int ranks, const std::string& name,
                            const std::string& more) {
  const fs::path dir = folder.path() / name;
  const auto result = run_ranks(ranks, dir, more);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return dir;
}

// Losses and weights after three steps are the same but for rounding.
inline void require_alike(const fs::path& dir, const fs::path& wanted,
                          const std::string& precision) {
  const bool single = precision == "fp32";
  require_close(losses_of(dir), losses_of(wanted), single ? 1e-6 : 1e-13);
  REQUIRE(parameter_difference(dir / kLast, wanted / kLast) <= (single ? 1e-5 : 1e-12));
}

// Losses, weights and moments are the same bits.
inline void require_same_bits(const fs::path& dir, const fs::path& wanted,
                              const std::string& checkpoint = kLast) {
  REQUIRE(losses_of(dir) == losses_of(wanted));
  for (const char* file : {"parameters.safetensors", "optimizer.safetensors"}) {
    INFO(file);
    REQUIRE(read_file(dir / checkpoint / file) == read_file(wanted / checkpoint / file));
  }
}

// Options of a run on data with cells that were not measured, which are unpacked to `folder`.
inline std::string unmeasured_cells(const TemporaryFolder& folder) {
  REQUIRE(run_command(concat("tar -xf ", fixture("datasets/variants.tar"), " -C ", folder.path()))
              .exit_code == 0);
  std::string options;
  for (const std::string& assignment : std::vector<std::string>{
           concat("data.dataset.dataset=", (folder.path() / "base.zarr").string()),
           "data.kind=anemoi", "graph.area_weight.kind=uniform", "graph.grid=dataset",
           "data.training={}", "data.validation={}", "data.diagnostic=[]", "data.normalizer={}",
           "model.bounding=[]", R"(data.imputer=[{"variables": ["sst"], "method": "mean"}])",
           R"(data.forcing=["lsm", "z", "cos_latitude", "sin_latitude"])",
           R"(loss.scalers=["node_weights", "nan_mask_weights"])"})
    options += " --set '" + assignment + "'";
  return options;
}

}  // namespace aifs::test

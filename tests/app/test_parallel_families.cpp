// SPDX-License-Identifier: Apache-2.0
// Every family of networks under mpirun trains as on one rank.
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

std::string set(const std::string& assignment) {
  return " --set '" + assignment + "'";
}

// Kinds of encoder and decoder, and of the processor; four heads, which three ranks share unevenly.
std::string kinds(const std::string& mapper, const std::string& processor) {
  std::string options;
  for (const auto& [part, kind] : {std::pair<std::string, std::string>{"encoder", mapper},
                                   {"processor", processor},
                                   {"decoder", mapper}}) {
    options += set(concat("model.", part, ".kind=", kind));
    if (kind.ends_with("transformer")) options += set(concat("model.", part, ".heads=4"));
  }
  return options;
}

const std::string kRollout = set("train.rollout.start=2") + set("train.rollout.maximum=2");
const std::string kEnsemble = set("model.ensemble.members=3") +
                              set("model.ensemble.noise=conditioning") +
                              set("model.ensemble.noise_channels=2");
const std::string kMixed = "graph_transformer", kAll = "transformer";

struct Family {
  std::string name, options;
  std::string member_loss = {};  // of ensembles
};

const std::vector<Family> kFamilies{
    {"graph transformer in chunks", kinds(kMixed, kMixed) + set("model.encoder.chunks=3") +
                                        set("model.decoder.chunks=2") + kRollout},
    {"point-wise", kinds("point_wise", "point_wise")},
    {"transformer, all nodes", kinds(kMixed, kAll) + kRollout},
    {"transformer by sequence, window",
     kinds(kAll, kAll) + set("parallel.attention=sequence") + set("model.encoder.window=60") +
         set("model.processor.window=9") + set("model.decoder.window=30") +
         set("model.processor.recompute=block")},
    {"transformer by heads, window, any order",
     kinds(kAll, kAll) + set("parallel.attention=heads") + set("parallel.hidden_order=hilbert") +
         set("model.processor.window=9") + set("model.decoder.window=-1")},
    {"ensemble with CRPS", kinds(kMixed, kMixed) + kEnsemble + kRollout, set("loss.kind=crps")},
    {"ensemble with energy scores and noise from the data nodes",
     kinds(kMixed, kAll) + kEnsemble + set("model.ensemble.noise_nodes=data") +
         set("model.ensemble.noise_weights=edge_length") +
         set("model.ensemble.noise_normalised=true"),
     set(R"(loss.terms=[{"kind": "energy_score"}, {"kind": "graph_energy_score", "weight": 0.5},
             {"kind": "spectral_crps", "weight": 0.1, "scalers": ["spectral"]}])")},
    {"truncated residual",
     set("model.residual.kind=truncated") + set("model.residual.truncation_grid=tri1") + kRollout},
    {"ornstein residual", set("model.residual.kind=scalar_ornstein")},
    {"spectral residual", set("model.residual.kind=spectral_ornstein") +
                              set("model.residual.grid=octahedral") + set("model.residual.lmax=4") +
                              set("model.residual.theta_init=0.2") +
                              set("model.residual.truncate=true") + kRollout}};

// Members start alike, and what tells them apart is rounding: scores of their differences have no
// gradient there. Some steps with another loss take them apart.
std::string apart(const fs::path& folder, const std::string& options) {
  const fs::path start = folder / "start";
  REQUIRE(run_train(start, concat(kThreeSteps, set("train.precision=fp64"), options)).exit_code ==
          0);
  return set(concat("init.from=", (start / kLast).string()));
}

struct Layout {
  int model = 1, tensor = 1, pipeline = 1;
};

void require_same_training(const fs::path& folder, const std::string& options,
                           const std::string& precision, const Layout& layout) {
  // Nothing depends on the bias of keys, and a smaller epsilon would make its rounding large.
  const std::string more =
      concat(kThreeSteps, set("train.precision=" + precision), set("optimizer.eps=1e-5"),
             set("train.validation.max_dates=1"), options);
  const std::string name = concat(layout.model, "x", layout.tensor, "x", layout.pipeline);
  const fs::path one = folder / (precision + "-one"), many = folder / (precision + name);
  if (!fs::exists(one)) {
    const auto alone = run_train(one, more);
    INFO(alone.err);
    REQUIRE(alone.exit_code == 0);
  }
  const auto result = run_ranks(layout.model * layout.tensor * layout.pipeline, many,
                                concat(more, set(concat("parallel.model=", layout.model)),
                                       set(concat("parallel.tensor=", layout.tensor)),
                                       set(concat("parallel.pipeline=", layout.pipeline))));
  INFO("model x tensor x pipeline " << name << ", " << precision << ": " << result.err);
  REQUIRE(result.exit_code == 0);
  require_close(losses_of(many), losses_of(one), precision == "fp32" ? 1e-6 : 1e-13);
  REQUIRE(parameter_difference(many / kLast, one / kLast) <= (precision == "fp32" ? 1e-5 : 1e-12));
}

}  // namespace

TEST_CASE("every family trains as on one rank", "[parallel]") {
  for (const Family& family : kFamilies) {
    INFO(family.name);
    const TemporaryFolder folder;
    std::string options = family.options;
    if (!family.member_loss.empty()) options += apart(folder.path(), options) + family.member_loss;
    require_same_training(folder.path(), options, "fp32", {.model = 2});
    require_same_training(folder.path(), options, "fp64", {.model = 3});
    require_same_training(folder.path(), options, "fp64", {.model = 2, .pipeline = 2});
    if (family.name != "point-wise")
      require_same_training(folder.path(), options, "fp64", {.tensor = 2});
  }
}

// Each replica draws noise of its own: two of them are the standard.
TEST_CASE("replicas of ensembles train alike whatever ranks share each and its states",
          "[parallel]") {
  const TemporaryFolder folder;
  const std::string more =
      concat(kThreeSteps, set("train.precision=fp64"), set("optimizer.eps=1e-5"),
             set("train.accumulate_batches=2"), kinds(kMixed, kMixed), kEnsemble, kRollout);
  const fs::path two = train_ranks(folder, 2, "two", more);
  const std::string shared = set("parallel.sharding.states=parameters");
  require_alike(train_ranks(folder, 2, "shared", more + shared), two, "fp64");
  require_alike(train_ranks(folder, 4, "stages", more + shared + set("parallel.pipeline=2")), two,
                "fp64");
  require_alike(train_ranks(folder, 4, "model", more + set("parallel.model=2")), two, "fp64");
}

TEST_CASE("what was not measured counts nowhere, whoever has the cell", "[parallel]") {
  const TemporaryFolder folder;
  const std::string options = unmeasured_cells(folder) + kinds(kMixed, kAll) + kRollout;
  require_same_training(folder.path(), options, "fp64", {.model = 3});
}

TEST_CASE("attention and residuals are reproducible on any number of processes", "[parallel]") {
  const TemporaryFolder folder;
  const std::string more = concat(
      kThreeSteps, kinds(kAll, kAll), set("parallel.reproducible=true"), set("parallel.model=2"),
      set("parallel.virtual_ranks=4"), set("data.threads=1"), set("model.processor.window=9"),
      set("model.residual.kind=truncated"), set("model.residual.truncation_grid=tri1"));
  const fs::path one = folder.path() / "one", two = folder.path() / "two";
  REQUIRE(run_train(one, more).exit_code == 0);
  REQUIRE(run_ranks(2, two, more).exit_code == 0);
  require_same_bits(two, one);
  // Ranks that are threads share the generator that noise comes from.
  const auto refused = run_train(folder.path() / "no", concat(more, kEnsemble));
  REQUIRE(refused.exit_code == 2);
  REQUIRE(refused.err.find("parallel.reproducible") != std::string::npos);
}

// SPDX-License-Identifier: Apache-2.0
#include "app/run/memory_budget.h"

#include "core/check.h"
#include "tests/plan/published.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::fit_memory;
using model::RecomputePolicy;

namespace {

app::FittedModel fit(model::BlockKind kind, int64_t channels, double budget) {
  plan::StepInput input = test::published_step(kind, channels, test::kN320Tri6);
  input.network.model.memory_budget = budget;
  return fit_memory(input, {.ranks = {test::one_rank(test::kN320Tri6)}});
}

}  // namespace

TEST_CASE("as little is run again as fits into the budget", "[memory_budget]") {
  const auto policies = [](const app::FittedModel& fitted) {
    return std::tuple{fitted.options.decoder.recompute, fitted.options.processor.recompute,
                      fitted.options.decoder.chunks};
  };
  using P = RecomputePolicy;
  // Measured on a card: 65.0, 35.5 and 15.0 GiB.
  REQUIRE(policies(fit(model::BlockKind::kGnn, 512, 0.0)) == std::tuple{P::kNone, P::kNone, 1});
  REQUIRE(policies(fit(model::BlockKind::kGnn, 512, 70.0)) == std::tuple{P::kNone, P::kNone, 1});
  REQUIRE(policies(fit(model::BlockKind::kGnn, 512, 38.0)) ==
          std::tuple{P::kEmbedding, P::kMlp, 1});
  REQUIRE(policies(fit(model::BlockKind::kGnn, 512, 16.0)) == std::tuple{P::kBlock, P::kBlock, 4});
  REQUIRE_THAT(fit(model::BlockKind::kGnn, 512, 16.0).text, ContainsSubstring("of 16 GiB"));
  // Graph transformers have no embedding of edges to run again.
  const auto transformer = policies(fit(model::BlockKind::kGraphTransformer, 1024, 24.0));
  REQUIRE(std::get<0>(transformer) == P::kBlock);
  REQUIRE_THROWS_WITH(fit(model::BlockKind::kGnn, 512, 1.0),
                      ContainsSubstring("'model.memory_budget': 1 GiB are too few"));
}

TEST_CASE("what fits no other way waits on the host", "[memory_budget]") {
  plan::StepInput input = test::published_step(model::BlockKind::kGnn, 512, test::kO1280Tri8);
  input.network.model.memory_budget = 76.0;
  const auto fitted = fit_memory(input, {.ranks = {test::one_rank(test::kO1280Tri8)}});
  REQUIRE(fitted.options.processor.offload > 0);
  REQUIRE(fitted.options.processor.edge_ranges > 1);
  REQUIRE_THAT(fitted.text, ContainsSubstring("groups of layers on the host"));
}

TEST_CASE("a budget takes nothing back that is asked for", "[memory_budget]") {
  plan::StepInput input = test::published_step(model::BlockKind::kGnn, 512, test::kN320Tri6);
  input.network.model.memory_budget = 100.0;
  input.network.model.processor.recompute = RecomputePolicy::kBlock;
  input.network.model.decoder.chunks = 6;
  const auto fitted = fit_memory(input, {.ranks = {test::one_rank(test::kN320Tri6)}});
  REQUIRE(fitted.options.processor.recompute == RecomputePolicy::kBlock);
  REQUIRE(fitted.options.decoder.chunks == 6);
  REQUIRE(fitted.options.decoder.recompute == RecomputePolicy::kNone);
}

// SPDX-License-Identifier: Apache-2.0
// The lines of the run card say what runs, for every kind of configuration.
#include "app/run/run_card.h"

#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using app::RunConfig;
using Catch::Matchers::StartsWith;

namespace {

RunConfig tiny(const std::vector<std::string>& overrides = {}) {
  return app::load_config(test::tiny_config(), overrides);
}

std::string optimizer(const std::vector<std::string>& overrides, int64_t samples = 8) {
  return app::optimizer_text(tiny(overrides).optimizer, samples);
}

std::string length(const std::vector<std::string>& overrides) {
  return app::length_text(tiny(overrides).train);
}

std::string loss(const std::vector<std::string>& overrides) {
  return app::loss_text(tiny(overrides).loss);
}

std::vector<std::string> places(int64_t hosts, int64_t ranks, const std::string& device) {
  std::vector<std::string> all;
  for (int64_t host = 0; host < hosts; ++host) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      all.push_back(concat("node", host, ": ", device));
  }
  return all;
}

}  // namespace

TEST_CASE("the optimiser that runs is named, with the rate it starts from", "[run_card]") {
  REQUIRE_THAT(optimizer({}), StartsWith("adamw, lr 0.002 cosine to 3e-07, warm-up 5 steps"));
  REQUIRE_THAT(optimizer({"optimizer.kind=ademamix"}), StartsWith("ademamix, "));
  REQUIRE_THAT(optimizer({"optimizer.schedule.kind=constant"}),
               ContainsSubstring("constant, warm"));
  REQUIRE_THAT(optimizer({"optimizer.lr_scaling=linear", "optimizer.reference_samples=2"}),
               StartsWith("adamw, lr 0.008 (0.002 for 2 samples, linear)"));
  REQUIRE_THAT(optimizer({"optimizer.clip=none"}), ContainsSubstring("not clipped"));
  REQUIRE_THAT(optimizer({"optimizer.clip=norm", "optimizer.clip_limit=3"}),
               ContainsSubstring("clipped by norm at 3"));
  REQUIRE_THAT(optimizer({"optimizer.average.kind=ema"}), ContainsSubstring("average ema"));
}

TEST_CASE("the loss that is minimised is named: all terms, with weights and scalers",
          "[run_card]") {
  REQUIRE(loss({"loss.kind=mae", "loss.scalers=[\"node_weights\"]"}) ==
          "mae (scalers node_weights)");
  REQUIRE(loss({R"(loss.terms=[{"kind": "mse", "weight": 0.9, "scalers": ["node_weights"]},
                               {"kind": "huber", "variables": ["ke_850"], "weight": 0.1,
                                "scalers": ["node_weights", "time_steps"]}])"}) ==
          "0.9 mse (scalers node_weights) + 0.1 huber of 1 variable (scalers node_weights, "
          "time_steps)");
  // Terms without scalers of their own take those of the section.
  REQUIRE_THAT(loss({R"(loss.terms=[{"kind": "mae"}])"}),
               StartsWith("mae (scalers pressure_level, general_variable"));
}

TEST_CASE("the network is described by all its parts", "[run_card]") {
  const auto text = [](const std::vector<std::string>& overrides) {
    return app::model_text(tiny(overrides).model, 1234, 0);
  };
  REQUIRE(text({}) == "gnn, 8 channels, 2 layers, 1234 parameters");
  REQUIRE(app::model_text(tiny().model, 1234, 34) ==
          "gnn, 8 channels, 2 layers, 1234 parameters, 34 of them frozen");
  REQUIRE(text({"model.encoder.kind=graph_transformer", "model.processor.kind=transformer",
                "model.decoder.kind=graph_transformer", "model.encoder.heads=2",
                "model.processor.heads=2", "model.decoder.heads=2", "model.ensemble.members=3",
                "model.ensemble.noise=conditioning"}) ==
          "graph_transformer encoder, transformer processor, graph_transformer decoder, 8 "
          "channels, 2 layers, 3 members with noise, 1234 parameters");
  const std::string none = text({"model.processor.kind=none"});
  REQUIRE_THAT(none, ContainsSubstring("none processor"));
  REQUIRE_THAT(none, !ContainsSubstring("layer"));
  const std::string hierarchy =
      text({"graph.file=g.nc", R"(model.hierarchy.meshes=["a", "b", "c"])",
            "model.hierarchy.level_processing=true", "model.hierarchy.level_layers=3"});
  REQUIRE_THAT(hierarchy, ContainsSubstring("a > b > c"));
  REQUIRE_THAT(hierarchy,
               ContainsSubstring("14 layers (2 on the coarsest mesh, 6 on each finer one)"));
}

TEST_CASE("the limits of a run are named, and how forecasts grow", "[run_card]") {
  REQUIRE(length({}) == "40 steps, forecasts of 1 step");
  REQUIRE(length({"train.max_epochs=1", "train.max_minutes=30"}) ==
          "40 steps or 1 epoch or 30 min, forecasts of 1 step");
  REQUIRE(length({"train.rollout.start=2", "train.rollout.maximum=6",
                  "train.rollout.epoch_increment=2"}) ==
          "40 steps, forecasts of 2 steps, one more every 2 epochs up to 6");
  REQUIRE(length({"train.rollout.maximum=6", "train.rollout.step_increment=10"}) ==
          "40 steps, forecasts of 1 step, one more every 10 optimiser steps up to 6");
  REQUIRE(length({"train.rollout.maximum=6", "train.rollout.epoch_increment=1"}) ==
          "40 steps, forecasts of 1 step, one more every epoch up to 6");
}

TEST_CASE("ranks are summed up by host, however many there are", "[run_card]") {
  using Lines = std::vector<std::string>;
  REQUIRE(app::host_lines(places(1, 2, "CPU")) == Lines{"node0: 2 ranks on CPU"});
  REQUIRE(app::host_lines(places(2, 8, "NVIDIA H200")) ==
          Lines{"2 hosts, each 8 ranks on NVIDIA H200: node0, node1"});
  REQUIRE(app::host_lines(places(64, 4, "NVIDIA H200")) ==
          Lines{"64 hosts, each 4 ranks on NVIDIA H200: node0, node1, node2, ... node63"});
  Lines mixed = places(2, 2, "NVIDIA H200");
  mixed.emplace_back("other: CPU");
  mixed.emplace_back("other: NVIDIA H200");
  REQUIRE(app::host_lines(mixed) == Lines{"2 hosts, each 2 ranks on NVIDIA H200: node0, node1",
                                          "other: 1 rank on CPU, 1 rank on NVIDIA H200"});
}

// SPDX-License-Identifier: Apache-2.0
// Sections that are translated alone: losses, processors, limits.
#include "anemoi/part_sections.h"

#include "anemoi/loss_section.h"
#include "core/check.h"
#include "tests/anemoi/configs_folder.h"
#include "tests/support/catch.h"

using namespace aifs;
using anemoi::Imported;
using anemoi::Json;
using anemoi::LossRules;
using test::is_refused;
using test::value_at;

namespace {

Json parse(const char* text) {
  return Json::parse(text);
}

Json training(const char* loss) {
  return {{"training_loss", parse(loss)},
          {"scalers", parse(R"({"cells": {"_target_": "GraphNodeAttributeScaler",
                                          "nodes_attribute_name": "area_weight", "norm": "l1"},
                                "waves": {"_target_": "SpectralDimensionScaler",
                                          "n_spectral_modes": 4, "spectral_dims": 2}})")}};
}

Imported processors(const char* text, const std::vector<std::string>& variables = {}) {
  return anemoi::import_processor_section({{"one", parse(text)}}, variables);
}

}  // namespace

TEST_CASE("a loss alone may keep the names of its scalers", "[anemoi]") {
  const char* mse = R"({"_target_": "MSELoss", "scalers": ["cells"]})";
  REQUIRE(value_at(anemoi::import_loss_section(training(mse), {}), "/loss/scalers").dump() ==
          R"(["node_weights"])");
  const Imported named =
      anemoi::import_loss_section(training(mse), {.keeps_names = true, .also = {"waves"}});
  REQUIRE(value_at(named, "/loss/scalers").dump() == R"(["cells"])");
  REQUIRE(value_at(named, "/loss/named_scalers/cells").dump() ==
          R"({"kind":"node_weights","norm":"unit-sum","node_attribute":"area_weight"})");
  REQUIRE(value_at(named, "/loss/named_scalers/waves").dump() ==
          R"({"kind":"spectral","modes":4,"repeats":2})");
}

TEST_CASE("scalers that are defined elsewhere are taken by their names", "[anemoi]") {
  const LossRules rules{.defined_elsewhere = {"own", "samples"}, .sample_weights = "samples"};
  const Imported plain = anemoi::import_loss_section(
      training(R"({"_target_": "MSELoss", "scalers": ["own"]})"), rules);
  REQUIRE(value_at(plain, "/loss/scalers").dump() == R"(["own"])");
  const Imported weighted = anemoi::import_loss_section(
      training(R"({"_target_": "WeightedMSELoss", "scalers": ["own"]})"), rules);
  REQUIRE(value_at(weighted, "/loss/scalers").dump() == R"(["samples","own"])");
}

TEST_CASE("edges between data nodes serve graph scores where they are known", "[anemoi]") {
  const char* score = R"({"_target_": "GraphEnergyScoreLoss", "scalers": [], "loss_graph": {
      "edges_name": ["data", "to", "data"], "edge_weight_attribute": "w"}})";
  const Imported known = anemoi::import_loss_section(training(score), {.has_data_edges = true});
  REQUIRE(value_at(known, "/loss/graph").dump() ==
          R"({"of_graph":true,"edge_weight":"w","source_weight":"","row_normalise":false})");
  REQUIRE(is_refused(anemoi::import_loss_section(training(score), {}),
                     "training.training_loss.loss_graph"));
}

TEST_CASE("options that a kind of loss does not read are not written", "[anemoi]") {
  const auto loss = [](const char* text) {
    return anemoi::import_loss_section(training(text), {.has_data_edges = true});
  };
  const Imported edges = loss(R"({"_target_": "GraphEdgeCRPSLoss", "scalers": [], "fair": true,
      "alpha": 0.5, "loss_graph": {}})");
  REQUIRE_FALSE(edges.config().at("loss").contains("fair"));
  REQUIRE(value_at(edges, "/loss/alpha") == 0.5);
  const Imported cosines = loss(R"({"_target_": "SpectralCRPSLoss", "scalers": [],
      "transform": "dct2d", "x_dim": 4, "y_dim": 2, "apply_filter": true, "subgrid": [0, 8]})");
  REQUIRE(value_at(cosines, "/loss/transform").dump() ==
          R"({"kind":"dct2d","x_dim":4,"y_dim":2,"subgrid":[0,8]})");
  const char* sphere = R"({"_target_": "SpectralCRPSLoss", "scalers": [],
      "transform": "octahedral_sht", "nlat": 16, "x_dim": 4})";
  REQUIRE(value_at(loss(sphere), "/loss/transform").dump() ==
          R"({"kind":"octahedral_sht","grid":"o8"})");
  Json part_of_sphere = training(sphere);
  part_of_sphere["training_loss"]["subgrid"] = {0, 8};
  REQUIRE_THROWS_AS(anemoi::import_loss_section(part_of_sphere, {}), ConfigError);
}

TEST_CASE("the default of an imputer is for all variables that are known", "[anemoi]") {
  const char* imputer = R"({"_target_": "InputImputer", "config": {
      "default": "mean", "none": ["c"], "maximum": ["b"]}})";
  REQUIRE(value_at(processors(imputer, {"a", "b", "c"}), "/data/imputer").dump() ==
          R"([{"variables":["b"],"method":"maximum"},{"variables":["a"],"method":"mean"}])");
  REQUIRE(is_refused(processors(imputer), "processors.one.config.default"));
  const char* constant = R"({"_target_": "ConstantImputer", "config": {"default": 0}})";
  REQUIRE(value_at(processors(constant, {"a"}), "/data/imputer").dump() ==
          R"([{"variables":["a"],"method":"constant","value":0}])");
}

TEST_CASE("a network alone keeps the names of its parts", "[anemoi]") {
  const Json sections = parse(R"({"model": {
      "num_channels": 8, "model": {"_target_": "AnemoiModelEncProcDec"},
      "processor": {"_target_": "GNNProcessor", "num_layers": 2, "trainable_size": 1},
      "encoders": {"0": {"mapper": {"_target_": "GNNForwardMapper"},
                         "source_datasets": ["data"]}},
      "decoders": {"0": {"mapper": {"_target_": "GNNBackwardMapper"},
                         "target_datasets": ["data"]}},
      "node_trainable_parameters": {"data": 3, "hidden": 2},
      "residual": {"datasets": {"data": {"_target_": "SkipConnection"}}},
      "bounding": {"datasets": {"data": []}}}})");
  const Imported imported = anemoi::import_model_section(sections, {"data"});
  INFO(remarks_text(imported.remarks));
  REQUIRE(imported.num_not_honoured() == 0);
  REQUIRE(value_at(imported, "/data").dump() ==
          R"({"datasets":{"data":{"encoder":"0","decoder":"0"}}})");
  REQUIRE(value_at(imported, "/model/layers") == 2);
  REQUIRE(value_at(imported, "/model/trainable_parameters").dump() ==
          R"({"data_to_hidden":0,"hidden_to_data":0,"hidden_to_hidden":1,"data":3,"hidden":2})");
  Json ensemble = sections;
  ensemble["training"]["ensemble_size_per_device"] = 2;
  REQUIRE(is_refused(anemoi::import_model_section(ensemble, {"data"}),
                     "training.ensemble_size_per_device"));
}

TEST_CASE("limits alone", "[anemoi]") {
  const Json list =
      parse(R"([{"_target_": "HardtanhBounding", "variables": ["a"], "min_val": -1}])");
  REQUIRE(value_at(anemoi::import_bounding_section(list), "/model/bounding").dump() ==
          R"([{"kind":"hardtanh","variables":["a"],"min_val":-1.0}])");
  REQUIRE(is_refused(anemoi::import_bounding_section(parse(R"([{"_target_": "OwnBounding"}])")),
                     "bounding.0"));
}

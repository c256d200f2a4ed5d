// SPDX-License-Identifier: Apache-2.0
#include "app/run/named_parts.h"

#include "core/check.h"
#include "core/config.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::app;
using config::Json;

namespace {

struct Sections {
  model::ModelOptions model;
  data::DataOptions data;
};

Sections read(const char* model, const char* of_second = "") {
  Sections sections;
  config::read(sections.model, Json::parse(model), "model", {});
  const Json data = Json::parse(concat(R"({"datasets": {"one": {"dataset": "a.zarr"},
                                           "two": {"dataset": "b.zarr")",
                                       of_second, "}}}"));
  config::read(sections.data, data, "data", {});
  return sections;
}

// The path of the fault, or "none".
std::string fault(const Sections& sections) {
  try {
    app::check_named_parts(sections.model, sections.data);
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("a dataset has the parts of its names, or those of the model", "[named_parts]") {
  const Sections s = read(R"({"encoder": {"kind": "graph_transformer", "heads": 2},
      "decoder": {"kind": "graph_transformer", "heads": 2},
      "encoders": {"shared": {"kind": "graph_transformer", "heads": 4}},
      "decoders": {"two": {"kind": "point_wise"}}, "residuals": {"one": {"kind": "none"}}})",
                          R"(, "encoder": "shared")");
  REQUIRE(fault(s) == "none");
  const app::NamedParts one = app::parts_of(s.model, s.data, 0),
                        two = app::parts_of(s.model, s.data, 1);
  REQUIRE(one.encoder_name == "one");
  REQUIRE(one.encoder == &s.model.encoder);
  REQUIRE(one.paths.encoder == "model.encoder");
  REQUIRE(one.residual->kind == model::ResidualKind::kNone);
  REQUIRE(one.paths.residual == "model.residuals.one");
  REQUIRE(two.encoder_name == "shared");
  REQUIRE(two.encoder->heads == 4);
  REQUIRE(two.paths.encoder == "model.encoders.shared");
  REQUIRE(two.decoder->kind == model::BlockKind::kPointWise);
  REQUIRE(two.residual == &s.model.residual);
}

TEST_CASE("parts that no dataset has are refused", "[named_parts]") {
  REQUIRE(fault(read(R"({"encoders": {"shared": {}}})")) == "model.encoders.shared");
  REQUIRE(fault(read(R"({"decoders": {"tow": {}}})")) == "model.decoders.tow");
  REQUIRE(fault(read(R"({"residuals": {"tow": {}}})")) == "model.residuals.tow");
  REQUIRE(fault(read(R"({"trainable_parameters": {"nodes": {"two": 3, "hidden": 2}}})")) == "none");
  REQUIRE(fault(read(R"({"trainable_parameters": {"nodes": {"tow": 3}}})")) ==
          "model.trainable_parameters.nodes.tow");
  REQUIRE(fault(read(R"({"bounding": [{"variables": ["tp"], "datasets": ["tow"]}]})")) ==
          "model.bounding.0.datasets");
  REQUIRE(fault(read("{}", R"(, "decoder": "one")")) == "data.datasets.two.decoder");
}

TEST_CASE("a single dataset has no parts of a name", "[named_parts]") {
  Sections s = read(R"({"encoders": {"data": {}}})");
  s.data = {};
  REQUIRE(fault(s) == "model.encoders");
  s.model.encoders.clear();
  REQUIRE(fault(s) == "none");
  const app::NamedParts parts = app::parts_of(s.model, s.data, 0);
  REQUIRE(parts.encoder == &s.model.encoder);
  REQUIRE(parts.encoder_name == "0");
}

TEST_CASE("a dataset has the output mask of its name, or that of the model", "[named_parts]") {
  const Sections s = read(R"({"output_mask": "cutout_mask", "output_masks": {"two": ""}})");
  REQUIRE(fault(s) == "none");
  REQUIRE(app::parts_of(s.model, s.data, 0).output_mask == "cutout_mask");
  REQUIRE(app::parts_of(s.model, s.data, 0).output_mask_path == "model.output_mask");
  REQUIRE(app::parts_of(s.model, s.data, 1).output_mask.empty());
  REQUIRE(fault(read(R"({"output_masks": {"tow": "cutout_mask"}})")) == "model.output_masks.tow");
  Sections one = read(R"({"output_masks": {"data": "cutout_mask"}})");
  one.data.datasets.clear();
  REQUIRE(fault(one) == "model.output_masks");
}

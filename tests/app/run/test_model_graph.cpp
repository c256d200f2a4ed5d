// SPDX-License-Identifier: Apache-2.0
#include "app/run/model_graph.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using model::BlockKind;

namespace {

// 40 320 cells, a fine mesh of 10 242 nodes and a coarse one of 642.
int64_t num_nodes(const std::string& name) {
  if (name == "data") return 40320;
  return name == "coarse" ? 642 : 10242;
}

// The path of the fault, or "none".
std::string fault(const model::ModelOptions& model) {
  try {
    app::check_windows(model, num_nodes);
  } catch (const ConfigError& error) {
    return error.path();
  }
  return "none";
}

}  // namespace

TEST_CASE("a window of attention wider than the mesh is refused", "[model_graph]") {
  model::ModelOptions model;
  model.processor.kind = BlockKind::kTransformer;
  for (const int64_t window : {0, -1, 512, 10241}) {
    model.processor.window = window;
    REQUIRE(fault(model) == "none");
  }
  model.processor.window = 10242;
  REQUIRE_THROWS_WITH(
      app::check_windows(model, num_nodes),
      ContainsSubstring("'model.processor.window': is 10242, there are only 10242"));
  model.processor.kind = BlockKind::kGnn;  // has no window
  REQUIRE(fault(model) == "none");
}

TEST_CASE("windows of mappers are held against the larger of their node sets", "[model_graph]") {
  model::ModelOptions model;
  model.encoder.kind = model.decoder.kind = BlockKind::kTransformer;
  model.encoder.window = 40319;
  REQUIRE(fault(model) == "none");
  model.encoder.window = 40320;
  REQUIRE(fault(model) == "model.encoder.window");
  model.encoder.window = 0;
  model.decoder.window = 50000;
  REQUIRE(fault(model) == "model.decoder.window");
}

TEST_CASE("in a hierarchy the window must matter on some mesh", "[model_graph]") {
  model::ModelOptions model;
  model.hierarchy.meshes = {"fine", "coarse"};
  model.processor.kind = BlockKind::kTransformer;
  model.processor.window = 700;
  REQUIRE(fault(model) == "model.processor.window");  // works on the coarse mesh only
  model.hierarchy.level_processing = true;
  REQUIRE(fault(model) == "none");
  model.hierarchy.downscale.kind = BlockKind::kTransformer;
  model.hierarchy.downscale.window = 20000;
  REQUIRE(fault(model) == "model.hierarchy.downscale.window");
}

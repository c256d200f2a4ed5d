// SPDX-License-Identifier: Apache-2.0
#include "app/model_graph.h"

#include "core/check.h"

namespace aifs::app {

namespace {

// What the graph says that it has not, as a fault of the option that asks for it.
template <class Lookup>
void require(const std::string& path, const Lookup& lookup) {
  try {
    lookup();
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
}

}  // namespace

void check_graph(const model::ModelOptions& model, const graph::Graph& graph) {
  const std::vector<std::string> meshes = model.meshes();
  for (const std::string& mesh : meshes)
    require("model.hierarchy.meshes", [&] { graph.nodes(mesh); });
  const auto check_part = [&](const char* part, const model::BlockOptions& options,
                              const std::string& source, const std::string& target) {
    using model::BlockKind;
    if (options.kind == BlockKind::kGnn || options.kind == BlockKind::kGraphTransformer)
      require(concat("model.", part, ".kind"), [&] { graph.edges(source, target); });
  };
  check_part("encoder", model.encoder, "data", meshes.front());
  for (size_t i = 0; i < meshes.size(); ++i) {
    const bool coarsest = i + 1 == meshes.size();
    if (coarsest || model.hierarchy.level_processing)
      check_part("processor", model.processor, meshes[i], meshes[i]);
    if (coarsest) break;
    check_part("hierarchy.upscale", model.hierarchy.upscale, meshes[i], meshes[i + 1]);
    check_part("hierarchy.downscale", model.hierarchy.downscale, meshes[i + 1], meshes[i]);
  }
  check_part("decoder", model.decoder, meshes.front(), "data");
}

}  // namespace aifs::app

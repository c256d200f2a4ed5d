// SPDX-License-Identifier: Apache-2.0
#include "app/run/named_parts.h"

#include <algorithm>

#include "core/check.h"
#include "core/join.h"

namespace aifs::app {

namespace {

// Chooses the options of this name and says where they stand; the common ones if there are none.
template <class T>
const T* choose(const std::vector<std::pair<std::string, T>>& named, const std::string& name,
                const char* list, const T& common, std::string& path) {
  for (const auto& [own, options] : named) {
    if (own != name) continue;
    path = concat("model.", list, ".", name);
    return &options;
  }
  return &common;
}

void require_known(const std::string& path, const std::string& name, const char* what,
                   const std::vector<std::string>& known) {
  if (contains(known, name)) return;
  throw ConfigError(path, concat("there is no ", what, " '", name, "'"),
                    nearest_names(name, known));
}

template <class T>
void check_names(const std::vector<std::pair<std::string, T>>& named, const char* list,
                 const char* what, const std::vector<std::string>& known) {
  for (const auto& [name, options] : named)
    require_known(concat("model.", list, ".", name), name, what, known);
}

// Throws ConfigError for what is about datasets by their names where they have none.
void check_of_one(const model::ModelOptions& model) {
  const auto refuse = [](bool is_given, const std::string& path) {
    if (is_given)
      throw ConfigError(path, "is for datasets with names, and data.datasets gives none",
                        "leave it out");
  };
  refuse(!model.encoders.empty(), "model.encoders");
  refuse(!model.decoders.empty(), "model.decoders");
  refuse(!model.residuals.empty(), "model.residuals");
  refuse(!model.output_masks.empty(), "model.output_masks");
  for (size_t i = 0; i < model.bounding.size(); ++i)
    refuse(!model.bounding[i].datasets.empty(), concat("model.bounding.", i, ".datasets"));
}

}  // namespace

NamedParts parts_of(const model::ModelOptions& model, const data::DataOptions& data,
                    size_t dataset) {
  NamedParts parts{.encoder = &model.encoder,
                   .decoder = &model.decoder,
                   .residual = &model.residual,
                   .output_mask = model.output_mask};
  if (data.datasets.empty()) return parts;
  const auto& [name, options] = data.datasets[dataset];
  parts.encoder_name = options.encoder.empty() ? name : options.encoder;
  parts.decoder_name = options.decoder.empty() ? name : options.decoder;
  model::PartPaths& paths = parts.paths;
  parts.encoder =
      choose(model.encoders, parts.encoder_name, "encoders", model.encoder, paths.encoder);
  parts.decoder =
      choose(model.decoders, parts.decoder_name, "decoders", model.decoder, paths.decoder);
  parts.residual = choose(model.residuals, name, "residuals", model.residual, paths.residual);
  if (const auto own = model.output_masks.find(name); own != model.output_masks.end()) {
    parts.output_mask = own->second;
    parts.output_mask_path = concat("model.output_masks.", name);
  }
  return parts;
}

void check_named_parts(const model::ModelOptions& model, const data::DataOptions& data) {
  std::vector<std::string> encoders, decoders;
  for (size_t d = 0; d < data.names().size(); ++d) {
    const NamedParts parts = parts_of(model, data, d);
    if (contains(decoders, parts.decoder_name)) {
      throw ConfigError(concat("data.datasets.", data.names()[d], ".decoder"),
                        concat("'", parts.decoder_name, "' is that of another dataset"),
                        "leave it out: each dataset has a decoder of its own");
    }
    encoders.push_back(parts.encoder_name);
    decoders.push_back(parts.decoder_name);
  }
  std::vector<std::string> nodes = data.names();
  if (data.datasets.empty()) {
    check_of_one(model);
  } else {
    check_names(model.encoders, "encoders", "dataset with an encoder", encoders);
    check_names(model.decoders, "decoders", "dataset with a decoder", decoders);
    check_names(model.residuals, "residuals", "dataset", nodes);
    for (const auto& [name, attribute] : model.output_masks)
      require_known(concat("model.output_masks.", name), name, "dataset", nodes);
    for (size_t i = 0; i < model.bounding.size(); ++i) {
      for (const std::string& name : model.bounding[i].datasets)
        require_known(concat("model.bounding.", i, ".datasets"), name, "dataset", nodes);
    }
  }
  for (const std::string& mesh : model.meshes())
    nodes.push_back(mesh);
  for (const auto& [name, width] : model.trainable_parameters.nodes)
    require_known(concat("model.trainable_parameters.nodes.", name), name, "node set", nodes);
}

}  // namespace aifs::app

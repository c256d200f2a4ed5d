// SPDX-License-Identifier: Apache-2.0
#include "model/network/options.h"

#include <algorithm>

#include "core/check.h"
#include "core/integer_map.h"

namespace aifs::model {

namespace {

const config::Bounds<int64_t> kTrainableWidth{.min = 0, .max = 4096};

bool has_heads(BlockKind kind) {
  return kind == BlockKind::kGraphTransformer || kind == BlockKind::kTransformer;
}

// Refuses an option that a kind does not have.
void only_for(bool is_set, bool allowed, const std::string& path, const char* who) {
  if (is_set && !allowed) throw ConfigError(path, concat("is for ", who, " only"));
}

void check_heads(const BlockOptions& block, int64_t channels, const std::string& path) {
  if (!has_heads(block.kind)) return;
  const int64_t width = block.attention_channels > 0 ? block.attention_channels : channels;
  if (width % block.heads != 0) {
    throw ConfigError(path + ".heads",
                      concat(block.heads, " heads cannot share ", width, " channels"),
                      "choose a number that divides them");
  }
  if (block.rotary && (width / block.heads) % 2 != 0) {
    throw ConfigError(path + ".rotary",
                      concat("needs heads of even width, not ", width / block.heads));
  }
}

void check_mapper(const BlockOptions& block, const std::string& path) {
  if (block.kind == BlockKind::kNone)
    throw ConfigError(path + ".kind", "only a processor can be none");
  only_for(block.offload > 0, false, path + ".offload", "processors");
  only_for(block.edge_ranges > 1, false, path + ".edge_ranges", "processors");
}

}  // namespace

void BlockOptions::bind(config::Binder& b) {
  const std::vector<std::string> attention_kinds{"graph_transformer", "transformer"};
  const std::vector<std::string> with_mlps{"gnn", "graph_transformer", "transformer"};
  const std::vector<std::string> with_layers{"gnn", "graph_transformer", "transformer",
                                             "point_wise"};
  b.tag("kind", kind,
        {"family: gnn is message passing with residual edge states, graph_transformer attention "
         "over edges, transformer attention over whole node sets, point_wise works on every "
         "node alone; none, for a processor, does nothing"});
  b.integer("channels", channels, {.min = 0, .max = 1 << 16}, {"width; 0: model.channels"});
  b.integer("mlp_extra_layers", mlp_extra_layers, {.min = 0, .max = 16},
            {"linears in every MLP beyond three"});
  b.read_by({"gnn"});
  b.number("mlp_hidden_ratio", mlp_hidden_ratio, {.min = 0.0, .max = 64.0},
           {"hidden width of MLPs as a multiple of the channels; 0: 1 for gnn, 4 for the others"});
  b.read_by(with_layers);
  b.choice("mlp_implementation", mlp_implementation, {"plain MLP, or with gated layers"});
  b.read_by(with_mlps);
  b.choice("activation", activation, {"of plain MLPs; gelu is the exact form"});
  b.read_by(with_layers);
  b.integer("heads", heads, {.min = 1, .max = 1 << 12}, {"attention heads"});
  b.read_by(attention_kinds);
  b.integer("attention_channels", attention_channels, {.min = 0, .max = 1 << 16},
            {"width of attention, a multiple of heads; 0: channels"});
  b.read_by(attention_kinds);
  b.boolean("qk_norm", qk_norm, {"normalise queries and keys per head"});
  b.read_by(attention_kinds);
  b.boolean("edge_pre_mlp", edge_pre_mlp,
            {"a linear and an activation on the edge features of each block"});
  b.read_by({"graph_transformer"});
  b.integer(
      "window", window, {.min = -1},
      {"nodes further apart in node order do not see each other (below the number of nodes); 0: "
       "all do; -1: all do, but in a mapper with sdpa it is the number of source nodes, as in "
       "Anemoi"});
  b.read_by({"transformer"});
  b.choice("attention", attention, {"whose conventions hold, torch's or those of flash-attention"});
  b.read_by({"transformer"});
  b.number("softcap", softcap, {.min = 0.0}, {"flash: scores are bent to stay below; 0: not"});
  b.read_by({"transformer"});
  b.boolean("alibi", alibi, {"flash: scores fall linearly with distance in node order"});
  b.read_by({"transformer"});
  b.boolean("rotary", rotary, {"flash, mappers: queries and keys turn with position"});
  b.read_by({"transformer"});
  b.choice("recompute", recompute,
           {"what is run again in the backward pass instead of being kept in memory: nothing, "
            "embeddings and GELUs (gnn), MLPs, each block (of mappers: each chunk), or everything "
            "(of processors: in chunks groups)"});
  b.read_by(with_layers);
  b.integer("chunks", chunks, {.min = 1, .max = 1 << 20},
            {"mappers of gnn and graph_transformer: ranges of targets worked on one after another; "
             "processors: groups of layers that are recomputed together"});
  b.read_by(with_layers);
  b.integer(
      "edge_ranges", edge_ranges, {.min = 1, .max = 1 << 20},
      {"processors with recompute block or full: ranges of targets in each layer, worked on and "
       "run again one after another"});
  b.read_by({"gnn"});
  b.integer(
      "offload", offload, {.min = 0, .max = 1024},
      {"processors with recompute block or full, on a GPU: so many blocks or groups, from the "
       "first on, keep their inputs in page-locked memory of the host, copied beside the "
       "computation; those of the last stay"});
  b.read_by(with_layers);
  b.number_or_null("norm_eps", norm_eps, {.min = 0.0, .max = 1.0},
                   {"added to the variance in its LayerNorms; null: model.layer_norm_eps"});
  b.read_by(with_layers);
  b.number_or_null("qk_norm_eps", qk_norm_eps, {.min = 0.0, .max = 1.0},
                   {"the same in the norms of queries and keys; null: that of the other norms"});
  b.read_by(attention_kinds);
  b.integer_or_auto("trainable", trainable, kTrainableWidth,
                    {"learnt features per edge; auto: as model.trainable_parameters says"});
  b.read_by({"gnn", "graph_transformer", "none"});
}

void BlockOptions::validate(const std::string& path) const {
  const bool transformer = kind == BlockKind::kTransformer;
  only_for(mlp_extra_layers > 0, kind == BlockKind::kGnn, path + ".mlp_extra_layers", "gnn");
  only_for(qk_norm, has_heads(kind), path + ".qk_norm", "graph_transformer and transformer");
  only_for(edge_pre_mlp, kind == BlockKind::kGraphTransformer, path + ".edge_pre_mlp",
           "graph_transformer");
  only_for(window != 0, transformer, path + ".window", "transformer");
  only_for(attention == AttentionBackend::kFlash, transformer, path + ".attention", "transformer");
  const bool flash = transformer && attention == AttentionBackend::kFlash;
  only_for(softcap > 0.0, flash, path + ".softcap", "flash attention");
  only_for(alibi, flash, path + ".alibi", "flash attention");
  only_for(rotary, flash, path + ".rotary", "flash attention");
  const bool again = runs_layers_again(recompute);
  only_for(offload > 0, again && kind != BlockKind::kNone, path + ".offload",
           "recompute block and full");
  only_for(edge_ranges > 1, kind == BlockKind::kGnn, path + ".edge_ranges", "gnn");
  only_for(edge_ranges > 1, again, path + ".edge_ranges", "recompute block and full");
  only_for(qk_norm_eps.has_value(), has_heads(kind), path + ".qk_norm_eps",
           "graph_transformer and transformer");
  only_for(trainable.has_value(), !transformer && kind != BlockKind::kPointWise,
           path + ".trainable", "parts that work along edges");
}

double BlockOptions::hidden_ratio() const {
  if (mlp_hidden_ratio > 0.0) return mlp_hidden_ratio;
  return kind == BlockKind::kGnn ? 1.0 : 4.0;
}

void DecoderOptions::bind(config::Binder& b) {
  BlockOptions::bind(b);
  b.text_list("target_features", target_features,
              {"what the decoder knows of its nodes, side by side: encoded_data, coordinates, "
               "forcings, prognostics, trainable_parameters"});
  b.boolean("zero_extractor", zero_extractor, {"the last linear starts at zero"});
  b.read_by({"graph_transformer", "point_wise"});
}

void DecoderOptions::validate(const std::string& path) const {
  BlockOptions::validate(path);
  features(path);
  only_for(zero_extractor, kind == BlockKind::kGraphTransformer || kind == BlockKind::kPointWise,
           path + ".zero_extractor", "graph_transformer and point_wise");
}

std::vector<TargetFeature> DecoderOptions::features(const std::string& path) const {
  std::vector<TargetFeature> list;
  for (const std::string& name : target_features) {
    bool known = false;
    for (const auto& [feature, text] : EnumNames<TargetFeature>::table) {
      if (name != text) continue;
      list.push_back(feature);
      known = true;
    }
    if (!known) {
      throw ConfigError(path + ".target_features", concat("has no '", name, "'"),
                        nearest_names(name, enum_names<TargetFeature>()));
    }
  }
  if (list.empty()) throw ConfigError(path + ".target_features", "is empty");
  return list;
}

void TrainableOptions::bind(config::Binder& b) {
  b.integer("data", data, kTrainableWidth, {"learnt features per data node"});
  b.integer("hidden", hidden, kTrainableWidth, {"learnt features per hidden node"});
  b.integer("data_to_hidden", data_to_hidden, kTrainableWidth,
            {"learnt features per encoder edge"});
  b.integer("hidden_to_hidden", hidden_to_hidden, kTrainableWidth,
            {"learnt features per processor edge"});
  b.integer("hidden_to_data", hidden_to_data, kTrainableWidth,
            {"learnt features per decoder edge"});
  config::integer_map(b, "nodes", nodes, kTrainableWidth,
                      {"learnt features per node of single datasets or hidden meshes, by name, in "
                       "place of data and hidden"});
}

int64_t TrainableOptions::of_nodes(const std::string& name, int64_t otherwise) const {
  const auto found = nodes.find(name);
  return found == nodes.end() ? otherwise : found->second;
}

void HierarchyOptions::bind(config::Binder& b) {
  b.text_list("meshes", meshes, {"hidden node sets of the graph, fine to coarse; empty: one mesh"});
  b.boolean("level_processing", level_processing,
            {"processors on the finer meshes too, on the way down and on the way up"});
  b.integer("level_layers", level_layers, {.min = 1, .max = 1024}, {"layers of these processors"});
  b.section("upscale", upscale, {"from a mesh to the next coarser one"});
  b.section("downscale", downscale, {"from a mesh to the next finer one"});
  b.integer("upscale_trainable", upscale_trainable, kTrainableWidth,
            {"learnt features per upscale edge"});
  b.integer("downscale_trainable", downscale_trainable, kTrainableWidth,
            {"learnt features per downscale edge"});
}

void HierarchyOptions::validate(const std::string& path) const {
  if (meshes.size() == 1) throw ConfigError(path + ".meshes", "needs two meshes or more, or none");
  for (auto mesh = meshes.begin(); mesh != meshes.end(); ++mesh) {
    if (std::find(meshes.begin(), mesh, *mesh) != mesh)
      throw ConfigError(path + ".meshes", concat("names '", *mesh, "' twice"));
  }
  for (const auto& [mapper, name] : {std::pair{&upscale, ".upscale"}, {&downscale, ".downscale"}}) {
    check_mapper(*mapper, path + name);
    if (mapper->kind == BlockKind::kPointWise) {
      throw ConfigError(concat(path, name, ".kind"),
                        "point_wise goes from nodes to the same ones, not to another mesh");
    }
  }
}

void EnsembleOptions::bind(config::Binder& b) {
  b.integer("members", members, {.min = 1, .max = 1 << 16}, {"forecasts made of every sample"});
  b.choice("noise", noise,
           {"none, or conditioning: noise shifts and scales the processor's norms"});
  b.integer("noise_channels", noise_channels, {.min = 1, .max = 1 << 12},
            {"noise per hidden node"});
  b.integer("noise_hidden", noise_hidden, {.min = 1, .max = 1 << 16},
            {"hidden width of the MLP on the noise"});
  b.number("noise_std", noise_std, {.min = 0.0}, {"standard deviation of the noise"});
  b.choice("noise_activation", noise_activation, {"activation of the MLP on the noise"});
  b.text("noise_nodes", noise_nodes,
         {"nodes of the graph that noise is drawn on, brought to the hidden nodes along the edges "
          "between them; empty: the hidden nodes"});
  b.text("noise_weights", noise_weights,
         {"with noise_nodes: the attribute of these edges that weighs the noise; empty: all "
          "edges count alike"});
  b.text("noise_matrix", noise_matrix,
         {"a file with the matrix from where noise is drawn to the hidden nodes, in place of "
          "noise_nodes: of scipy.sparse.save_npz, or .safetensors with index (2, M), value (M) "
          "and shape (2)"},
         config::TextKind::kPath);
  b.boolean("noise_normalised", noise_normalised,
            {"with noise_nodes or noise_matrix: divide the weights at each hidden node by their "
             "sum"});
}

void EnsembleOptions::validate(const std::string& path) const {
  if (members > 1 && noise == NoiseKind::kNone) {
    throw ConfigError(path + ".members", "without noise all members would be the same",
                      "set noise to \"conditioning\"");
  }
  if (!noise_nodes.empty() && !noise_matrix.empty()) {
    throw ConfigError(path + ".noise_matrix", "and noise_nodes are both given",
                      "leave one of them out");
  }
  const bool is_brought = !noise_nodes.empty() || !noise_matrix.empty();
  if (is_brought && noise == NoiseKind::kNone) {
    throw ConfigError(path + (noise_nodes.empty() ? ".noise_matrix" : ".noise_nodes"),
                      "needs noise", "set noise to \"conditioning\"");
  }
  only_for(!noise_weights.empty(), !noise_nodes.empty(), path + ".noise_weights",
           "noise that is drawn on noise_nodes");
  only_for(noise_normalised, is_brought, path + ".noise_normalised",
           "noise that is drawn on noise_nodes, or brought by noise_matrix");
}

void ModelOptions::bind(config::Binder& b) {
  b.integer("channels", channels, {.min = 1, .max = 1 << 16}, {"width of node and edge states"});
  b.integer("layers", layers, {.min = 1, .max = 1024}, {"layers of the processor"});
  b.section("encoder", encoder, {"from the data grid to the hidden mesh"});
  b.section("processor", processor, {"on the hidden mesh"});
  b.section("decoder", decoder, {"from the hidden mesh to the data grid"});
  b.map("encoders", encoders,
        {"encoders of several datasets that differ from model.encoder, by their names "
         "(data.datasets.<name>.encoder, else the dataset's name); what they leave out has its "
         "default"});
  b.map("decoders", decoders,
        {"decoders of several datasets that differ from model.decoder, by their names "
         "(data.datasets.<name>.decoder, else the dataset's name)"});
  b.section("trainable_parameters", trainable_parameters, {"features learnt per node and edge"});
  b.boolean("latent_skip", latent_skip, {"add the encoder's result to the processor's"});
  b.section("residual", residual, {"what is added to prognostic outputs"}, "kind");
  b.map("residuals", residuals,
        {"residuals of several datasets that differ from model.residual, by dataset"});
  b.text("output_mask", output_mask,
         {"attribute of the data nodes that is not 0 where the network decides (limited areas: "
          "cutout_mask): outside, forecasts keep the truth of prognostic variables between their "
          "steps, and neither loss nor scores count; empty: it decides everywhere"});
  b.text_map("output_masks", output_masks,
             {"attributes of several datasets that differ from model.output_mask, by dataset; an "
              "empty text: it decides everywhere"});
  b.list("bounding", bounding, {"limits on outputs, applied in order in normalised space"});
  b.text_list("edge_attributes", edge_attributes, {"edge attributes of the graph that are used"});
  b.number("layer_norm_eps", layer_norm_eps, {.min = 0.0, .max = 1.0},
           {"added to the variance in every LayerNorm"});
  b.choice("kernels", kernels,
           {"code between matrix products: LibTorch's operators (reference), own kernels that read "
            "and write each row once (fused), or those where there are any on a GPU, and in fp32 "
            "on a CPU (auto)"});
  b.choice("aggregation", aggregation,
           {"how the latents of several datasets become one: their sum, their mean, or all side by "
            "side (concat; the processor is then as wide as all encoders together)"});
  b.number(
      "memory_budget", memory_budget, {.min = 0.0},
      {"memory that a rank may take: so much is run again in the backward pass, beyond what "
       "`recompute` and `chunks` ask for, that a plan of the step (--dry-run) fits into it; 0: "
       "no limit",
       "GiB"});
  b.section("hierarchy", hierarchy, {"several meshes instead of one"});
  b.section("ensemble", ensemble, {"several members instead of one"});
}

void check_stages(const BlockOptions& processor, int64_t stages) {
  if (stages == 1 || processor.kind != BlockKind::kNone) return;
  throw ConfigError(
      "parallel.pipeline",
      concat("is ", stages, ", but a processor of kind \"none\" has no layers to share"),
      "use 1, and parallel.model or parallel.data for more ranks");
}

void check_slices(const BlockOptions& processor, int64_t ranks) {
  if (ranks == 1) return;
  const auto is = [&](BlockKind kind) { return processor.kind == kind; };
  if (is(BlockKind::kPointWise) || is(BlockKind::kNone)) {
    throw ConfigError(
        "parallel.tensor",
        concat("is ", ranks, ", but a processor of kind \"", enum_name(processor.kind),
               "\" cannot be sliced: it has no layers, or norms of the channels that would be"),
        "use 1, and parallel.model or parallel.data for more ranks");
  }
  if (!is(BlockKind::kGnn) && processor.heads < ranks) {
    throw ConfigError(
        "parallel.tensor",
        concat("is ", ranks, ", but model.processor has ", processor.heads, " attention heads"),
        "every rank needs one head at least");
  }
}

std::vector<std::string> ModelOptions::meshes() const {
  if (encoder.kind == BlockKind::kPointWise) return {"data"};
  return hierarchy.meshes.empty() ? std::vector<std::string>{"hidden"} : hierarchy.meshes;
}

int64_t ModelOptions::num_layers() const {
  const auto meshes = std::max<size_t>(1, hierarchy.meshes.size());
  return layers + 2 * static_cast<int64_t>(meshes - 1) * hierarchy.layers();
}

bool ModelOptions::uses(BlockKind kind) const {
  const bool in_levels = !hierarchy.meshes.empty() &&
                         (hierarchy.upscale.kind == kind || hierarchy.downscale.kind == kind);
  const auto any = [kind](const auto& named) {
    return std::any_of(named.begin(), named.end(),
                       [kind](const auto& part) { return part.second.kind == kind; });
  };
  return encoder.kind == kind || processor.kind == kind || decoder.kind == kind || in_levels ||
         any(encoders) || any(decoders);
}

namespace {

void check_offload(const ModelOptions& model, const std::string& path) {
  const BlockOptions& processor = model.processor;
  if (processor.offload == 0) return;
  const int64_t groups =
      step_groups(model.layers, {processor.recompute, processor.chunks, 0}).count;
  if (processor.offload < groups) return;
  throw ConfigError(
      path + ".processor.offload",
      concat("is ", processor.offload, ", the processor's ", model.layers, " layers run again in ",
             groups, " pieces and the last keeps its inputs on the device"),
      concat("at most ", groups - 1, "; processor.chunks makes more pieces"));
}

void check_hierarchy(const ModelOptions& model, const PartPaths& paths) {
  const HierarchyOptions& hierarchy = model.hierarchy;
  const std::string path = paths.model + ".hierarchy";
  check_heads(hierarchy.upscale, 2 * model.channels, path + ".upscale");
  check_heads(hierarchy.downscale, 2 * model.channels, path + ".downscale");
  if (model.encoder.channels + model.processor.channels + model.decoder.channels +
          hierarchy.upscale.channels + hierarchy.downscale.channels >
      0) {
    throw ConfigError(path, "widths follow from model.channels",
                      "leave the channels of all parts out");
  }
  if (model.encoder.kind == BlockKind::kPointWise)
    throw ConfigError(path + ".meshes", "a point_wise encoder stays on the data grid");
  if (hierarchy.downscale.kind == BlockKind::kGnn && hierarchy.upscale.kind != BlockKind::kGnn)
    throw ConfigError(path + ".downscale.kind", "gnn needs an upscale of kind gnn");
}

void check_gnn_decoder(const ModelOptions& model, const std::string& path) {
  if (model.encoder.kind != BlockKind::kGnn) {
    throw ConfigError(path + ".kind", "gnn needs an encoder of kind gnn",
                      "its targets are the encoder's data rows, which the others do not embed");
  }
  if (model.decoder.features(path) != std::vector{TargetFeature::kEncodedData})
    throw ConfigError(path + ".target_features", "of a gnn can only be encoded_data");
  const int64_t width = model.width(model.processor);
  if (model.width(model.decoder) != width) {
    throw ConfigError(path + ".channels",
                      concat("of a gnn must be those of the processor, ", width));
  }
}

void check_noise(const ModelOptions& model, const std::string& path) {
  if (model.ensemble.noise == NoiseKind::kNone) return;
  if (!has_heads(model.processor.kind)) {
    throw ConfigError(
        path, "needs a processor with norms that take it: graph_transformer or transformer");
  }
  if (!model.hierarchy.meshes.empty())
    throw ConfigError(path, "cannot be had together with a hierarchy");
}

}  // namespace

void ModelOptions::validate(const std::string& path) const {
  validate_parts({path, path + ".encoder", path + ".decoder", path + ".residual"});
}

void ModelOptions::validate_parts(const PartPaths& paths) const {
  const auto at = [&](const char* part) { return concat(paths.model, ".", part); };
  check_offload(*this, paths.model);
  check_mapper(encoder, paths.encoder);
  check_mapper(decoder, paths.decoder);
  only_for(processor.rotary, false, at("processor.rotary"), "mappers");
  check_heads(encoder, width(encoder), paths.encoder);
  check_heads(processor, width(processor), at("processor"));
  check_heads(decoder, width(decoder), paths.decoder);
  // Latents side by side are as wide as all encoders together, which only the plan knows.
  if (!hierarchy.meshes.empty()) {
    check_hierarchy(*this, paths);
  } else if (width(encoder) != width(processor) && aggregation != Aggregation::kConcat) {
    throw ConfigError(at("processor.channels"),
                      concat("is ", width(processor), ", the encoder gives ", width(encoder)));
  }
  if (decoder.kind == BlockKind::kGnn) check_gnn_decoder(*this, paths.decoder);
  check_noise(*this, at("ensemble.noise"));
}

}  // namespace aifs::model

// SPDX-License-Identifier: Apache-2.0
// Section "model": the network.
#include <algorithm>
#include <map>

#include "anemoi/import_block.h"
#include "anemoi/part_sections.h"
#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

// ---------------------------------------------------------------------------- class of network ---

struct NetworkClass {
  bool is_hierarchy = false, is_ensemble = false;
};

NetworkClass import_class(Translation& t, const Place& model, const Section& out) {
  const Place network = model["model"];
  if (!network) throw ConfigError(network.path(), "is missing: which network is it?");
  const std::string name = network.class_name();
  NetworkClass type;
  type.is_hierarchy = name == "AnemoiModelEncProcDecHierarchical";
  type.is_ensemble = name == "AnemoiEnsModelEncProcDec";
  if (!type.is_hierarchy && !type.is_ensemble && name != "AnemoiModelEncProcDec") {
    (network["_target_"] ? network["_target_"] : network)
        .not_honoured("there is no such network; this is trained as AnemoiModelEncProcDec");
  }
  network["transport"].not_honoured("there are no diffusion and transport models");
  const Place hidden = network["hidden_nodes_name"];
  const Place named = hidden ? hidden : t.root["graph"]["hidden"];  // the latter in 2025
  if (named) t.meshes = named.texts();
  if (t.meshes.empty()) throw ConfigError(named.path(), "names no hidden nodes");
  if (!type.is_hierarchy) t.meshes.resize(1);
  const Place skip = network["latent_skip"];
  out.set("latent_skip", skip.boolean(true), skip);
  return type;
}

// --------------------------------------------------------------------------------------- parts ---

struct Mapper {
  std::string name;
  Place entry, block;
};

// The mapper of a dataset: "encoder", or one of "encoders" in releases of late 2026.
Mapper mapper_of(const Place& model, const char* one, const char* list,
                 const std::string& dataset) {
  const Place all = model[concat(one, "s")];
  if (!all) return {"", model[one], model[one]};
  for (const auto& [name, entry] : all.members()) {
    if (contains(entry[list].texts(), dataset)) {
      entry["dataset_fusing_strategy"].expect("not_supported", "datasets have encoders each");
      return {name, entry, entry["mapper"]};
    }
  }
  throw ConfigError(all.path(), concat("has none for the dataset '", dataset, "'"));
}

PartContext context_of(Part part, const char* key, const Section& model, int64_t channels,
                       const NetworkClass& type) {
  return {.part = part,
          .out = model[key],
          .model = model,
          .channels = channels,
          .has_own_channels = !type.is_hierarchy,
          .is_conditional = type.is_ensemble && part == Part::kProcessor};
}

void import_decoder_only(const Mapper& decoder, bool is_hierarchy, const Section& out) {
  const Place zero = decoder.block["initialise_data_extractor_zero"];
  if (zero && zero.boolean()) out.set("zero_extractor", true, zero);
  const Place features = decoder.entry["target_node_features"];
  if (!features) return;
  if (is_hierarchy) {
    features.no_effect("of a hierarchy it is encoded_data, in Anemoi, too");
  } else {
    out.set("target_features", features.texts(), features);
  }
}

// Numbers of learnt features by edge set.
Place edge_widths(const Place& model) {
  return model.any_of({"edge_trainable_parameters", "trainable_parameters"});
}

// Edges of a mapper have learnt features: those of the part, else those of the model.
void import_trainable(const Place& block, const Place& widths, const char* key,
                      const Section& trainable, const char* ours) {
  const Place own = block["trainable_size"];
  const Place place = own ? own : widths[key];
  widths[key].mark();
  trainable.set(ours, place.integer(0), place);
}

// The mappers of the first dataset, and what all of them are made with.
struct FirstMappers {
  Mapper encoder, decoder;
  int64_t channels;
  const NetworkClass& type;
};

bool alike(const Place& a, const Place& b) {
  return a.path() == b.path() || a.unseen_whole() == b.unseen_whole();
}

// The encoder or decoder of one of several datasets: one by its name if it is another than that of
// the first.
void import_named_mapper(const Mapper& own, const Mapper& first, const Place& widths,
                         const Section& out, const PartContext& context) {
  const Place features = own.entry["target_node_features"];
  if (alike(own.block, first.block) && alike(features, first.entry["target_node_features"])) {
    const char* why = "is another one";
    own.block.expect_like(first.block, why);
    features.expect_like(first.entry["target_node_features"], why);
    return;
  }
  const bool is_encoder = context.part == Part::kEncoder;
  PartContext named = context;
  named.out = out[is_encoder ? "encoders" : "decoders"][own.name];
  import_block(own.block, named);
  if (!is_encoder) import_decoder_only(own, !context.has_own_channels, named.out);
  const Json* kind = named.out.find("kind");
  if (!kind || (*kind != "gnn" && *kind != "graph_transformer")) {
    own.block["trainable_size"].no_effect("is for parts that work along edges");
    return;
  }
  import_trainable(own.block, widths, is_encoder ? "data2hidden" : "hidden2data", named.out,
                   "trainable");
}

void import_named_mappers(Translation& t, const Place& model, const Section& out,
                          const FirstMappers& first) {
  const Place widths = edge_widths(model);
  std::vector<std::string> decoders;
  for (const std::string& name : t.datasets) {
    const Mapper encoder = mapper_of(model, "encoder", "source_datasets", name);
    const Mapper decoder = mapper_of(model, "decoder", "target_datasets", name);
    import_named_mapper(encoder, first.encoder, widths, out,
                        context_of(Part::kEncoder, "encoder", out, first.channels, first.type));
    import_named_mapper(decoder, first.decoder, widths, out,
                        context_of(Part::kDecoder, "decoder", out, first.channels, first.type));
    const Section dataset = t.section("data")["datasets"][name];
    if (!encoder.name.empty()) dataset.set("encoder", encoder.name, encoder.entry);
    if (decoder.name.empty()) continue;
    if (contains(decoders, decoder.name)) {
      decoder.entry["target_datasets"].not_honoured("each dataset has a decoder of its own");
    } else {
      dataset.set("decoder", decoder.name, decoder.entry);
    }
    decoders.push_back(decoder.name);
  }
}

void import_mappers(Translation& t, const Place& model, const Section& out, int64_t channels,
                    const NetworkClass& type) {
  const Place widths = edge_widths(model);
  const Section trainable = out["trainable_parameters"];
  const Mapper encoder = mapper_of(model, "encoder", "source_datasets", t.datasets[0]);
  const Mapper decoder = mapper_of(model, "decoder", "target_datasets", t.datasets[0]);
  import_block(encoder.block, context_of(Part::kEncoder, "encoder", out, channels, type));
  import_block(decoder.block, context_of(Part::kDecoder, "decoder", out, channels, type));
  import_decoder_only(decoder, type.is_hierarchy, out["decoder"]);
  import_trainable(encoder.block, widths, "data2hidden", trainable, "data_to_hidden");
  import_trainable(decoder.block, widths, "hidden2data", trainable, "hidden_to_data");
  if (t.has_several_datasets() || t.keeps_names)
    import_named_mappers(t, model, out, {encoder, decoder, channels, type});
}

void import_node_trainables(const Translation& t, const Place& model, const Section& out) {
  const Place widths = model.any_of({"node_trainable_parameters", "trainable_parameters"});
  const Section trainable = out["trainable_parameters"];
  const auto of_nodes = [&](const std::string& name, const char* usual) {
    return widths[name] ? widths[name] : widths[usual];
  };
  const auto add = [&](const std::vector<std::string>& names, const char* usual) {
    const Place first = of_nodes(names[0], usual);
    trainable.set(usual, first.integer(0), first);
    for (const std::string& name : names) {
      const Place own = of_nodes(name, usual);
      if (own.integer(0) != first.integer(0)) trainable["nodes"].set(name, own.integer(0), own);
    }
    widths[usual].leave("there are no nodes of this name");
  };
  add(t.datasets, "data");
  add(t.meshes, "hidden");
}

// --------------------------------------------------------------------------------- hierarchies ---

void import_hierarchy(const Translation& t, const Place& model, const Section& out,
                      int64_t channels, const NetworkClass& type) {
  const char* other = "is for a hierarchy of meshes";
  const Place process = model["enable_hierarchical_level_processing"],
              layers = model["level_process_num_layers"];
  if (!type.is_hierarchy) {
    for (const char* key : {"enable_hierarchical_level_processing", "level_process_num_layers",
                            "upscale_mapper", "downscale_mapper"})
      model[key].no_effect(other);
    return;
  }
  const Section hierarchy = out["hierarchy"];
  hierarchy.set("meshes", t.meshes, model["model"]);
  hierarchy.set("level_processing", process.boolean(false), process);
  hierarchy.set("level_layers", layers.integer(1), layers);
  const Place widths = edge_widths(model);
  // Releases without mappers of their own for this take the classes of encoder and decoder.
  const Place up = model.any_of({"upscale_mapper", "encoder"}),
              down = model.any_of({"downscale_mapper", "decoder"});
  const auto add = [&](const Place& block, Part part, const char* key, const char* width) {
    PartContext context = context_of(part, key, hierarchy, channels, type);
    context.model = out;
    import_block(block, context);
    import_trainable(block, widths, part == Part::kEncoder ? "upscale" : "downscale", hierarchy,
                     width);
  };
  add(up, Part::kEncoder, "upscale", "upscale_trainable");
  add(down, Part::kDecoder, "downscale", "downscale_trainable");
  model["downscale_mapper"]["initialise_data_extractor_zero"].expect(
      false, "only a decoder's last linear can start at zero");
}

// ----------------------------------------------------------------------------------- ensembles ---

// Noise that is drawn on other nodes than the hidden ones.
void import_noise_nodes(const Translation& t, const Place& injector, const Section& ensemble) {
  const Place matrix = injector["noise_matrix"], edges = injector["noise_edges_name"],
              weights = injector["edge_weight_attribute"],
              normalises = injector["row_normalize_noise_matrix"];
  const std::vector<std::string> ends = edges.texts();
  if (matrix) ensemble.set("noise_matrix", matrix.text(), matrix);
  if (edges && matrix) {
    edges.not_honoured("noise_matrix is given, too");
  } else if (edges && (ends.size() != 3 || ends[2] != t.meshes[0])) {
    edges.not_honoured("noise is brought to the hidden nodes");
  } else if (edges) {
    ensemble.set("noise_nodes", ends[0], edges);
    if (weights) ensemble.set("noise_weights", weights.text(), weights);
  }
  const bool is_brought = matrix || ensemble.find("noise_nodes");
  if (!ensemble.find("noise_nodes")) weights.no_effect("is for noise along edges");
  if (is_brought && normalises) {
    ensemble.set("noise_normalised", normalises.boolean(), normalises);
  } else {
    normalises.no_effect("is for noise that is drawn elsewhere");
  }
}

void import_noise(const Translation& t, const Place& injector, const Section& ensemble) {
  const std::string name = injector.class_name();
  if (name != "NoiseConditioning") {
    injector.not_honoured("noise shifts and scales the processor's norms (NoiseConditioning)");
    return;
  }
  const auto put = [&](const char* ours, const char* theirs, const Json& value) {
    ensemble.set(ours, value, injector[theirs]);
  };
  put("noise_std", "noise_std", injector["noise_std"].number(1.0));
  put("noise_channels", "noise_channels_dim", injector["noise_channels_dim"].integer(4));
  put("noise_hidden", "noise_mlp_hidden_dim", injector["noise_mlp_hidden_dim"].integer(32));
  injector["inject_noise"].expect(true, "there is noise");
  import_noise_nodes(t, injector, ensemble);
  injector["autocast"].no_effect("follows from train.precision");
  if (const Place activation = injector["layer_kernels"]["Activation"]) {
    const std::string known = import_activation(activation, activation.class_name());
    if (!known.empty()) ensemble.set("noise_activation", known, activation);
  }
}

void import_ensemble(const Translation& t, const Place& model, const Section& out,
                     const NetworkClass& type) {
  const Place members = t.root["training"]["ensemble_size_per_device"];
  if (!type.is_ensemble) {
    model["noise_injector"].no_effect("is for ensembles");
    members.expect(1, "the network is not that of an ensemble");
    return;
  }
  const Section ensemble = out["ensemble"];
  const int64_t groups = t.groups_per_ensemble();
  ensemble.set("members", checked_product(members.integer(1), groups, members), members);
  if (groups > 1) {
    t.hardware()["num_gpus_per_ensemble"].note(
        "all members of a sample are made by the ranks of one model, which need memory for them");
  }
  ensemble.set("noise", "conditioning", model["noise_injector"]);
  import_noise(t, model["noise_injector"], ensemble);
  model["condition_on_residual"].expect(false, "noise depends on nothing");
}

// ---------------------------------------------------------------------- residual and boundings ---

void import_truncation(const Place& residual, const Section& out) {
  const Place config = residual["truncation_config"];
  const auto first = [&](const char* key) { return config[key] ? config[key] : residual[key]; };
  const Place up = first("truncation_up_file_path"), down = first("truncation_down_file_path");
  out.set("kind", "truncated", residual["_target_"]);
  if (up || down) {
    out.set("truncation_up", up.text(), up);
    out.set("truncation_down", down.text(), down);
  } else if (config["grid"]) {
    const Place number = config["num_nearest_neighbours"], sigma = config["sigma"];
    out.set("truncation_grid", config["grid"].text(), config["grid"]);
    out.set("truncation_neighbours", number.integer(3), number);
    out.set("truncation_sigma", sigma.number(1.0), sigma);
  } else {
    residual.not_honoured("its coarse grid must be named, or the files of both matrices");
    out.set("kind", "skip", residual);
  }
  for (const char* key : {"autocast", "sparse_projector_num_chunks", "data_node_name"})
    residual[key].no_effect("is up to the program");
  for (const char* key : {"row_normalize", "src_node_weight_attribute"})
    residual[key].expect(key == std::string("row_normalize") ? Json(false) : Json(),
                         "matrices are used as they are");
  residual["edge_weight_attribute"].no_effect("is gauss_weight");
}

void import_residual(const Place& residual, const Section& out) {
  const std::string name = residual.class_name();
  if (name.empty() || name == "SkipConnection") {
    out.set("kind", "skip", residual["_target_"]);
    if (residual["step"]) out.set("step", residual["step"].integer(), residual["step"]);
  } else if (name == "NoConnection" || name == "NoSkipConnection") {
    out.set("kind", "none", residual["_target_"]);
  } else if (name == "TruncatedConnection") {
    import_truncation(residual, out);
  } else if (name == "ScalarOrnsteinConnection" || name == "SpectralOrnsteinConnection") {
    const bool scalar = name.starts_with("Scalar");
    out.set("kind", scalar ? "scalar_ornstein" : "spectral_ornstein", residual["_target_"]);
    static const std::map<std::string, std::string> keys{{"theta_init", "theta_init"},
                                                         {"theta_buff", "theta_buffer"},
                                                         {"theta_train", "theta_train"},
                                                         {"regressors", "regressors"},
                                                         {"lmax", "lmax"},
                                                         {"grid", "grid"},
                                                         {"use_mean", "use_mean"},
                                                         {"truncate", "truncate"},
                                                         {"anti_aliasing", "anti_aliasing"}};
    for (const auto& [theirs, ours] : keys) {
      if (residual[theirs]) out.set(ours, residual[theirs].whole(), residual[theirs]);
    }
    residual["skip_truncate_variables"].no_effect("changes nothing in Anemoi either");
  } else {
    residual.not_honoured(concat("there is no residual of class ", name));
  }
}

// The residuals of all datasets: those that differ from the first dataset's by name.
void import_residuals(const Translation& t, const Place& place, const Section& out) {
  const Place first = t.of_dataset(place, t.datasets[0]);
  for (const std::string& name : t.datasets) {
    const Place own = t.of_dataset(place, name);
    if (own.path() == first.path()) continue;
    if (!own || alike(own, first)) {
      own.expect_like(first, "there is none for this dataset");
    } else {
      import_residual(own, out["residuals"][name]);
    }
  }
  import_residual(first, out["residual"]);
  t.leave_other_datasets(place);
}

// Adds the limits of a list; of one dataset if it is named.
void add_bounds(const Place& list, const std::string& dataset, Json& all) {
  static const std::map<std::string, std::string> kinds{
      {"ReluBounding", "relu"},
      {"LeakyReluBounding", "leaky_relu"},
      {"HardtanhBounding", "hardtanh"},
      {"LeakyHardtanhBounding", "leaky_hardtanh"},
      {"FractionBounding", "fraction"},
      {"LeakyFractionBounding", "leaky_fraction"},
      {"NormalizedReluBounding", "normalized_relu"},
      {"NormalizedLeakyReluBounding", "normalized_leaky_relu"}};
  for (const Place& bounding : list.elements()) {
    const auto found = kinds.find(bounding.class_name());
    if (found == kinds.end()) {
      bounding.not_honoured("there is no such limit");
      continue;
    }
    Json one{{"kind", found->second}, {"variables", bounding["variables"].texts()}};
    if (found->second.starts_with("normalized")) {
      one["thresholds"] = bounding["min_val"].numbers();
      one["normalizer"] = bounding["normalizer"].texts();
    } else {
      for (const char* key : {"min_val", "max_val"})
        if (bounding[key]) one[key] = bounding[key].number();
    }
    if (bounding["total_var"]) one["total_var"] = bounding["total_var"].text();
    if (!dataset.empty()) one["datasets"] = {dataset};
    all.push_back(one);
  }
}

// The limits of all datasets: of each its own, unless they have the same.
void import_bounding(const Translation& t, const Place& place, const Section& out) {
  const Place first = t.of_dataset(place, t.datasets[0]);
  const auto is_like_first = [&](const std::string& name) {
    return alike(t.of_dataset(place, name), first);
  };
  Json all = Json::array();
  if (std::all_of(t.datasets.begin(), t.datasets.end(), is_like_first)) {
    add_bounds(first, "", all);
    for (const std::string& name : t.datasets)
      t.of_dataset(place, name).expect_like(first, "there are others");
  } else {
    for (const std::string& name : t.datasets) {
      const Place own = t.of_dataset(place, name);
      if (!own) own.expect_like(first, "there are none for this dataset");
      add_bounds(own, name, all);
    }
  }
  out.set("bounding", all, first);
  t.leave_other_datasets(place);
}

void import_aggregation(const Translation& t, const Place& aggregator, const Section& out) {
  static const std::map<std::string, std::string> kinds{
      {"SumAggregator", "sum"}, {"MeanAggregator", "mean"}, {"ConcatAggregator", "concat"}};
  const auto found = kinds.find(aggregator.class_name());
  if (!t.has_several_datasets()) {
    aggregator.no_effect("there is one dataset");
  } else if (aggregator && found == kinds.end()) {
    aggregator.not_honoured("latents are added, averaged or put side by side");
  } else if (aggregator) {
    out.set("aggregation", found->second, aggregator);
  }
}

void pass_over(const Place& model) {
  model["keep_batch_sharded"].no_effect("what ranks share is up to section parallel");
  for (const char* key : {"compile", "recompile_limit"})
    model[key].no_effect("nothing is compiled at run time");
  for (const char* key : {"activation", "cpu_offload", "layer_kernels"})
    model[key].no_effect("is meant for references");
  model["sparse_projector"].no_effect("how matrices are applied is up to the program");
  model["attributes"]["nodes"].expect(Json::array(), "nodes have coordinates and learnt features");
}

// The attribute that a mask is made of; empty: there is none.
std::string mask_attribute(const Place& mask) {
  const std::string name = mask ? mask.class_name() : "";
  if (name.empty() || name == "NoOutputMask") return "";
  if (name != "Boolean1DMask") {
    mask.not_honoured("masks are attributes of nodes (Boolean1DMask)");
    return "";
  }
  mask["nodes_name"].no_effect("it is of the data nodes");
  return mask.any_of({"attribute_name", "mask_attr_name"}).text();
}

void import_output_masks(Translation& t, const Place& model, const Section& out) {
  const Place masks = model["output_mask"];
  const Place first = t.of_dataset(masks, t.datasets[0]);
  const std::string common = mask_attribute(first);
  if (!common.empty()) out.set("output_mask", common, first);
  std::vector<std::string> all{common};
  for (size_t d = 1; d < t.datasets.size(); ++d) {
    const Place own = t.of_dataset(masks, t.datasets[d]);
    all.push_back(mask_attribute(own));
    if (all.back() != common) out["output_masks"].set(t.datasets[d], all.back(), own);
  }
  for (const std::string& attribute : all)
    if (!attribute.empty()) t.node_attributes.push_back(attribute);
  t.leave_other_datasets(masks);
}

}  // namespace

Imported import_bounding_section(const Json& list) {
  const Source source(Json{{"bounding", list}});
  Imported imported;
  Json all = Json::array();
  add_bounds(source.root()["bounding"], "", all);
  Section(imported.target, {"model"}).set("bounding", all);
  imported.remarks = source.remarks();
  return imported;
}

Imported import_model_section(const Json& sections, const std::vector<std::string>& datasets) {
  const Source source(sections);
  Imported imported;
  Translation t{source.root(), imported.target, "model"};
  t.datasets = datasets;
  t.is_whole = false;
  t.keeps_names = true;
  import_model(t);
  imported.remarks = source.remarks();
  return imported;
}

void import_model(Translation& t) {
  const Place model = t.root["model"];
  const Section out = t.section("model");
  const NetworkClass type = import_class(t, model, out);
  const int64_t channels = model["num_channels"].integer();
  out.set("channels", channels, model["num_channels"]);
  const Place edges = model["attributes"]["edges"];
  if (edges) out.set("edge_attributes", edges.texts(), edges);
  import_mappers(t, model, out, channels, type);
  const Place processor = model["processor"];
  import_block(processor, context_of(Part::kProcessor, "processor", out, channels, type));
  if (processor["num_layers"])
    out.set("layers", processor["num_layers"].integer(), processor["num_layers"]);
  const Place widths = edge_widths(model);
  import_trainable(processor, widths, "hidden2hidden", out["trainable_parameters"],
                   "hidden_to_hidden");
  import_node_trainables(t, model, out);
  import_hierarchy(t, model, out, channels, type);
  import_ensemble(t, model, out, type);
  import_residuals(t, model["residual"], out);
  import_bounding(t, model["bounding"], out);
  import_aggregation(t, model["latent_aggregator"], out);
  import_output_masks(t, model, out);
  pass_over(model);
}

}  // namespace aifs::anemoi

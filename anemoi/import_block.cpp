// SPDX-License-Identifier: Apache-2.0
#include "anemoi/import_block.h"

#include <algorithm>
#include <map>

#include "core/check.h"

namespace aifs::anemoi {

namespace {

// The family of a class, or "".
std::string block_kind(const std::string& name) {
  if (name == "NoOpProcessor") return "none";
  static const std::vector<std::pair<std::string, std::string>> families{
      {"GNN", "gnn"},
      {"GraphTransformer", "graph_transformer"},
      {"Transformer", "transformer"},
      {"PointWise", "point_wise"}};
  for (const auto& [prefix, kind] : families) {
    if (!name.starts_with(prefix)) continue;
    for (const char* rest : {"ForwardMapper", "BackwardMapper", "Processor", "MLPProcessor"}) {
      if (name == prefix + rest) return kind;
    }
  }
  return "";
}

// Sets what all parts have in common, and refuses another value for a later part.
void set_common(const Section& out, const char* key, const Json& value, const Place& place) {
  const Json* before = out.find(key);
  if (!before) {
    out.set(key, value, place);
  } else if (*before != value) {
    place.not_honoured("is that of another part of the network for all of them");
  }
}

void import_norm(const Place& norm, const PartContext& context) {
  if (!norm) return;
  const std::string name = norm.class_name();
  const bool conditional = name == "ConditionalLayerNorm" && context.is_conditional;
  if (name != "LayerNorm" && name != "AutocastLayerNorm" && !conditional) {
    norm.not_honoured("norms are LayerNorms");
    return;
  }
  norm["normalized_shape"].no_effect("follows from the width");
  norm["condition_shape"].no_effect("follows from the noise");
  for (const char* key : {"zero_init", "w_one_bias_zero_init"})
    norm[key].expect(true, "the effect of noise begins at zero");
  norm["autocast"].no_effect("follows from train.precision");
}

constexpr double kUsualEps = 1e-5;  // torch's and ours

// The eps of the norms of a part, and of its queries and keys where these are normalised.
void import_eps(const Place& kernels, const PartContext& context) {
  const Place norm = kernels["LayerNorm"]["eps"], query = kernels["QueryNorm"]["eps"],
              key = kernels["KeyNorm"]["eps"];
  if (*context.out.find("kind") == "none") {
    for (const Place& eps : {norm, query, key})
      eps.no_effect("there are no layers");
    return;
  }
  const double own = norm.number(kUsualEps), of_queries = query.number(kUsualEps);
  if (own != kUsualEps) context.out.set("norm_eps", own, norm);
  const Json* normalises = context.out.find("qk_norm");
  if (!normalises || *normalises != true) {
    for (const Place& eps : {query, key})
      eps.no_effect("queries and keys are not normalised");
    return;
  }
  if (key.number(kUsualEps) != of_queries)
    key.not_honoured("is that of QueryNorm for queries and keys");
  if (of_queries != own) context.out.set("qk_norm_eps", of_queries, query);
}

void import_kernels(const Place& kernels, const PartContext& context) {
  import_eps(kernels, context);
  for (const auto& [key, kernel] : kernels.members()) {
    if (!kernel) continue;
    const std::string name = kernel.class_name();
    if (key == "Activation" && *context.out.find("kind") == "none") {
      kernel.no_effect("there are no layers");
    } else if (key == "Activation") {
      const std::string activation = import_activation(kernel, name);
      if (!activation.empty()) context.out.set("activation", activation, kernel);
    } else if (key == "Linear") {
      if (name != "Linear") kernel.not_honoured("linears are torch's");
    } else if (key == "LayerNorm") {
      import_norm(kernel, context);
    } else if (key == "QueryNorm" || key == "KeyNorm") {
      const bool usual = name == "AutocastLayerNorm" || name == "LayerNorm";
      if (!usual) kernel.not_honoured("queries and keys have LayerNorms");
      kernel["bias"].expect(false, "norms of queries and keys have no bias");
    } else {
      kernel.not_honoured("is no layer that can be exchanged");
    }
  }
}

void import_mlp(const Place& block, const std::string& kind, const Section& out) {
  if (kind == "none") {
    for (const char* key : {"mlp_extra_layers", "mlp_hidden_ratio", "mlp_implementation"})
      block[key].no_effect("there are no layers");
    return;
  }
  const auto put = [&](const char* key, const Json& value) { out.set(key, value, block[key]); };
  const Place extra = block["mlp_extra_layers"];
  if (kind == "gnn") {
    if (extra) put("mlp_extra_layers", extra.integer());
  } else {
    extra.no_effect("is for message passing");
  }
  if (block["mlp_hidden_ratio"]) put("mlp_hidden_ratio", block["mlp_hidden_ratio"].number());
  const Place implementation = block["mlp_implementation"];
  if (kind == "point_wise") {
    implementation.no_effect("has one form in point-wise parts");
  } else if (implementation) {
    put("mlp_implementation", implementation.text());
  }
}

void import_attention(const Place& block, const std::string& kind, const Section& out) {
  const bool has_heads = kind == "graph_transformer" || kind == "transformer";
  const char* other = "is for attention";
  if (!has_heads) {
    for (const char* key : {"num_heads", "attn_channels", "qk_norm"})
      block[key].no_effect(other);
  } else {
    const Place heads = block["num_heads"], width = block["attn_channels"], norm = block["qk_norm"];
    out.set("heads", heads.integer(16), heads);
    if (width) out.set("attention_channels", width.integer(), width);
    if (norm) out.set("qk_norm", norm.boolean(), norm);
  }
  const Place edge_mlp = block["edge_pre_mlp"];
  if (kind == "graph_transformer" && edge_mlp) {
    out.set("edge_pre_mlp", edge_mlp.boolean(), edge_mlp);
  } else {
    edge_mlp.no_effect("is for graph transformers");
  }
  block["graph_attention_backend"].no_effect("attention over edges has one form here");
  block["shard_strategy"].no_effect("how work is shared out is up to section parallel");
  block["dropout_p"].expect(0.0, "there is no dropout");
}

void import_window(const Place& block, const PartContext& context, const std::string& kind) {
  const char* keys[] = {"window_size", "attention_implementation", "softcap", "use_alibi_slopes",
                        "use_rotary_embeddings"};
  if (kind != "transformer") {
    for (const char* key : keys)
      block[key].no_effect("is for transformers");
    return;
  }
  const Section& out = context.out;
  const Place window = block["window_size"], attention = block["attention_implementation"];
  if (window) out.set("window", window.integer(), window);
  if (window && window.integer() == 0) window.not_honoured("0 means no window here");
  const std::string name = attention.text("flash_attention");
  const bool flash = name != "scaled_dot_product_attention";
  if (flash && name != "flash_attention")
    attention.not_honoured("is flash_attention or scaled_dot_product_attention");
  out.set("attention", flash ? "flash" : "sdpa", attention);
  const Place softcap = block["softcap"], alibi = block["use_alibi_slopes"];
  if (softcap) out.set("softcap", softcap.number(), softcap);
  if (alibi) out.set("alibi", alibi.boolean(), alibi);
  const Place rotary = block["use_rotary_embeddings"];
  if (context.part == Part::kProcessor || !flash) {
    rotary.no_effect("Anemoi passes over it, too");
  } else if (rotary) {
    out.set("rotary", rotary.boolean(), rotary);
  }
}

// Takes what is recomputed in the backward pass from Anemoi, so that what fits there fits here.
void import_memory(const Place& block, const PartContext& context, const std::string& kind) {
  const Section& out = context.out;
  const Place again = block["gradient_checkpointing"], chunks = block["num_chunks"],
              offload = block["cpu_offload"];
  const bool is_processor = context.part == Part::kProcessor;
  const bool in_chunks = is_processor || kind == "gnn" || kind == "graph_transformer";
  const bool runs_again = again.boolean(true);
  if (kind == "none") {
    chunks.no_effect("there are no layers");
  } else if (in_chunks) {
    if (chunks) out.set("chunks", chunks.integer(), chunks);
  } else {
    chunks.no_effect("is for processors, message passing and graph transformers");
  }
  offload.mark();
  if (kind == "none") return;
  const bool by_chunk = !is_processor && kind == "graph_transformer";
  out.set("recompute", runs_again ? (by_chunk ? "block" : "full") : "none", again);
  if (!offload.boolean(false)) return;
  const int64_t groups = chunks.integer(1);
  if (is_processor && runs_again && groups > 1) {
    out.set("offload", groups - 1, offload);
  } else {
    offload.no_effect("nothing of it could be kept in host memory");
  }
}

}  // namespace

std::string import_activation(const Place& place, const std::string& class_name) {
  static const std::map<std::string, std::string> names{{"GELU", "gelu"},
                                                        {"SiLU", "silu"},
                                                        {"ReLU", "relu"},
                                                        {"LeakyReLU", "leaky_relu"},
                                                        {"ELU", "elu"},
                                                        {"SELU", "selu"},
                                                        {"Softplus", "softplus"},
                                                        {"Tanh", "tanh"},
                                                        {"Sigmoid", "sigmoid"},
                                                        {"Mish", "mish"},
                                                        {"Hardswish", "hardswish"},
                                                        {"Identity", "identity"}};
  const auto found = names.find(class_name);
  if (found == names.end()) {
    place.not_honoured("there is no such activation");
    return "";
  }
  if (place.is_object()) {
    for (const auto& [key, option] : place.members()) {
      if (key != "_target_" && key != "_partial_" && key != "inplace" && option)
        option.not_honoured("activations have their usual options");
    }
    place["_partial_"].mark();
    place["inplace"].mark();
  }
  return found->second;
}

void import_block(const Place& block, const PartContext& context) {
  if (!block) throw ConfigError(block.path(), "is missing: the network has such a part");
  const std::string name = block.class_name(), kind = block_kind(name);
  if (kind.empty()) {
    block.not_honoured(concat("there is no part of class ", name));
    return;
  }
  context.out.set("kind", kind, block["_target_"]);
  const Place channels = block["num_channels"];
  if (channels && context.has_own_channels) {
    if (channels.integer() != context.channels)
      context.out.set("channels", channels.integer(), channels);
  } else {
    channels.no_effect("widths follow from model.num_channels");
  }
  import_mlp(block, kind, context.out);
  import_attention(block, kind, context.out);
  import_window(block, context, kind);
  import_memory(block, context, kind);
  import_kernels(block["layer_kernels"], context);
  block["_convert_"].no_effect("is about how Python makes objects");
  if (const Place activation = block["activation"]; kind == "none") {
    activation.no_effect("there are no layers");
  } else if (activation) {
    const std::string known = import_activation(activation, activation.text());
    if (!known.empty()) context.out.set("activation", known, activation);
  }
  const Place edges = block["sub_graph_edge_attributes"];
  if (edges) set_common(context.model, "edge_attributes", edges.texts(), edges);
}

}  // namespace aifs::anemoi

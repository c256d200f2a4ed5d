// SPDX-License-Identifier: Apache-2.0
#include "model/options.h"

namespace aifs::model {

void BlockOptions::bind(config::Binder& b) {
  b.choice("kind", kind, {"kind of the block: gnn is message passing with residual edge states"});
  b.integer("mlp_extra_layers", mlp_extra_layers, {.min = 0, .max = 16},
            {"linears in every MLP beyond three"});
  b.number("mlp_hidden_ratio", mlp_hidden_ratio, {.min = 1e-3, .max = 64.0},
           {"hidden width of node and embedding MLPs as a multiple of the channels"});
  b.choice("mlp_implementation", mlp_implementation, {"plain MLP with GELU, or with gated layers"});
}

void TrainableOptions::bind(config::Binder& b) {
  const config::Bounds<int64_t> width{.min = 0, .max = 4096};
  b.integer("data", data, width, {"learnt features per data node"});
  b.integer("hidden", hidden, width, {"learnt features per hidden node"});
  b.integer("data_to_hidden", data_to_hidden, width, {"learnt features per encoder edge"});
  b.integer("hidden_to_hidden", hidden_to_hidden, width, {"learnt features per processor edge"});
  b.integer("hidden_to_data", hidden_to_data, width, {"learnt features per decoder edge"});
}

void ModelOptions::bind(config::Binder& b) {
  b.integer("channels", channels, {.min = 1, .max = 1 << 16}, {"width of node and edge states"});
  b.integer("layers", layers, {.min = 1, .max = 1024}, {"message-passing layers of the processor"});
  b.section("encoder", encoder, {"from the data grid to the hidden mesh"});
  b.section("processor", processor, {"on the hidden mesh"});
  b.section("decoder", decoder, {"from the hidden mesh to the data grid"});
  b.section("trainable_parameters", trainable_parameters, {"features learnt per node and edge"});
  b.boolean("latent_skip", latent_skip, {"add the encoder's result to the processor's"});
  b.choice("residual", residual,
           {"what is added to prognostic outputs: skip adds the newest input state"});
  b.list("bounding", bounding, {"limits on outputs, applied in order in normalised space"});
  b.text_list("edge_attributes", edge_attributes, {"edge attributes of the graph that are used"});
  b.number("layer_norm_eps", layer_norm_eps, {.min = 0.0, .max = 1.0},
           {"added to the variance in every LayerNorm"});
  b.boolean("recompute", recompute,
            {"keep the inputs of embeddings and of half blocks only, and run them again in the "
             "backward pass: a third more arithmetic, a fraction of the memory"});
  b.boolean("recompute_embeddings", recompute_embeddings,
            {"as recompute, for the embeddings of edges alone: they are cheap and large"});
  b.boolean("recompute_messages", recompute_messages,
            {"as recompute, for the messages on the edges of the processor alone"});
  b.integer("decoder_chunks", decoder_chunks, {.min = 1, .max = 1024},
            {"more than 1: the decoder works on so many parts of the data grid in turn, and runs "
             "each again in the backward pass"});
  b.choice("kernels", kernels,
           {"code between matrix products: LibTorch's operators (reference), own kernels that read "
            "and write each row once (fused), or those on a GPU where there are any (auto)"});
}

}  // namespace aifs::model

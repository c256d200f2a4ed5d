// SPDX-License-Identifier: Apache-2.0
#include "tests/support/network_families.h"

#include <ATen/ATen.h>

#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"

namespace aifs::test {

namespace {

using namespace aifs::model;

constexpr int64_t kHidden = 11, kMiddle = 5, kDeep = 2;
constexpr int64_t kNoiseNodes = 7, kNoiseChannels = 3;

void kinds(ModelOptions& options, BlockKind mappers, BlockKind processor) {
  options.encoder.kind = options.decoder.kind = mappers;
  options.processor.kind = processor;
}

void noise(ModelOptions& options) {
  options.ensemble.members = kFamilyMembers;
  options.ensemble.noise = NoiseKind::kConditioning;
  options.ensemble.noise_channels = kNoiseChannels;
}

void levels(ModelOptions& options, std::vector<std::string> meshes, BlockKind kind) {
  kinds(options, BlockKind::kGraphTransformer,
        kind == BlockKind::kGnn ? BlockKind::kGnn : BlockKind::kTransformer);
  options.hierarchy.meshes = std::move(meshes);
  options.hierarchy.level_processing = true;
  for (BlockOptions* block : {&options.hierarchy.upscale, &options.hierarchy.downscale}) {
    block->kind = kind;
    block->heads = 3;
  }
}

}  // namespace

NetworkPlan NetworkFamily::plan(const FieldLayout& layout) const {
  ModelOptions options;
  options.channels = 12;
  options.layers = 3;
  for (BlockOptions* block :
       {&options.encoder, &options.processor, static_cast<BlockOptions*>(&options.decoder)})
    block->heads = 3;  // fewer than some ranks, and not a multiple of others
  change(options);
  NetworkPlan plan = NetworkPlan::single(options, layout);
  if (projected_noise) {
    const at::Tensor to = at::arange(3 * kHidden) % kHidden,
                     from = at::arange(3 * kHidden) % kNoiseNodes;
    plan.noise_projection =
        SparseMatrix::create(to, from, random_tensor({3 * kHidden}, 4), kHidden, kNoiseNodes);
  }
  if (two_datasets) {
    DatasetPlan second = plan.datasets[0];
    second.name = "other";
    second.encoder_name = second.decoder_name = "1";
    plan.datasets.push_back(second);
  }
  return plan;
}

graph::Graph NetworkFamily::graph() {
  graph::Graph graph = random_graph({kFamilyData, kHidden, 60, 66, 111}, 5);
  graph::Graph coarse = random_graph({kMiddle, kDeep, 9, 8, 9}, 6);
  coarse.node_sets[0].name = "middle";
  coarse.node_sets[1].name = "deep";
  graph::Graph second = random_graph({kFamilyOther, kHidden, 9, 8, 9}, 7);
  second.node_sets[0].name = "other";
  graph.node_sets.push_back(coarse.node_sets[0]);
  graph.node_sets.push_back(coarse.node_sets[1]);
  graph.node_sets.push_back(second.node_sets[0]);
  for (const auto& [from, n, to, m] :
       std::vector<std::tuple<const char*, int64_t, const char*, int64_t>>{
           {"hidden", kHidden, "middle", kMiddle},
           {"middle", kMiddle, "hidden", kHidden},
           {"middle", kMiddle, "middle", kMiddle},
           {"middle", kMiddle, "deep", kDeep},
           {"deep", kDeep, "middle", kMiddle},
           {"deep", kDeep, "deep", kDeep},
           {"other", kFamilyOther, "hidden", kHidden},
           {"hidden", kHidden, "other", kFamilyOther}}) {
    graph.edge_sets.push_back(
        random_edges(from, n, to, m, 4 * m, static_cast<uint64_t>(n + 20 * m)));
  }
  return graph;
}

std::vector<at::Tensor> NetworkFamily::inputs() const {
  std::vector<at::Tensor> x{random_tensor({2, 2, kFamilyMembers, kFamilyData, 6}, 1)};
  if (two_datasets) x.push_back(random_tensor({2, 2, kFamilyMembers, kFamilyOther, 6}, 9));
  return x;
}

at::Tensor NetworkFamily::noise(const EncoderProcessorDecoder& network, int64_t step) const {
  if (!network.has_noise()) return {};
  const int64_t nodes = projected_noise ? kNoiseNodes : kHidden;
  return random_tensor({2, kFamilyMembers, nodes, kNoiseChannels}, static_cast<uint64_t>(8 + step));
}

const std::vector<NetworkFamily>& network_families() {
  static const std::vector<NetworkFamily> families{
      {"gnn", [](ModelOptions&) {}},
      {"gnn in chunks, recomputed",
       [](ModelOptions& o) {
         o.set_recompute(RecomputePolicy::kBlock);
         o.encoder.chunks = o.decoder.chunks = 3;
         o.processor.edge_ranges = 2;
       }},
      {"gnn, MLPs in one operation", [](ModelOptions& o) { o.kernels = KernelChoice::kFused; }},
      {"gnn, MLPs in one operation, hidden layers run again",
       [](ModelOptions& o) {
         o.kernels = KernelChoice::kFused;
         o.set_recompute(RecomputePolicy::kMlp);
       }},
      {"graph transformer in chunks",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
         o.encoder.chunks = o.decoder.chunks = 3;
         o.processor.qk_norm = true;
       }},
      {"point-wise",
       [](ModelOptions& o) { kinds(o, BlockKind::kPointWise, BlockKind::kPointWise); }},
      {"transformer between point-wise maps",
       [](ModelOptions& o) { kinds(o, BlockKind::kPointWise, BlockKind::kTransformer); }},
      {"transformer, all nodes",
       [](ModelOptions& o) { kinds(o, BlockKind::kGraphTransformer, BlockKind::kTransformer); }},
      {"transformer, window, recomputed",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
         o.encoder.window = 6;
         o.processor.window = 1;
         o.decoder.window = 4;
         o.processor.qk_norm = o.encoder.qk_norm = true;
         o.set_recompute(RecomputePolicy::kFull);
       }},
      {"transformer, window of as many as there are keys",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
         o.encoder.window = o.processor.window = o.decoder.window = -1;
       }},
      {"transformer as flash-attention has it",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kTransformer, BlockKind::kTransformer);
         for (BlockOptions* block :
              {&o.encoder, &o.processor, static_cast<BlockOptions*>(&o.decoder)}) {
           block->attention = AttentionBackend::kFlash;
           block->alibi = true;
           block->softcap = 2.0;
         }
         o.processor.window = 2;
         o.encoder.rotary = o.decoder.rotary = true;
         o.decoder.window = 5;
       }},
      {"two levels of gnn",
       [](ModelOptions& o) {
         levels(o, {"hidden", "middle"}, BlockKind::kGnn);
       }},
      {"three levels of graph transformer",
       [](ModelOptions& o) {
         levels(o, {"hidden", "middle", "deep"}, BlockKind::kGraphTransformer);
       }},
      {"three levels of transformer",
       [](ModelOptions& o) {
         levels(o, {"hidden", "middle", "deep"}, BlockKind::kTransformer);
         o.processor.window = 1;
       }},
      {"three meshes, processed on the coarsest",
       [](ModelOptions& o) {
         levels(o, {"hidden", "middle", "deep"}, BlockKind::kGnn);
         o.hierarchy.level_processing = false;
         o.latent_skip = false;
       }},
      {"ensemble of graph transformer",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
         noise(o);
       }},
      {"ensemble of transformer, projected noise",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kGraphTransformer, BlockKind::kTransformer);
         noise(o);
         o.set_recompute(RecomputePolicy::kBlock);
       },
       /*projected_noise=*/true},
      {"two datasets",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kGraphTransformer, BlockKind::kGraphTransformer);
       },
       /*projected_noise=*/false, /*two_datasets=*/true},
      {"autoencoder",
       [](ModelOptions& o) {
         kinds(o, BlockKind::kGraphTransformer, BlockKind::kNone);
         o.latent_skip = false;
         o.residual.kind = ResidualKind::kNone;
         o.decoder.target_features = {"coordinates"};
       }},
      {"truncated residual",
       [](ModelOptions& o) {
         o.residual.kind = ResidualKind::kTruncated;
         o.residual.truncation_grid = "tri0";
       }},
      {"ornstein residual",
       [](ModelOptions& o) { o.residual.kind = ResidualKind::kScalarOrnstein; }},
  };
  return families;
}

}  // namespace aifs::test

// SPDX-License-Identifier: Apache-2.0
#include "bench/kernel_cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <memory>

#include "model/kernels/cuda/gelu_slope.h"
#include "model/kernels/graph_attention.h"
#include "model/kernels/row_ops.h"
#include "train/optim/optimizer.h"

namespace aifs::bench {

using namespace model;

namespace {

constexpr int64_t kHeads = 16, kEdgeFeatures = 12;
constexpr int64_t kWeightRows = 185;  // of channels squared
constexpr double kEps = 1e-5, kLearningRate = 0.1;

// Inputs of a site.
struct Maker {
  const KernelSite& s;
  at::TensorOptions options = at::TensorOptions(s.device).dtype(s.type);

  bool narrow() const { return c10::elementSize(s.type) == 2; }
  at::Tensor of(at::IntArrayRef sizes) const { return at::randn(sizes, options); }
  at::Tensor rows() const { return of({s.num_rows(), s.channels}); }
  at::Tensor at_targets() const { return of({s.edges->num_targets, s.channels}); }
  at::Tensor at_sources() const { return of({s.edges->num_sources, s.channels}); }
  at::Tensor weight() const {
    return of({s.channels, s.channels}) / std::sqrt(static_cast<double>(s.channels));
  }
  at::Tensor vector() const { return at::randn({s.channels}, options.dtype(at::kFloat)); }
  at::Tensor sum() const { return at::zeros({s.channels}, options.dtype(at::kFloat)); }
  // Returns what is kept of the GELU of random rows.
  at::Tensor kept() const { return gelu_rows_(rows(), Keep::kSlope).kept; }
  double product_flops() const {
    const auto channels = static_cast<double>(s.channels);
    return 2.0 * static_cast<double>(s.num_rows()) * channels * channels;
  }
};

at::Tensor slope(const at::Tensor& pre) {
  return at::gelu_backward(at::ones_like(pre), pre);
}

at::Tensor sum_at(const at::Tensor& rows, const at::Tensor& index, int64_t nodes) {
  return at::zeros({nodes, rows.size(1)}, rows.options()).index_add(0, index, rows);
}

// Keeps of fp32 rows the values before the GELU: the input itself, nothing is written.
KernelWork gelu(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows()},
          [](const TensorList& in) -> TensorList {
            const Activated a = gelu_rows_(in[0], Keep::kSlope);
            return a.has_slope() ? TensorList{a.out, a.kept} : TensorList{a.out};
          },
          [narrow = make.narrow()](const TensorList& in) -> TensorList {
            return narrow ? TensorList{at::gelu(in[0]), slope(in[0])} : TensorList{at::gelu(in[0])};
          }};
}

KernelWork gelu_backward(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.rows()},
          [sum = make.sum()](const TensorList& in) -> TensorList {
            const at::Tensor activated = gelu_backward_(in[0], {in[1], {}}, sum);
            return {in[0], sum, activated};
          },
          [](const TensorList& in) -> TensorList {
            const at::Tensor gradient = at::gelu_backward(in[0], in[1]);
            return {gradient, gradient.sum(0), at::gelu(in[1])};
          }};
}

KernelWork gelu_backward_by_slope(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.kept()},
          [sum = make.sum()](const TensorList& in) -> TensorList {
            gelu_backward_(in[0], {in[1], in[0]}, sum);
            return {in[0], sum};
          },
          [](const TensorList& in) -> TensorList {
            const at::Tensor gradient = in[0] * in[1];
            return {gradient, gradient.sum(0)};
          }};
}

KernelWork product_with_bias(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.weight(), make.vector()},
          [](const TensorList& in) -> TensorList {
            return {product_bias(in[0], in[1], in[2], in[2].to(in[0].scalar_type()))};
          },
          [](const TensorList& in) -> TensorList { return {at::addmm(in[2], in[0], in[1].t())}; },
          make.product_flops()};
}

KernelWork product_with_gelu(const KernelSite& site) {
  const Maker make{site};
  KernelWork work{{make.rows(), make.weight(), make.vector()},
                  [](const TensorList& in) -> TensorList {
                    const Activated a = product_gelu(in[0], in[1], in[2], Keep::kSlope,
                                                     in.size() > 3 ? in[3] : at::Tensor());
                    return {a.out, a.kept};
                  },
                  [](const TensorList& in) -> TensorList {
                    at::Tensor pre = at::addmm(in[2], in[0], in[1].t());
                    if (in.size() > 3) pre += in[3];
                    return {at::gelu(pre), slope(pre)};
                  },
                  make.product_flops()};
  if (!site.of_edges()) work.inputs.push_back(make.rows());
  return work;
}

KernelWork edge_product_with_gelu(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.weight(), make.at_targets(), make.at_sources(), make.vector()},
          [edges = site.edges](const TensorList& in) -> TensorList {
            const Activated a =
                edge_product_gelu(in[0], in[1], in[2], in[3], in[4], *edges, Keep::kSlope);
            return {a.out, a.kept};
          },
          [edges = site.edges](const TensorList& in) -> TensorList {
            const at::Tensor pre = at::addmm(in[4], in[0], in[1].t())
                                       .add_(in[2].index_select(0, edges->target))
                                       .add_(in[3].index_select(0, edges->source));
            return {at::gelu(pre), slope(pre)};
          },
          make.product_flops()};
}

KernelWork product_backward(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.weight(), make.kept()},
          [sum = make.sum()](const TensorList& in) -> TensorList {
            return {product_gelu_backward(in[0], in[1], {in[2], in[0]}, sum).gradient, sum};
          },
          [](const TensorList& in) -> TensorList {
            const at::Tensor gradient = at::mm(in[0], in[1]).mul_(in[2]);
            return {gradient, gradient.sum(0)};
          },
          make.product_flops()};
}

KernelWork product_and_sum(const KernelSite& site) {
  const Maker make{site};
  KernelWork work{{make.rows(), make.weight(), make.rows()},
                  [edges = site.edges](const TensorList& in) -> TensorList {
                    return {product_sum(in[0], in[1], in[2], in.size() > 3 ? in[3] : at::Tensor(),
                                        edges.get())};
                  },
                  [edges = site.edges](const TensorList& in) -> TensorList {
                    const at::Tensor sum = at::addmm(in[2], in[0], in[1]);
                    if (in.size() > 3) sum.add_(in[3].index_select(0, edges->target));
                    return {sum};
                  },
                  make.product_flops()};
  if (site.of_edges()) work.inputs.push_back(make.at_targets());
  return work;
}

KernelWork norm(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.rows(), make.vector(), make.vector()},
          [edges = site.edges, sums = site.of_edges()](const TensorList& in) -> TensorList {
            const NormResult r =
                norm_rows(in[0], in[1], {in[2], in[3], kEps}, sums ? edges.get() : nullptr);
            return sums ? TensorList{r.rows, r.sums} : TensorList{r.rows};
          },
          [edges = site.edges, sums = site.of_edges()](const TensorList& in) -> TensorList {
            const at::Tensor rows =
                at::layer_norm(in[0], {in[0].size(1)}, in[2], in[3], kEps).add_(in[1]);
            if (!sums) return {rows};
            return {rows, sum_at(rows, edges->target, edges->num_targets)};
          }};
}

// Gradients of input, weight and bias of a norm; `statistics` as norm_rows() gives them.
auto norm_gradients(const at::Tensor& g, const at::Tensor& z, const at::Tensor& statistics,
                    const at::Tensor& weight) {
  return at::native_layer_norm_backward(g, z, {z.size(1)}, statistics.select(1, 0).contiguous(),
                                        statistics.select(1, 1).contiguous(), weight, weight,
                                        {true, true, true});
}

// Works on edges with what comes to rows and sums, of nodes with what comes past the norm.
KernelWork norm_backwards(const KernelSite& site) {
  const Maker make{site};
  const at::Tensor z = make.rows(), weight = make.vector();
  const at::Tensor statistics = norm_rows(z, {}, {weight, weight, kEps}, nullptr).statistics;
  const NormSums sums{make.sum(), make.sum(), make.sum()};
  return {
      {make.rows(), z, statistics, weight, site.of_edges() ? make.at_targets() : make.rows()},
      [edges = site.edges, sums, at_edges = site.of_edges()](const TensorList& in) -> TensorList {
        const at::Tensor none;
        const NormGradient g =
            norm_backward(in[0], at_edges ? in[4] : none, in[1], in[2], {in[3], in[3], kEps},
                          at_edges ? edges.get() : nullptr, sums,
                          /*residual_wanted=*/at_edges, at_edges ? none : in[4]);
        TensorList out{g.d_z, sums.weight, sums.bias, sums.z};
        if (at_edges) out.push_back(g.d_residual);
        return out;
      },
      [edges = site.edges, at_edges = site.of_edges()](const TensorList& in) -> TensorList {
        const at::Tensor g = at_edges ? in[4].index_select(0, edges->target).add_(in[0]) : in[0];
        auto [d_z, d_weight, d_bias] = norm_gradients(g, in[1], in[2], in[3]);
        if (!at_edges) d_z.add_(in[4]);
        TensorList out{d_z, d_weight, d_bias, d_z.sum(0)};
        if (at_edges) out.push_back(g);
        return out;
      }};
}

KernelWork sum_before_norm(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows(), make.rows(), make.vector(), make.vector()},
          [](const TensorList& in) -> TensorList {
            const SumAndNorm r = norm_sum(in[0], in[1], {in[2], in[3], kEps});
            return {r.sum, r.rows};
          },
          [](const TensorList& in) -> TensorList {
            const at::Tensor sum = in[0] + in[1];
            return {sum, at::layer_norm(sum, {sum.size(1)}, in[2], in[3], kEps)};
          }};
}

KernelWork segment_sum(const KernelSite& site, bool at_targets) {
  return {{Maker{site}.rows()},
          [edges = site.edges, at_targets](const TensorList& in) -> TensorList {
            return {sum_edge_rows(in[0], *edges, at_targets)};
          },
          [edges = site.edges, at_targets](const TensorList& in) -> TensorList {
            return {at_targets ? sum_at(in[0], edges->target, edges->num_targets)
                               : sum_at(in[0], edges->source, edges->num_sources)};
          }};
}

KernelWork column_sums(const KernelSite& site) {
  const Maker make{site};
  return {{make.rows()},
          [sum = make.sum()](const TensorList& in) -> TensorList {
            add_column_sums(sum, in[0]);
            return {sum};
          },
          [](const TensorList& in) -> TensorList { return {in[0].sum(0)}; }};
}

using Attend = AttentionSums (*)(const AttentionInputs&, int64_t, const EdgeIndexPtr&);

AttentionSums attend(Attend attention, const TensorList& in, int64_t heads,
                     const EdgeIndexPtr& edges) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(in[0].size(1) / heads));
  return attention({in[0], in[1], in[2], in[3], in[4], scale}, heads, edges);
}

// Leaves of which gradients are taken, and what was computed from them.
struct AttentionPass {
  TensorList leaves, sums;

  AttentionPass(Attend attention, const TensorList& in, int64_t heads, const EdgeIndexPtr& edges) {
    for (size_t i = 0; i < 5; ++i)
      leaves.push_back(in[i].detach().set_requires_grad(true));
    const AttentionSums result = attend(attention, leaves, heads, edges);
    sums = {result.nodes, result.edges};
  }
  TensorList gradients(const at::Tensor& d_nodes, const at::Tensor& d_edges) const {
    return torch::autograd::grad(sums, leaves, {d_nodes, d_edges}, /*retain_graph=*/true);
  }
};

// The library's operators head by head: their tensors of edges times channels would not fit.
// Attention of `in`, or its gradients if `in` has those of the sums behind.
TensorList attend_by_heads(const TensorList& in, const EdgeIndexPtr& edges) {
  std::vector<TensorList> heads;
  at::Tensor d_features;
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto own = [&](size_t i) { return in[i].chunk(kHeads, 1)[static_cast<size_t>(h)]; };
    const AttentionPass pass(graph_attention_plain, {own(0), own(1), own(2), own(3), in[4]}, 1,
                             edges);
    if (in.size() == 5) {
      heads.push_back({pass.sums[0].detach(), pass.sums[1].detach()});
      continue;
    }
    TensorList d = pass.gradients(own(5), own(6));
    d_features = d_features.defined() ? d_features + d[4] : d[4];
    d.pop_back();
    heads.push_back(d);
  }
  TensorList results;
  for (size_t i = 0; i < heads[0].size(); ++i) {
    TensorList parts;
    for (const TensorList& head : heads)
      parts.push_back(head[i]);
    results.push_back(at::cat(parts, 1));
  }
  if (d_features.defined()) results.push_back(d_features);
  return results;
}

// Query and its projection, key, value, features; scores and sums of a head and an edge.
KernelWork attention(const KernelSite& site) {
  const Maker make{site};
  const double width = static_cast<double>(site.channels + kHeads * kEdgeFeatures);
  return {{make.at_targets(), make.of({site.edges->num_targets, kHeads * kEdgeFeatures}),
           make.at_sources(), make.at_sources(), make.of({site.num_rows(), kEdgeFeatures})},
          [edges = site.edges](const TensorList& in) -> TensorList {
            const AttentionSums sums = attend(graph_attention, in, kHeads, edges);
            return {sums.nodes, sums.edges};
          },
          [edges = site.edges](const TensorList& in) { return attend_by_heads(in, edges); },
          4.0 * static_cast<double>(site.num_rows()) * width};
}

// Reads the sums again, too; they are not counted.
KernelWork attention_backward(const KernelSite& site) {
  KernelWork work = attention(site);
  const auto pass =
      std::make_shared<const AttentionPass>(graph_attention, work.inputs, kHeads, site.edges);
  for (const at::Tensor& sum : pass->sums)
    work.inputs.push_back(at::randn_like(sum.detach()));
  work.run = [pass](const TensorList& in) { return pass->gradients(in[5], in[6]); };
  work.flops *= 2.5;  // scores again, and two sums for each of the forward pass
  return work;
}

// The first step, from moments that are zero.
KernelWork adamw(const KernelSite& site) {
  struct State {
    ParameterSet set{at::kFloat, 1};
    std::unique_ptr<train::AdamW> optimizer;
  };
  const auto state = std::make_shared<State>();
  state->set.add("weights", {site.num_rows(), site.channels}, Init::ones());
  state->set.flatten(site.device);
  state->optimizer = std::make_unique<train::AdamW>(state->set, train::AdamWOptions());
  state->set.flat_gradients().normal_();
  return {{state->set.flat_values(), state->set.flat_gradients(), state->optimizer->moment1(),
           state->optimizer->moment2()},
          [state](const TensorList& in) -> TensorList {
            state->optimizer->step(kLearningRate);
            return {in[0], in[2], in[3]};
          },
          [](const TensorList& in) -> TensorList {
            const train::AdamWOptions o;
            const at::Tensor step = in[1] / (in[1].abs() + o.eps);  // both corrections cancel
            return {in[0] * (1.0 - kLearningRate * o.weight_decay) - kLearningRate * step,
                    (1.0 - o.beta1) * in[1], (1.0 - o.beta2) * in[1] * in[1]};
          }};
}

}  // namespace

int64_t KernelSite::num_rows() const {
  if (rows == RowsOf::kWeights) return kWeightRows * channels;
  return of_edges() ? edges->num_edges : edges->num_targets;
}

const std::vector<Kernel>& kernels() {
  using enum RowsOf;
  const std::vector<at::ScalarType> half{at::kBFloat16}, wide{at::kFloat},
      both{at::kBFloat16, at::kFloat};
  const auto sum_at_targets = [](const KernelSite& site) { return segment_sum(site, true); };
  const auto sum_at_sources = [](const KernelSite& site) { return segment_sum(site, false); };
  static const std::vector<Kernel> table{
      {"product-bias", {kEdges, kNodes}, half, product_with_bias},
      {"product-gelu", {kEdges, kNodes}, half, product_with_gelu},
      {"edge-product-gelu", {kEdges}, half, edge_product_with_gelu},
      {"product-gelu-backward", {kEdges, kNodes}, half, product_backward},
      {"product-sum", {kEdges, kNodes}, half, product_and_sum},
      {"norm", {kEdges, kNodes}, both, norm},
      {"norm-backward", {kEdges, kNodes}, both, norm_backwards},
      {"norm-sum", {kNodes}, both, sum_before_norm},
      {"sum-at-targets", {kEdges}, both, sum_at_targets},
      {"sum-at-sources", {kEdges}, both, sum_at_sources},
      {"column-sums", {kEdges, kNodes}, both, column_sums},
      {"gelu", {kEdges, kNodes}, both, gelu},
      {"gelu-backward", {kEdges, kNodes}, both, gelu_backward},
      {"gelu-backward-by-slope", {kEdges, kNodes}, half, gelu_backward_by_slope},
      {"attention", {kEdges}, both, attention},
      {"attention-backward", {kEdges}, both, attention_backward},
      {"adamw", {kWeights}, wide, adamw}};
  return table;
}

at::Tensor decoded_slopes(const at::Tensor& codes, at::ScalarType type) {
  return (codes.to(type) - kSlopeZero) / kSlopeSteps;
}

}  // namespace aifs::bench

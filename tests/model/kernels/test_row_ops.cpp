// SPDX-License-Identifier: Apache-2.0
// Built twice: for the CPU, and with AIFS_GPU_TEST for the kernels of a GPU. What is expected comes
// from LibTorch's operators and their gradients in fp64 on the same device, which has no kernels of
// ours for that type, from the same rounded inputs.
#include "model/kernels/row_ops.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <tuple>

#include "model/kernels/cuda/gelu_slope.h"
#include "model/kernels/row_ops_cuda.h"
#include "tests/support/catch.h"
#include "tests/support/small_graph.h"
#include "tests/support/tensors.h"
#include "tests/support/test_device.h"

using namespace aifs;
using namespace aifs::model;
using test::kDevice;

namespace {

#ifdef AIFS_GPU_TEST
const std::vector<at::ScalarType> kTypes{at::kFloat, at::kBFloat16, at::kHalf};
const std::vector<int64_t> kWidths{1, 7, 64, 89, 128, 256, 512, 520, 1000, 1024, 1536, 2048};
const int64_t kSlices = 4096;  // more columns than norms take
const int64_t kWidthOfMany = 512;
#else
const std::vector<at::ScalarType> kTypes{at::kDouble, at::kFloat};
const std::vector<int64_t> kWidths{1, 7, 16};
const int64_t kSlices = 24;
const int64_t kWidthOfMany = 16;
#endif

// The graph: some targets without edges, some with one, one with a third of all.
constexpr int64_t kSources = 90, kTargets = 70, kEdges = 1500;
constexpr int64_t kManyEdges = 20001;  // several rows, or tiles of them, for every warp of a card

// Rows, depth and width of products; the last ones also with the columns that are used.
using Shapes = std::vector<std::tuple<int64_t, int64_t, int64_t>>;
using NarrowShapes = std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>>;
#ifdef AIFS_GPU_TEST
const Shapes kProducts{
    {0, 64, 128},           {1, 16, 128},      {63, 96, 256},      {kEdges, 512, 512},
    {kManyEdges, 512, 512}, {30001, 64, 256},  {30001, 192, 128},  {30001, 448, 384},
    {3000, 216, 384},       {300, 1024, 128},  {300, 24, 40},      {63, 520, 256},
    {0, 1024, 1024},        {1, 640, 2048},    {64, 1024, 640},    {65, 2048, 1024},
    {127, 640, 4096},       {129, 4096, 640},  {kEdges, 640, 640}, {kEdges, 1024, 1024},
    {20000, 1024, 1024},    {5000, 1000, 1024}};
const Shapes kPairProducts{{0, 512, 512},    {1, 512, 512},     {65, 320, 256},
                           {3000, 512, 512}, {20000, 512, 512}, {3000, 1024, 1024},
                           {300, 520, 128},  {300, 64, 128},    {300, 24, 40}};
const NarrowShapes kNarrowProducts{{0, 512, 16, 11},   {1, 512, 16, 16},   {63, 128, 16, 11},
                                   {64, 256, 16, 12},  {3000, 384, 16, 3}, {40000, 512, 16, 11},
                                   {300, 640, 16, 11}, {300, 512, 24, 20}, {300, 40, 16, 9}};
const std::vector<int64_t> kProductWidths{128, 512, 1024};
#else  // the library's products, whatever the shape
const Shapes kProducts{{0, 64, 128},     {1, 16, 128},     {63, 96, 64},
                       {kEdges, 64, 32}, {kEdges, 24, 40}, {300, 24, 40}};
const Shapes kPairProducts{{0, 64, 64}, {1, 64, 32}, {65, 80, 64}, {300, 64, 128}, {300, 24, 40}};
const NarrowShapes kNarrowProducts{{0, 512, 16, 11},  {1, 512, 16, 16},  {63, 128, 16, 11},
                                   {300, 384, 16, 3}, {300, 40, 24, 20}, {300, 40, 16, 9}};
const std::vector<int64_t> kProductWidths{128};
#endif

// Largest relative difference of one rounded result, with room for what is computed in fp32 inside.
double rounding(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 1e-12;
    case at::kFloat:
      return 2e-5;
    case at::kHalf:
      return 2e-3;
    default:
      return 1.2e-2;
  }
}

struct Setup {
  at::ScalarType type;
  int64_t width, num_edges = kEdges;
  EdgeIndexPtr edges = test::random_edge_index(kSources, kTargets, num_edges, 5)->to(kDevice);

  // Random rows as they are after rounding, in fp64.
  at::Tensor rows(int64_t count, uint64_t seed) const {
    return random({count, width}, seed).to(type).to(at::kDouble);
  }
  at::Tensor vector(uint64_t seed) const {
    return random({width}, seed).to(wide()).to(at::kDouble);
  }
  static at::Tensor random(at::IntArrayRef sizes, uint64_t seed) {
    at::manual_seed(seed);
    return at::randn(sizes, at::TensorOptions(kDevice).dtype(at::kDouble));
  }
  at::ScalarType wide() const { return type == at::kDouble ? at::kDouble : at::kFloat; }
  // A copy, which may be written to.
  at::Tensor put(const at::Tensor& x) const {
    return x.to(kDevice, type, /*non_blocking=*/false, /*copy=*/true).contiguous();
  }
  // Returns what the sums of a gradient start from.
  at::Tensor ones() const { return at::ones({width}, at::TensorOptions(kDevice).dtype(wide())); }
  at::Tensor put_wide(const at::Tensor& x) const { return x.to(kDevice, wide()).contiguous(); }

  void require_close(const at::Tensor& got, const at::Tensor& expected, double factor = 1.0) const {
    REQUIRE(got.device().type() == kDevice.type());
    const double size = expected.numel() == 0 ? 0.0 : expected.abs().max().item<double>();
    const double difference = test::max_difference(got, expected);
    INFO("off by " << difference << " of " << size);
    REQUIRE(difference <= factor * rounding(type) * (1.0 + size));
  }
};

at::Tensor slope_of(const at::Tensor& codes) {
  return (codes.to(at::kDouble) - kSlopeZero) / kSlopeSteps;
}

constexpr Keep kKeeps[] = {Keep::kNothing, Keep::kPre, Keep::kSlope};

// The GELU of `pre`, and what was to be kept of it.
void require_activated(const Setup& s, const Activated& got, Keep keep, const at::Tensor& pre) {
  s.require_close(got.out, at::gelu(pre));
  if (keep == Keep::kNothing) {
    REQUIRE_FALSE(got.kept.defined());
  } else if (!slope_kept(keep, s.type)) {
    s.require_close(got.kept, pre);
  } else {
    REQUIRE(got.has_slope());
    const at::Tensor exact = at::gelu_backward(at::ones_like(pre), pre);
    REQUIRE(test::max_difference(slope_of(got.kept), exact) <=
            0.5 / kSlopeSteps + rounding(s.type));
  }
}

template <class Check>
void for_all(Check&& check, const std::vector<int64_t>& more_widths = {}) {
  std::vector<int64_t> widths = kWidths;
  widths.insert(widths.end(), more_widths.begin(), more_widths.end());
  for (const at::ScalarType type : kTypes) {
    for (const int64_t width : widths) {
      INFO(at::toString(type) << ", " << width << " columns");
      check(Setup{type, width});
    }
  }
  INFO(kManyEdges << " edges");
  check(Setup{kTypes[1], kWidthOfMany, kManyEdges});
}

at::Tensor sum_at(const at::Tensor& rows, const at::Tensor& index, int64_t nodes) {
  return at::zeros({nodes, rows.size(1)}, rows.options()).index_add(0, index, rows);
}

// Norm, residual and sum at targets from LibTorch's operators.
struct NormExpected {
  at::Tensor z, residual, weight, bias, rows, sums;

  NormExpected(const Setup& s, bool with_residual) {
    z = (s.rows(s.num_edges, 11) * 2.0 + 0.5).to(s.type).to(at::kDouble).set_requires_grad(true);
    weight = s.vector(13).set_requires_grad(true);
    bias = s.vector(14).set_requires_grad(true);
    rows = at::layer_norm(z, {s.width}, weight, bias, 1e-5);
    if (with_residual) {
      residual = s.rows(s.num_edges, 12).set_requires_grad(true);
      rows = rows + residual;
    }
    sums = sum_at(rows, s.edges->target, kTargets);
  }
  NormParameters parameters(const Setup& s) const {
    return {s.put_wide(weight.detach()), s.put_wide(bias.detach()), 1e-5};
  }
};

}  // namespace

TEST_CASE("GELU of rows", "[row_ops]") {
  for_all(
      [](const Setup& s) {
        const at::Tensor x = s.rows(300, 1) * 3.0;
        const at::Tensor rounded = x.to(s.type).to(at::kDouble);
        for (const Keep keep : kKeeps)
          require_activated(s, gelu_rows_(s.put(rounded), keep), keep, rounded);
      },
      {kSlices});
}

TEST_CASE("sums of columns are added to what is there", "[row_ops]") {
  for_all(
      [](const Setup& s) {
        for (const int64_t count : {0, 1, 3000}) {
          const at::Tensor rows = s.rows(count, 1), sum = s.ones();
          add_column_sums(sum, s.put(rows));
          s.require_close(sum, rows.sum(0) + 1.0);
        }
      },
      {kSlices});
}

TEST_CASE("backward of GELU gives gradient, activation and column sum", "[row_ops]") {
  for_all(
      [](const Setup& s) {
        for (const int64_t rows : {0, 1, 3000}) {
          const at::Tensor pre = s.rows(rows, 6), gradient = s.rows(rows, 7);
          const at::Tensor expected = at::gelu_backward(gradient, pre);
          const at::Tensor got = s.put(gradient);
          const at::Tensor sum = s.ones();
          const at::Tensor activated = gelu_backward_(got, {s.put(pre), {}}, sum);
          s.require_close(got, expected);
          s.require_close(activated, at::gelu(pre));
          s.require_close(sum, expected.sum(0) + 1.0);
          const Activated kept = gelu_rows_(s.put(pre), Keep::kSlope);
          const at::Tensor again = s.put(gradient), sum_again = s.ones();
          REQUIRE(gelu_backward_(again, kept, sum_again).is_same(kept.out));
          const at::Tensor by_slope = kept.has_slope() ? gradient * slope_of(kept.kept) : expected;
          s.require_close(again, by_slope);
          s.require_close(sum_again, by_slope.sum(0) + 1.0);
        }
      },
      {kSlices});
}

TEST_CASE("products with GELU before and behind them", "[row_ops]") {
  for (const auto& [rows, depth, width] : kProducts) {
    for (const at::ScalarType type : kTypes) {
      if (type != at::kBFloat16 && rows > 3000) continue;  // nothing special there
      INFO(at::toString(type) << ", " << rows << " rows, " << depth << " to " << width);
      const bool gathers = rows == kEdges || rows == kManyEdges;
      const Setup s{type, width, gathers ? rows : kEdges}, in{type, depth};
      const at::Tensor x = in.rows(rows, 1);
      const at::Tensor weight =
          (in.rows(width, 2) / std::sqrt(static_cast<double>(depth))).to(type).to(at::kDouble);
      const at::Tensor bias = s.vector(3), addend = s.rows(rows, 4);
      const at::Tensor plain = at::mm(x, weight.t()) + bias;
      s.require_close(
          product_bias(in.put(x), in.put(weight), s.put_wide(bias), s.put_wide(bias).to(type)),
          plain);
      for (const bool add : {false, true}) {
        const at::Tensor expected = add ? plain + addend : plain;
        const at::Tensor more = add ? s.put(addend) : at::Tensor();
        for (const Keep keep : kKeeps) {
          const Activated got =
              product_gelu(in.put(x), in.put(weight), s.put_wide(bias), keep, more);
          require_activated(s, got, keep, expected);
        }
      }
      const at::Tensor d = s.rows(rows, 5), pre = in.rows(rows, 6);
      const at::Tensor expected = at::gelu_backward(at::mm(d, weight), pre);
      const auto require_gradient = [&](const Activated& kept, const at::Tensor& gradient) {
        const at::Tensor sum = in.ones();
        const ProductGeluGradient g = product_gelu_backward(s.put(d), in.put(weight), kept, sum);
        in.require_close(g.gradient, gradient);
        in.require_close(sum, gradient.sum(0) + 1.0);
        in.require_close(g.activated, at::gelu(pre));
        const at::Tensor sum_again = in.ones();
        REQUIRE(at::equal(product_gelu_backward(s.put(d), in.put(weight), kept, sum_again).gradient,
                          g.gradient));
        REQUIRE(at::equal(sum_again, sum));
      };
      require_gradient({in.put(pre), {}}, expected);
      const Activated kept = gelu_rows_(in.put(pre), Keep::kSlope);
      require_gradient(kept, kept.has_slope() ? at::mm(d, weight) * slope_of(kept.kept) : expected);
      // A weight gradient, added to a part of a wider one.
      const at::Tensor whole = at::ones({width, depth + 8}, s.ones().options());
      add_weight_gradient(whole.narrow(1, 8, depth), s.put(d), in.put(x));
      s.require_close(whole.narrow(1, 8, depth), at::mm(d.t(), x) + 1.0);
      REQUIRE((whole.narrow(1, 0, 8) == 1.0).all().item<bool>());
      if (!gathers) continue;
      const at::Tensor t = s.rows(kTargets, 7), u = s.rows(kSources, 8);
      const at::Tensor sum =
          plain + t.index_select(0, s.edges->target) + u.index_select(0, s.edges->source);
      for (const Keep keep : kKeeps) {
        const Activated got = edge_product_gelu(in.put(x), in.put(weight), s.put(t), s.put(u),
                                                s.put_wide(bias), *s.edges, keep);
        require_activated(s, got, keep, sum);
      }
      const at::Tensor more = in.rows(rows, 9), v = in.rows(kTargets, 10);
      const at::Tensor product = at::mm(d, weight),
                       both = product + v.index_select(0, s.edges->target);
      const auto sum_of = [&](const at::Tensor& added, const at::Tensor& at_target) {
        return product_sum(s.put(d), in.put(weight), added, at_target, s.edges.get());
      };
      in.require_close(sum_of(in.put(more), {}), product + more);
      in.require_close(sum_of({}, in.put(v)), both);
      in.require_close(sum_of(in.put(more), in.put(v)), both + more);
    }
  }
}

TEST_CASE("a product of two tensors side by side, with GELU", "[row_ops]") {
  for (const auto& [rows, depth, width] : kPairProducts) {
    for (const at::ScalarType type : kTypes) {
      if (type != at::kBFloat16 && rows > 3000) continue;  // nothing special there
      INFO(at::toString(type) << ", " << rows << " rows, twice " << depth << " to " << width);
      const Setup s{type, width}, in{type, depth}, both{type, 2 * depth};
      const at::Tensor a = in.rows(rows, 1), b = in.rows(rows, 2), bias = s.vector(3);
      const at::Tensor weight = (both.rows(width, 4) / std::sqrt(2.0 * static_cast<double>(depth)))
                                    .to(type)
                                    .to(at::kDouble);
      const at::Tensor expected = at::mm(at::cat({a, b}, 1), weight.t()) + bias;
      for (const Keep keep : kKeeps) {
        const auto once = [&] {
          return pair_product_gelu(in.put(a), in.put(b), both.put(weight), s.put_wide(bias), keep);
        };
        const Activated got = once();
        require_activated(s, got, keep, expected);
        REQUIRE(at::equal(once().out, got.out));
      }
      // Backward: both multiply parts of a wider weight.
      const Setup wide{type, 3 * width};
      const at::Tensor last = (wide.rows(depth, 5) / std::sqrt(2.0 * static_cast<double>(depth)))
                                  .to(type)
                                  .to(at::kDouble);
      const at::Tensor some = wide.put(last).narrow(1, 0, 2 * width), more = s.rows(rows, 6);
      const at::Tensor sum =
          at::mm(a, last.narrow(1, 0, width)) + at::mm(b, last.narrow(1, width, width));
      const auto sum_of = [&](const at::Tensor& added) {
        return pair_product_sum(in.put(a), in.put(b), some, added);
      };
      s.require_close(sum_of({}), sum);
      s.require_close(sum_of(s.put(more)), sum + more);
      REQUIRE(at::equal(sum_of(s.put(more)), sum_of(s.put(more))));
    }
  }
}

TEST_CASE("NaN passes through products with GELU, and nothing else becomes it", "[row_ops]") {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  constexpr int64_t kRows = 300, kBad = 77;
  for (const at::ScalarType type : kTypes) {
    for (const int64_t width : kProductWidths) {
      INFO(at::toString(type) << ", " << width << " columns");
      const Setup s{type, width};
      const auto require_bad_row = [&](const at::Tensor& rows) {
        const at::Tensor bad = at::zeros(rows.sizes(), rows.options().dtype(at::kBool));
        bad.select(0, kBad).fill_(true);
        REQUIRE(at::equal(rows.isnan(), bad));
      };
      const at::Tensor x = s.rows(kRows, 1), weight = s.rows(width, 2) / std::sqrt(width);
      at::Tensor bad = x.clone();
      bad.select(0, kBad).fill_(nan);
      for (const Keep keep : kKeeps) {
        require_bad_row(product_gelu(s.put(bad), s.put(weight), s.put_wide(s.vector(3)), keep).out);
        require_bad_row(product_bias(s.put(bad), s.put(weight), s.put_wide(s.vector(3)),
                                     s.put_wide(s.vector(3)).to(type)));
        require_bad_row(
            product_gelu(s.put(x), s.put(weight), s.put_wide(s.vector(3)), keep, s.put(bad)).out);
        require_bad_row(gelu_rows_(s.put(bad), keep).out);
      }
      for (const Keep keep : {Keep::kPre, Keep::kSlope}) {
        const Activated kept = gelu_rows_(s.put(x), keep);
        const at::Tensor sum = s.ones();
        require_bad_row(product_gelu_backward(s.put(bad), s.put(weight), kept, sum).gradient);
        REQUIRE(sum.isnan().all().item<bool>());
      }
    }
  }
}

TEST_CASE("a linear map of few columns, backward", "[row_ops]") {
  for (const at::ScalarType type : kTypes) {
    for (const auto& [rows, width, columns, used] : kNarrowProducts) {
      INFO(at::toString(type) << ", " << rows << " rows, " << columns << " to " << width);
      const Setup s{type, width}, in{type, columns};
      const at::Tensor d = s.rows(rows, 1), x = in.rows(rows, 2), weight = in.rows(width, 3);
      const auto once = [&, used = used] {
        const at::Tensor d_weight = at::ones({width, used}, s.ones().options());
        const at::Tensor d_x = linear_backward(s.put(d), in.put(weight), in.put(x), d_weight);
        return std::pair(d_x, d_weight);
      };
      const auto [d_x, d_weight] = once();
      in.require_close(d_x, at::mm(d, weight));
      s.require_close(d_weight, at::mm(d.t(), x).narrow(1, 0, used) + 1.0);
      const auto [again, weight_again] = once();
      REQUIRE(at::equal(again, d_x));
      REQUIRE(at::equal(weight_again, d_weight));
    }
  }
}

TEST_CASE("sums of edge rows at either end", "[row_ops]") {
  for_all([](const Setup& s) {
    const at::Tensor rows = s.rows(s.num_edges, 8);
    s.require_close(sum_edge_rows(s.put(rows), *s.edges, true),
                    sum_at(rows, s.edges->target, kTargets));
    s.require_close(sum_edge_rows(s.put(rows), *s.edges, false),
                    sum_at(rows, s.edges->source, kSources));
    s.require_close(sum_edges(s.put(rows), *s.edges, false),
                    sum_at(rows, s.edges->source, kSources));
  });
}

TEST_CASE("a norm with residual and sums at targets", "[row_ops]") {
  for_all([](const Setup& s) {
    for (const bool with_residual : {false, true}) {
      for (const bool with_sums : {false, true}) {
        const NormExpected e(s, with_residual);
        const NormResult got =
            norm_rows(s.put(e.z), with_residual ? s.put(e.residual) : at::Tensor(), e.parameters(s),
                      with_sums ? s.edges.get() : nullptr);
        s.require_close(got.rows, e.rows);
        REQUIRE(got.sums.defined() == with_sums);
        if (!with_sums) continue;
        s.require_close(got.sums, e.sums);
        const NormResult sums_alone =
            norm_rows(s.put(e.z), with_residual ? s.put(e.residual) : at::Tensor(), e.parameters(s),
                      s.edges.get(), /*rows_wanted=*/false);
        REQUIRE_FALSE(sums_alone.rows.defined());
        REQUIRE(at::equal(sums_alone.sums, got.sums));
      }
    }
  });
}

TEST_CASE("the backward pass of a norm is that of its parts", "[row_ops]") {
  for_all([](const Setup& s) {
    if (s.width == 1) return;  // a norm of one column is constant, its gradient rounding alone
    for (const int uses : {1, 2, 3}) {  // rows, sums, both
      const bool of_rows = (uses & 1) != 0, of_sums = (uses & 2) != 0;
      INFO("used: " << uses);
      NormExpected e(s, true);
      const at::Tensor d_rows = s.rows(s.num_edges, 15), d_sums = s.rows(kTargets, 16);
      at::Tensor loss = at::zeros({}, e.rows.options());
      if (of_rows) loss = loss + (e.rows * d_rows).sum();
      if (of_sums) loss = loss + (e.sums * d_sums).sum();
      loss.backward();
      const NormParameters norm = e.parameters(s);
      const at::Tensor z = s.put(e.z);
      const NormResult forward = norm_rows(z, s.put(e.residual), norm, s.edges.get());
      const NormSums sums{s.ones(), s.ones(), s.ones()};
      const NormGradient g = norm_backward(of_rows ? s.put(d_rows) : at::Tensor(),
                                           of_sums ? s.put(d_sums) : at::Tensor(), z,
                                           forward.statistics, norm, s.edges.get(), sums);
      s.require_close(g.d_residual, e.residual.grad());
      s.require_close(g.d_z, e.z.grad());
      s.require_close(sums.weight, e.weight.grad() + 1.0);
      s.require_close(sums.bias, e.bias.grad() + 1.0);
      s.require_close(sums.z, e.z.grad().sum(0) + 1.0);
    }
  });
}

TEST_CASE("the norm of a sum, and what comes past it in the backward pass", "[row_ops]") {
  for_all([](const Setup& s) {
    if (s.width == 1) return;
    const at::Tensor x = s.rows(s.num_edges, 21).set_requires_grad(true),
                     addend = s.rows(s.num_edges, 22);
    const at::Tensor weight = s.vector(23).set_requires_grad(true);
    const NormParameters norm{s.put_wide(weight.detach()), s.put_wide(s.vector(24)), 1e-5};
    const at::Tensor rounded = (x + addend).detach().to(s.type).to(at::kDouble);
    const SumAndNorm got = norm_sum(s.put(x.detach()), s.put(addend), norm);
    s.require_close(got.sum, rounded);
    const at::Tensor expected =
        at::layer_norm(x + (rounded - x).detach(), {s.width}, weight, s.vector(24), 1e-5);
    s.require_close(got.rows, expected);
    const at::Tensor d_rows = s.rows(s.num_edges, 25), d_past = s.rows(s.num_edges, 26);
    ((expected * d_rows).sum() + (x * d_past).sum()).backward();
    const NormSums sums{s.ones(), s.ones(), s.ones()};
    const NormGradient g =
        norm_backward(s.put(d_rows), {}, got.sum, got.statistics, norm, nullptr, sums,
                      /*residual_wanted=*/false, s.put(d_past));
    REQUIRE_FALSE(g.d_residual.defined());
    s.require_close(g.d_z, x.grad());
    s.require_close(sums.weight, weight.grad() + 1.0);
    s.require_close(sums.z, x.grad().sum(0) + 1.0);
  });
}

TEST_CASE("the same bits every time", "[row_ops]") {
  const Setup s{kTypes.back(), kWidths.back()};
  const NormExpected e(s, false);
  const at::Tensor z = s.put(e.z), d = s.put(s.rows(s.num_edges, 17));
  const auto once = [&] {
    const NormResult forward = norm_rows(z, {}, e.parameters(s), s.edges.get());
    const NormSums sums{s.ones(), s.ones(), s.ones()};
    const NormGradient g =
        norm_backward(d, {}, z, forward.statistics, e.parameters(s), s.edges.get(), sums);
    const at::Tensor gradient = d.clone(), sum = s.ones();
    gelu_backward_(gradient, {z, {}}, sum);
    const at::Tensor column_sum = s.ones();
    add_column_sums(column_sum, d);
    return std::vector{forward.sums, g.d_z, sums.weight, sums.z, sum, column_sum};
  };
  const std::vector<at::Tensor> first = once(), second = once();
  for (size_t i = 0; i < first.size(); ++i)
    REQUIRE(at::equal(first[i], second[i]));
}

#ifdef AIFS_GPU_TEST
TEST_CASE("the library's operators give the same sums", "[row_ops]") {
  const Setup s{at::kFloat, 64};
  const at::Tensor rows = s.put(s.rows(s.num_edges, 18));
  for (const bool at_targets : {false, true}) {
    s.require_close(cuda_rows::sum_edges(rows, *s.edges, at_targets),
                    sum_edges(rows, *s.edges, at_targets).to(at::kDouble));
  }
}
#endif

TEST_CASE("what the kernels can do is known beforehand", "[row_ops]") {
  REQUIRE(row_ops_support(at::kCPU, at::kDouble, 12345));
  REQUIRE_FALSE(row_ops_support(at::kCUDA, at::kDouble, 8));
  REQUIRE_FALSE(row_ops_support(at::kCUDA, at::kFloat, 4096));
  REQUIRE_FALSE(gelu_rows_support(at::kCUDA, at::kFloat, 4104));
  REQUIRE(gelu_rows_support(at::kCPU, at::kDouble, 12345));
}

// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/row_ops_cuda.h"

#include <ATen/ATen.h>

#include "core/check.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/activation.h"
#include "model/kernels/cuda/layer_norm.h"
#include "model/kernels/cuda/narrow_product.h"
#include "model/kernels/cuda/segment_sum.h"
#include "model/kernels/cuda/tall_product.h"
#include "model/kernels/cuda_call.h"

namespace aifs::model::cuda_rows {

namespace {

cuda::RowShape shape_of(const at::Tensor& rows) {
  AIFS_CHECK(rows.dim() == 2, "rows of shape ", rows.sizes());
  const std::optional<cuda::ElementType> type = element_type(rows.scalar_type());
  if (!type) throw Error(concat("no row kernels for ", at::toString(rows.scalar_type())));
  return {rows.size(0), rows.size(1), *type};
}

// The data of contiguous rows like `model`; null for an undefined tensor.
void* data(const at::Tensor& rows, const at::Tensor& model, int64_t count) {
  if (!rows.defined()) return nullptr;
  AIFS_CHECK(rows.is_contiguous() && rows.scalar_type() == model.scalar_type() &&
                 rows.device() == model.device() && rows.dim() == 2 && rows.size(0) == count &&
                 rows.size(1) == model.size(1),
             "rows of shape ", rows.sizes(), ", expected ", count, " like ", model.sizes());
  return rows.data_ptr();
}

const float* vector_data(const at::Tensor& values, int64_t width) {
  AIFS_CHECK(
      values.is_contiguous() && values.scalar_type() == at::kFloat && values.numel() == width,
      "a vector of shape ", values.sizes(), " for rows of ", width);
  return values.const_data_ptr<float>();
}

// Returns where a kernel adds a sum over rows.
float* sum_data(const at::Tensor& sum, int64_t width) {
  return const_cast<float*>(vector_data(sum, width));
}

const int32_t* index_data(const at::Tensor& index) {
  return index.const_data_ptr<int32_t>();
}

at::Tensor floats_like(const at::Tensor& rows, at::IntArrayRef sizes) {
  return at::empty(sizes, rows.options().dtype(at::kFloat));
}

}  // namespace

bool supports(at::ScalarType type, int64_t width) {
  return (type == at::kFloat || type == at::kBFloat16 || type == at::kHalf) &&
         width <= cuda::kMaxWidth;
}

bool gelu_supports(at::ScalarType type, int64_t width) {
  return supports(type, 1) && cuda::fits_in_slices(width);
}

namespace {

// Returns where to write what is kept; null if it is not.
void* pre_data(const Activated& a) {
  return a.has_slope() ? nullptr : data(a.kept, a.out, a.out.size(0));
}
uint8_t* slope_data(const Activated& a) {
  return a.has_slope() ? a.kept.data_ptr<uint8_t>() : nullptr;
}

// `out`, and room for what is kept of such rows.
Activated with_room(const at::Tensor& out, Keep keep) {
  if (keep == Keep::kNothing) return {{}, out};
  return {slope_kept(keep, out.scalar_type()) ? at::empty_like(out, out.options().dtype(at::kByte))
                                              : at::empty_like(out),
          out};
}

// `pre` becomes the values kept or, if they are not, those after the GELU.
Activated in_place(const at::Tensor& pre, Keep keep) {
  if (keep == Keep::kNothing || slope_kept(keep, pre.scalar_type())) return with_room(pre, keep);
  return {pre, at::empty_like(pre)};
}

cuda::Ends ends_of(const EdgeIndex& edges) {
  return {index_data(edges.target), index_data(edges.source)};
}

}  // namespace

Activated gelu_rows_(const at::Tensor& pre, Keep keep) {
  const Activated rows = in_place(pre, keep);
  const cuda::RowActivation a{.product = data(pre, pre, pre.size(0)),
                              .at_target = nullptr,
                              .at_source = nullptr,
                              .bias = nullptr,
                              .ends = {},
                              .pre = nullptr,
                              .out = rows.out.data_ptr(),
                              .slope = slope_data(rows)};
  cuda::activate_rows(shape_of(pre), a, stream_of(pre));
  count_work("GELU", {pre, rows.out, a.slope ? rows.kept : at::Tensor()});
  return rows;
}

Activated add_ends_and_gelu_(const at::Tensor& product, const at::Tensor& at_target,
                             const at::Tensor& at_source, const at::Tensor& bias,
                             const EdgeIndex& edges, Keep keep) {
  const Activated rows = in_place(product, keep);
  const cuda::RowActivation a{.product = data(product, product, edges.num_edges),
                              .at_target = data(at_target, product, edges.num_targets),
                              .at_source = data(at_source, product, edges.num_sources),
                              .bias = vector_data(bias, product.size(1)),
                              .ends = ends_of(edges),
                              .pre = pre_data(rows),
                              .out = rows.out.data_ptr(),
                              .slope = slope_data(rows)};
  cuda::activate_rows(shape_of(product), a, stream_of(product));
  count_work("gather of both ends and GELU",
             {product, at_target, at_source, edges.target, edges.source, rows.kept, rows.out});
  return rows;
}

void add_column_sums(const at::Tensor& sum, const at::Tensor& rows) {
  const int64_t width = rows.size(1);
  const at::Tensor scratch = floats_like(rows, {cuda::column_sum_scratch(width)});
  cuda::column_sums(shape_of(rows), data(rows, rows, rows.size(0)), sum_data(sum, width),
                    scratch.data_ptr<float>(), stream_of(rows));
  count_work("sums of columns", {rows, sum});
}

namespace {

// Describes what a backward pass reads of a GELU, and where gelu(pre) goes if it is not there.
struct GeluSource {
  const void* pre = nullptr;
  const uint8_t* slope;
  at::Tensor activated;
  void* out = nullptr;
  GeluSource(const Activated& x, const at::Tensor& gradient)
      : slope(slope_data(x)), activated(x.out) {
    if (!activated.defined()) {
      activated = at::empty_like(gradient);
      out = activated.data_ptr();
    }
    AIFS_CHECK(x.kept.is_contiguous() && x.kept.sizes() == gradient.sizes(),
               "values kept of a GELU of shape ", x.kept.sizes(), " for ", gradient.sizes());
    if (!x.has_slope()) pre = data(x.kept, gradient, gradient.size(0));
  }
};

}  // namespace

at::Tensor gelu_backward_(const at::Tensor& gradient, const Activated& x,
                          const at::Tensor& bias_gradient) {
  const int64_t width = gradient.size(1);
  const GeluSource source(x, gradient);
  const at::Tensor scratch = floats_like(gradient, {cuda::column_sum_scratch(width)});
  const cuda::GeluBackward b{.pre = source.pre,
                             .slope = source.slope,
                             .gradient = data(gradient, gradient, gradient.size(0)),
                             .out = source.out,
                             .column_sum = sum_data(bias_gradient, width),
                             .scratch = scratch.data_ptr<float>()};
  cuda::gelu_backward(shape_of(gradient), b, stream_of(gradient));
  count_work("GELU backward",
             {gradient, gradient, x.kept, source.out ? source.activated : at::Tensor()});
  return source.activated;
}

namespace {

// x weight^T or, `backward`, x weight.
cuda::TallProduct product_of(const at::Tensor& x, const at::Tensor& weight, bool backward = false) {
  AIFS_CHECK(x.is_contiguous() && weight.stride(1) == 1, "operands of a product must be in rows");
  return {.rows = x.size(0),
          .width = weight.size(backward ? 1 : 0),
          .depth = x.size(1),
          .x = x.const_data_ptr(),
          .weight = weight.const_data_ptr(),
          .weight_stride = weight.stride(0)};
}

double operations_of(const cuda::TallProduct& p) {
  return 2.0 * static_cast<double>(p.rows * p.width * p.depth);
}

Activated rows_of_product(const at::Tensor& x, const at::Tensor& weight, Keep keep) {
  return with_room(at::empty({x.size(0), weight.size(0)}, x.options()), keep);
}

}  // namespace

namespace {

// True if the kernels can read such operands at all.
bool operands_fit(const at::Tensor& x, const at::Tensor& weight) {
  constexpr int64_t kAlignment = 8;
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() &&
         weight.stride(1) == 1 && weight.stride(0) % kAlignment == 0 &&
         reinterpret_cast<uintptr_t>(weight.const_data_ptr()) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(x.const_data_ptr()) % 16 == 0;
}

}  // namespace

bool product_fits(const at::Tensor& x, const at::Tensor& weight, int64_t width, int64_t depth) {
  return operands_fit(x, weight) && cuda::tall_product_supported(width, depth);
}

bool product_bias_fits(const at::Tensor& x, const at::Tensor& weight) {
  return operands_fit(x, weight) &&
         cuda::tall_product_bias_supported(weight.size(0), weight.size(1));
}

at::Tensor product_bias(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor out = at::empty({x.size(0), weight.size(0)}, x.options());
  const cuda::TallProduct product = product_of(x, weight);
  cuda::product_bias(product, {vector_data(bias, weight.size(0)), out.data_ptr()}, stream_of(x));
  count_work("product with bias", {x, weight, out}, operations_of(product));
  return out;
}

bool pair_product_fits(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight) {
  return operands_fit(a, weight) && operands_fit(b, weight) && a.sizes() == b.sizes() &&
         weight.size(1) == 2 * a.size(1) &&
         cuda::tall_product_of_pair_supported(weight.size(0), weight.size(1));
}

Activated product_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Keep keep, const at::Tensor& addend, const at::Tensor& more) {
  const Activated rows = rows_of_product(x, weight, keep);
  const cuda::ProductGelu g{.bias = vector_data(bias, weight.size(0)),
                            .addend = data(addend, rows.out, x.size(0)),
                            .at_target = nullptr,
                            .at_source = nullptr,
                            .ends = {},
                            .pre = pre_data(rows),
                            .out = rows.out.data_ptr(),
                            .slope = slope_data(rows)};
  cuda::TallProduct product = product_of(x, weight);
  if (more.defined()) {
    product.depth += more.size(1);
    product.more = more.const_data_ptr();
    product.more_depth = more.size(1);
  }
  cuda::product_gelu(product, g, stream_of(x));
  count_work("product with GELU", {x, more, weight, addend, rows.kept, rows.out},
             operations_of(product));
  return rows;
}

Activated edge_product_gelu(const at::Tensor& e, const at::Tensor& weight,
                            const at::Tensor& at_target, const at::Tensor& at_source,
                            const at::Tensor& bias, const EdgeIndex& edges, Keep keep) {
  const Activated rows = rows_of_product(e, weight, keep);
  AIFS_CHECK(e.size(0) == edges.num_edges, e.size(0), " rows for ", edges.num_edges, " edges");
  const cuda::ProductGelu g{.bias = vector_data(bias, weight.size(0)),
                            .addend = nullptr,
                            .at_target = data(at_target, rows.out, edges.num_targets),
                            .at_source = data(at_source, rows.out, edges.num_sources),
                            .ends = ends_of(edges),
                            .pre = pre_data(rows),
                            .out = rows.out.data_ptr(),
                            .slope = slope_data(rows)};
  const cuda::TallProduct product = product_of(e, weight);
  cuda::product_gelu(product, g, stream_of(e));
  count_work("product with gather of both ends and GELU",
             {e, weight, at_target, at_source, edges.target, edges.source, rows.kept, rows.out},
             operations_of(product));
  return rows;
}

ProductGeluGradient product_gelu_backward(const at::Tensor& d, const at::Tensor& weight,
                                          const Activated& x, const at::Tensor& bias_gradient) {
  const int64_t width = weight.size(1);
  const at::Tensor gradient = at::empty({d.size(0), width}, d.options());
  const GeluSource source(x, gradient);
  const at::Tensor scratch = floats_like(d, {cuda::column_sum_scratch(width)});
  const cuda::ProductGeluBackward b{.pre = source.pre,
                                    .slope = source.slope,
                                    .gradient = gradient.data_ptr(),
                                    .out = source.out,
                                    .column_sum = sum_data(bias_gradient, width),
                                    .scratch = scratch.data_ptr<float>()};
  const cuda::TallProduct product = product_of(d, weight, /*backward=*/true);
  cuda::product_gelu_backward(product, b, stream_of(d));
  count_work("product with the derivative of GELU",
             {d, weight, x.kept, gradient, source.out ? source.activated : at::Tensor()},
             operations_of(product));
  return {gradient, source.activated};
}

bool narrow_product_fits(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& x,
                         const at::Tensor& d_weight) {
  const auto fits = [](const at::Tensor& t) {
    return t.is_cuda() && t.scalar_type() == at::kBFloat16 && t.is_contiguous() &&
           reinterpret_cast<uintptr_t>(t.const_data_ptr()) % 16 == 0;
  };
  return fits(d) && fits(weight) && fits(x) && x.size(1) == cuda::kNarrowColumns &&
         weight.size(1) == cuda::kNarrowColumns && d_weight.scalar_type() == at::kFloat &&
         d_weight.is_contiguous() && cuda::narrow_product_supported(d.size(1));
}

at::Tensor narrow_product_backward(const at::Tensor& d, const at::Tensor& weight,
                                   const at::Tensor& x, const at::Tensor& d_weight) {
  AIFS_CHECK(d.size(0) == x.size(0) && d.size(1) == weight.size(0) &&
                 d_weight.size(0) == d.size(1) && d_weight.size(1) <= x.size(1),
             "gradients ", d.sizes(), ", rows ", x.sizes(), " and weight ", weight.sizes());
  const at::Tensor d_x = at::empty_like(x);
  const at::Tensor scratch = floats_like(d, {cuda::column_sum_scratch(d_weight.numel())});
  const cuda::NarrowProduct p{.rows = d.size(0),
                              .width = d.size(1),
                              .weight_columns = d_weight.size(1),
                              .d = d.const_data_ptr(),
                              .x = x.const_data_ptr(),
                              .weight = weight.const_data_ptr(),
                              .d_x = d_x.data_ptr(),
                              .d_weight = d_weight.data_ptr<float>(),
                              .scratch = scratch.data_ptr<float>()};
  cuda::narrow_product_backward(p, stream_of(d));
  count_work("linear of few inputs backward", {d, x, weight, d_x, d_weight, d_weight},
             4.0 * static_cast<double>(d.numel() * x.size(1)));
  return d_x;
}

at::Tensor product_sum(const at::Tensor& d, const at::Tensor& weight, const at::Tensor& rows,
                       const at::Tensor& at_target, const EdgeIndex* edges) {
  if (!rows.defined() && !at_target.defined()) return at::mm(d, weight);
  const at::Tensor out = at::empty({d.size(0), weight.size(1)}, d.options());
  cuda::ProductSum s{.addend = data(rows, out, d.size(0)),
                     .at_target = nullptr,
                     .target = nullptr,
                     .out = out.data_ptr()};
  if (at_target.defined()) {
    AIFS_CHECK(d.size(0) == edges->num_edges, d.size(0), " rows for ", edges->num_edges, " edges");
    s.at_target = data(at_target, out, edges->num_targets);
    s.target = index_data(edges->target);
  }
  const cuda::TallProduct product = product_of(d, weight, /*backward=*/true);
  cuda::product_sum(product, s, stream_of(d));
  count_work("product with an addend",
             {d, weight, rows, at_target, edges ? edges->target : at::Tensor(), out},
             operations_of(product));
  return out;
}

bool pair_sum_fits(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight) {
  return operands_fit(a, weight) && operands_fit(b, weight) && a.sizes() == b.sizes() &&
         weight.size(0) == a.size(1) &&
         cuda::tall_product_of_pair_supported(weight.size(1) / 2, 2 * a.size(1));
}

at::Tensor pair_product_sum(const at::Tensor& a, const at::Tensor& b, const at::Tensor& weight,
                            const at::Tensor& rows) {
  const int64_t width = weight.size(1) / 2;
  const at::Tensor out = at::empty({a.size(0), width}, a.options());
  cuda::TallProduct product = product_of(a, weight.narrow(1, 0, width), /*backward=*/true);
  product.depth += b.size(1);
  product.more = b.const_data_ptr();
  product.more_depth = b.size(1);
  cuda::product_sum(product,
                    {.addend = data(rows, out, a.size(0)),
                     .at_target = nullptr,
                     .target = nullptr,
                     .out = out.data_ptr()},
                    stream_of(a));
  count_work("product with an addend", {a, b, weight, rows, out}, operations_of(product));
  return out;
}

NormResult norm_rows(const at::Tensor& z, const at::Tensor& residual, const NormParameters& norm,
                     const EdgeIndex* sum_over, bool rows_wanted) {
  const int64_t width = z.size(1);
  NormResult result{
      rows_wanted ? at::empty_like(z) : at::Tensor(), {}, floats_like(z, {z.size(0), 2})};
  cuda::NormForward f{.z = data(z, z, z.size(0)),
                      .addend = nullptr,
                      .residual = data(residual, z, z.size(0)),
                      .weight = vector_data(norm.weight, width),
                      .bias = vector_data(norm.bias, width),
                      .eps = static_cast<float>(norm.eps),
                      .groups = {},
                      .out = data(result.rows, z, z.size(0)),
                      .sums = nullptr,
                      .z_sum = nullptr,
                      .statistics = result.statistics.data_ptr<float>()};
  if (sum_over) {
    result.sums = at::empty({sum_over->num_targets, width}, z.options());
    f.groups = {sum_over->num_targets, index_data(sum_over->target_begin), nullptr};
    f.sums = result.sums.data_ptr();
  }
  cuda::layer_norm_forward(shape_of(z), f, stream_of(z));
  count_work("LayerNorm", {z, residual, result.rows, result.sums, result.statistics});
  return result;
}

SumAndNorm norm_sum(const at::Tensor& x, const at::Tensor& addend, const NormParameters& norm) {
  const int64_t rows = x.size(0), width = x.size(1);
  const SumAndNorm result{at::empty_like(x), at::empty_like(x), floats_like(x, {rows, 2})};
  const cuda::NormForward f{.z = data(x, x, rows),
                            .addend = data(addend, x, rows),
                            .residual = nullptr,
                            .weight = vector_data(norm.weight, width),
                            .bias = vector_data(norm.bias, width),
                            .eps = static_cast<float>(norm.eps),
                            .groups = {},
                            .out = result.rows.data_ptr(),
                            .sums = nullptr,
                            .z_sum = result.sum.data_ptr(),
                            .statistics = result.statistics.data_ptr<float>()};
  cuda::layer_norm_forward(shape_of(x), f, stream_of(x));
  count_work("LayerNorm", {x, addend, result.sum, result.rows, result.statistics});
  return result;
}

NormGradient norm_backward(const at::Tensor& d_rows, const at::Tensor& d_sums, const at::Tensor& z,
                           const at::Tensor& statistics, const NormParameters& norm,
                           const EdgeIndex* sum_over, const NormSums& sums, bool residual_wanted,
                           const at::Tensor& d_past) {
  const int64_t rows = z.size(0), width = z.size(1);
  const NormGradient result{residual_wanted ? at::empty_like(z) : at::Tensor(), at::empty_like(z)};
  const at::Tensor scratch = floats_like(z, {cuda::column_sum_scratch(3 * width)});
  const cuda::NormBackward b{
      .d_out = data(d_rows, z, rows),
      .d_sums = d_sums.defined() ? data(d_sums, z, sum_over->num_targets) : nullptr,
      .d_past = data(d_past, z, rows),
      .target = d_sums.defined() ? index_data(sum_over->target) : nullptr,
      .z = data(z, z, rows),
      .weight = vector_data(norm.weight, width),
      .statistics = statistics.const_data_ptr<float>(),
      .d_residual = data(result.d_residual, z, rows),
      .d_z = result.d_z.data_ptr(),
      .weight_sum = sum_data(sums.weight, width),
      .bias_sum = sum_data(sums.bias, width),
      .z_sum = sum_data(sums.z, width),
      .scratch = scratch.data_ptr<float>()};
  cuda::layer_norm_backward(shape_of(z), b, stream_of(z));
  count_work("LayerNorm backward",
             {d_rows, d_sums, d_past, d_sums.defined() ? sum_over->target : at::Tensor(), z,
              statistics, result.d_residual, result.d_z});
  return result;
}

at::Tensor sum_edges(const at::Tensor& rows, const EdgeIndex& edges, bool at_targets) {
  const int64_t nodes = at_targets ? edges.num_targets : edges.num_sources;
  at::Tensor out = at::empty({nodes, rows.size(1)}, rows.options());
  const cuda::Groups groups{nodes, index_data(at_targets ? edges.target_begin : edges.source_begin),
                            at_targets ? nullptr : index_data(edges.source_edges)};
  cuda::segment_sum(shape_of(rows), data(rows, rows, edges.num_edges), groups, out.data_ptr(),
                    stream_of(rows));
  count_work("sums of edges at nodes", {rows, out, at_targets ? at::Tensor() : edges.source_edges});
  return out;
}

}  // namespace aifs::model::cuda_rows

#else

namespace aifs::model::cuda_rows {

namespace {
[[noreturn]] void absent() {
  throw Error("this program was built without CUDA");
}
}  // namespace

bool supports(at::ScalarType, int64_t) {
  return false;
}
bool gelu_supports(at::ScalarType, int64_t) {
  return false;
}
void add_column_sums(const at::Tensor&, const at::Tensor&) {
  absent();
}
SumAndNorm norm_sum(const at::Tensor&, const at::Tensor&, const NormParameters&) {
  absent();
}
Activated gelu_rows_(const at::Tensor&, Keep) {
  absent();
}
Activated add_ends_and_gelu_(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                             const at::Tensor&, const EdgeIndex&, Keep) {
  absent();
}
at::Tensor gelu_backward_(const at::Tensor&, const Activated&, const at::Tensor&) {
  absent();
}
NormResult norm_rows(const at::Tensor&, const at::Tensor&, const NormParameters&, const EdgeIndex*,
                     bool) {
  absent();
}
NormGradient norm_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                           const at::Tensor&, const NormParameters&, const EdgeIndex*,
                           const NormSums&, bool, const at::Tensor&) {
  absent();
}
at::Tensor sum_edges(const at::Tensor&, const EdgeIndex&, bool) {
  absent();
}
bool product_fits(const at::Tensor&, const at::Tensor&, int64_t, int64_t) {
  return false;
}
bool product_bias_fits(const at::Tensor&, const at::Tensor&) {
  return false;
}
at::Tensor product_bias(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  absent();
}
bool pair_product_fits(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return false;
}
bool pair_sum_fits(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return false;
}
at::Tensor pair_product_sum(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&) {
  absent();
}
Activated product_gelu(const at::Tensor&, const at::Tensor&, const at::Tensor&, Keep,
                       const at::Tensor&, const at::Tensor&) {
  absent();
}
Activated edge_product_gelu(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                            const at::Tensor&, const at::Tensor&, const EdgeIndex&, Keep) {
  absent();
}
ProductGeluGradient product_gelu_backward(const at::Tensor&, const at::Tensor&, const Activated&,
                                          const at::Tensor&) {
  absent();
}
bool narrow_product_fits(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                         const at::Tensor&) {
  return false;
}
at::Tensor narrow_product_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                   const at::Tensor&) {
  absent();
}
at::Tensor product_sum(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                       const EdgeIndex*) {
  absent();
}

}  // namespace aifs::model::cuda_rows

#endif

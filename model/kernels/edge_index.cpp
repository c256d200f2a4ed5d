// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/edge_index.h"

#include <ATen/ATen.h>

#include "core/check.h"

namespace aifs::model {

namespace {

// Returns where the runs of equal values start in an ascending list of numbers below n; (n + 1)
// int32.
at::Tensor run_starts(const at::Tensor& ascending, int64_t n) {
  at::Tensor begin = at::zeros({n + 1}, at::kInt);
  int32_t* starts = begin.data_ptr<int32_t>();
  const int32_t* values = ascending.const_data_ptr<int32_t>();
  for (int64_t i = 0; i < ascending.numel(); ++i)
    ++starts[values[i] + 1];
  for (int64_t i = 0; i < n; ++i)
    starts[i + 1] += starts[i];
  return begin;
}

}  // namespace

std::shared_ptr<const EdgeIndex> EdgeIndex::create(const at::Tensor& source,
                                                   const at::Tensor& target, int64_t num_sources,
                                                   int64_t num_targets) {
  auto index = std::make_shared<EdgeIndex>();
  index->num_sources = num_sources;
  index->num_targets = num_targets;
  index->num_edges = source.numel();
  index->source = source.to(at::kCPU, at::kInt).contiguous();
  index->target = target.to(at::kCPU, at::kInt).contiguous();
  AIFS_CHECK(target.numel() == source.numel(), "uneven edge lists");
  const int32_t* s = index->source.const_data_ptr<int32_t>();
  const int32_t* t = index->target.const_data_ptr<int32_t>();
  for (int64_t e = 0; e < index->num_edges; ++e) {
    AIFS_CHECK(s[e] >= 0 && s[e] < num_sources && t[e] >= 0 && t[e] < num_targets, "edge ", e,
               " joins ", s[e], " and ", t[e]);
    AIFS_CHECK(e == 0 || t[e - 1] <= t[e], "edges are not sorted by target at ", e);
  }
  index->target_begin = run_starts(index->target, num_targets);
  const at::Tensor order = at::argsort(index->source, /*stable=*/true, 0, /*descending=*/false);
  index->source_edges = order.to(at::kInt);
  index->source_begin = run_starts(index->source.index_select(0, order), num_sources);
  return index;
}

std::shared_ptr<const EdgeIndex> EdgeIndex::repeat(int64_t copies) const {
  const auto tile = [&](const at::Tensor& values, int64_t step) {
    return (values.unsqueeze(0) + at::arange(copies, at::kInt).unsqueeze(1) * step)
        .to(at::kInt)
        .reshape({-1});
  };
  return create(tile(source.cpu(), num_sources), tile(target.cpu(), num_targets),
                copies * num_sources, copies * num_targets);
}

std::shared_ptr<const EdgeIndex> EdgeIndex::with_each(
    const std::function<at::Tensor(const at::Tensor&)>& replace) const {
  auto other = std::make_shared<EdgeIndex>(*this);
  for (at::Tensor* tensor : {&other->source, &other->target, &other->target_begin,
                             &other->source_begin, &other->source_edges}) {
    *tensor = replace(*tensor);
  }
  return other;
}

std::shared_ptr<const EdgeIndex> EdgeIndex::to(at::Device device) const {
  return with_each([&](const at::Tensor& tensor) { return tensor.to(device); });
}

}  // namespace aifs::model

// SPDX-License-Identifier: Apache-2.0
#include "train/loss/node_slice.h"

#include <ATen/ATen.h>

#include "parallel/autograd.h"
#include "train/loss/scalers.h"

namespace aifs::train {

NodeSlice slice_of_group(const parallel::Counts& counts, parallel::Communicator& group) {
  const parallel::Counts starts = starts_of(counts);
  NodeSlice slice;
  slice.first = starts[static_cast<size_t>(group.rank())];
  slice.total = starts.back();
  if (group.size() == 1) return slice;
  slice.reduce = [&group](const at::Tensor& partial) {
    return parallel::total_over_ranks(partial, group);
  };
  slice.collect = [&group, counts](const at::Tensor& field) {
    return parallel::whole_rows(field.movedim(kGrid, 0).contiguous(), counts, group)
        .movedim(0, kGrid)
        .contiguous();
  };
  return slice;
}

}  // namespace aifs::train

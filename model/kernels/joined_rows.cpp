// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/joined_rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "model/base/filling.h"

#ifdef AIFS_HAVE_CUDA
#include "model/kernels/count_work.h"
#include "model/kernels/cuda/joined_rows.h"
#include "model/kernels/cuda_call.h"
#endif

namespace aifs::model {

namespace {

#ifdef AIFS_HAVE_CUDA
bool kernel_fits(const std::vector<at::Tensor>& pieces, const at::Tensor& rows) {
  const at::ScalarType type = rows.scalar_type();
  const auto piece_fits = [type](const at::Tensor& piece) {
    return piece.is_cuda() && piece.stride(2) == 1 &&
           (piece.scalar_type() == at::kFloat || piece.scalar_type() == type);
  };
  return rows.is_cuda() && (type == at::kBFloat16 || type == at::kHalf) && rows.size(1) % 8 == 0 &&
         rows.numel() < int64_t{1} << 32 && pieces.size() <= cuda::kMaxPieces &&
         std::all_of(pieces.begin(), pieces.end(), piece_fits);
}

void join_by_kernel(const std::vector<at::Tensor>& pieces, const at::Tensor& rows) {
  cuda::JoinedRows j{.rows = rows.size(0),
                     .rows_per_batch = static_cast<uint32_t>(pieces[0].size(1)),
                     .width = static_cast<int>(rows.size(1)),
                     .type = *element_type(rows.scalar_type()),
                     .num_pieces = static_cast<int>(pieces.size()),
                     .pieces = {},
                     .out = rows.data_ptr()};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const at::Tensor& piece = pieces[i];
    j.pieces[i] = {piece.const_data_ptr(), piece.stride(0), piece.stride(1),
                   static_cast<int>(piece.size(2)), piece.scalar_type() == at::kFloat};
  }
  cuda::join_rows(j, stream_of(rows));
  std::vector<at::Tensor> tensors = pieces;
  tensors.push_back(rows);
  count_work("columns joined to rows", tensors);
}
#endif

}  // namespace

at::Tensor joined_rows(const std::vector<at::Tensor>& pieces, const at::TensorOptions& options,
                       bool filled) {
  AIFS_CHECK(!pieces.empty(), "no columns");
  const int64_t batch = pieces[0].size(0), count = pieces[0].size(1);
  int64_t width = 0;
  for (const at::Tensor& piece : pieces) {
    AIFS_CHECK(piece.dim() == 3 && piece.size(0) == batch && piece.size(1) == count,
               "columns of shape ", piece.sizes(), " beside ", pieces[0].sizes());
    width += piece.size(2);
  }
  const int64_t more = filled ? padding(options, width) : 0;
  const at::Tensor rows = at::empty({batch * count, width + more}, options);
#ifdef AIFS_HAVE_CUDA
  if (kernel_fits(pieces, rows)) {
    join_by_kernel(pieces, rows);
    return rows;
  }
#endif
  const at::Tensor view = rows.view({batch, count, width + more});
  int64_t first = 0;
  for (const at::Tensor& piece : pieces) {
    view.narrow(2, first, piece.size(2)).copy_(piece);
    first += piece.size(2);
  }
  if (more > 0) view.narrow(2, width, more).zero_();
  return rows;
}

}  // namespace aifs::model

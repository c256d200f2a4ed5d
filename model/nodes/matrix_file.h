// SPDX-License-Identifier: Apache-2.0
// Sparse matrices between node sets from files.
#pragma once

#include <string>

#include "model/kernels/sparse_product.h"

namespace aifs::model {

// A matrix that scipy.sparse.save_npz wrote, or of a file *.safetensors with the tensors index
// (2, M), rows first and columns second, value (M) and shape (2). Throws ConfigError at `path`, the
// option that names the file, for what is no such file, and for another size than the one asked for
// (-1: any). Throws DataError naming file and entry for values that are not finite.
SparseMatrix read_matrix(const std::string& file, int64_t num_rows, int64_t num_columns,
                         const std::string& path);

}  // namespace aifs::model

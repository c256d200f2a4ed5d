// SPDX-License-Identifier: Apache-2.0
// Files of NumPy arrays (.npz): zip archives whose members are stored or deflated, as numpy.savez
// and scipy.sparse.save_npz write them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/file_io.h"

namespace aifs {

// Throws DataError naming file and array for anything that is not there, damaged, in Fortran order,
// or of a type that the call does not give.
class NpzFile {
 public:
  explicit NpzFile(const fs::path& path);

  // Elements in the order of the file; any shape.
  std::vector<double> numbers(const std::string& array) const;    // f4, f8
  std::vector<int64_t> integers(const std::string& array) const;  // i4, i8
  std::string text(const std::string& array) const;               // one byte string

 private:
  struct Array;
  Array read(const std::string& array) const;

  MappedFile file_;
};

// The entries of a sparse matrix: value[e] at row[e], column[e].
struct SparseEntries {
  int64_t num_rows = 0, num_columns = 0;
  std::vector<int64_t> row, column;
  std::vector<float> value;
};

// A matrix of scipy.sparse.save_npz in its format csr, csc or coo. Throws DataError, also for
// indices outside the matrix and for another shape than the one asked for (-1: any).
SparseEntries read_sparse_npz(const fs::path& path, int64_t num_rows = -1,
                              int64_t num_columns = -1);

}  // namespace aifs

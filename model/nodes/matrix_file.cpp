// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/matrix_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/npz.h"
#include "core/safetensors.h"

namespace aifs::model {

namespace {

SparseEntries read_safetensors(const std::string& file) {
  const SafetensorsFile tensors(file);
  const std::vector<int64_t> shape = tensors.integers("shape"), index = tensors.integers("index");
  const std::vector<double> values = tensors.doubles("value");
  const size_t count = values.size();
  const auto fail = [&](const std::string& what) {
    throw DataError(concat("'", file, "': ", what));
  };
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (shape.size() != 2 || std::min(shape[0], shape[1]) < 0 || std::max(shape[0], shape[1]) > kMost)
    fail("'shape' is not that of a matrix");
  if (index.size() != 2 * count)
    fail(concat("'index' has ", index.size(), " numbers for ", count, " values"));
  SparseEntries entries;
  entries.num_rows = shape[0];
  entries.num_columns = shape[1];
  const auto middle = index.begin() + static_cast<std::ptrdiff_t>(count);
  entries.row.assign(index.begin(), middle);
  entries.column.assign(middle, index.end());
  entries.value.assign(values.begin(), values.end());
  const auto within = [](const std::vector<int64_t>& list, int64_t size) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i >= 0 && i < size; });
  };
  if (!within(entries.row, shape[0]) || !within(entries.column, shape[1]))
    fail("indices that are outside the matrix");
  return entries;
}

std::string size_text(int64_t size) {
  return size < 0 ? "any" : concat(size);
}

}  // namespace

SparseMatrix read_matrix(const std::string& file, int64_t num_rows, int64_t num_columns,
                         const std::string& path) {
  SparseEntries m;
  try {
    m = file.ends_with(".safetensors") ? read_safetensors(file) : read_sparse_npz(file);
  } catch (const Error& error) {
    throw ConfigError(path, error.what(), error.hint());
  }
  const auto fits = [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; };
  if (!fits(m.num_rows, num_rows) || !fits(m.num_columns, num_columns)) {
    throw ConfigError(
        path, concat("'", file, "' is a matrix of ", m.num_rows, " x ", m.num_columns, " where ",
                     size_text(num_rows), " x ", size_text(num_columns), " is needed"));
  }
  for (size_t e = 0; e < m.value.size(); ++e) {
    if (std::isfinite(m.value[e])) continue;
    throw DataError(concat("'", file, "': entry (", m.row[e], ", ", m.column[e], ") is ",
                           m.value[e], ", not a finite number in f32"),
                    concat(path, " names the file"));
  }
  const auto indices = [](const std::vector<int64_t>& list) { return at::tensor(list, at::kLong); };
  return SparseMatrix::create(indices(m.row), indices(m.column),
                              at::tensor(at::ArrayRef<float>(m.value), at::kFloat), m.num_rows,
                              m.num_columns);
}

}  // namespace aifs::model

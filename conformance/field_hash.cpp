// SPDX-License-Identifier: Apache-2.0
#include "conformance/field_hash.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "conformance/report.h"

namespace aifs::conformance {

namespace {

template <class T>
void canonicalise(std::vector<T>& values) {
  for (T& value : values) {
    if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
  }
}

// Everything in the brackets, split at commas.
std::vector<std::string> index_texts(const std::string& text) {
  const size_t open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    throw Error(concat("'", text, "' is no slice"));
  }
  std::vector<std::string> parts(1);
  for (const char c : text.substr(open + 1, close - open - 1)) {
    if (c == ',') {
      parts.emplace_back();
    } else if (c != ' ') {
      parts.back() += c;
    }
  }
  return parts;
}

int64_t position(const std::string& text, int64_t length, int64_t if_empty) {
  if (text.empty()) return if_empty;
  const int64_t number = std::stoll(text);
  return std::clamp<int64_t>(number < 0 ? number + length : number, 0, length);
}

AxisIndex parse_index(const std::string& text, int64_t length) {
  static const std::regex kIndex("-?\\d+|(?:-?\\d+)?:(?:-?\\d+)?");
  if (!std::regex_match(text, kIndex)) throw NotUnderstood(concat("the index '", text, "'"));
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    const int64_t at = position(text, length, 0);
    return {at, at + 1, true};
  }
  return {position(text.substr(0, colon), length, 0),
          position(text.substr(colon + 1), length, length), false};
}

}  // namespace

void add_to_hash(std::vector<float> values, Sha256& hash) {
  canonicalise(values);
  hash.update(values.data(), values.size() * sizeof(float));
}

std::string hash_of(std::vector<float> values) {
  Sha256 hash;
  add_to_hash(std::move(values), hash);
  return hash.finish();
}

std::string hash_of(std::vector<double> values) {
  canonicalise(values);
  Sha256 hash;
  hash.update(values.data(), values.size() * sizeof(double));
  return hash.finish();
}

std::vector<AxisIndex> parse_slice(const std::string& text, const std::vector<int64_t>& shape) {
  const std::vector<std::string> texts = index_texts(text);
  if (texts.size() > shape.size()) throw Error(concat("'", text, "' has too many indices"));
  std::vector<AxisIndex> slice;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool all = axis >= texts.size() || texts[axis] == "...";
    slice.push_back(all ? AxisIndex{0, shape[axis], false} : parse_index(texts[axis], shape[axis]));
  }
  return slice;
}

std::vector<int64_t> shape_of(const std::vector<AxisIndex>& slice) {
  std::vector<int64_t> shape;
  for (const AxisIndex& index : slice) {
    if (!index.single) shape.push_back(index.end - index.begin);
  }
  return shape;
}

std::string hash_of(const zarr::Array& array, const std::vector<AxisIndex>& slice) {
  zarr::Region region;
  for (const AxisIndex& index : slice) {
    region.begin.push_back(index.begin);
    region.end.push_back(index.end);
  }
  Sha256 hash;  // row by row: the whole array may not fit
  for (int64_t row = slice[0].begin; row < slice[0].end; ++row) {
    region.begin[0] = row;
    region.end[0] = row + 1;
    add_to_hash(array.read<float>(region), hash);
  }
  return hash.finish();
}

std::vector<float> read_slice(const data::Dataset& dataset, const std::vector<AxisIndex>& slice) {
  const data::DatasetInfo& info = dataset.info();
  const data::NodeRange nodes{slice[3].begin, slice[3].end};
  std::vector<float> rows(
      static_cast<size_t>(info.ensemble_size * nodes.size() * info.num_variables()));
  std::vector<float> values;
  for (int64_t row = slice[0].begin; row < slice[0].end; ++row) {
    dataset.read(row, nodes, rows);
    for (int64_t v = slice[1].begin; v < slice[1].end; ++v) {
      for (int64_t e = slice[2].begin; e < slice[2].end; ++e) {
        for (int64_t n = 0; n < nodes.size(); ++n) {
          values.push_back(
              rows[static_cast<size_t>((e * nodes.size() + n) * info.num_variables() + v)]);
        }
      }
    }
  }
  return values;
}

std::vector<float> read_fields(const data::Dataset& dataset, int64_t row) {
  const data::DatasetInfo& info = dataset.info();
  return read_slice(
      dataset,
      {{row, row + 1}, {0, info.num_variables()}, {0, info.ensemble_size}, {0, info.num_nodes()}});
}

std::string hash_of_readable_rows(const data::Dataset& dataset) {
  const std::vector<int64_t>& missing = dataset.info().missing_rows;
  Sha256 hash;
  for (int64_t row = 0; row < dataset.info().num_rows(); ++row) {
    if (std::binary_search(missing.begin(), missing.end(), row)) continue;
    add_to_hash(read_fields(dataset, row), hash);
  }
  return hash.finish();
}

}  // namespace aifs::conformance

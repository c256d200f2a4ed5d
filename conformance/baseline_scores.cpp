// SPDX-License-Identifier: Apache-2.0
#include "conformance/baseline_scores.h"

#include <cmath>
#include <numbers>

namespace aifs::conformance {

namespace {

// (E, N, V) of one row.
std::vector<float> read_row(const data::Dataset& dataset, int64_t row) {
  const data::DatasetInfo& info = dataset.info();
  std::vector<float> fields(
      static_cast<size_t>(info.ensemble_size * info.num_nodes() * info.num_variables()));
  dataset.read(row, {0, info.num_nodes()}, fields);
  return fields;
}

// Collects weighted squared errors per variable.
class ErrorSum {
 public:
  explicit ErrorSum(const data::DatasetInfo& info)
      : num_variables_(info.variables.size()), sums_(num_variables_, 0.0) {
    for (const double latitude_deg : info.latitudes_deg)
      cell_weights_.push_back(std::cos(latitude_deg * std::numbers::pi / 180.0));
  }

  template <class Forecast>
  void add(const std::vector<float>& truth, const std::vector<Forecast>& forecast) {
    for (size_t i = 0; i < truth.size(); ++i) {
      const double weight = cell_weights_[i / num_variables_ % cell_weights_.size()];
      const double error = double{truth[i]} - double{forecast[i]};
      sums_[i % num_variables_] += weight * error * error;
      total_weight_ += i % num_variables_ == 0 ? weight : 0.0;
    }
  }

  std::vector<double> rmse() const {
    std::vector<double> result;
    for (const double sum : sums_)
      result.push_back(std::sqrt(sum / total_weight_));
    return result;
  }

 private:
  size_t num_variables_;
  std::vector<double> sums_;
  std::vector<double> cell_weights_;
  double total_weight_ = 0.0;
};

}  // namespace

std::vector<double> persistence_rmse(const data::Dataset& dataset, int64_t first, int64_t end,
                                     int64_t lag) {
  ErrorSum errors(dataset.info());
  for (int64_t row = first + lag; row < end; ++row)
    errors.add(read_row(dataset, row), read_row(dataset, row - lag));
  return errors.rmse();
}

std::vector<double> mean_rmse(const data::Dataset& dataset, RowRange training,
                              RowRange validation) {
  const auto num_rows = static_cast<double>(training.second - training.first);
  std::vector<double> mean;
  for (int64_t row = training.first; row < training.second; ++row) {
    const std::vector<float> fields = read_row(dataset, row);
    mean.resize(fields.size(), 0.0);
    for (size_t i = 0; i < fields.size(); ++i)
      mean[i] += double{fields[i]} / num_rows;
  }
  ErrorSum errors(dataset.info());
  for (int64_t row = validation.first; row < validation.second; ++row)
    errors.add(read_row(dataset, row), mean);
  return errors.rmse();
}

}  // namespace aifs::conformance

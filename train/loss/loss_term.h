// SPDX-License-Identifier: Apache-2.0
// A loss as training, validation and tests call it, whatever it is made of: elementary losses (each
// with its scalers and its pairs of variables) and sums, scales or time aggregates of losses.
// Losses are immutable; what changes from call to call is in LossCall.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/loss/loss.h"

namespace aifs::train {

// The name of the imputer's mask of a batch as a scaler.
inline constexpr const char* kNanMaskName = "nan_mask_weights";

struct LossCall {
  OverVariables over_variables = OverVariables::kMean;
  std::optional<std::vector<int64_t>> columns = {};    // predicted columns; empty: all
  std::function<bool(const Scaler&)> leaves_out = {};  // scalers not to apply
  std::optional<Scaler> nan_mask = {};                 // replaces scalers that stand for it
  NodeSlice nodes = {};
};

// Calls that leave scalers out: those that act on an axis, or the one of a name.
LossCall without(Axis axis);
LossCall without(const std::string& scaler);

// A predicted variable and the column of the target it is compared with.
struct ColumnPair {
  int64_t predicted = 0, target = 0;
};

class Loss {
 public:
  virtual ~Loss() = default;

  // prediction (B, T, E, N, V_out), target (B, T, 1 or E, N, V), normalised. Scalar, or (V_out)
  // with kKeep: 0 for variables that no part looks at. fp64, like the sums over the grid.
  virtual at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                                const LossCall& call = {}) const = 0;
};

using LossPtr = std::shared_ptr<const Loss>;

struct ElementaryOptions {
  std::vector<Scaler> scalers = {};      // cover all V_out, whatever the columns
  std::vector<ColumnPair> columns = {};  // empty: all, the target is in model-output order
  bool ignore_nans = false;
};

// Selects columns of fields and scalers, brings the fields together if they are needed whole, and
// leaves the rest to the formula.
class ElementaryLoss : public Loss {
 public:
  explicit ElementaryLoss(ElementaryOptions options) : options_(std::move(options)) {}

  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        const LossCall& call = {}) const final;

 protected:
  struct Fields {
    at::Tensor prediction, target;  // the selected columns, of the same number
    std::vector<Scaler> scalers;    // for them
    OverVariables over_variables = OverVariables::kMean;
    NodeSlice nodes;  // of the fields; all nodes for a loss that needs them whole
  };
  // Scalar or (number of columns); fp64 sums may be returned as they are.
  virtual at::Tensor value(const Fields& fields) const = 0;
  // True if a node's error depends on other nodes.
  virtual bool needs_all_nodes() const { return false; }

  bool ignore_nans() const { return options_.ignore_nans; }

 private:
  std::vector<Scaler> scalers_of(const LossCall& call,
                                 const std::optional<std::vector<int64_t>>& columns) const;

  ElementaryOptions options_;
};

class PointwiseTerm : public ElementaryLoss {
 public:
  PointwiseTerm(PointwiseError error, ElementaryOptions options)
      : ElementaryLoss(std::move(options)), error_(std::move(error)) {}

 protected:
  at::Tensor value(const Fields& fields) const override;

 private:
  PointwiseError error_;
};

// The weighted sum of losses; none: 0.
class WeightedSum : public Loss {
 public:
  struct Part {
    LossPtr loss;
    double weight = 1.0;
  };
  explicit WeightedSum(std::vector<Part> parts) : parts_(std::move(parts)) {}

  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        const LossCall& call = {}) const override;

 private:
  std::vector<Part> parts_;
};

// The mean of a loss of aggregates over the output times: mean, minimum or maximum of prediction
// and target, or their differences from one time to the next, each weighted by the time scaler.
// The loss itself is called without scalers over time. Needs two output times at least.
enum class TimeAggregate { kMean, kMin, kMax, kDiff };

class TimeAggregateLoss : public Loss {
 public:
  // `time_weights` (T) or undefined: 1 each.
  TimeAggregateLoss(std::vector<TimeAggregate> kinds, LossPtr loss, at::Tensor time_weights)
      : kinds_(std::move(kinds)), loss_(std::move(loss)), time_weights_(std::move(time_weights)) {}

  at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& target,
                        const LossCall& call = {}) const override;

 private:
  at::Tensor of_kind(TimeAggregate kind, const at::Tensor& prediction, const at::Tensor& target,
                     const LossCall& call) const;

  std::vector<TimeAggregate> kinds_;
  LossPtr loss_;
  at::Tensor time_weights_;
};

constexpr auto enum_table(TimeAggregate) {
  using enum TimeAggregate;
  return std::to_array<EnumName<TimeAggregate>>(
      {{kMean, "mean"}, {kMin, "min"}, {kMax, "max"}, {kDiff, "diff"}});
}

}  // namespace aifs::train

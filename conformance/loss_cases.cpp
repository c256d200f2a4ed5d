// SPDX-License-Identifier: Apache-2.0
// Losses and the scalers that weigh them. Scalers are computed from their options, where a file has
// them, and compared with the stored ones; the losses use the computed ones.
#include <ATen/ATen.h>

#include <optional>

#include "conformance/cases.h"
#include "conformance/limits.h"
#include "conformance/loss_build.h"
#include "conformance/model_setup.h"
#include "conformance/tensors.h"

namespace aifs::conformance {

namespace {

using train::LossCall;
using train::OverVariables;

// Limits of the reference data in float64: values, and gradients of the largest element.
constexpr double kValueF64 = 1e-12;
constexpr double kTiny = 1e-300;  // of a gradient that is zero everywhere
// Two units in the last place: a norm may add its weights up in another order.
constexpr double kScaler = 2.4e-7;
constexpr double kMatrix = 1e-6;  // of weights that sum to about 1

void check_scaler(const LossFile& file, const std::string& name, Comparison& comparison) {
  const at::Tensor values = build_case_scaler({file, "input/"}, name, {}).factor;
  if (!values.defined()) {
    // The stored one is a placeholder; the mask belongs to the batch.
    const at::Tensor mask = read_tensor(file.tensors, "input/nan_mask");
    comparison.require(at::logical_or(mask == 0, mask == 1).all().item<bool>(),
                       "the mask holds other values than 0 and 1");
    return;
  }
  const at::Tensor stored = read_tensor(file.tensors, "scaler/" + name).reshape(values.sizes());
  const at::Tensor scale = at::where(stored == 0, at::ones({}), stored);
  comparison.add(name, max_difference(values / scale, stored / scale), kScaler);
}

// A loss with its fields in one precision.
struct LossCase {
  BuiltLoss built;
  at::Tensor prediction;  // model-output columns
  at::Tensor target;      // all dataset columns
  std::optional<train::Scaler> nan_mask = {};

  at::Tensor value(const at::Tensor& of_prediction, LossCall call = {}) const {
    call.nan_mask = nan_mask;
    return (*built.loss)(of_prediction, target, call);
  }
  at::Tensor value(const LossCall& call = {}) const { return value(prediction, call); }
};

LossCase make_case(const LossGrid& grid, const Json& json, at::ScalarType dtype,
                   const std::vector<train::SparseRowsPtr>& matrices = {}) {
  const auto input = json.at("input").get<std::string>();
  const at::Tensor weights =
      input == "det_weights" ? grid.read("sample_weights", dtype) : at::Tensor();
  LossCase result;
  result.built = build_case_loss(grid, json.at("config"), weights, {.dtype = dtype}, matrices);
  if (input == "det" || input == "det_weights") {
    result.prediction = grid.read("pred", dtype);
  } else if (input == "det_nan") {
    result.prediction = grid.read("pred_with_nan", dtype);
  } else if (input == "ens_nan") {
    result.prediction = grid.read("pred_ensemble_with_nan", dtype);
  } else if (input.starts_with("ens") &&
             input.find_first_not_of("0123456789", 3) == std::string::npos) {
    result.prediction = grid.read("pred_ensemble", dtype);
    if (input.size() > 3) {  // "ens2": the first two members
      result.prediction =
          result.prediction.narrow(train::kEnsemble, 0, std::stoll(input.substr(3))).contiguous();
    }
  } else {
    throw NotSupported("input " + input);
  }
  result.target = grid.read(input.ends_with("_nan") ? "target_with_nan" : "target", dtype);
  if (grid.file.tensors.contains("input/nan_mask")) {
    result.nan_mask = train::over_axes(train::kNanMaskName,
                                       read_tensor(grid.file.tensors, "input/nan_mask", dtype),
                                       {train::kBatch, train::kGrid, train::kVariable});
  }
  return result;
}

at::Tensor gradient_of(const LossCase& c) {
  const at::Tensor prediction = c.prediction.clone().set_requires_grad(true);
  c.value(prediction).backward();
  return prediction.grad();
}

// "1_and_3" -> {1, 3}.
std::vector<int64_t> columns_in(std::string text) {
  constexpr std::string_view kAnd = "_and_";
  std::vector<int64_t> columns;
  for (size_t at = text.find(kAnd); at != std::string::npos; at = text.find(kAnd)) {
    columns.push_back(std::stoll(text.substr(0, at)));
    text.erase(0, at + kAnd.size());
  }
  columns.push_back(std::stoll(text));
  return columns;
}

LossCall call_of(const std::string& quantity) {
  const std::string without = "value_without_", of_variables = "value_variables_";
  LossCall call;
  if (quantity == "value" || quantity == "value_f64") return call;
  if (quantity == "value_per_variable") {
    call.over_variables = OverVariables::kKeep;
  } else if (quantity == "value_variables_summed") {
    call.over_variables = OverVariables::kSum;
  } else if (quantity == "value_without_variable_scalers") {
    call = train::without(train::kVariable);
  } else if (quantity.starts_with(without)) {
    call = train::without(quantity.substr(without.size()));
  } else if (quantity.starts_with(of_variables)) {
    call.columns = columns_in(quantity.substr(of_variables.size()));
  } else {
    throw NotSupported("quantity " + quantity);
  }
  return call;
}

at::Tensor dense(const train::SparseRows& matrix) {
  return at::zeros({matrix.num_rows(), matrix.num_columns()}, at::kDouble)
      .index_put({matrix.rows(), matrix.columns()}, matrix.values().to(at::kDouble),
                 /*accumulate=*/true);
}

std::vector<int64_t> integers(const at::Tensor& x) {
  const at::Tensor list = x.to(at::kLong).contiguous();
  const int64_t* data = list.const_data_ptr<int64_t>();
  return {data, data + list.numel()};
}

// The stored matrices of a case, with the shapes of those that were built.
std::vector<train::SparseRowsPtr> check_matrices(const SafetensorsFile& tensors,
                                                 const std::string& name, const BuiltLoss& built,
                                                 Comparison& comparison) {
  std::vector<train::SparseRowsPtr> stored;
  for (size_t i = 0; i < built.matrices.size(); ++i) {
    const std::string suffix = std::to_string(i);
    std::string prefix = name + "/matrix" + suffix;
    if (!tensors.contains(prefix + "_index")) prefix = name + "/smoother" + suffix;
    if (!tensors.contains(prefix + "_index")) break;
    const train::SparseRows& ours = *built.matrices[i];
    const at::Tensor index = read_tensor(tensors, prefix + "_index");
    const at::Tensor value = read_tensor(tensors, prefix + "_value").reshape({-1}).contiguous();
    stored.push_back(std::make_shared<const train::SparseRows>(
        integers(index[0]), integers(index[1]),
        std::span(value.const_data_ptr<float>(), static_cast<size_t>(value.numel())),
        ours.num_rows(), ours.num_columns()));
    comparison.add("matrix " + suffix, max_difference(dense(ours), dense(*stored.back())),
                   kMatrix * std::max(1.0, max_abs(value)));
  }
  return stored;
}

// The reference refuses this case; so must we.
void check_refused(const LossGrid& grid, const Json& json, Comparison& comparison) {
  try {
    make_case(grid, json, at::kFloat).value();
  } catch (const NotSupported&) {
    throw;
  } catch (const std::exception&) {
    comparison.require(true, "refused");
    return;
  }
  comparison.require(false, "the loss should be refused");
}

// A loss in both precisions, and the tensors that the file has of it.
class LossChecks {
 public:
  LossChecks(const LossFile& file, const LossGrid& grid, const std::string& name,
             Comparison& comparison)
      : file_(file),
        name_(name),
        comparison_(comparison),
        single_(make_case(grid, file.json.at("cases").at(name), at::kFloat)),
        twin_(make_case(grid, file.json.at("cases").at(name), at::kDouble,
                        check_matrices(file.tensors, name, single_.built, comparison))) {}

  void check(const std::string& quantity) {
    const bool is_f64 = quantity.ends_with("_f64");
    const LossCase& c = is_f64 ? twin_ : single_;
    const at::Tensor expected = read_tensor(file_.tensors, name_ + "/" + quantity);
    if (quantity.starts_with("grad")) {
      if (!c.built.has_gradient) return;
      const double scale = std::max(max_abs(expected), kTiny);
      const double error = max_difference(gradient_of(c), expected) / scale;
      const double limit = is_f64 ? kGradientF64 : c.built.gradient_limit;
      const double own = is_f64 || error <= limit ? 0.0 : own_gradient_error(expected) / scale;
      return comparison_.add(quantity, error, limit, own);
    }
    const at::Tensor scale = at::where(expected == 0, at::ones_like(expected), expected);
    const double error = max_difference(c.value(call_of(quantity)) / scale, expected / scale);
    const double limit = is_f64 && !c.built.noisy           ? kValueF64
                         : quantity == "value_per_variable" ? c.built.per_variable_limit
                                                            : c.built.value_limit;
    const double own = is_f64 || error <= limit ? 0.0 : own_error(quantity, expected, scale);
    comparison_.add(quantity, error, limit, own);
  }

 private:
  bool has(const std::string& quantity) const {
    return file_.tensors.contains(name_ + "/" + quantity);
  }
  // How far the reference's fp32 results are from fp64: from its own where they are stored, else
  // from ours, which are compared with its value_f64. Where fp64 is another function, 0.
  double own_error(const std::string& quantity, const at::Tensor& expected,
                   const at::Tensor& scale) const {
    if (single_.built.noisy || !has("value_f64")) return 0.0;
    const at::Tensor truth = has(quantity + "_f64")
                                 ? read_tensor(file_.tensors, name_ + "/" + quantity + "_f64")
                                 : twin_.value(call_of(quantity));
    return max_difference(expected / scale, truth.reshape(expected.sizes()) / scale);
  }
  double own_gradient_error(const at::Tensor& expected) const {
    if (single_.built.noisy || !has("grad_f64")) return 0.0;
    return max_difference(expected, read_tensor(file_.tensors, name_ + "/grad_f64"));
  }

  const LossFile& file_;
  const std::string name_;
  Comparison& comparison_;
  LossCase single_, twin_;
};

void check_loss(const LossFile& file, const std::string& name, Comparison& comparison) {
  const Json& json = file.json.at("cases").at(name);
  require_described(json);
  const LossGrid grid{file, json.value("grid", std::string("input")) + "/"};
  if (json.contains("error")) return check_refused(grid, json, comparison);
  LossChecks checks(file, grid, name, comparison);
  for (const auto& [tensor, entry] : file.tensors.entries()) {
    if (!tensor.starts_with(name + "/")) continue;
    const std::string quantity = tensor.substr(name.size() + 1);
    if (!quantity.starts_with("matrix") && !quantity.starts_with("smoother"))
      checks.check(quantity);
  }
}

}  // namespace

void run_loss_cases(const CaseFile& file, Report& report) {
  const SafetensorsFile tensors = file.tensors();
  const LossFile losses{file.json, tensors, variables_of(file.json)};
  const Json scalers = file.json.value("scalers", Json::object());
  for (const auto& [name, json] : scalers.items()) {
    report.run("scaler", name, [&, scaler = name](Comparison& comparison) {
      check_scaler(losses, scaler, comparison);
    });
  }
  for (const auto& [name, json] : file.json.at("cases").items()) {
    report.run("loss", name,
               [&, loss = name](Comparison& comparison) { check_loss(losses, loss, comparison); });
  }
}

}  // namespace aifs::conformance

// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/case_loss.h"

#include <ATen/ATen.h>

#include "app/conformance/report.h"

namespace aifs::conformance {

namespace {

// mean_i |x_i - y| - (alpha / (n (n - 1)) + (1 - alpha) / n^2) sum_{i<j} |x_i - x_j|, E = 1.
at::Tensor crps_field(const at::Tensor& prediction, const at::Tensor& target, double alpha) {
  const auto n = static_cast<double>(prediction.size(2));
  const double weight = alpha / (n * (n - 1.0)) + (1.0 - alpha) / (n * n);
  at::Tensor spread = at::zeros_like(target);
  for (int64_t i = 0; i < prediction.size(2); ++i) {
    for (int64_t j = i + 1; j < prediction.size(2); ++j)
      spread = spread + (prediction.narrow(2, i, 1) - prediction.narrow(2, j, 1)).abs();
  }
  return (prediction - target).abs().mean(2, /*keepdim=*/true) - weight * spread;
}

}  // namespace

namespace {

train::LossKind loss_kind(const std::string& name) {
  static const std::vector<std::pair<std::string, train::LossKind>> kinds{
      {"MSE", train::LossKind::kMse},
      {"RMSE", train::LossKind::kRmse},
      {"MAE", train::LossKind::kMae},
      {"Huber", train::LossKind::kHuber},
      {"LogCosh", train::LossKind::kLogCosh}};
  for (const auto& [known, kind] : kinds) {
    if (name == known || name == known + "Loss") return kind;
  }
  throw NotSupported("loss " + name);
}

}  // namespace

CaseLoss::CaseLoss(const Json& json, const SafetensorsFile& tensors, const CaseDataset& dataset,
                   at::ScalarType dtype) {
  Json names{"pressure_level", "general_variable", "node_weights", "time_steps"};
  if (json.contains("training_loss")) {
    Json loss = json["training_loss"].at("datasets").at(dataset.name);
    if (loss.at("class") == "MultiscaleLossWrapper") {
      const bool one_scale =
          !loss.contains("multiscale_config") || loss["multiscale_config"].is_null();
      if (!one_scale || loss.at("weights") != Json{1.0}) throw NotSupported("several scales");
      loss = Json(loss.at("per_scale_loss"));
    }
    require_known_keys(loss, {"class", "alpha", "no_autocast", "ignore_nans", "scalers", "delta"});
    const auto name = loss.at("class").get<std::string>();
    is_crps_ = name == "CRPS";
    if (!is_crps_) loss_.kind = loss_kind(name);
    loss_.huber_delta = loss.value("delta", 1.0);
    loss_.ignore_nans = loss.value("ignore_nans", false);
    if (is_crps_ && loss_.ignore_nans) throw NotSupported("a CRPS that ignores NaN");
    alpha_ = loss.value("alpha", 0.95);
    names = loss.at("scalers");
  } else {
    const Json loss = json.value("loss", Json::object());
    const auto kind = loss.value("kind", std::string("MSE"));
    loss_.kind = loss_kind(kind.substr(0, kind.find(' ')));
    names = loss.value("scalers_in_order", names);
  }
  loss_.scalers = stored_scalers(tensors, names, dtype, dataset.prefix);
}

at::Tensor CaseLoss::operator()(const at::Tensor& prediction, const at::Tensor& target) const {
  if (!is_crps_) return loss_(prediction, target);
  at::Tensor field = crps_field(prediction, target, alpha_);
  for (const train::Scaler& scaler : loss_.scalers)
    field = field * scaler.factor;
  return field.mean(4).sum({1, 3}).mean();
}

}  // namespace aifs::conformance

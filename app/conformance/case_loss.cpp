// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/case_loss.h"

#include <ATen/ATen.h>

#include "app/conformance/report.h"
#include "train/ensemble_loss.h"

namespace aifs::conformance {

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
  std::string kind = "MSE";
  double delta = 1.0, alpha = 0.95;
  train::ElementaryOptions own;
  if (json.contains("training_loss")) {
    Json loss = json["training_loss"].at("datasets").at(dataset.name);
    if (loss.at("class") == "MultiscaleLossWrapper") {
      const bool one_scale =
          !loss.contains("multiscale_config") || loss["multiscale_config"].is_null();
      if (!one_scale || loss.at("weights") != Json{1.0}) throw NotSupported("several scales");
      loss = Json(loss.at("per_scale_loss"));
    }
    require_known_keys(loss, {"class", "alpha", "no_autocast", "ignore_nans", "scalers", "delta"});
    kind = loss.at("class").get<std::string>();
    delta = loss.value("delta", 1.0);
    alpha = loss.value("alpha", 0.95);
    own.ignore_nans = loss.value("ignore_nans", false);
    names = loss.at("scalers");
  } else {
    const Json loss = json.value("loss", Json::object());
    kind = loss.value("kind", std::string("MSE"));
    kind = kind.substr(0, kind.find(' '));
    names = loss.value("scalers_in_order", names);
  }
  own.scalers = stored_scalers(tensors, names, dtype, dataset.prefix);
  if (kind == "CRPS") {
    loss_ = std::make_shared<train::CrpsLoss>(alpha, std::move(own));
  } else {
    loss_ = std::make_shared<train::PointwiseTerm>(loss_kind(kind), delta, std::move(own));
  }
}

at::Tensor CaseLoss::operator()(const at::Tensor& prediction, const at::Tensor& target) const {
  return (*loss_)(prediction, target);
}

}  // namespace aifs::conformance

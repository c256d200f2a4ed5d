// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "conformance/tensors.h"

namespace aifs::conformance {

namespace {

// Two units in the last place: a norm may add its weights up in another order.
constexpr double kScalerLimit = 2.4e-7;
constexpr double kLeastScale = 1e-300;  // of scalers that are zero everywhere

// {"kind": "MSE with ...", "scalers_in_order": [...]} in the terms of a training loss.
Json loss_config(const Json& loss) {
  auto kind = loss.value("kind", std::string("MSE"));
  kind = kind.substr(0, kind.find(' '));
  if (kind != "CRPS" && !kind.ends_with("Loss")) kind += "Loss";
  const Json scalers{"pressure_level", "general_variable", "node_weights", "time_steps"};
  Json config{{"class", kind}, {"scalers", loss.value("scalers_in_order", scalers)}};
  if (loss.contains("delta")) config["delta"] = loss["delta"];
  return config;
}

}  // namespace

train::LossPtr case_loss(const Json& json, const SafetensorsFile& tensors,
                         const CaseDataset& dataset, const LossUse& use) {
  const Json config = json.contains("training_loss")
                          ? json["training_loss"].at("datasets").at(dataset.name)
                          : loss_config(json.value("loss", Json::object()));
  const LossFile file{json, tensors, dataset.variables};
  LossUse of_case = use;
  if (!file.has_scaler_options())
    of_case.output_mask = at::Tensor();  // stored scalers are 0 outside it
  return build_case_loss({file, dataset.prefix}, config, {}, of_case).loss;
}

void compare_scalers(const Json& json, const SafetensorsFile& tensors, const CaseDataset& dataset,
                     const LossUse& use, Comparison& comparison) {
  const LossFile file{json, tensors, dataset.variables};
  if (!file.has_scaler_options()) return;
  for (const auto& [name, scaler] : json["scalers"].items()) {
    const std::string stored_name = concat(dataset.prefix, "scaler/", name);
    if (!tensors.contains(stored_name)) continue;
    const at::Tensor values = build_case_scaler({file, dataset.prefix}, name, use).factor;
    if (!values.defined()) continue;  // of a batch
    const at::Tensor stored = read_tensor(tensors, stored_name, values.scalar_type());
    comparison.add(stored_name,
                   max_difference(values.cpu().reshape(stored.sizes()), stored) /
                       std::max(max_abs(stored), kLeastScale),
                   kScalerLimit);
  }
}

}  // namespace aifs::conformance

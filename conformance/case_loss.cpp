// SPDX-License-Identifier: Apache-2.0
#include "conformance/case_loss.h"

#include <ATen/ATen.h>

#include "conformance/loss_build.h"

namespace aifs::conformance {

namespace {

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
                         const CaseDataset& dataset, at::ScalarType dtype) {
  const Json config = json.contains("training_loss")
                          ? json["training_loss"].at("datasets").at(dataset.name)
                          : loss_config(json.value("loss", Json::object()));
  const LossFile file{json, tensors, dataset.variables};
  return build_case_loss({file, dataset.prefix}, config, {}, dtype).loss;
}

}  // namespace aifs::conformance

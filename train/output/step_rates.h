// SPDX-License-Identifier: Apache-2.0
// How fast steps are over an interval of several: samples and operations a second.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace aifs::train {

// What a plan says of the network, and a description of the machine of its cards; 0: unknown.
struct Operations {
  double per_sample = 0.0;  // for one forecast step of one sample: forward and backward pass, once
  double peak_per_s = 0.0;  // what the cards of all ranks could do
};

class StepRates {
 public:
  explicit StepRates(const Operations& operations) : operations_(operations) {}

  // A line of metrics.jsonl.
  void add(const nlohmann::ordered_json& line);
  // "samples_per_s", "tflops_per_s" (of all ranks) and "mfu" (share of what the cards could do), as
  // far as they are known, of the steps since the last call; empty if there were none.
  nlohmann::ordered_json take();

 private:
  Operations operations_;
  double step_s_ = 0.0, samples_ = 0.0, forecast_steps_ = 0.0;
};

}  // namespace aifs::train

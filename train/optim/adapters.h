// SPDX-License-Identifier: Apache-2.0
// Low-rank adapters (LoRA, Hu et al. 2021): chosen weights W (out, in) stay as they are, and what
// is added to them is learnt as a product of two thin matrices, W + alpha / rank B A.
//
// The network sees only the sum, which stands where W was: kernels, forecasts, exports and other
// programs know nothing of adapters. A backward pass gives the gradient of the sum, from which
// pull_gradients() makes those of A and B; merge() renews the sum after an update. A set keeps
// beside NAME.weight: NAME.lora_a (rank, in), NAME.lora_b (out, rank), and W as it was in
// NAME.lora_base, from which the sum is made anew each time, so that no rounding adds up.
#pragma once

#include <string>
#include <vector>

#include "core/config.h"
#include "model/base/parameters.h"
#include "parallel/communicator.h"

namespace aifs::train {

struct LoraOptions {
  int64_t rank = 0;  // 0: no adapters
  double alpha = 16.0;
  std::vector<std::string> parameters;   // patterns of weights (parameter_groups.h)
  std::vector<std::string> train_whole;  // patterns of what is trained besides

  bool is_on() const { return rank > 0; }
  void bind(config::Binder& b);
  void validate(const std::string& path) const;
};

// True for the names of tensors that belong to an adapter.
bool is_adapter(const std::string& name);
// The weight that a tensor of an adapter belongs to.
std::string adapted_weight(const std::string& name);

// Adds adapters to a set that is not flat yet: A is drawn, B is 0. Throws ConfigError (path
// "optimizer.lora.parameters.<i>") for a pattern that fits no weight of two dimensions.
void add_adapters(model::ParameterSet& parameters, const LoraOptions& options);

// Names of what an optimiser does not update when there are adapters: all but A, B and what
// `train_whole` fits. Throws ConfigError (path "optimizer.lora.train_whole.<i>") for a pattern that
// fits nothing or a weight that has an adapter.
std::vector<std::string> not_updated(const model::ParameterSet& parameters,
                                     const LoraOptions& options);

// The adapters of a flat set, which outlives them. All calls are local but share().
class Adapters {
 public:
  // Takes A and B out of differentiation, which never sees them.
  Adapters(const model::ParameterSet& parameters, const LoraOptions& options);

  // Keeps the weights as they are now as what adapters add to.
  void start();
  // Gives all ranks those that the first one has loaded. Collective.
  void share(parallel::Communicator& group);
  // Gradients of A and B from those of the sums, which become 0: they are not updated themselves.
  void pull_gradients();
  // Renews the sums.
  void merge();

  // Names of the weights that have adapters.
  std::vector<std::string> weights() const;

 private:
  struct Adapter {
    model::Parameter weight, a, b;
    at::Tensor base;
  };

  const model::ParameterSet& parameters_;
  double scale_;
  std::vector<Adapter> adapters_;
};

}  // namespace aifs::train

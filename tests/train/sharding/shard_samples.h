// SPDX-License-Identifier: Apache-2.0
// Parameters of odd sizes, and checks for threads, where the assertions of Catch2 must not be used.
#pragma once

#include <ATen/ATen.h>

#include "core/check.h"
#include "model/base/parameters.h"
#include "tests/support/tensors.h"

namespace aifs::test {

inline void hold(bool holds, const std::string& law) {
  if (!holds) throw Error(law);
}

inline void add_random(model::ParameterSet& set, const std::string& name, at::IntArrayRef sizes) {
  set.add(name, sizes, model::Init::uniform(1.0));
}

// A tensor of no layer, two layers of three tensors each, and another one of no layer.
inline model::ParameterSet& shard_samples(model::ParameterSet& set) {
  add_random(set, "first", {13, 11});
  for (const char* layer : {"one", "two"}) {
    const size_t before = set.entries().size();
    add_random(set, concat(layer, ".weight"), {17, 9});
    add_random(set, concat(layer, ".bias"), {17});
    add_random(set, concat(layer, ".more"), {5, 3, 7});
    set.add_unit(before);
  }
  add_random(set, "last", {64});
  set.flatten(at::kCPU);
  return set;
}

struct ShardSamples : model::ParameterSet {
  ShardSamples() : ParameterSet(at::kDouble, 7) { shard_samples(*this); }
};

}  // namespace aifs::test

// SPDX-License-Identifier: Apache-2.0
// What tensors were called in earlier releases of anemoi-models, from 0.3 on, and what they are
// called now (0.19). Anemoi's own migrations begin at 0.9.4, and with training checkpoints; they
// are part of this list.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "core/named_tensors.h"

namespace aifs::anemoi {

class KeyHistory {
 public:
  // The tensors of a state dict of AnemoiModelInterface by their present names, in the same order.
  // Those that are gone are left out, and those that were one are three; learnt features of edges
  // follow the order of the targets, as they do now, and not that of `graph`. A model of the
  // present stays as it is. The result refers to this object and to what `model` refers to. Throws
  // DataError for a graph that features of edges do not fit.
  NamedTensors present(const NamedTensors& model, const NamedTensors& graph);
  // True if the last one was of an earlier release.
  bool was_earlier() const { return was_earlier_; }

 private:
  TensorEntry by_target(const TensorEntry& features, const std::string& provider,
                        const NamedTensors& graph, const fs::path& file);

  std::deque<std::vector<std::byte>> copies_;
  bool was_earlier_ = false;
};

}  // namespace aifs::anemoi

// SPDX-License-Identifier: Apache-2.0
// What a kind of loss is: the options that only it reads, what they must hold, and the loss that
// they make. docs/extending.md shows how to add one; the table of all is loss_kinds.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tagged.h"
#include "train/loss/loss_inputs.h"
#include "train/loss/loss_term.h"

namespace aifs::train {

// A term that is being made.
struct LossPlace {
  const LossInputs& inputs;
  std::string path;  // JSON path of the term
  // Scalers and columns of the term. A loss of waves says how many errors it has in place of those
  // of nodes.
  std::function<ElementaryOptions(int64_t modes)> elementary;
};

class LossKind {
 public:
  virtual ~LossKind() = default;

  // Declares the options that this kind reads beside those of every term.
  virtual void bind(config::Binder&) {}
  // Throws ConfigError for options that do not go together; `path` is that of the term.
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for options that do not fit the data; of `inputs.nodes` only the number
  // counts.
  virtual void check(const LossInputs&, const std::string& /*path*/) const {}
  virtual LossPtr make(const LossPlace& place) const = 0;

  // True if it compares members of an ensemble, of which there must be two.
  virtual bool compares_members() const { return false; }
  // True if its errors are of waves, not of nodes: it is weighed by the scaler "spectral", and a
  // NaN has no meaning.
  virtual bool is_of_waves() const { return false; }

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<LossKind>>& kinds();
};

// A loss that is a function of the error of each point.
class PointwiseKind : public LossKind {
 public:
  virtual PointwiseError error() const = 0;
  LossPtr make(const LossPlace& place) const final {
    return std::make_shared<PointwiseTerm>(error(), place.elementary(0));
  }
};

}  // namespace aifs::train

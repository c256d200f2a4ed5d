// SPDX-License-Identifier: Apache-2.0
// What a kind of scaler is: the options that only it reads, the dimensions on which it acts, and
// the weights that it makes. docs/extending.md shows how to add one; the table of all is
// scaler_kinds.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/tagged.h"
#include "train/loss/loss_inputs.h"
#include "train/loss/scalers.h"

namespace aifs::train {

// A scaler that is being made.
struct ScalerPlace {
  const LossInputs& inputs;
  std::string path;  // JSON path of its options
  // How many errors a spectral loss has in place of those of nodes; -1: it is not known yet whether
  // the loss is one.
  int64_t modes = 0;
};

// What a scaler takes the grid's dimension for, if it is made for one of them.
enum class GridUse { kNone, kNodes, kWaves };

class ScalerKind {
 public:
  virtual ~ScalerKind() = default;

  // Declares the options that named scalers of this kind and the section "loss" have, the section
  // for the one scaler of each kind that has no name.
  virtual void bind_settings(config::Binder&) {}
  // Declares all options of a named scaler, and all of the section.
  virtual void bind(config::Binder& b) { bind_settings(b); }
  virtual void bind_in_section(config::Binder& b) { bind_settings(b); }
  // Takes the defaults of the scaler without a name where they are others.
  virtual void become_unnamed() {}

  // Throws ConfigError for options that do not go together; `path` is that of the scaler, here and
  // below.
  virtual void validate(const std::string& /*path*/) const {}
  // Throws ConfigError for options that do not fit the output times of a step, or the names of
  // outputs.
  virtual void check_times(int64_t /*times_out*/, const std::string& /*path*/) const {}
  virtual void check_names(const std::vector<std::string>& /*outputs*/,
                           const std::string& /*path*/) const {}

  // Returns the axes on which it acts, in ascending order.
  virtual std::vector<Axis> axes() const { return {kVariable}; }
  virtual GridUse grid_use() const { return GridUse::kNone; }
  // True if it means nothing without a name and options.
  virtual bool needs_name() const { return false; }
  // Returns the key of an option that somebody has set, and that means nothing if no loss has this
  // scaler; null: none.
  virtual const char* key_to_use() const { return nullptr; }

  // Returns it with values in the type and on the device of the loss. Throws ConfigError or
  // DataError where the inputs lack what it needs.
  virtual Scaler make(const std::string& name, const ScalerPlace& place) const = 0;

  // All kinds, in the order in which they are documented; the first is the default.
  static const std::vector<config::Kind<ScalerKind>>& kinds();
};

// A scaler of weights that are known before any batch is, with their normalisation.
class WeightsKind : public ScalerKind {
 public:
  WeightNorm norm = WeightNorm::kNone;

  void bind(config::Binder& b) override;
  // Returns the weights before their normalisation, with one dimension for each axis.
  virtual at::Tensor weights(const ScalerPlace& place) const = 0;
  Scaler make(const std::string& name, const ScalerPlace& place) const final;
};

// One scaler with its options.
struct ScalerOptions {
  config::Tagged<ScalerKind> kind;  // pressure_level

  void bind(config::Binder& b) { kind.bind(b, "kind", {"what the weights are made of"}); }
  void validate(const std::string& path) const { kind->validate(path); }
};

}  // namespace aifs::train

// SPDX-License-Identifier: Apache-2.0
// Attributes of the cells of a dataset that are made of one of its variables, at its first date.
#pragma once

#include "graph/weights/mask_kinds.h"
#include "graph/weights/weight_kinds.h"

namespace aifs::graph {

// A weight is the value of the variable.
struct VariableWeightKind : WeightKind {
  std::string variable;

  VariableWeightKind() { norm = Norm::kNone; }
  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
  std::vector<std::string> fields_read() const override { return {variable}; }
};

struct VariableMaskKind : MaskKind {
  std::string variable;

  void bind(config::Binder& b) override;
  void validate(const std::string& path) const override;
  std::vector<double> raw(const MeshNodes&, int64_t, const std::string& path) const override;
  std::vector<std::string> fields_read() const override { return {variable}; }

 protected:
  virtual bool holds(float value) const = 0;
};

// Cells where the variable is not missing (NaN).
struct NonmissingMaskKind : VariableMaskKind {
 protected:
  bool holds(float value) const override;
};

// Cells where it is not 0; what is missing is not 0.
struct NonzeroMaskKind : VariableMaskKind {
 protected:
  bool holds(float value) const override;
};

}  // namespace aifs::graph

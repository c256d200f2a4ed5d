// SPDX-License-Identifier: Apache-2.0
// Proper scores of an ensemble against one truth: the continuous ranked probability score of each
// value, and the energy score of whole fields, columns or both.
#pragma once

#include "train/loss/loss_kind.h"

namespace aifs::train {

// alpha 1 is the fair score, 0 the plain one, 0.95 the almost fair one of AIFS-CRPS.
class CrpsLoss : public ElementaryLoss {
 public:
  CrpsLoss(double alpha, ElementaryOptions options)
      : ElementaryLoss(std::move(options)), alpha_(alpha) {}

 protected:
  at::Tensor value(const Fields& fields) const override;

 private:
  double alpha_;
};

struct CrpsKind : LossKind {
  double alpha = 0.95;

  void bind(config::Binder& b) override;
  bool compares_members() const override { return true; }
  LossPtr make(const LossPlace& place) const override;
};

// Declares the weight of a score's correction for the number of members.
void bind_alpha(config::Binder& b, double& alpha);

// The Euclidean norm goes over the nodes, the variables of a node, or both; scalers that act on
// what it goes over weigh its squares, the others multiply the score. A score over variables is
// the same for each of them: their mean is the score, their sum is not defined.
enum class NormOver { kSpatial, kVariables, kSpatialAndVariables };

class EnergyLoss : public ElementaryLoss {
 public:
  EnergyLoss(NormOver over, bool fair, ElementaryOptions options)
      : ElementaryLoss(std::move(options)), over_(over), fair_(fair) {}

 protected:
  at::Tensor value(const Fields& fields) const override;

 private:
  NormOver over_;
  bool fair_;
};

constexpr auto enum_table(NormOver) {
  using enum NormOver;
  return std::to_array<EnumName<NormOver>>({{kSpatial, "spatial"},
                                            {kVariables, "variables"},
                                            {kSpatialAndVariables, "spatial_and_variables"}});
}

struct EnergyScoreKind : LossKind {
  NormOver norm_over = NormOver::kSpatial;
  bool fair = true;

  void bind(config::Binder& b) override;
  bool compares_members() const override { return true; }
  LossPtr make(const LossPlace& place) const override;
};

// Declares whether a score corrects for the number of members.
void bind_fair(config::Binder& b, bool& fair);

}  // namespace aifs::train

// SPDX-License-Identifier: Apache-2.0
#include "verify/skill.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/rng.h"

namespace aifs::verify {

namespace {

double skill_of(const ErrorPair& sum) {
  if (sum.other == 0.0) return NAN;
  return 1.0 - std::sqrt(sum.own / sum.other);
}

}  // namespace

Skill bootstrap_skill(std::span<const ErrorPair> pairs, int64_t num_samples) {
  AIFS_CHECK(!pairs.empty() && num_samples > 0, "nothing to draw from");
  ErrorPair all;
  for (const ErrorPair& pair : pairs)
    all.own += pair.own, all.other += pair.other;
  const double value = skill_of(all);
  if (pairs.size() < kFewestDates) return {value, NAN, NAN};
  Pcg64 random(0);
  std::vector<double> samples;
  const auto last = static_cast<uint32_t>(pairs.size() - 1);
  for (int64_t s = 0; s < num_samples; ++s) {
    ErrorPair sum;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const ErrorPair& drawn = pairs[random.next_bounded(last)];
      sum.own += drawn.own, sum.other += drawn.other;
    }
    if (const double skill = skill_of(sum); !std::isnan(skill)) samples.push_back(skill);
  }
  if (samples.empty()) return {value, NAN, NAN};
  std::sort(samples.begin(), samples.end());
  const auto quantile = [&](double share) {
    return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  return {value, quantile(0.025), quantile(0.975)};
}

}  // namespace aifs::verify

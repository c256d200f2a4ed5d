// SPDX-License-Identifier: Apache-2.0
#include "train/loss/lead_time_scaler.h"

#include "tests/train/close_weights.h"

using namespace aifs;
using namespace aifs::train;
using test::require_close;

TEST_CASE("lead-time weights decay and sum to one", "[lead_time_scaler]") {
  const std::vector<double> leads{6, 12, 18, 24};
  LeadTimeDecayOptions options;
  options.decay = 0.5;
  require_close(lead_time_weights(leads, options), {0.3181818, 0.2727273, 0.2272727, 0.1818182},
                5e-7);
  options.kind = LeadTimeDecay::kExponential;
  options.inverse = true;
  require_close(lead_time_weights(leads, options), {0.1124558, 0.2116977, 0.2992784, 0.3765681},
                1e-6);
}

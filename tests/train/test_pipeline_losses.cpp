// SPDX-License-Identifier: Apache-2.0
#include "train/pipeline_losses.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::train;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Batches of 2, 1 and 3 samples.
PipelineLosses::Shared shared(parallel::Communicator& stages, const std::vector<double>& losses) {
  const std::vector<std::vector<int64_t>> anchors{{4, 9}, {7}, {1, 2, 3}};
  PipelineLosses own;
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool last = stages.rank() + 1 == stages.size();
    own.add(last ? at::full({}, losses[i], at::kFloat) : at::Tensor(), anchors[i]);
  }
  return own.share(stages);
}

}  // namespace

TEST_CASE("all stages learn the losses that the last one has", "[pipeline_losses]") {
  REQUIRE_NOTHROW(parallel::run_as_threads(3, [](parallel::Communicator& stages) {
    const PipelineLosses::Shared sound = shared(stages, {0.5, 2.0, 0.25});
    AIFS_CHECK(sound.sum == 2.75 && sound.samples == 6 && sound.bad_anchors.empty(), "other sums");
    const PipelineLosses::Shared bad = shared(stages, {0.5, kInfinity, std::nan("")});
    AIFS_CHECK(!std::isfinite(bad.sum) && bad.bad == kInfinity, "another bad loss");
    AIFS_CHECK(bad.bad_anchors == std::vector<int64_t>{7}, "another bad batch");
  }));
}

// SPDX-License-Identifier: Apache-2.0
// Runs the checks of one case in a process of its own, so that a crash, an endless loop or a huge
// allocation costs this case only.
#pragma once

#include <functional>

#include "conformance/report.h"

namespace aifs::conformance {

struct IsolationLimits {
  unsigned seconds = 60;
  size_t extra_bytes = size_t{1} << 30;  // memory beyond what the program uses already
};

// Adds the child's checks to `comparison`. What `body` throws is thrown here again, NotSupported
// and NotUnderstood as such and everything else as Error.
void run_isolated(Comparison& comparison, const std::function<void(Comparison&)>& body,
                  const IsolationLimits& limits = {});

}  // namespace aifs::conformance

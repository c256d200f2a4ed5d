// SPDX-License-Identifier: Apache-2.0
// Larger graphs of which only counts, sums, histograms and checksums are stored.
#pragma once

#include "conformance/case_file.h"
#include "conformance/report.h"

namespace aifs::conformance {

// One case per graph and per mesh of the file.
void run_graph_summary(const CaseFile& file, Report& report);

}  // namespace aifs::conformance

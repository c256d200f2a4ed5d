// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/cases.h"

namespace aifs::conformance {

void run_graph_case(const CaseFile& file, Report& report) {
  report.skip("graph", file.name, "graphs");
}
void run_graph_builder_cases(const CaseFile& file, Report& report) {
  report.skip("graph builder", file.name, "graph builders");
}

}  // namespace aifs::conformance

// SPDX-License-Identifier: Apache-2.0
// The single steps of a graph: one function per file of graph_builders/, each runs all its cases.
#pragma once

#include "conformance/case_file.h"
#include "conformance/graph_setup.h"
#include "conformance/report.h"

namespace aifs::conformance {

void run_node_builder_cases(const CaseFile& file, Report& report);
void run_edge_builder_cases(const CaseFile& file, Report& report);
void run_edge_attribute_cases(const CaseFile& file, Report& report);
void run_node_attribute_cases(const CaseFile& file, Report& report);
void run_post_processor_cases(const CaseFile& file, Report& report);

// A case that the reference refuses: `body` must throw an Error.
void require_error(Comparison& comparison, const std::function<void()>& body);

// The icosahedral mesh whose vertices the coordinates are; nothing if there is none up to
// refinement 8.
std::optional<graph::TriNodes> recognise_mesh(const graph::NodeSet& nodes);

}  // namespace aifs::conformance

// SPDX-License-Identifier: Apache-2.0
// The kinds of reference cases. Each function runs every case that one JSON file describes.
#pragma once

#include "app/conformance/case_file.h"
#include "app/conformance/report.h"

namespace aifs::conformance {

void run_graph_case(const CaseFile& file, Report& report);           // graphs/, graph_recipes/
void run_graph_builder_cases(const CaseFile& file, Report& report);  // graph_builders/
void run_model_case(const CaseFile& file, Report& report);           // models/
void run_dataset_cases(const CaseFile& file, Report& report);        // datasets/*.json

}  // namespace aifs::conformance

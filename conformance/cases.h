// SPDX-License-Identifier: Apache-2.0
// The kinds of reference cases. Each function runs every case that one JSON file describes.
#pragma once

#include "conformance/case_file.h"
#include "conformance/report.h"

namespace aifs::conformance {

void run_graph_case(const CaseFile& file, Report& report);           // graphs/, graph_recipes/
void run_graph_builder_cases(const CaseFile& file, Report& report);  // graph_builders/
void run_model_case(const CaseFile& file, Report& report);     // models/, models_more/, rollout/
void run_trained_case(const CaseFile& file, Report& report);   // trained/
void run_dataset_cases(const CaseFile& file, Report& report);  // datasets/
void run_hostile_cases(const CaseFile& file, Report& report);  // datasets/hostile.json
bool describes_datasets(const Json& json);  // whether run_dataset_cases() is for it

void run_loss_cases(const CaseFile& file, Report& report);           // losses/, losses_more/
void run_spectral_cases(const CaseFile& file, Report& report);       // losses_more/
void run_processor_cases(const CaseFile& file, Report& report);      // processors/
void run_learning_rate_cases(const CaseFile& file, Report& report);  // tables/
void run_rollout_length_cases(const CaseFile& file, Report& report);
void run_seed_cases(const CaseFile& file, Report& report);
void run_sampler_cases(const CaseFile& file, Report& report);
void run_partition_cases(const CaseFile& file, Report& report);
void run_optimizer_cases(const CaseFile& file, Report& report);
void run_mixed_precision_cases(const CaseFile& file, Report& report);  // mixed_precision/
void run_training_case(const CaseFile& file, Report& report);          // training/

}  // namespace aifs::conformance

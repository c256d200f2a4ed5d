// SPDX-License-Identifier: Apache-2.0
// aifs-conformance DIR [LOSSES]: runs every reference case under a folder and says how close we
// come. Which kind a JSON file is follows from its content, so that folders may be named freely.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "conformance/cases.h"

namespace aifs::conformance {

namespace {

bool has_keys(const Json& json, std::initializer_list<const char*> keys) {
  return json.is_object() &&
         std::all_of(keys.begin(), keys.end(), [&](const char* key) { return json.contains(key); });
}

// True if some element of the list (or object) `key` has `wanted`.
bool some_has(const Json& json, const char* key, const char* wanted) {
  if (!has_keys(json, {key}) || !json[key].is_structured()) return false;
  return std::any_of(json[key].begin(), json[key].end(),
                     [&](const Json& element) { return has_keys(element, {wanted}); });
}

void run_file(const CaseFile& file, Report& report) {
  const Json& json = file.json;
  if (has_keys(json, {"data_grid", "hidden_mesh", "edges"})) return run_graph_case(file, report);
  if (has_keys(json, {"nodes", "counts"})) return run_graph_case(file, report);
  if (has_keys(json, {"graphs", "meshes"})) return run_graph_case(file, report);
  for (const char* key : {"builder", "builders", "attribute", "post_processors"}) {
    if (some_has(json, "cases", key)) return run_graph_builder_cases(file, report);
  }
  if (describes_datasets(json)) return run_dataset_cases(file, report);
  if (has_keys(json, {"model", "variables", "times_in"}) && !json.contains("schedule")) {
    return run_model_case(file, report);
  }
  if (has_keys(json, {"model", "options", "store", "newest_input_row"})) {
    return run_trained_case(file, report);
  }
  if (has_keys(json, {"model", "variables", "optimizer", "schedule"})) {
    return run_training_case(file, report);
  }
  if (has_keys(json, {"octahedral_rows", "cases"})) return run_spectral_cases(file, report);
  if (has_keys(json, {"dimension_order", "variables", "cases"})) {
    return run_loss_cases(file, report);
  }
  if (has_keys(json, {"shape_of_input_x", "variables", "cases"})) {
    return run_processor_cases(file, report);
  }
  if (some_has(json, "cases", "bf16_against_float32")) {
    return run_mixed_precision_cases(file, report);
  }
  if (some_has(json, "tables", "lr_at_step")) return run_learning_rate_cases(file, report);
  if (some_has(json, "tables", "rollout_during_epoch")) {
    return run_rollout_length_cases(file, report);
  }
  if (has_keys(json, {"derived", "generators"})) return run_seed_cases(file, report);
  if (has_keys(json, {"loaders", "usable_positions"})) return run_sampler_cases(file, report);
  if (some_has(json, "cases", "parts")) return run_partition_cases(file, report);
  if (some_has(json, "cases", "lr_per_step")) return run_optimizer_cases(file, report);
  report.skip("unknown", file.name, "no kind of case has this content");
}

constexpr const char* kManifest = "MANIFEST.json";  // says where reference data come from

std::vector<fs::path> json_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (auto it = fs::recursive_directory_iterator(folder); it != fs::recursive_directory_iterator();
       ++it) {
    if (it->is_directory() && it->path().extension() == ".zarr") it.disable_recursion_pending();
    const bool is_case = it->path().extension() == ".json" && it->path().filename() != kManifest;
    if (it->is_regular_file() && is_case) files.push_back(it->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int run(const fs::path& folder, const fs::path& losses) {
  Report report;
  const std::vector<fs::path> files = json_files(folder);
  if (files.empty()) throw DataError(concat("'", folder.string(), "' holds no case"));
  for (const fs::path& path : files) {
    try {
      run_file(CaseFile(path), report);
    } catch (const std::exception&) {
      const std::exception_ptr what = std::current_exception();
      report.run("file", path.filename().string(),
                 [&](Comparison&) { std::rethrow_exception(what); });
    }
  }
  report.print_summary();
  if (!losses.empty()) write_file_atomic(losses, Json(report.kept()).dump(1) + "\n");
  if (report.num_passed() + report.num_failed() == 0)
    throw DataError(concat("nothing in '", folder.string(), "' could be compared"));
  return report.num_failed() > 0 ? 1 : 0;
}

}  // namespace

}  // namespace aifs::conformance

int main(int argc, char** argv) {
  aifs::open_standard_streams();
  if (argc < 2 || argc > 3 || argv[1][0] == '-') {
    std::fprintf(stderr,
                 "usage: aifs-conformance DIR [LOSSES]\n"
                 "  Runs every reference case under DIR; exit code 0 if none failed, 1 otherwise,\n"
                 "  2 if DIR cannot be read or nothing in it can be compared. LOSSES: a JSON file "
                 "to be written, "
                 "with the loss of\n"
                 "  every step of the training runs.\n");
    return 2;
  }
  if (!aifs::fs::is_directory(argv[1])) {
    std::fprintf(stderr, "aifs-conformance: '%s' is not a folder\n", argv[1]);
    return 2;
  }
  const std::string losses = argc > 2 ? argv[2] : "";
  if (aifs::fs::is_directory(losses)) {
    std::fprintf(stderr, "aifs-conformance: '%s' is a folder, not a file to be written\n",
                 losses.c_str());
    return 2;
  }
  at::set_num_threads(1);  // how sums are split over threads must not decide about a case
  try {
    return aifs::conformance::run(argv[1], losses);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aifs-conformance: %s\n", error.what());
    return 2;
  }
}

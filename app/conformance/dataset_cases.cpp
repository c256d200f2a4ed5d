// SPDX-License-Identifier: Apache-2.0
// Datasets on disk: stores in many encodings and sets of open_dataset options.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <regex>

#include "app/conformance/baseline_scores.h"
#include "app/conformance/cases.h"
#include "app/conformance/dataset_checks.h"
#include "app/conformance/dataset_stores.h"
#include "core/time.h"
#include "data/anemoi_dataset.h"

namespace aifs::conformance {

namespace {

using data::AnemoiDataset;
using data::DatasetOptions;

AnemoiDataset open(const DatasetStores& stores, const std::string& name) {
  DatasetOptions options;
  options.dataset = stores.path(name);
  return AnemoiDataset(options);
}

// ---------------------------------------------------------------------------- stores as a whole
// ---

// {"2t": {"persistence_6h": ..., "training_mean": ...}, ...} over the rows that the text "about"
// calls validation.
void check_baselines(const Json& json, const AnemoiDataset& dataset, Comparison& comparison) {
  const Json scores = json.value("validation_rmse_cos_latitude", Json::object());
  const auto about = json["about"].get<std::string>();
  std::smatch rows;
  if (scores.empty() || !std::regex_search(about, rows, std::regex(R"((\d+)-(\d+) validation)"))) {
    return;
  }
  const int64_t first = std::stoll(rows[1]), end = std::stoll(rows[2]) + 1;
  const data::DatasetInfo& info = dataset.info();
  for (const auto& [kind, value] : scores.begin()->items()) {
    const std::string persistence = "persistence_";
    const bool is_persistence = kind.starts_with(persistence);
    const std::vector<double> ours =
        is_persistence
            ? persistence_rmse(dataset, first, end,
                               parse_duration(kind.substr(persistence.size())) / info.frequency_s)
            : mean_rmse(dataset, first, end);
    // The reference subtracts, and sums for the mean, in float32.
    const auto num_roundings = static_cast<double>(is_persistence ? 1 : first);
    for (const auto& [variable, expected] : scores.items()) {
      const auto v = static_cast<size_t>(info.column(variable));
      const double largest =
          std::max(std::abs(info.statistics.minimum[v]), std::abs(info.statistics.maximum[v]));
      const auto reference = expected[kind].get<double>();
      comparison.add(concat(kind, " of ", variable), std::abs(ours[v] - reference),
                     1e-10 * reference + num_roundings * 0x1p-24 * largest);
    }
  }
}

// One store, which the file describes by its own keys; named after the file.
void run_single_store(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  report.run("dataset", file.name, [&](Comparison& comparison) {
    const AnemoiDataset dataset = open(stores, file.name + ".zarr");
    check_store(file.json, dataset, comparison);
    check_baselines(file.json, dataset, comparison);
  });
}

void run_stores(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : file.json["stores"].items()) {
    const std::string& name = item.key();
    const Json& expected = item.value();
    report.run("dataset", concat(file.name, "/", name), [&](Comparison& comparison) {
      check_store(expected, open(stores, name + ".zarr"), comparison);
    });
  }
}

// A refusal is right if it says in which array's metadata what stands.
void check_refusal(const Error& error, Comparison& comparison) {
  const std::string text = text_of(error);
  comparison.require(
      text.find("/.zarray") != std::string::npos || text.find("/zarr.json") != std::string::npos,
      concat("refused without naming the array file: ", text));
}

void run_variants(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  const Json& variants = file.json["variants"];
  for (const auto& item : variants.items()) {
    const std::string& name = item.key();
    const Json& entry = item.value();
    Json expected = entry;
    for (const Json& key : entry.value("same_as_base", Json::array())) {
      expected[key.get<std::string>()] = variants["base"][key.get<std::string>()];
    }
    report.run("variant", name, [&](Comparison& comparison) {
      if (expected["must"] == "read") {
        return check_store(expected, open(stores, name + ".zarr"), comparison);
      }
      if (expected["must"] != "read or refuse") throw NotSupported(expected["must"].dump());
      std::optional<AnemoiDataset> dataset;
      try {
        dataset.emplace(DatasetOptions{.dataset = stores.path(name + ".zarr")});
      } catch (const DataError& error) {
        return check_refusal(error, comparison);
      }
      check_store(expected, *dataset, comparison);
    });
  }
}

// ------------------------------------------------------------------------------------- options ---

// What open_dataset knows and we do not.
constexpr std::array<const char*, 42> kOtherOptions{"adjust",
                                                    "area",
                                                    "chain",
                                                    "combine",
                                                    "complement",
                                                    "concat",
                                                    "cutout",
                                                    "ensemble",
                                                    "ensembles",
                                                    "expected_access",
                                                    "fill_missing_dates",
                                                    "fill_missing_gaps",
                                                    "grids",
                                                    "interpolate_frequency",
                                                    "interpolate_variables",
                                                    "interpolation",
                                                    "join",
                                                    "mask",
                                                    "max_distance_km",
                                                    "member",
                                                    "members",
                                                    "merge",
                                                    "min_distance_km",
                                                    "number",
                                                    "numbers",
                                                    "rename",
                                                    "reorder",
                                                    "rescale",
                                                    "rolling_average",
                                                    "set_missing_dates",
                                                    "shuffle",
                                                    "skip_missing_dates",
                                                    "source",
                                                    "statistics",
                                                    "statistics_tendencies",
                                                    "synthetic",
                                                    "thinning",
                                                    "trim_edge",
                                                    "x",
                                                    "xy",
                                                    "y",
                                                    "zip"};

// Throws NotSupported if the arguments use a part of open_dataset that does not exist here.
void check_supported(const Json& arguments) {
  for (const auto& [key, value] : arguments.items()) {
    if (std::find(kOtherOptions.begin(), kOtherOptions.end(), key) != kOtherOptions.end()) {
      throw NotSupported(concat("option '", key, "'"));
    }
    if (key == "dataset" && !value.is_string()) throw NotSupported("a dataset inside another");
  }
}

void run_options(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : file.json["cases"].items()) {
    const std::string& name = item.key();
    const Json& expected = item.value();
    const auto check = [&](Comparison& comparison) {
      Json arguments = expected["open_dataset"];
      check_supported(arguments);
      arguments["dataset"] = stores.path(arguments["dataset"].get<std::string>());
      std::optional<AnemoiDataset> dataset;
      try {
        DatasetOptions options;
        config::read(options, arguments, "data.dataset", {});
        dataset.emplace(options);
      } catch (const ConfigError& error) {
        const bool may_refuse = !expected["opens"].get<bool>();
        comparison.require(may_refuse, concat("refused: ", text_of(error)));
        return;
      }
      comparison.require(expected["opens"].get<bool>(), "must be refused");
      if (expected["opens"].get<bool>()) check_options_result(expected, *dataset, comparison);
    };
    report.run("options", name, check);
  }
}

}  // namespace

bool describes_datasets(const Json& json) {
  if (!json.is_object() || !json.contains("about")) return false;
  return json.contains("variants") || json.contains("stores") || json.contains("cases") ||
         (json.contains("sha256") && json.contains("literals"));
}

void run_dataset_cases(const CaseFile& file, Report& report) {
  const Json& json = file.json;
  if (json.contains("variants")) return run_variants(file, report);
  if (json.contains("stores")) return run_stores(file, report);
  if (json.contains("good")) return run_hostile_cases(file, report);
  if (json.contains("cases")) return run_options(file, report);
  run_single_store(file, report);
}

}  // namespace aifs::conformance

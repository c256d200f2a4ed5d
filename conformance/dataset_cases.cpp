// SPDX-License-Identifier: Apache-2.0
// Datasets on disk: stores in many encodings and sets of open_dataset options.
#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>
#include <utility>

#include "conformance/baseline_scores.h"
#include "conformance/cases.h"
#include "conformance/dataset_checks.h"
#include "conformance/dataset_stores.h"
#include "conformance/expectation.h"
#include "conformance/isolated.h"
#include "core/time.h"
#include "data/combine/open_dataset.h"
#include "data/sources/anemoi_dataset.h"

namespace aifs::conformance {

namespace {

using data::AnemoiDataset;
using data::DatasetOptions;

// Stores as a whole.

// Rows [first, end) that a text calls `what`: "rows 0-203 train, 204-239 validation",
// "Validation: rows 204-239".
std::optional<std::pair<int64_t, int64_t>> rows_named(const std::string& text,
                                                      const std::string& what) {
  const std::string range = "(\\d+) ?(?:-|to) ?(\\d+)";
  for (const std::string& pattern : {range + "(?: are| is| for|:)? " + what,
                                     what + "\\w*:? (?:on |are |is )?(?:rows )?" + range}) {
    std::smatch match;
    if (std::regex_search(text, match, std::regex(pattern, std::regex::icase)))
      return std::pair(std::stoll(match[1]), std::stoll(match[2]) + 1);
  }
  return std::nullopt;
}

// {"2t": {"persistence_6h": ..., "training_mean": ...}, ...} over the rows that the text "about"
// calls validation; the mean is that of the rows it calls training, or of all before these.
void check_baselines(const Json& json, const AnemoiDataset& dataset, Comparison& comparison) {
  const Json scores = json.value("validation_rmse_cos_latitude", Json::object());
  const auto rows = rows_named(json.value("about", std::string()), "validation");
  if (scores.empty() || !rows) return;
  const auto training = rows_named(json["about"].get<std::string>(), "train")
                            .value_or(std::pair(int64_t{0}, rows->first));
  const data::DatasetInfo& info = dataset.info();
  for (const auto& [kind, value] : scores.begin()->items()) {
    const std::string persistence = "persistence_";
    const bool is_persistence = kind.starts_with(persistence);
    const std::vector<double> ours =
        is_persistence
            ? persistence_rmse(dataset, rows->first, rows->second,
                               parse_duration(kind.substr(persistence.size())) / info.frequency_s)
            : mean_rmse(dataset, training, *rows);
    // The reference subtracts, and sums for the mean, in float32.
    const auto num_roundings =
        static_cast<double>(is_persistence ? 1 : training.second - training.first);
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
    const AnemoiDataset dataset(DatasetOptions{.dataset = stores.single(file.name)});
    check_store(file.json, dataset, comparison);
    check_baselines(file.json, dataset, comparison);
  });
}

// A refusal is right if it says in which array's metadata what stands.
void check_refusal(const Error& error, Comparison& comparison) {
  const std::string text = text_of(error);
  comparison.require(
      text.find("/.zarray") != std::string::npos || text.find("/zarr.json") != std::string::npos,
      concat("refused without naming the array file: ", text));
}

// Reports what was compared of a store that may be refused, or the refusal. Where the package
// refuses it, too, any of our reasons will do.
void check_refusable(const Json& expected, const Expectation& allowed, bool package_refuses_it,
                     const std::string& path, Comparison& comparison) {
  Comparison values;
  try {
    const AnemoiDataset dataset(DatasetOptions{.dataset = path});
    if (!allowed.any_values) check_store(expected, dataset, values);
  } catch (const DataError& error) {
    if (package_refuses_it) return comparison.require(true, "refused as the package does");
    return check_refusal(error, comparison);
  }
  comparison = values;
  comparison.require(allowed.read || allowed.any_values, "read without an error");
}

// A store that has to be read, has to be refused, or may be either.
void check_store_or_refusal(const Json& expected, const std::string& path, Comparison& comparison) {
  const Expectation allowed = parse_expectation(expected.value("must", std::string("read")),
                                                expected.value("note", std::string()));
  const auto opened = expected.find("open_dataset");
  const bool package_refuses_it = opened != expected.end() && is_refusal(*opened);
  if (!fs::exists(path)) throw DataError(concat("there is no store '", path, "'"));
  if (!allowed.refuse && !package_refuses_it) {
    const AnemoiDataset dataset(DatasetOptions{.dataset = path});
    return check_store(expected, dataset, comparison);
  }
  run_isolated(
      comparison,
      [&](Comparison& inner) {
        check_refusable(expected, allowed, package_refuses_it, path, inner);
      },
      allowed.limits);
}

// {"<name>": {...}, ...}, each of the store <name>.zarr. Keys listed in "same_as_<other>" have the
// values of that other entry.
void run_stores(const std::string& kind, const std::string& prefix, const CaseFile& file,
                const Json& entries, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : entries.items()) {
    const std::string& name = item.key();
    const Json& entry = item.value();
    report.run(kind, prefix + name, [&](Comparison& comparison) {
      if (!entry.is_object()) throw NotUnderstood(concat("the case ", entry.dump()));
      Json expected = entry;
      const std::string same = "same_as_";
      for (const auto& [key, list] : entry.items()) {
        if (!key.starts_with(same) || list.empty()) continue;
        const Json& other = entries.at(key.substr(same.size()));
        for (const Json& shared : list)
          expected[shared.get<std::string>()] = other.at(shared.get<std::string>());
      }
      check_store_or_refusal(expected, stores.path(name + ".zarr"), comparison);
    });
  }
}

// ------------------------------------------------------------------------------------- options ---

void check_options(const DatasetStores& stores, const Json& expected, Comparison& comparison) {
  if (!expected.is_object()) throw NotUnderstood(concat("the case ", expected.dump()));
  const bool opens = expected.value("opens", !expected.contains("python_error"));
  const Expectation allowed =
      parse_expectation(opens ? "read" : "refuse", expected.value("note", std::string()));
  std::vector<data::DatasetPtr> datasets;
  try {
    const data::DatasetTree tree = data::parse_dataset(expected.at("open_dataset"), "data.dataset");
    datasets = data::open_side_by_side(
        tree, [&](const std::string& name) { return data::open_store(stores.path(name)); });
  } catch (const ConfigError& error) {
    return comparison.require(allowed.refuse, concat("refused: ", text_of(error)));
  } catch (const DataError& error) {
    return comparison.require(allowed.refuse, concat("refused: ", text_of(error)));
  }
  comparison.require(allowed.read, "must be refused");
  if (!opens) return;
  if (datasets.size() == 1) {
    check_options_result(expected, *datasets.front(), comparison);
  } else {
    check_side_by_side(expected, datasets, comparison);
  }
}

void run_options(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : file.json["cases"].items()) {
    const Json& expected = item.value();
    report.run("options", item.key(),
               [&](Comparison& comparison) { check_options(stores, expected, comparison); });
  }
}

}  // namespace

bool describes_datasets(const Json& json) {
  if (!json.is_object()) return false;
  const Json cases = json.value("cases", Json::object());
  const bool has_cases =
      cases.is_object() && std::any_of(cases.begin(), cases.end(), [](const Json& one) {
        return one.is_object() && (one.contains("open_dataset") || one.contains("must"));
      });
  return json.contains("variants") || json.contains("stores") || has_cases ||
         (json.contains("sha256") && (json.contains("literals") || json.contains("shape")));
}

void run_dataset_cases(const CaseFile& file, Report& report) {
  const Json& json = file.json;
  if (json.contains("variants")) return run_stores("variant", "", file, json["variants"], report);
  if (json.contains("stores"))
    return run_stores("dataset", file.name + "/", file, json["stores"], report);
  if (json.contains("good")) return run_hostile_cases(file, report);
  if (json.contains("cases")) return run_options(file, report);
  run_single_store(file, report);
}

}  // namespace aifs::conformance

// SPDX-License-Identifier: Apache-2.0
// Damaged stores. Each case runs in a process of its own with limited time and memory.
#include <algorithm>
#include <cmath>
#include <optional>

#include "conformance/cases.h"
#include "conformance/dataset_stores.h"
#include "conformance/error_names.h"
#include "conformance/expectation.h"
#include "conformance/field_hash.h"
#include "conformance/isolated.h"
#include "data/transforms/normaliser.h"

namespace aifs::conformance {

namespace {

using data::AnemoiDataset;
using data::DatasetOptions;

constexpr size_t kMostRows = 1000;  // read of a store whose shape may be absurd

// Describes what came of reading the rows of a store, and of normalising its variables.
struct Outcome {
  std::vector<std::string> errors;  // of opening, or of each row
  std::vector<std::string> normaliser_errors;
  std::vector<int64_t> missing_rows;
  std::vector<int64_t> numbers;          // of the rows, in the store; -1: not stored
  std::vector<std::vector<float>> rows;  // (V, E, N) each; empty if it could not be read
};

// The text of an error without the path of the store: its name often says what is wrong with it.
std::string message_of(const Error& error, const std::string& path) {
  std::string text = text_of(error);
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path))
    text.replace(at, path.size(), "STORE");
  return text;
}

void read_rows(const AnemoiDataset& dataset, const std::string& path, Outcome& outcome) {
  outcome.missing_rows = dataset.info().missing_rows;
  outcome.numbers = stored_rows(dataset);
  for (int64_t row = 0; row < dataset.info().num_rows(); ++row) {
    if (outcome.rows.size() == kMostRows) break;
    outcome.rows.emplace_back();
    const auto& missing = outcome.missing_rows;
    if (std::binary_search(missing.begin(), missing.end(), row)) continue;
    try {
      outcome.rows.back() = read_fields(dataset, row);
    } catch (const DataError& error) {
      outcome.errors.push_back(message_of(error, path));
    }
  }
}

Outcome read_everything(const std::string& path) {
  Outcome outcome;
  try {
    const AnemoiDataset dataset(DatasetOptions{.dataset = path});
    read_rows(dataset, path, outcome);
    data::Statistics statistics = dataset.info().statistics;
    try {
      data::Normaliser::create(dataset.info().variables, statistics, {});
    } catch (const DataError& error) {
      outcome.normaliser_errors.push_back(message_of(error, path));
    }
  } catch (const DataError& error) {
    outcome.errors.push_back(message_of(error, path));
  }
  return outcome;
}

// One case, with the good store that it was cut from.
struct HostileCase {
  const Json& good;
  const Json& expected;
  Expectation expectation;
  std::string path;
  std::string good_path;

  std::string note() const { return expected.value("note", std::string()); }

  void check(Comparison& comparison) const;

 private:
  void check_messages(const std::vector<std::string>& messages, Comparison& comparison) const;
  void check_rows(const Outcome& outcome, Comparison& comparison) const;
  void check_readable(const Outcome& outcome, Comparison& comparison) const;
};

void HostileCase::check_messages(const std::vector<std::string>& messages,
                                 Comparison& comparison) const {
  StoreNames known;
  for (const Json& variable : good.value("variables", Json::array()))
    known.variables.insert(variable.get<std::string>());
  known.add_members(path);
  known.add_members(good_path);
  check_names(expected.value("message_names", std::vector<std::string>()), known, messages,
              comparison);
}

bool all_equal(const std::vector<float>& fields, float value) {
  return std::all_of(fields.begin(), fields.end(),
                     [&](float x) { return std::isnan(value) ? std::isnan(x) : x == value; });
}

// The rows that were read are those of the good store with the same number, but for what the note
// says of them. Rows that the good store does not have cannot be compared.
void HostileCase::check_rows(const Outcome& outcome, Comparison& comparison) const {
  const Json good_rows = good.value("rows", Json::object());
  const std::map<int64_t, float> noted = noted_values(note());
  for (size_t i = 0; i < outcome.rows.size(); ++i) {
    const std::vector<float>& fields = outcome.rows[i];
    if (fields.empty()) continue;
    const int64_t number = outcome.numbers[i];
    const auto own = noted.find(number), common = noted.find(-1);
    if (own != noted.end() || common != noted.end()) {
      const float value = (own != noted.end() ? own : common)->second;
      comparison.require(all_equal(fields, value), concat("row ", number, " is ", value));
      continue;
    }
    const auto expected_row = good_rows.find(std::to_string(number));
    if (expected_row == good_rows.end()) continue;
    const bool same = expected_row->at("sha256") == hash_of(fields);
    if (!same && noted.empty() && speaks_of_values(note()))
      throw NotUnderstood(concat("note: '", note(), "'"));
    comparison.require(same, concat("row ", number));
  }
}

void HostileCase::check_readable(const Outcome& outcome, Comparison& comparison) const {
  check_rows(outcome, comparison);
  const auto num_read = std::count_if(outcome.rows.begin(), outcome.rows.end(),
                                      [](const auto& row) { return !row.empty(); });
  comparison.require(
      num_read + std::ssize(outcome.missing_rows) >= std::ssize(good.value("rows", Json::object())),
      "all rows are there or missing");
}

void HostileCase::check(Comparison& comparison) const {
  const Outcome outcome = read_everything(path);
  if (!outcome.errors.empty()) {
    comparison.require(expectation.refuse, concat("refused: ", outcome.errors[0]));
    if (!expectation.refuse) return;
    check_messages(outcome.errors, comparison);
    // The damage must not reach other rows.
    if (!expectation.any_values) check_rows(outcome, comparison);
    return;
  }
  if (expectation.any_values) {
    comparison.require(true, "");
  } else if (expectation.read) {
    check_readable(outcome, comparison);
  } else if (expectation.missing_rows) {
    comparison.require(!outcome.missing_rows.empty(), "absent rows are missing rows");
    check_readable(outcome, comparison);
  } else {
    comparison.require(false, "read without an error");
  }
  if (!expectation.refuse_to_normalise) return;
  comparison.require(!outcome.normaliser_errors.empty(), "normalising must be refused");
  if (!outcome.normaliser_errors.empty()) check_messages(outcome.normaliser_errors, comparison);
}

}  // namespace

void run_hostile_cases(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : file.json["cases"].items()) {
    const std::string& name = item.key();
    const Json& expected = item.value();
    report.run("hostile", name, [&](Comparison& comparison) {
      if (!expected.is_object()) throw NotUnderstood(concat("the case ", expected.dump()));
      const HostileCase one{file.json["good"], expected,
                            parse_expectation(expected.at("must").get<std::string>(),
                                              expected.value("note", std::string())),
                            stores.path(name + ".zarr"), stores.path("good.zarr")};
      run_isolated(
          comparison, [&](Comparison& inner) { one.check(inner); }, one.expectation.limits);
    });
  }
}

}  // namespace aifs::conformance

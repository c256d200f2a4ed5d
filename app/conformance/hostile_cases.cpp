// SPDX-License-Identifier: Apache-2.0
// Damaged stores. Each case runs in a process of its own with limited time and memory.
#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>

#include "app/conformance/cases.h"
#include "app/conformance/dataset_stores.h"
#include "app/conformance/field_hash.h"
#include "app/conformance/isolated.h"
#include "data/anemoi_dataset.h"
#include "data/normaliser.h"

namespace aifs::conformance {

namespace {

using data::AnemoiDataset;
using data::DatasetOptions;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Whether a message says `wanted`: as it stands, or, if it is not the name of a file, all its
// words.
bool says(const std::string& message, const std::string& wanted) {
  if (lower(message).find(lower(wanted)) != std::string::npos) return true;
  if (wanted.find('/') != std::string::npos || wanted.find(' ') == std::string::npos) return false;
  std::istringstream words(wanted);
  for (std::string word; words >> word;) {
    if (lower(message).find(lower(word)) == std::string::npos) return false;
  }
  return true;
}

// What one of the messages must name. The one that comes closest is shown if none does.
void check_messages(const Json& expected, const std::vector<std::string>& messages,
                    Comparison& comparison) {
  const std::vector<std::string> wanted = expected["message_names"];
  std::vector<std::string> closest = wanted;
  std::string shown;
  for (const std::string& message : messages) {
    std::vector<std::string> unnamed;
    for (const std::string& name : wanted) {
      if (!says(message, name)) unnamed.push_back(name);
    }
    if (shown.empty() || unnamed.size() < closest.size()) {
      closest = unnamed;
      shown = message;
    }
  }
  comparison.require(!shown.empty(), "the error has a message");
  for (const std::string& name : wanted) {
    comparison.require(std::find(closest.begin(), closest.end(), name) == closest.end(),
                       concat("the message does not name '", name, "': ", shown));
  }
}

// What came of reading every row of a store, and of normalising its variables.
struct Outcome {
  std::vector<std::string> errors;  // of opening, or of each row
  std::vector<std::string> normaliser_errors;
  std::vector<int64_t> missing_rows;
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
  for (int64_t row = 0; row < dataset.info().num_rows(); ++row) {
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

// The value that a note gives a whole row: "row 2 is 7.5 everywhere".
std::optional<float> noted_value(const Json& expected, size_t row) {
  const std::string note = expected.value("note", "");
  const std::regex pattern(R"(row (\d+) is (-?[\d.]+) everywhere)");
  std::smatch match;
  if (!std::regex_search(note, match, pattern) || std::stoul(match[1]) != row) return std::nullopt;
  return std::stof(match[2]);
}

// The rows that were read are those of the good store: all of them if the dataset is complete, else
// those with the same number.
void check_rows(const Json& good, const Json& expected, const Outcome& outcome,
                Comparison& comparison) {
  const bool gaps = !outcome.missing_rows.empty();  // rows that were left out have no number
  size_t number = 0;
  for (const std::vector<float>& fields : outcome.rows) {
    const size_t row = number;
    if (!fields.empty() || !gaps) ++number;
    if (fields.empty()) continue;
    if (const auto value = noted_value(expected, row)) {
      comparison.require(
          std::all_of(fields.begin(), fields.end(), [&](float x) { return x == *value; }),
          concat("row ", row, " is ", *value));
    } else {
      comparison.require(good["rows"][std::to_string(row)]["sha256"] == hash_of(fields),
                         concat("row ", row));
    }
  }
}

void check_readable(const Json& good, const Json& expected, const Outcome& outcome,
                    Comparison& comparison) {
  comparison.require(outcome.errors.empty(), outcome.errors.empty() ? "" : outcome.errors[0]);
  check_rows(good, expected, outcome, comparison);
  const auto num_read = std::count_if(outcome.rows.begin(), outcome.rows.end(),
                                      [](const auto& r) { return !r.empty(); });
  comparison.require(num_read + std::ssize(outcome.missing_rows) >= std::ssize(good["rows"]),
                     "all rows are there or missing");
}

void check_hostile(const Json& good, const Json& expected, const std::string& path,
                   Comparison& comparison) {
  const auto must = expected["must"].get<std::string>();
  const Outcome outcome = read_everything(path);
  const bool refused = !outcome.errors.empty();
  if (must == "read") return check_readable(good, expected, outcome, comparison);
  if (must == "read, error when used to normalise") {
    check_readable(good, expected, outcome, comparison);
    comparison.require(!outcome.normaliser_errors.empty(), "normalising must be refused");
    if (outcome.normaliser_errors.empty()) return;
    return check_messages(expected, outcome.normaliser_errors, comparison);
  }
  if (!must.starts_with("error")) throw NotSupported(concat("must: ", must));
  if (refused) check_messages(expected, outcome.errors, comparison);
  if (must == "error") {
    comparison.require(refused, "read without an error");
    check_rows(good, expected, outcome, comparison);  // the damage must not reach other rows
  } else if (must == "error or treat the absent rows as missing") {
    if (refused) return;
    comparison.require(!outcome.missing_rows.empty(), "absent rows are missing rows");
    check_readable(good, expected, outcome, comparison);
  } else if (must == "error or wrong values, no crash") {
    comparison.require(true, "");
  } else {
    throw NotSupported(concat("must: ", must));
  }
}

}  // namespace

void run_hostile_cases(const CaseFile& file, Report& report) {
  const DatasetStores stores(file);
  for (const auto& item : file.json["cases"].items()) {
    const std::string& name = item.key();
    const Json& expected = item.value();
    report.run("hostile", name, [&](Comparison& comparison) {
      run_isolated(comparison, [&](Comparison& inner) {
        check_hostile(file.json["good"], expected, stores.path(name + ".zarr"), inner);
      });
    });
  }
}

}  // namespace aifs::conformance

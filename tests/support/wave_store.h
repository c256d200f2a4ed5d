// SPDX-License-Identifier: Apache-2.0
// Small Anemoi stores of waves, so that a run trains on a store and goes on with another one: with
// variables in another order, other statistics, more dates. Fields belong to the name of a
// variable.
#pragma once

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/time.h"
#include "tests/support/zarr_writer.h"

namespace aifs::test {

struct WaveStore {
  std::vector<std::string> variables{"t", "q", "z", "lsm"};
  int64_t num_dates = 16;
  double stdev_of_q = 1.0;           // times what it is
  double tendency_stdev_of_q = 1.0;  // the same of the differences over 6 h
  std::string constant_fields = {};  // JSON, "" leaves the key out
  std::string bad_variable = {};     // has this value in its first cell at one date
  int64_t bad_date = -1;
  double bad_value = 0.0;
};

inline constexpr int64_t kWaveCells = 72;

inline double wave_value(const std::string& variable, int64_t date, int64_t cell) {
  const double lat = std::sin(0.4 + static_cast<double>(cell / 12)), lon = 0.5236 * (cell % 12);
  const double phase = lon - 0.3 * static_cast<double>(date);
  if (variable == "t") return 280.0 + 20.0 * lat + 5.0 * std::cos(phase);
  if (variable == "q") return 3.0 + std::sin(2.0 * phase) * lat;
  if (variable == "z") return 5e4 + 300.0 * std::sin(phase + lat);
  if (variable == "lsm") return (cell * 7) % 3 == 0 ? 1.0 : 0.0;
  return std::cos(phase + static_cast<double>(variable.size()));
}

// Mean, stdev, minimum, maximum over the first 16 dates, of values or of their differences.
inline std::vector<double> wave_statistics(const std::string& variable, bool differences) {
  std::vector<double> values;
  for (int64_t date = differences ? 1 : 0; date < 16; ++date) {
    for (int64_t cell = 0; cell < kWaveCells; ++cell)
      values.push_back(wave_value(variable, date, cell) -
                       (differences ? wave_value(variable, date - 1, cell) : 0.0));
  }
  double sum = 0.0, squares = 0.0, least = values[0], most = values[0];
  for (const double value : values) {
    sum += value;
    least = std::min(least, value), most = std::max(most, value);
  }
  const auto count = static_cast<double>(values.size());
  for (const double value : values)
    squares += std::pow(value - sum / count, 2);
  return {sum / count, std::sqrt(squares / count), least, most};
}

inline void write_wave_store(const WaveStore& spec, const std::filesystem::path& folder) {
  zarr::MemoryStore store("waves");
  const auto num_variables = static_cast<int64_t>(spec.variables.size());
  const auto name = [&](int64_t v) { return spec.variables[static_cast<size_t>(v)]; };
  std::string names;
  for (const std::string& variable : spec.variables)
    names += concat(names.empty() ? "\"" : ", \"", variable, "\"");
  store.put(".zgroup", R"({"zarr_format": 2})");
  store.put(".zattrs", concat(R"({"variables": [)", names, R"(], "frequency": "6h", )",
                              spec.constant_fields.empty()
                                  ? std::string()
                                  : concat(R"("constant_fields": )", spec.constant_fields, ", "),
                              R"("missing_dates": [], "field_shape": [)", kWaveCells,
                              R"(], "resolution": null})"));
  write_array(store, "data",
              {.shape = {spec.num_dates, num_variables, 1, kWaveCells},
               .chunks = {1, num_variables, 1, kWaveCells}},
              [&](const std::vector<int64_t>& i) {
                if (name(i[1]) == spec.bad_variable && i[0] == spec.bad_date && i[3] == 0)
                  return spec.bad_value;
                return wave_value(name(i[1]), i[0], i[3]);
              });
  const auto write = [&](const std::string& path, const std::string& dtype, int64_t length,
                         const std::function<double(int64_t)>& value) {
    write_array(store, path,
                {.shape = {length}, .chunks = {length}, .dtype = dtype, .fill_value = "0"},
                [&](const std::vector<int64_t>& i) { return value(i[0]); });
  };
  write("dates", "<M8[s]", spec.num_dates,
        [](int64_t date) { return static_cast<double>(parse_date("2020-01-01") + date * 21600); });
  write("latitudes", "<f8", kWaveCells,
        [](int64_t cell) { return -75.0 + 30.0 * static_cast<double>(cell / 12); });
  write("longitudes", "<f8", kWaveCells,
        [](int64_t cell) { return 30.0 * static_cast<double>(cell % 12); });
  size_t k = 0;
  for (const char* statistic : {"mean", "stdev", "minimum", "maximum"}) {
    for (const bool differences : {false, true}) {
      const double factor = differences ? spec.tendency_stdev_of_q : spec.stdev_of_q;
      write(differences ? concat("statistics_tendencies_6h_", statistic) : std::string(statistic),
            "<f8", num_variables, [&](int64_t v) {
              const double value = wave_statistics(name(v), differences)[k];
              return k == 1 && name(v) == "q" ? value * factor : value;
            });
    }
    ++k;
  }
  write_to_folder(store, folder);
}

// Options of a run on a store of these, four steps long.
inline std::string wave_options(const std::filesystem::path& folder,
                                const std::string& forcing = R"(["lsm"])",
                                const std::string& diagnostic = R"([])") {
  std::string options;
  for (const std::string& assignment : std::vector<std::string>{
           "data.kind=anemoi", concat("data.dataset=", folder.string()), "graph.grid=dataset",
           "graph.hidden.refinement=1", R"(data.training={"end": "2020-01-03T06"})",
           R"(data.validation={"start": "2020-01-03T06"})", concat("data.forcing=", forcing),
           concat("data.diagnostic=", diagnostic),
           R"(data.normalizer={"default": "mean-std", "none": ["lsm"]})", "model.bounding=[]",
           "train.max_steps=4", "checkpoint.every_steps=0", "train.validation.every_epochs=0",
           "optimizer.schedule.total_steps=100"})
    options += " --set '" + assignment + "'";
  return options + " ";
}

}  // namespace aifs::test
